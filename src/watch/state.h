/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of one node: its entities and their values, as the stream of `assay __watch` gave them
 * (docs/explanation/design/watch.md). Times are CLOCK_MONOTONIC of that node, in ns.
 */
#ifndef WATCH_STATE_H
#define WATCH_STATE_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"
#include "journal/metrics/catalogue.h"

enum {
	WATCH_VERSION = 1,
	WATCH_ENTITIES_MAX = 8192, /* ids are below it */
	WATCH_SOURCES_MAX = 8,
	WATCH_LABELS_MAX = 16,
	WATCH_LINE_MAX = 65536,	   /* bytes of a line */
	WATCH_TEXT_MAX = 256,	   /* bytes of a label or a reason */
	WATCH_BYTES_MAX = 8 << 20, /* memory of one node, without histories */
	WATCH_HISTORY = 600,	   /* readings */
	WATCH_HISTORIES_MAX = 2048
};

/* The last readings of a kept row, oldest first from `first`; NaN: absent. Counters are rates. */
struct watch_history {
	unsigned first, count;
	float value[WATCH_HISTORY];
};
struct watch_value {
	double value, before;	  /* before: the value of the reading before the last */
	uint64_t t_ns, before_ns; /* before_ns 0: there is none */
	bool present;		  /* false: never read, or absent now */
	char *why;		  /* why it is absent; NULL: no reason is known */
	struct watch_history *history;
};

struct watch_label {
	char *name, *value;
};
struct watch_entity {
	uint32_t id, of;	 /* of: the entity to which it belongs (its GPU); else its own id */
	enum metric_scope scope; /* METRIC_SCOPE_COUNT: there is no entity with this id */
	bool foreign;		 /* there is one, but this build does not know its scope */
	bool doubtful;		 /* its source began again and has not named it yet */
	unsigned source;	 /* index into watch_state.source */
	/* The last complete reading with rows of this pace; 0: none yet. FAST is the latest of both. */
	uint64_t heard_ns[METRIC_PACE_COUNT];
	bool tells_rare; /* false: RARE rows are read as often as SLOW ones, as older versions did */
	struct watch_label label[WATCH_LABELS_MAX];
	unsigned label_count;
	char *why; /* why it gives no values; NULL: it does */
	/* The rows of its scope, each with one value; foreign: 0 rows. Looking them up in the catalogue for
	 * each value would cost more than the values. */
	enum catalogue first;
	unsigned rows;
	struct watch_value *value;
};
struct watch_source {
	char name[16];
	uint64_t heard_ns; /* the last complete reading; 0: none yet */
	char *why;	   /* why it does not answer; NULL: it does */
};

/* Zeroed is empty. */
struct watch_state {
	char node[128], boot[64];    /* node "": no header yet */
	double wall;		     /* seconds since 1970 at wall_ns */
	uint64_t wall_ns, now_ns;    /* now_ns: the latest time seen */
	uint64_t arrival_ns;	     /* the reader's own CLOCK_MONOTONIC at the last line; 0: a recording */
	double interval;	     /* seconds */
	struct watch_entity *entity; /* at its id */
	uint32_t count, room;
	unsigned of_scope[METRIC_SCOPE_COUNT]; /* number of entities */
	struct watch_source source[WATCH_SOURCES_MAX];
	unsigned source_count;
	enum catalogue *row; /* of the stream's positions; CATALOGUE_COUNT: this build does not know it */
	size_t row_count;
	char *metrics;			    /* the stream's list of metrics, as JSON */
	unsigned position[CATALOGUE_COUNT]; /* in that list; row_count: not in it */
	uint64_t restarts, readings;	    /* of the node; complete readings of all sources so far */
	size_t bytes;
	bool kept[CATALOGUE_COUNT];
	unsigned histories;
};
void watch_state_release(struct watch_state *s);

/* Takes one line of the stream, without newline. BAD_INPUT: the line is wrong; the message says how, and the
 * state is unchanged. NO_RESOURCE: no memory, or more than a node may have. Text that could control a
 * terminal is cleaned here. */
enum status watch_state_line(struct watch_state *s, const char *line, size_t size, struct error *err);
/* The same of a line that the caller has parsed: a JSON object of at most WATCH_LINE_MAX bytes. */
struct json_t;
enum status watch_state_object(struct watch_state *s, const struct json_t *line, struct error *err);
/* The same of a reading. False: it is wrong for this state, or the state is larger than WATCH_BYTES_MAX. The
 * state is unchanged then. */
struct reading_line;
bool watch_state_reading(struct watch_state *s, const struct reading_line *line);
/* Appends the whole state as lines, from which watch_state_line makes an equal one (without rates). */
void watch_state_write(const struct watch_state *s, struct text *out);
/* From now on, keeps the history of this row. */
void watch_state_keep(struct watch_state *s, enum catalogue row);

/* The value; NULL: absent. */
const struct watch_value *watch_get(const struct watch_entity *e, enum catalogue row);
/* Why a value is absent: its own reason or the entity's; NULL: not known. */
const char *watch_why(const struct watch_entity *e, enum catalogue row);
/* Change of a counter per second between its last two readings. False: absent, one reading only, no counter,
 * or the counter was reset. */
bool watch_rate(double *out, const struct watch_entity *e, enum catalogue row);
/* NULL: not kept, or no reading yet. */
const struct watch_history *watch_history(const struct watch_entity *e, enum catalogue row);
float watch_history_at(const struct watch_history *h, unsigned i); /* i below count, 0: the oldest */
/* The label's value; NULL: it has none of that name. Borrowed. */
const char *watch_label(const struct watch_entity *e, const char *name);
/* Age of an entity's or a source's last reading in seconds. local_ns: the reader's own CLOCK_MONOTONIC, which
 * counts while nothing arrives; it is not used for a recording. Negative: there was none. */
double watch_age(const struct watch_state *s, const struct watch_entity *e, uint64_t local_ns);
double watch_source_age(const struct watch_state *s, unsigned source, uint64_t local_ns);
/* The node's wall clock at the latest time seen, in seconds since 1970. */
double watch_wall(const struct watch_state *s);
#endif
