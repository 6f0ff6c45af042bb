/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a text into server-sent events, as the HTML standard describes ("9.2.6 Interpreting an event
 * stream"): lines end with LF, CR LF or CR, and an empty line ends an event. */
#ifndef LOAD_ANSWER_SSE_H
#define LOAD_ANSWER_SSE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/text.h"

struct sse {
	const char *text;
	size_t size, at;
	size_t lf, cr;	    /* of the next ones from `at` on, or size */
	struct text joined; /* data of an event with several lines of it */
};

struct sse_event {
	const char *raw; /* its lines as they came */
	size_t raw_size;
	const char *data; /* the values of its lines "data", joined by LF; lent until the next event */
	size_t data_size;
	size_t done;   /* offset of the byte that completed it */
	bool complete; /* false: the text ended before the empty line */
	bool numbered; /* it has an id */
	bool error;    /* its name is "error", or its data came in a line "error:" */
};

/* `text` must outlive *s. */
void sse_begin(struct sse *s, const char *text, size_t size);
/* Finds the next event with data. Comments, and events without data, are skipped. False: there is none, or
 * memory is out (s->joined.failed). */
bool sse_next(struct sse *s, struct sse_event *e);
void sse_end(struct sse *s);
#endif
