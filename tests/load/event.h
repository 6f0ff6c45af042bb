/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of answers: HTTP headers, events of a stream, JSON of a whole answer. */
#ifndef TESTS_LOAD_EVENT_H
#define TESTS_LOAD_EVENT_H
#include <stdbool.h>
#include "load/buf.h"

struct usage {
	uint64_t prompt_tokens, completion_tokens, cached_tokens;
};

/* What the events of one answer have in common. */
struct event_shape {
	bool chat, chunked;
	const char *letter; /* token i (from 0) is this letter and i + 1 */
	char head[256];	    /* an event up to its choices */
	size_t head_size;
};

void event_shape_make(struct event_shape *s, const char *model, uint64_t number, bool chat);

/* Everything between these two calls is one chunk of HTTP, if the answer is chunked. */
size_t event_begin(const struct event_shape *s, struct buf *out);
void event_end(const struct event_shape *s, struct buf *out, size_t begun);

/* Each adds one event with its chunk header. */
void event_add_role(const struct event_shape *s, struct buf *out);
void event_add_tokens(const struct event_shape *s, struct buf *out, uint32_t first, uint32_t count);
void event_add_broken(const struct event_shape *s, struct buf *out,
		      uint32_t token); /* JSON that does not end */
void event_add_finish(const struct event_shape *s, struct buf *out);
void event_add_usage(const struct event_shape *s, struct buf *out, const struct usage *u);
void event_add_error(const struct event_shape *s, struct buf *out);
void event_add_done(const struct event_shape *s, struct buf *out);
void event_add_last_chunk(const struct event_shape *s, struct buf *out);

/* One token of `size` bytes: the bytes before and after the filler. */
void event_add_huge(const struct event_shape *s, struct buf *before, struct buf *after, uint64_t size);
/* An event's text around its tokens, for those who cut events: offset of the first byte of token `i`'s
 * letter. */
size_t event_letter_at(const struct event_shape *s, uint32_t i);
void event_add_words(const struct event_shape *s, struct buf *out, uint32_t first, uint32_t count);

/* The JSON of a whole answer, before and after its text. usage NULL: none. */
void event_add_body_begin(const struct event_shape *s, struct buf *out);
void event_add_body_end(const struct event_shape *s, struct buf *out, bool finish, const struct usage *u);
/* A small answer with a length. */
void event_add_response(struct buf *out, int status, const char *fields, const char *type, const char *body,
			bool close);
#endif
