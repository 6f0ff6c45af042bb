/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of a step (facts, then events of several sizes) and of `ready`. */
#include "engine/frame/internal.h"

#include "engine/frame/bytes.h"

enum { EVENT_LEAST = 16 }; /* bytes of the shortest event */

static void put_facts(struct text *out, const struct engine_facts *f)
{
	const uint64_t counts[] = {f->steps,	     f->tokens,	     f->prompt_tokens,
				   f->cached_tokens, f->preemptions, f->ended};
	const int32_t gauges[] = {f->running, f->waiting, f->pages, f->pages_used, f->pages_cached};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		bytes_put(out, counts[i], 8);
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		bytes_put(out, (uint32_t)gauges[i], 4);
	bytes_put_f64(out, f->step_s);
	bytes_put_f64(out, f->busy_s);
}

static void get_facts(struct engine_facts *f, struct bytes_in *in)
{
	f->steps = bytes_get(in, 8);
	f->tokens = bytes_get(in, 8);
	f->prompt_tokens = bytes_get(in, 8);
	f->cached_tokens = bytes_get(in, 8);
	f->preemptions = bytes_get(in, 8);
	f->ended = bytes_get(in, 8);
	f->running = bytes_get_i32(in);
	f->waiting = bytes_get_i32(in);
	f->pages = bytes_get_i32(in);
	f->pages_used = bytes_get_i32(in);
	f->pages_cached = bytes_get_i32(in);
	f->step_s = bytes_get_f64(in);
	f->busy_s = bytes_get_f64(in);
}

static void put_end(struct text *out, const struct engine_event *e)
{
	size_t size = strnlen(e->text, sizeof(e->text) - 1);

	bytes_put(out, (uint64_t)e->end, 1);
	bytes_put(out, size, 1);
	bytes_put(out, (uint32_t)e->prompt_tokens, 4);
	bytes_put(out, (uint32_t)e->cached_tokens, 4);
	bytes_put(out, (uint32_t)e->tokens, 4);
	text_add_bytes(out, e->text, size);
}

/* Each event begins with: kind, number of alternatives, 2 zero bytes, token, id of the request. */
static void put_event(struct text *out, const struct engine_event *e)
{
	bool token = e->kind == ENGINE_EVENT_TOKEN || e->kind == ENGINE_EVENT_PROMPT;

	bytes_put(out, (uint64_t)e->kind, 1);
	bytes_put(out, token ? (uint32_t)e->tops : 0, 1);
	bytes_put(out, 0, 2);
	bytes_put(out, token ? (uint32_t)e->token : 0, 4);
	bytes_put(out, e->id, 8);
	if (token) {
		bytes_put_f32(out, e->logprob);
		for (int32_t i = 0; i < e->tops; i++) {
			bytes_put(out, (uint32_t)e->top[i].id, 4);
			bytes_put_f32(out, e->top[i].logprob);
		}
	} else if (e->kind == ENGINE_EVENT_END) {
		put_end(out, e);
	}
}

void frame_put_step(struct text *out, const struct engine_facts *facts, const struct engine_event *events,
		    size_t count)
{
	put_facts(out, facts);
	bytes_put(out, count, 4);
	for (size_t i = 0; i < count; i++)
		put_event(out, &events[i]);
}

static bool get_end(struct engine_event *e, struct bytes_in *in)
{
	uint64_t end = bytes_get(in, 1), size = bytes_get(in, 1);
	const unsigned char *text;

	e->prompt_tokens = bytes_get_i32(in);
	e->cached_tokens = bytes_get_i32(in);
	e->tokens = bytes_get_i32(in);
	text = bytes_take(in, size);
	if (!text || end > ENGINE_END_FAILED || size >= sizeof(e->text))
		return false;
	e->end = (enum engine_end)end;
	memcpy(e->text, text, size);
	e->text[size] = '\0';
	return true;
}

static bool get_event(struct engine_event *e, struct bytes_in *in)
{
	uint64_t kind = bytes_get(in, 1);

	e->tops = (int32_t)bytes_get(in, 1);
	bytes_get(in, 2);
	e->token = bytes_get_i32(in);
	e->id = bytes_get(in, 8);
	if (in->bad || kind > ENGINE_EVENT_END || e->tops > ENGINE_TOP_MOST)
		return false;
	e->kind = (enum engine_event_kind)kind;
	if (e->kind == ENGINE_EVENT_END)
		return get_end(e, in);
	if (e->kind == ENGINE_EVENT_BEGUN)
		return true;
	e->logprob = bytes_get_f32(in);
	for (int32_t i = 0; i < e->tops; i++) {
		e->top[i].id = bytes_get_i32(in);
		e->top[i].logprob = bytes_get_f32(in);
	}
	return !in->bad;
}

static enum status make_room(struct frame_arrays *a, size_t count, struct error *err)
{
	struct engine_event *grown;

	if (count <= a->events_room)
		return STATUS_OK;
	grown = realloc(a->events, count * sizeof(*grown));
	if (!grown)
		return error_set(err, STATUS_NO_RESOURCE, "a step of %zu events", count);
	a->events = grown;
	a->events_room = count;
	return STATUS_OK;
}

enum status frame_get_step(struct frame_step *step, struct frame_arrays *a, const void *body, size_t size,
			   struct error *err)
{
	struct bytes_in in = {.at = body, .left = size};
	enum status st;

	get_facts(&step->facts, &in);
	step->count = bytes_get(&in, 4);
	if (in.bad || step->count > FRAME_EVENTS_MOST || step->count > in.left / EVENT_LEAST)
		return error_set(err, STATUS_BAD_INPUT, "a frame with a step of %zu bytes is damaged", size);
	st = make_room(a, step->count, err);
	if (st)
		return st;
	for (size_t i = 0; i < step->count; i++)
		if (!get_event(&a->events[i], &in))
			return error_set(err, STATUS_BAD_INPUT, "event %zu of a step is damaged", i);
	if (in.left)
		return error_set(err, STATUS_BAD_INPUT, "a frame with a step has %zu bytes too many",
				 in.left);
	step->events = a->events;
	return STATUS_OK;
}

void frame_put_ready(struct text *out, const struct engine_ready *ready)
{
	size_t size = strnlen(ready->device, sizeof(ready->device) - 1);

	bytes_put(out, (uint64_t)ready->vocab, 8);
	bytes_put(out, (uint64_t)ready->context, 8);
	bytes_put(out, (uint64_t)ready->pages, 8);
	bytes_put(out, (uint64_t)ready->page_tokens, 8);
	bytes_put(out, (uint64_t)ready->sequences, 8);
	bytes_put_f64(out, ready->weight_bytes);
	bytes_put_f64(out, ready->cache_bytes);
	bytes_put_f64(out, ready->load_s);
	bytes_put(out, (uint64_t)ready->measured_rows, 8);
	bytes_put_f64(out, ready->deterministic_s);
	bytes_put_f64(out, ready->ordinary_s);
	bytes_put(out, ready->shared, 1);
	bytes_put(out, size, 1);
	text_add_bytes(out, ready->device, size);
}

enum status frame_get_ready(struct engine_ready *ready, const void *body, size_t size, struct error *err)
{
	struct bytes_in in = {.at = body, .left = size};
	const unsigned char *device;
	size_t length;

	*ready = (struct engine_ready){.vocab = bytes_get_i64(&in), .context = bytes_get_i64(&in)};
	ready->pages = bytes_get_i64(&in);
	ready->page_tokens = bytes_get_i64(&in);
	ready->sequences = bytes_get_i64(&in);
	ready->weight_bytes = bytes_get_f64(&in);
	ready->cache_bytes = bytes_get_f64(&in);
	ready->load_s = bytes_get_f64(&in);
	ready->measured_rows = bytes_get_i64(&in);
	ready->deterministic_s = bytes_get_f64(&in);
	ready->ordinary_s = bytes_get_f64(&in);
	ready->shared = bytes_get(&in, 1) != 0;
	length = bytes_get(&in, 1);
	device = bytes_take(&in, length);
	if (!device || in.left || length >= sizeof(ready->device) || ready->vocab < 1 || ready->context < 1)
		return error_set(err, STATUS_BAD_INPUT, "a frame with \"ready\" of %zu bytes is damaged",
				 size);
	memcpy(ready->device, device, length);
	return STATUS_OK;
}

void frame_arrays_release(struct frame_arrays *a)
{
	free(a->prompt);
	free(a->stop);
	free(a->bias);
	free(a->events);
	*a = (struct frame_arrays){0};
}
