/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/stream/call_stream.h"

#include "serve/stream/words.h"

static const char *const marks[] = {CALL_OPEN_MARK, CALL_CLOSE_MARK};
enum { OPEN, CLOSE, BODY_MOST = 4 << 20 };

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void drop(struct text *t, size_t size)
{
	if (!size)
		return;
	memmove(t->data, t->data + size, t->size - size);
	t->size -= size;
	t->data[t->size] = '\0';
}

/* White space around calls is not part of the text, so it waits for what follows. */
static void say(struct call_stream *s, size_t size, part_sink *sink, void *arg)
{
	size_t end = size;

	while (end && is_space(s->held.data[end - 1]))
		end--;
	if (end) {
		size_t begin = 0;

		while (s->calls && !s->said && is_space(s->held.data[begin]))
			begin++;
		sink(arg, PART_TEXT, s->held.data + begin, end - begin);
		s->said = true;
	}
	drop(&s->held, end);
}

static void call_begins(struct call_stream *s, const char *name, size_t size, part_sink *sink, void *arg)
{
	s->calls++;
	s->said = false;
	if (!s->one_call || s->calls == 1)
		sink(arg, PART_CALL, name, size);
}

static void arguments(const struct call_stream *s, const char *text, size_t size, part_sink *sink, void *arg)
{
	if (size && (!s->one_call || s->calls == 1))
		sink(arg, PART_ARGUMENTS, text, size);
}

/* The first `size` held bytes are a whole body. True: they are a call, which was passed on. */
static bool whole_body(struct call_stream *s, size_t size, part_sink *sink, void *arg)
{
	bool found;
	struct text value = {0};
	char *name = NULL;

	found = prompter_read_call(s->prompter, text_str(&s->held), size, &name, &value);
	if (found) {
		call_begins(s, name, strlen(name), sink, arg);
		arguments(s, value.data, value.size, sink, arg);
		drop(&s->held, size);
	}
	free(name);
	text_release(&value);
	return found;
}

/* The first `size` held bytes, marks included, belong to a body that is no call: they are text. */
static void broken_body(struct call_stream *s, size_t size, part_sink *sink, void *arg)
{
	if (s->form == CALL_FORM_MARKED)
		sink(arg, PART_TEXT, marks[OPEN], strlen(marks[OPEN]));
	sink(arg, PART_TEXT, text_str(&s->held), size);
	s->said = true;
	drop(&s->held, size);
}

/* Skips white space, then `word`. NULL: it is not there; *more is set if the text may only be too short. */
static const char *expect(const char *at, const char *end, const char *word, bool *more)
{
	size_t size = strlen(word);

	while (at && at < end && is_space(*at))
		at++;
	if (!at)
		return NULL;
	if ((size_t)(end - at) >= size && !memcmp(at, word, size))
		return at + size;
	*more = (size_t)(end - at) < size && !memcmp(at, word, (size_t)(end - at));
	return NULL;
}

/* Finds the arguments of a body that begins {"name": "NAME", "arguments": {. NAME has no escapes. NULL: it
 * does not, or not yet (*more). */
static const char *arguments_begin(const struct call_stream *s, const char **name, size_t *size, bool *more)
{
	const char *at = s->held.data, *end = at + s->held.size;
	bool other = false;

	*more = false;
	at = expect(at, end, "{", more);
	at = expect(at, end, "\"name\"", more);
	at = expect(at, end, ":", more);
	at = expect(at, end, "\"", more);
	if (!at)
		return NULL;
	*name = at;
	while (at < end && *at != '"' && *at != '\\')
		at++;
	*size = (size_t)(at - *name);
	if (at == end || *at == '\\' || !*size) {
		*more = at == end;
		return NULL;
	}
	at = expect(at + 1, end, ",", more);
	if (!at)
		return NULL;
	end = at;
	at = expect(at, s->held.data + s->held.size, "\"arguments\"", more);
	if (!at)
		at = expect(end, s->held.data + s->held.size, "\"parameters\"", &other);
	*more |= other;
	at = expect(at, s->held.data + s->held.size, ":", more);
	at = expect(at, s->held.data + s->held.size, "{", more);
	return at ? at - 1 : NULL;
}

/* Bytes of held text that belong to the arguments; *done if they end there. */
static size_t scan_arguments(struct call_stream *s, bool *done)
{
	size_t i;

	*done = false;
	for (i = 0; i < s->held.size; i++) {
		char c = s->held.data[i];

		if (s->in_text) {
			s->in_text = s->escaped || c != '"';
			s->escaped = !s->escaped && c == '\\';
			continue;
		}
		if (c == '<') { /* no JSON: the call was cut */
			*done = true;
			return i;
		}
		s->in_text = c == '"';
		s->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		if (s->depth <= 0) {
			*done = true;
			return i + 1;
		}
	}
	return i;
}

/* Each step returns true if it changed the state, so that there may be more to do. */
static bool outside(struct call_stream *s, part_sink *sink, void *arg)
{
	size_t at, word, held, begin = 0;

	if (s->form == CALL_FORM_BARE) {
		while (begin < s->held.size && is_space(s->held.data[begin]))
			begin++;
		if (!s->said && !s->calls && begin < s->held.size && s->held.data[begin] == '{') {
			s->state = CALL_BODY;
			return true;
		}
		say(s, s->held.size, sink, arg);
		return false;
	}
	if (words_find(text_str(&s->held), s->held.size, marks, 1, &at, &word)) {
		say(s, at, sink, arg);
		words_find(s->held.data, s->held.size, marks, 1, &at, &word);
		drop(&s->held, at + strlen(marks[OPEN]));
		s->scan = (struct call_scan){0};
		s->state = CALL_BODY;
		return true;
	}
	held = words_held(text_str(&s->held), s->held.size, marks, 1);
	say(s, s->held.size - held, sink, arg);
	return false;
}

/* A body that is no JSON extends to the first mark, wherever it is. False: no mark has come. */
static bool body_to_first_mark(struct call_stream *s, part_sink *sink, void *arg)
{
	size_t at, word;

	if (!words_find(text_str(&s->held), s->held.size, marks, 2, &at, &word))
		return false;
	broken_body(s, word == CLOSE ? at + strlen(marks[CLOSE]) : at, sink, arg);
	s->state = CALL_OUTSIDE;
	return true;
}

static bool marked_body(struct call_stream *s, part_sink *sink, void *arg)
{
	size_t at;
	const enum call_end end = call_end_find(&s->scan, text_str(&s->held), s->held.size, &at);

	if (end == CALL_END_UNKNOWN)
		return false;
	if (end == CALL_END_BROKEN || !whole_body(s, at, sink, arg))
		return body_to_first_mark(s, sink, arg);
	drop(&s->held, end == CALL_END_CLOSE ? strlen(marks[CLOSE]) : 0);
	s->state = CALL_OUTSIDE;
	return true;
}

static bool body(struct call_stream *s, part_sink *sink, void *arg)
{
	size_t size = 0;
	const char *name = NULL, *begin = NULL;
	bool more = false;

	if (s->parts && s->held.size)
		begin = arguments_begin(s, &name, &size, &more);
	if (begin) {
		call_begins(s, name, size, sink, arg);
		drop(&s->held, (size_t)(begin - s->held.data));
		s->depth = 0;
		s->in_text = s->escaped = false;
		s->state = CALL_ARGUMENTS;
		return true;
	}
	return s->form == CALL_FORM_MARKED && marked_body(s, sink, arg);
}

static bool in_arguments(struct call_stream *s, part_sink *sink, void *arg)
{
	bool done;
	size_t size = scan_arguments(s, &done);

	arguments(s, text_str(&s->held), size, sink, arg);
	drop(&s->held, size);
	if (done)
		s->state = CALL_REST;
	return done;
}

/* After the arguments: the call's last brace and its closing mark are nobody's text. */
static bool rest(struct call_stream *s)
{
	size_t at, word;

	if (s->form == CALL_FORM_BARE) {
		drop(&s->held, s->held.size);
		return false;
	}
	if (!words_find(text_str(&s->held), s->held.size, marks, 2, &at, &word))
		return false;
	drop(&s->held, word == CLOSE ? at + strlen(marks[CLOSE]) : at);
	s->state = CALL_OUTSIDE;
	return true;
}

static void advance(struct call_stream *s, part_sink *sink, void *arg)
{
	bool more = true;

	while (more && s->held.size)
		switch (s->state) {
		case CALL_OUTSIDE:
			more = outside(s, sink, arg);
			break;
		case CALL_BODY:
			more = body(s, sink, arg);
			break;
		case CALL_ARGUMENTS:
			more = in_arguments(s, sink, arg);
			break;
		case CALL_REST:
			more = rest(s);
			break;
		}
}

void call_stream_add(struct call_stream *s, const char *text, size_t size, part_sink *sink, void *arg)
{
	if (s->held.size + size > BODY_MOST)
		return;
	text_add_bytes(&s->held, text, size);
	advance(s, sink, arg);
}

/* The text ends in a body. True: it was no call, and text follows its first mark. */
static bool end_body(struct call_stream *s, part_sink *sink, void *arg)
{
	if (whole_body(s, s->held.size, sink, arg))
		return false;
	if (s->form == CALL_FORM_MARKED && body_to_first_mark(s, sink, arg))
		return true;
	broken_body(s, s->held.size, sink, arg);
	s->cut = !s->one_call || !s->calls;
	return false;
}

void call_stream_end(struct call_stream *s, part_sink *sink, void *arg)
{
	s->cut = s->state == CALL_ARGUMENTS && (!s->one_call || s->calls == 1);
	while (s->state == CALL_BODY && end_body(s, sink, arg))
		advance(s, sink, arg);
	if (s->state == CALL_OUTSIDE && s->held.size && (!s->calls || s->said))
		sink(arg, PART_TEXT, s->held.data, s->held.size);
	call_stream_release(s);
}

void call_stream_release(struct call_stream *s)
{
	text_release(&s->held);
}
