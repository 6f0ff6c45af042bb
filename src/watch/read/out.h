/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the part of the stream that one source gives. It sends a value only when it differs from the last
 * one sent, rounded to its row's resolution. A value that was sent and is not set again before the reading
 * ends becomes absent. The source's own number is 0; the node changes it, and the numbers of the entities.
 */
#ifndef WATCH_READ_OUT_H
#define WATCH_READ_OUT_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"
#include "journal/metrics/catalogue.h"

#define OUT_NONE UINT32_MAX

struct out_value {
	double value; /* rounded */
	bool present, touched, pending;
	const char *why; /* why it is absent; borrowed */
};
struct out_entity {
	bool used;
	enum metric_scope scope;
	uint32_t of;
	bool lost;	      /* a reason for the whole entity was sent */
	bool pending;	      /* some of its values are */
	enum catalogue first; /* the rows of its scope, each with one value */
	unsigned rows;
	struct out_value *value;
};
struct watch_out {
	int fd;
	struct out_entity *entity;
	uint32_t count, room;
	struct text text; /* complete lines that wait for out_flush */
};

void out_init(struct watch_out *o, int fd);
void out_release(struct watch_out *o);
/* Declares an entity. of: its GPU; OUT_NONE: none. Then labels: pairs of name and value, NULL ends; a pair
 * whose value is NULL is left out. OUT_NONE: no memory. */
uint32_t out_entity(struct watch_out *o, enum metric_scope scope, uint32_t of, ...) __attribute__((sentinel));
/* Sets or removes (NULL) a label. */
void out_label(struct watch_out *o, uint32_t e, const char *name, const char *value);
void out_gone(struct watch_out *o, uint32_t e);
/* Says why the entity gives no values; NULL: it does again. */
void out_why(struct watch_out *o, uint32_t e, const char *why);
void out_set(struct watch_out *o, uint32_t e, enum catalogue row, double value);
/* why: a static text, or NULL. */
void out_absent(struct watch_out *o, uint32_t e, enum catalogue row, const char *why);
/* Ends the reading of an entity and its parts. OUT_NONE: of all entities, and the round of the source. slow:
 * the SLOW rows were read too. */
void out_end(struct watch_out *o, uint32_t e, uint64_t t_ns, bool slow);
/* Ends a reading with all rows, also the RARE ones. */
void out_end_rare(struct watch_out *o, uint32_t e, uint64_t t_ns);
/* Ends a round of the source. */
void out_done(struct watch_out *o, uint64_t t_ns);
/* Writes everything. False: the reader is gone. */
bool out_flush(struct watch_out *o);
/* Appends a text as JSON, without control characters and cut to WATCH_TEXT_MAX. */
void out_add_string(struct text *t, const char *s);
#endif
