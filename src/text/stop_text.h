/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends a stream of text at a stop string, also if the string crosses the borders of tokens. Text is passed on
 * as soon as it cannot be the beginning of a stop string.
 */
#ifndef TEXT_STOP_TEXT_H
#define TEXT_STOP_TEXT_H
#include <stddef.h>
#include <stdint.h>
#include "core/text/text.h"

enum { STOP_TEXTS_MAX = 64, STOP_TEXT_BYTES_MAX = 4096 };

/* A set of stop strings. It is immutable, so several streams may use it. */
struct stop_texts;
/* BAD_INPUT: an empty string, one of more than STOP_TEXT_BYTES_MAX bytes, or more than STOP_TEXTS_MAX
 * strings; the message names "stop[i]". Owner: caller, stop_texts_destroy. */
enum status stop_texts_create(struct stop_texts **out, const char *const *stops, size_t count,
			      struct error *err);
void stop_texts_destroy(struct stop_texts **s); /* NULL-safe; sets NULL */

/* One stream. */
struct stop_stream {
	const struct stop_texts *stops;
	uint16_t *matched; /* [stops]: length of the beginning of each stop string at the end of the text */
	struct text held;  /* text that may belong to a stop string */
	int found;	   /* index of the stop string that ended the stream, -1: none */
};
/* `stops` must outlive the stream. Owner: caller, stop_stream_release. */
enum status stop_stream_begin(struct stop_stream *s, const struct stop_texts *stops, struct error *err);
/*
 * Adds complete characters, and appends to *out the text that is certain. If a stop string is complete, *out
 * gets the text before it, `found` is set, and later text is ignored. The stop string that is complete first
 * ends the stream; of several, the longest.
 */
void stop_stream_add(struct stop_stream *s, const char *piece, size_t size, struct text *out);
/* The same for text that cannot end the stream. Its end may still be the beginning of a stop string. */
void stop_stream_pass(struct stop_stream *s, const char *piece, size_t size, struct text *out);
/* The stream ends without a stop string: appends the held text. */
void stop_stream_end(struct stop_stream *s, struct text *out);
void stop_stream_release(struct stop_stream *s);
#endif
