/* SPDX-License-Identifier: Apache-2.0 */
#include "text/stop_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A stop string with the table of Knuth, Morris and Pratt: back[n] is the length of the longest beginning of
 * the string that ends its first n bytes, other than these n bytes. */
struct stop {
	char *text;
	size_t size;
	uint16_t *back;
};

struct stop_texts {
	size_t count;
	struct stop stops[];
};

/* The length of the longest beginning of the string after one more byte. */
static size_t advance(const struct stop *s, size_t matched, char byte)
{
	if (matched == s->size)
		matched = s->back[matched];
	while (matched && s->text[matched] != byte)
		matched = s->back[matched];
	return matched + (s->text[matched] == byte);
}

static enum status prepare(struct stop *s, const char *text, struct error *err)
{
	s->size = strlen(text);
	s->text = strdup(text);
	s->back = calloc(s->size + 1, sizeof(*s->back));
	if (!s->text || !s->back)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for stop strings");
	for (size_t n = 2; n <= s->size; n++) {
		size_t matched = s->back[n - 1];

		while (matched && text[matched] != text[n - 1])
			matched = s->back[matched];
		s->back[n] = (uint16_t)(matched + (text[matched] == text[n - 1]));
	}
	return STATUS_OK;
}

enum status stop_texts_create(struct stop_texts **out, const char *const *stops, size_t count,
			      struct error *err)
{
	struct stop_texts *s;
	enum status st = STATUS_OK;

	*out = NULL;
	if (count > STOP_TEXTS_MAX)
		return error_set(err, STATUS_BAD_INPUT, "stop has %zu strings; at most %d are allowed", count,
				 STOP_TEXTS_MAX);
	s = calloc(1, sizeof(*s) + count * sizeof(s->stops[0]));
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for stop strings");
	s->count = count;
	for (size_t i = 0; i < count && !st; i++) {
		if (!*stops[i])
			st = error_set(err, STATUS_BAD_INPUT, "stop[%zu] is empty", i);
		else if (strlen(stops[i]) > STOP_TEXT_BYTES_MAX)
			st = error_set(err, STATUS_BAD_INPUT,
				       "stop[%zu] has %zu bytes; at most %d are allowed", i, strlen(stops[i]),
				       STOP_TEXT_BYTES_MAX);
		else
			st = prepare(&s->stops[i], stops[i], err);
	}
	if (st)
		stop_texts_destroy(&s);
	*out = s;
	return st;
}

void stop_texts_destroy(struct stop_texts **s)
{
	if (!*s)
		return;
	for (size_t i = 0; i < (*s)->count; i++) {
		free((*s)->stops[i].text);
		free((*s)->stops[i].back);
	}
	free(*s);
	*s = NULL;
}

enum status stop_stream_begin(struct stop_stream *s, const struct stop_texts *stops, struct error *err)
{
	*s = (struct stop_stream){.stops = stops, .found = -1};
	s->matched = calloc(stops->count + 1, sizeof(*s->matched));
	return s->matched
		       ? STATUS_OK
		       : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a stream");
}

/* Adds one byte. Returns the longest beginning of a stop string at the end. If one is complete and `ends`,
 * sets `found`. */
static size_t add_byte(struct stop_stream *s, char byte, bool ends)
{
	size_t longest = 0, complete = 0;

	for (size_t i = 0; i < s->stops->count; i++) {
		const struct stop *stop = &s->stops->stops[i];
		size_t matched = advance(stop, s->matched[i], byte);

		if (matched == stop->size && !ends)
			matched = stop->back[matched];
		s->matched[i] = (uint16_t)matched;
		if (matched > longest)
			longest = matched;
		if (matched == stop->size && matched > complete) {
			complete = matched;
			s->found = (int)i;
		}
	}
	return longest;
}

static void add(struct stop_stream *s, const char *piece, size_t size, bool ends, struct text *out)
{
	size_t before = s->held.size, longest = before;

	if (s->found >= 0)
		return;
	text_add_bytes(&s->held, piece, size);
	if (s->held.failed) {
		out->failed = 1;
		return;
	}
	for (size_t i = 0; i < size && s->found < 0; i++) {
		longest = add_byte(s, piece[i], ends);
		if (s->found >= 0) {
			text_add_bytes(out, text_str(&s->held),
				       before + i + 1 - s->stops->stops[s->found].size);
			text_release(&s->held);
			return;
		}
	}
	if (!s->held.size)
		return;
	text_add_bytes(out, s->held.data, s->held.size - longest);
	memmove(s->held.data, s->held.data + s->held.size - longest, longest + 1);
	s->held.size = longest;
}

void stop_stream_add(struct stop_stream *s, const char *piece, size_t size, struct text *out)
{
	add(s, piece, size, true, out);
}

void stop_stream_pass(struct stop_stream *s, const char *piece, size_t size, struct text *out)
{
	add(s, piece, size, false, out);
}

void stop_stream_end(struct stop_stream *s, struct text *out)
{
	if (s->held.size)
		text_add_bytes(out, s->held.data, s->held.size);
	text_release(&s->held);
}

void stop_stream_release(struct stop_stream *s)
{
	free(s->matched);
	text_release(&s->held);
	*s = (struct stop_stream){.found = -1};
}
