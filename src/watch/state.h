/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of one node: its entities and their values, as the stream of `assay __watch` gave them
 * (docs/explanation/design/watch.md). Times are CLOCK_MONOTONIC of that node, in ns.
 */
#ifndef WATCH_STATE_H
#define WATCH_STATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/metrics/catalogue.h"

enum { WATCH_ENTITIES_MAX = 16384, WATCH_SOURCES_MAX = 8, WATCH_LABELS_MAX = 10 };

struct watch_value {
	double value, before; /* before: the value of the reading before the last */
	uint64_t t_ns, before_ns;
	bool present; /* false: never read, or absent now */
};

struct watch_label {
	char *name, *value;
};
struct watch_entity {
	uint32_t id; /* of the stream */
	enum metric_scope scope;
	bool gone;
	unsigned source; /* index into watch_state.source of its last values */
	struct watch_label label[WATCH_LABELS_MAX];
	unsigned label_count;
	char *why; /* why it gives no values; NULL: it does */
	/* One value for each row of its scope, at watch_row_index. */
	struct watch_value *value;
};
struct watch_source {
	char name[16];
	uint64_t heard_ns; /* the last complete reading; 0: none yet */
	char *why;	   /* why it does not answer; NULL: it does */
};

/* Zeroed is empty. */
struct watch_state {
	char node[128], boot[64];
	double wall;		/* seconds since 1970 at t0_ns */
	uint64_t t0_ns, now_ns; /* now_ns: the latest time seen */
	double interval;
	struct watch_entity *entity;
	size_t count, room;
	struct watch_source source[WATCH_SOURCES_MAX];
	unsigned source_count;
	enum catalogue
		*row; /* the stream's positions; CATALOGUE_COUNT: a metric that this build does not know */
	size_t row_count;
	uint64_t restarts; /* the node's clock fell: all counters began again */
};
void watch_state_release(struct watch_state *s);

/* Takes one line of the stream, without newline. BAD_INPUT: not a line of a stream; the message says what is
 * wrong, and the state is unchanged. */
enum status watch_state_line(struct watch_state *s, const char *line, size_t size, struct error *err);

/* Position of a row among those of its scope. */
unsigned watch_row_index(enum catalogue row);
/* The value; NULL: absent. */
const struct watch_value *watch_get(const struct watch_entity *e, enum catalogue row);
/* Change per second between the last two readings. False: absent, one reading only, or the counter was reset.
 */
bool watch_rate(double *out, const struct watch_entity *e, enum catalogue row);
/* The label's value; NULL: it has none of that name. Borrowed. */
const char *watch_label(const struct watch_entity *e, const char *name);
/* Age of the entity's source in seconds at the node's time t_ns; negative: it never answered. */
double watch_age(const struct watch_state *s, const struct watch_entity *e, uint64_t t_ns);
#endif
