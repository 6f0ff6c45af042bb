/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request: fixed part, then prompt, stop ids, bias and grammar. */
#include "engine/frame/internal.h"

#include "engine/frame/bytes.h"

static void put_sampling(struct text *out, const struct engine_sampling *s)
{
	bytes_put_f32(out, s->temperature);
	bytes_put_f32(out, s->top_p);
	bytes_put_f32(out, s->min_p);
	bytes_put_f32(out, s->repetition);
	bytes_put_f32(out, s->presence);
	bytes_put_f32(out, s->frequency);
	bytes_put(out, (uint32_t)s->top_k, 4);
	bytes_put(out, s->seed, 8);
}

static void get_sampling(struct engine_sampling *s, struct bytes_in *in)
{
	s->temperature = bytes_get_f32(in);
	s->top_p = bytes_get_f32(in);
	s->min_p = bytes_get_f32(in);
	s->repetition = bytes_get_f32(in);
	s->presence = bytes_get_f32(in);
	s->frequency = bytes_get_f32(in);
	s->top_k = bytes_get_i32(in);
	s->seed = bytes_get(in, 8);
}

void frame_put_request(struct text *out, const struct engine_request *r)
{
	bytes_put(out, r->id, 8);
	bytes_put(out, r->client, 8);
	bytes_put(out, (uint32_t)r->priority, 4);
	bytes_put(out, (uint32_t)r->adapter, 4);
	bytes_put(out, (uint64_t)r->max_tokens, 8);
	bytes_put(out, (uint64_t)r->min_tokens, 8);
	put_sampling(out, &r->sampling);
	bytes_put(out, (uint32_t)r->logprobs, 4);
	bytes_put(out, (uint32_t)r->prompt_logprobs, 4);
	bytes_put(out, r->cache_salt, 8);
	bytes_put(out, r->deadline_ns, 8);
	bytes_put(out, r->prompt_count, 4);
	bytes_put(out, r->stops, 4);
	bytes_put(out, r->biases, 4);
	bytes_put(out, r->grammar ? r->grammar_size : 0, 4);
	bytes_put_i32s(out, r->prompt, r->prompt_count);
	bytes_put_i32s(out, r->stop, r->stops);
	for (size_t i = 0; i < r->biases; i++) {
		bytes_put(out, (uint32_t)r->bias[i].id, 4);
		bytes_put_f32(out, r->bias[i].add);
	}
	if (r->grammar)
		text_add_bytes(out, r->grammar, r->grammar_size);
}

static enum status make_room(struct frame_arrays *a, size_t prompt, struct error *err)
{
	int32_t *grown;

	if (!a->stop)
		a->stop = malloc(ENGINE_STOPS_MOST * sizeof(*a->stop));
	if (!a->bias)
		a->bias = malloc(ENGINE_BIAS_MOST * sizeof(*a->bias));
	if (prompt > a->prompt_room) {
		grown = realloc(a->prompt, prompt * sizeof(*grown));
		if (!grown)
			return error_set(err, STATUS_NO_RESOURCE, "a prompt of %zu tokens", prompt);
		a->prompt = grown;
		a->prompt_room = prompt;
	}
	if (!a->stop || !a->bias)
		return error_set(err, STATUS_NO_RESOURCE, "the lists of a request");
	return STATUS_OK;
}

static bool in_range(const struct engine_request *r)
{
	return r->prompt_count > 0 && r->prompt_count <= FRAME_PROMPT_MOST && r->stops <= ENGINE_STOPS_MOST &&
	       r->biases <= ENGINE_BIAS_MOST && r->grammar_size <= FRAME_GRAMMAR_MOST &&
	       r->max_tokens >= -1 && r->min_tokens >= 0 && r->logprobs >= -1 &&
	       r->logprobs <= ENGINE_TOP_MOST && r->prompt_logprobs >= -1 &&
	       r->prompt_logprobs <= ENGINE_TOP_MOST;
}

enum status frame_get_request(struct engine_request *r, struct frame_arrays *a, const void *body, size_t size,
			      struct error *err)
{
	struct bytes_in in = {.at = body, .left = size};
	enum status st;

	*r = (struct engine_request){.id = bytes_get(&in, 8), .client = bytes_get(&in, 8)};
	r->priority = bytes_get_i32(&in);
	r->adapter = bytes_get_i32(&in);
	r->max_tokens = bytes_get_i64(&in);
	r->min_tokens = bytes_get_i64(&in);
	get_sampling(&r->sampling, &in);
	r->logprobs = bytes_get_i32(&in);
	r->prompt_logprobs = bytes_get_i32(&in);
	r->cache_salt = bytes_get(&in, 8);
	r->deadline_ns = bytes_get(&in, 8);
	r->prompt_count = bytes_get(&in, 4);
	r->stops = bytes_get(&in, 4);
	r->biases = bytes_get(&in, 4);
	r->grammar_size = bytes_get(&in, 4);
	if (in.bad || !in_range(r) ||
	    in.left != 4 * (r->prompt_count + r->stops) + 8 * r->biases + r->grammar_size)
		return error_set(err, STATUS_BAD_INPUT, "a frame with a request of %zu bytes is damaged",
				 size);
	st = make_room(a, r->prompt_count, err);
	if (st)
		return st;
	bytes_get_i32s(&in, a->prompt, r->prompt_count);
	bytes_get_i32s(&in, a->stop, r->stops);
	for (size_t i = 0; i < r->biases; i++) {
		a->bias[i].id = bytes_get_i32(&in);
		a->bias[i].add = bytes_get_f32(&in);
	}
	r->prompt = a->prompt;
	r->stop = a->stop;
	r->bias = a->bias;
	if (r->grammar_size)
		r->grammar = (const char *)bytes_take(&in, r->grammar_size);
	return STATUS_OK;
}
