/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/stream/stream.h"

#include "core/text/characters.h"
#include "serve/stream/words.h"

static const char *const think_open[] = {"<think>"}, *const think_close[] = {"</think>"};

enum status stream_begin(struct stream *s, const struct prompter *p, const struct request *r, part_sink *sink,
			 void *arg, struct error *err)
{
	*s = (struct stream){.prompter = p, .request = r, .sink = sink, .arg = arg};
	s->think = !r->think ? THINK_AFTER : r->think_open ? THINK_INSIDE : THINK_BEFORE;
	s->calls = (struct call_stream){
		.prompter = p, .form = prompter_calls(p), .parts = r->stream, .one_call = r->one_call};
	return r->stop_texts ? stop_stream_begin(&s->stops, r->stop_texts, err) : STATUS_OK;
}

void stream_release(struct stream *s)
{
	text_release(&s->bytes);
	text_release(&s->fresh);
	text_release(&s->passed);
	stop_stream_release(&s->stops);
	text_release(&s->thought_held);
	call_stream_release(&s->calls);
}

bool stream_thinks(const struct stream *s)
{
	return s->think == THINK_INSIDE;
}

bool stream_in_thought(const struct stream *s)
{
	return s->think == THINK_INSIDE || s->think == THINK_SPACE;
}

static void keep_from(struct text *t, size_t at)
{
	if (!at || !t->data)
		return;
	memmove(t->data, t->data + at, t->size - at);
	t->size -= at;
	t->data[t->size] = '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t spaces(const char *text, size_t size)
{
	size_t i = 0;

	while (i < size && is_space(text[i]))
		i++;
	return i;
}

static void add_answer(struct stream *s, const char *text, size_t size)
{
	if (!size)
		return;
	if (s->request->calls)
		call_stream_add(&s->calls, text, size, s->sink, s->arg);
	else
		s->sink(s->arg, PART_TEXT, text, size);
}

/* The text so far is white space, or the beginning of <think>. */
static bool before_thought(struct stream *s)
{
	struct text *t = &s->thought_held;
	size_t at = spaces(text_str(t), t->size), left = t->size - at, word = strlen(think_open[0]);

	if (left >= word && !memcmp(t->data + at, think_open[0], word)) {
		keep_from(t, at + word);
		s->think = THINK_INSIDE;
		return true;
	}
	if (left < word && !memcmp(text_str(t) + at, think_open[0], left))
		return false;
	s->think = THINK_AFTER;
	return true;
}

/* White space at both ends of a thought belongs to its marks. */
static bool inside_thought(struct stream *s)
{
	struct text *t = &s->thought_held;
	size_t at, word, end;
	bool closed;

	if (!s->thought_said)
		keep_from(t, spaces(text_str(t), t->size));
	closed = words_find(text_str(t), t->size, think_close, 1, &at, &word);

	end = closed ? at : t->size - words_held(text_str(t), t->size, think_close, 1);
	while (end && is_space(t->data[end - 1]))
		end--;
	if (end)
		s->sink(s->arg, PART_THOUGHT, t->data, end);
	s->thought_said |= end > 0;
	keep_from(t, closed ? at + strlen(think_close[0]) : end);
	if (closed)
		s->think = THINK_SPACE;
	return closed;
}

static void add_thought(struct stream *s, const char *text, size_t size)
{
	struct text *t = &s->thought_held;
	bool more = true;
	size_t skipped;

	if (s->think == THINK_AFTER) {
		add_answer(s, text, size);
		return;
	}
	text_add_bytes(t, text, size);
	while (more && t->size) {
		more = false;
		if (s->think == THINK_BEFORE) {
			more = before_thought(s);
		} else if (s->think == THINK_INSIDE) {
			more = inside_thought(s);
		} else if (s->think == THINK_SPACE) {
			skipped = spaces(t->data, t->size);
			keep_from(t, skipped);
			if (t->size)
				s->think = THINK_AFTER;
			more = t->size > 0;
		} else {
			add_answer(s, t->data, t->size);
			t->size = 0;
		}
	}
}

/* Passes on what no stop string can reach. A stop string counts if its last token comes after min_tokens. */
static void add_stops(struct stream *s, const char *text, size_t size)
{
	const struct request *r = s->request;

	if (!r->stop_texts) {
		add_thought(s, text, size);
		return;
	}
	s->passed.size = 0;
	if (s->tokens > r->engine.min_tokens)
		stop_stream_add(&s->stops, text, size, &s->passed);
	else
		stop_stream_pass(&s->stops, text, size, &s->passed);
	add_thought(s, text_str(&s->passed), s->passed.size);
	if (s->stops.found < 0)
		return;
	s->stopped = true;
	s->stop = r->stops[s->stops.found];
	if (r->include_stop)
		add_thought(s, s->stop, strlen(s->stop));
}

bool stream_token(struct stream *s, int32_t id)
{
	if (s->stopped)
		return false;
	s->tokens++;
	s->bytes.size = s->fresh.size = 0;
	prompter_decode(s->prompter, id, s->request->control, &s->bytes);
	if (s->bytes.size)
		characters_add(s->partial, &s->partial_size, s->bytes.data, s->bytes.size, &s->fresh);
	if (s->fresh.size)
		add_stops(s, s->fresh.data, s->fresh.size);
	return !s->stopped;
}

void stream_end(struct stream *s)
{
	if (!s->stopped) {
		s->fresh.size = 0;
		characters_end(&s->partial_size, &s->fresh);
		add_stops(s, text_str(&s->fresh), s->fresh.size);
		s->passed.size = 0;
		if (s->request->stop_texts && !s->stopped)
			stop_stream_end(&s->stops, &s->passed);
		add_thought(s, text_str(&s->passed), s->passed.size);
	}
	if (s->thought_held.size && s->think == THINK_BEFORE)
		add_answer(s, s->thought_held.data, s->thought_held.size);
	else if (s->thought_held.size && s->think == THINK_INSIDE)
		s->sink(s->arg, PART_THOUGHT, s->thought_held.data, s->thought_held.size);
	s->thought_held.size = 0;
	if (s->request->calls)
		call_stream_end(&s->calls, s->sink, s->arg);
}
