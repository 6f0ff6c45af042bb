/* SPDX-License-Identifier: Apache-2.0 */
#include "load/answer/sse.h"
#include <string.h>

struct line {
	const char *text;
	size_t size;
	bool ended; /* false: the text ended within it */
};

struct field {
	const char *name, *value;
	size_t name_size, value_size;
};

static size_t find(const struct sse *s, char sign)
{
	const char *found = s->at < s->size ? memchr(s->text + s->at, sign, s->size - s->at) : NULL;

	return found ? (size_t)(found - s->text) : s->size;
}

void sse_begin(struct sse *s, const char *text, size_t size)
{
	static const char mark[] = "\xef\xbb\xbf";

	*s = (struct sse){.text = text, .size = size};
	if (size >= 3 && !memcmp(text, mark, 3))
		s->at = 3;
	s->lf = find(s, '\n');
	s->cr = find(s, '\r');
}

/* Each byte is searched once for each of the two signs. */
static bool next_line(struct sse *s, struct line *l)
{
	size_t end;

	if (s->at >= s->size)
		return false;
	if (s->lf < s->at)
		s->lf = find(s, '\n');
	if (s->cr < s->at)
		s->cr = find(s, '\r');
	end = s->lf < s->cr ? s->lf : s->cr;
	*l = (struct line){s->text + s->at, end - s->at, end < s->size};
	s->at = end + l->ended + (s->cr == end && s->lf == end + 1);
	return true;
}

static struct field split(const struct line *l)
{
	const char *colon = memchr(l->text, ':', l->size);
	struct field f = {.name = l->text, .name_size = colon ? (size_t)(colon - l->text) : l->size};

	f.value = l->text + f.name_size + (colon != NULL);
	f.value_size = l->size - f.name_size - (colon != NULL);
	if (f.value_size && *f.value == ' ') {
		f.value++;
		f.value_size--;
	}
	return f;
}

static bool is(const char *text, size_t size, const char *word)
{
	return size == strlen(word) && !memcmp(text, word, size);
}

/* The first line of data is lent; only a second one makes a copy. */
static void add_data(struct sse *s, struct sse_event *e, const struct field *f)
{
	if (!e->data) {
		e->data = f->value;
		e->data_size = f->value_size;
		return;
	}
	if (!s->joined.size)
		text_add_bytes(&s->joined, e->data, e->data_size);
	text_add_bytes(&s->joined, "\n", 1);
	text_add_bytes(&s->joined, f->value, f->value_size);
	e->data = text_str(&s->joined);
	e->data_size = s->joined.size;
}

static void add_line(struct sse *s, struct sse_event *e, const struct line *l)
{
	const struct field f = split(l);

	/* servers of 2024 named the line itself "error" */
	const bool error_line = is(f.name, f.name_size, "error");

	if (error_line || is(f.name, f.name_size, "data"))
		add_data(s, e, &f);
	e->error |= error_line || (is(f.name, f.name_size, "event") && is(f.value, f.value_size, "error"));
	e->numbered |= f.value_size && is(f.name, f.name_size, "id");
}

bool sse_next(struct sse *s, struct sse_event *e)
{
	struct line l;

	*e = (struct sse_event){.raw = s->text + s->at};
	s->joined.size = 0;
	while (next_line(s, &l)) {
		const size_t done =
			(size_t)(l.text - s->text) + l.size; /* the first byte of the line's end */

		if (l.size) {
			add_line(s, e, &l);
			e->done = done < s->size ? done : s->size - 1;
			e->raw_size = (size_t)(l.text + l.size - e->raw);
			continue;
		}
		if (e->data_size && l.ended) {
			e->done = done;
			e->complete = true;
			return !s->joined.failed;
		}
		*e = (struct sse_event){.raw = s->text + s->at};
	}
	return e->data_size && !s->joined.failed;
}

void sse_end(struct sse *s)
{
	text_release(&s->joined);
}
