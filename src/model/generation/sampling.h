/* SPDX-License-Identifier: Apache-2.0 */
/* The next token from logits. */
#ifndef MODEL_GENERATION_SAMPLING_H
#define MODEL_GENERATION_SAMPLING_H
#include <stdint.h>
#include "core/error.h"

struct sampling {
	double temperature; /* 0: the likeliest, the lowest id of equals */
	int64_t top_k;	    /* of the likeliest alone; 0: all */
	double top_p;	    /* of the fewest that hold this share; 1: all */
	uint64_t seed;
};
/* temperature >= 0, top_k >= 0, 0 < top_p <= 1, else BAD_INPUT by name. */
enum status sampling_check(const struct sampling *s, struct error *err);

struct sampler_room; /* candidates of one vocabulary */
enum status sampler_room_create(struct sampler_room **room, int64_t vocab, struct error *err);
void sampler_room_destroy(struct sampler_room **room);
/* One of the ids below `vocab`; the same for the same seed and index (of the token in its text). */
int32_t sampling_choose(const struct sampling *s, struct sampler_room *room, const float *logits,
			int64_t vocab, uint64_t index);
/* Natural logarithm of the share that the model gives `id` of all `vocab` ids, whatever it was chosen by. */
double sampling_logprob(const float *logits, int64_t vocab, int32_t id);
#endif
