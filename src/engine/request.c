/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/request.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status running_set(struct running *run, const struct engine_request *r, struct error *err)
{
	*run = (struct running){
		.id = r->id,
		.sampling = r->sampling,
		.prompt = (int64_t)r->prompt_count,
		.min_tokens = r->min_tokens,
		.max_tokens = r->max_tokens,
		.adapter = r->adapter,
		.logprobs = r->logprobs,
		.prompt_logprobs = r->prompt_logprobs,
		.stops = r->stops,
		.biases = r->biases,
	};
	run->stop = calloc(r->stops + 1, sizeof(*run->stop));
	run->bias = calloc(r->biases + r->stops + 1, sizeof(*run->bias));
	if (!run->stop || !run->bias) {
		running_release(run);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate memory for a request");
	}
	if (r->stops)
		memcpy(run->stop, r->stop, r->stops * sizeof(*run->stop));
	if (r->biases)
		memcpy(run->bias, r->bias, r->biases * sizeof(*run->bias));
	return STATUS_OK;
}

void running_release(struct running *run)
{
	grammar_state_destroy(&run->grammar);
	free(run->stop);
	free(run->bias);
	*run = (struct running){0};
}

bool running_stops(const struct running *run, int32_t id)
{
	for (size_t i = 0; i < run->stops; i++)
		if (run->stop[i] == id)
			return true;
	return false;
}

bool running_counts(const struct running *run)
{
	return run->sampling.repetition != 1 || run->sampling.presence != 0 || run->sampling.frequency != 0;
}

static enum status check_ids(const struct engine_request *r, int64_t vocab, struct error *err)
{
	for (size_t i = 0; i < r->prompt_count; i++)
		if (r->prompt[i] < 0 || r->prompt[i] >= vocab)
			return error_set(err, STATUS_BAD_INPUT,
					 "token %zu of the prompt is %d; ids are 0 to %lld", i + 1,
					 r->prompt[i], (long long)vocab - 1);
	for (size_t i = 0; i < r->biases; i++)
		if (r->bias[i].id < 0 || r->bias[i].id >= vocab)
			return error_set(err, STATUS_BAD_INPUT,
					 "logit_bias names the id %d; ids are 0 to %lld", r->bias[i].id,
					 (long long)vocab - 1);
	return STATUS_OK;
}

static enum status check_sampling(const struct engine_sampling *s, struct error *err)
{
	const struct {
		const char *name;
		double value;
		bool right;
		const char *range;
	} all[] = {
		{"temperature", s->temperature, s->temperature >= 0 && isfinite(s->temperature), "0 or more"},
		{"top_p", s->top_p, s->top_p > 0 && s->top_p <= 1, "above 0 and at most 1"},
		{"min_p", s->min_p, s->min_p >= 0 && s->min_p <= 1, "0 to 1"},
		{"repetition_penalty", s->repetition, s->repetition > 0 && isfinite(s->repetition),
		 "above 0"},
		{"presence_penalty", s->presence, isfinite(s->presence), "a finite number"},
		{"frequency_penalty", s->frequency, isfinite(s->frequency), "a finite number"},
		{"top_k", s->top_k, s->top_k >= 0, "0 (all) or more"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!all[i].right)
			return error_set(err, STATUS_BAD_INPUT, "%s is %g; it must be %s", all[i].name,
					 all[i].value, all[i].range);
	return STATUS_OK;
}

enum status request_check(const struct engine_request *r, const struct request_limits *limits,
			  struct error *err)
{
	struct running probe = {.sampling = r->sampling};
	enum status st;

	if (!r->prompt_count)
		return error_set(err, STATUS_BAD_INPUT, "the prompt has no token");
	if (r->stops > ENGINE_STOPS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "%zu stop ids are given; at most %d are supported",
				 r->stops, ENGINE_STOPS_MOST);
	if (r->biases > ENGINE_BIAS_MOST)
		return error_set(err, STATUS_BAD_INPUT,
				 "logit_bias has %zu entries; at most %d are supported", r->biases,
				 ENGINE_BIAS_MOST);
	if (r->logprobs > ENGINE_TOP_MOST || r->prompt_logprobs > ENGINE_TOP_MOST)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%d alternatives with log probabilities are asked for; at most %d are supported",
			r->logprobs > r->prompt_logprobs ? r->logprobs : r->prompt_logprobs, ENGINE_TOP_MOST);
	if (r->adapter >= limits->adapters)
		return error_set(err, STATUS_BAD_INPUT, "adapter %d is asked for, but %d are loaded",
				 r->adapter, limits->adapters);
	st = check_ids(r, limits->vocab, err);
	if (!st)
		st = check_sampling(&r->sampling, err);
	if (!st && running_counts(&probe) && !limits->penalties)
		st = error_set(err, STATUS_BAD_INPUT,
			       "this engine was started without memory for penalties of tokens");
	return st;
}
