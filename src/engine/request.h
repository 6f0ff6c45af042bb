/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine keeps of a request while it waits and runs. The scheduler keeps its tokens. */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H
#include "core/error.h"
#include "engine/grammar/grammar.h"
#include "engine/message.h"

struct running {
	uint64_t id;
	struct engine_sampling sampling;
	int64_t prompt, min_tokens, max_tokens;
	int32_t adapter;
	int32_t logprobs, prompt_logprobs;
	int32_t *stop; /* owned */
	size_t stops;
	struct engine_bias *bias; /* owned; behind the request's own entries there is room for its stop ids */
	size_t biases;
	struct grammar_state *grammar; /* owned; NULL: none */
	bool stuck;   /* the grammar allows no token of the vocabulary after the text so far */
	bool limited; /* its states exceed a limit after the text so far */
};
/* Copies what `r` lends. NO_RESOURCE: out of memory. Owner: caller, running_release. */
enum status running_set(struct running *run, const struct engine_request *r, struct error *err);
void running_release(struct running *run); /* no effect on zeros */
bool running_stops(const struct running *run, int32_t id);
/* Whether the token has penalties that need counts. */
bool running_counts(const struct running *run);
struct request_limits {
	int64_t vocab;
	int32_t adapters;
	bool penalties;
};
/* Checks the fields that the scheduler does not look at. BAD_INPUT names the field. */
enum status request_check(const struct engine_request *r, const struct request_limits *limits,
			  struct error *err);
#endif
