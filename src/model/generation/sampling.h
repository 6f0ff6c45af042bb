/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the next token from logits. */
#ifndef MODEL_GENERATION_SAMPLING_H
#define MODEL_GENERATION_SAMPLING_H
#include <stdint.h>
#include "core/error.h"

struct sampling {
	double temperature; /* 0: greedy: the most likely token; of equals, the lowest id */
	int64_t top_k;	    /* choose among this many most likely tokens; 0: all */
	/* Choose among the fewest most likely tokens with this total probability; 1: all. */
	double top_p;
	uint64_t seed;
};
/* Checks temperature >= 0, top_k >= 0 and 0 < top_p <= 1. BAD_INPUT names the setting. */
enum status sampling_check(const struct sampling *s, struct error *err);

struct sampler_room; /* workspace for the candidates of one vocabulary */
enum status sampler_room_create(struct sampler_room **room, int64_t vocab, struct error *err);
void sampler_room_destroy(struct sampler_room **room);
/* Returns an id below `vocab`; the same for the same seed and index (the token's number in its text). */
int32_t sampling_choose(const struct sampling *s, struct sampler_room *room, const float *logits,
			int64_t vocab, uint64_t index);
/* Natural logarithm of the model's probability of `id` among all `vocab` ids, without temperature, top_k and
 * top_p. */
double sampling_logprob(const float *logits, int64_t vocab, int32_t id);
#endif
