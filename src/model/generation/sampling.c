/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "model/generation/choice.h"
#include "model/generation/sampling.h"

struct sampler_room {
	int64_t vocab;
	struct candidate candidate[];
};

enum status sampling_check(const struct sampling *s, struct error *err)
{
	if (!(s->temperature >= 0 && isfinite(s->temperature)))
		return error_set(err, STATUS_BAD_INPUT, "temperature is %g; it must be 0 or more",
				 s->temperature);
	if (s->top_k < 0)
		return error_set(err, STATUS_BAD_INPUT, "top_k is %lld; it must be 0 (all) or more",
				 (long long)s->top_k);
	if (!(s->top_p > 0 && s->top_p <= 1))
		return error_set(err, STATUS_BAD_INPUT, "top_p is %g; it must be above 0 and at most 1",
				 s->top_p);
	return STATUS_OK;
}

enum status sampler_room_create(struct sampler_room **room, int64_t vocab, struct error *err)
{
	*room = malloc(sizeof(**room) + (size_t)vocab * sizeof((*room)->candidate[0]));
	if (!*room)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %lld candidates", (long long)vocab);
	(*room)->vocab = vocab;
	return STATUS_OK;
}

void sampler_room_destroy(struct sampler_room **room)
{
	free(*room);
	*room = NULL;
}

static int32_t likeliest(const float *logits, int64_t vocab)
{
	int64_t best = 0;

	for (int64_t i = 1; i < vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	return (int32_t)best;
}

int32_t sampling_choose(const struct sampling *s, struct sampler_room *room, const float *logits,
			int64_t vocab, uint64_t index)
{
	const struct choice choice = {.top_k = s->top_k, .top_p = s->top_p};
	int64_t count = vocab < room->vocab ? vocab : room->vocab;
	const int32_t best = likeliest(logits, count);

	if (s->temperature == 0)
		return best;
	for (int64_t i = 0; i < count; i++)
		room->candidate[i] = (struct candidate){
			.share = exp(((double)logits[i] - (double)logits[best]) / s->temperature),
			.id = (int32_t)i};
	return choice_take(&choice, room->candidate, count,
			   ((double)random_u32(s->seed, 0, index) + 0.5) * 0x1p-32);
}

double sampling_logprob(const float *logits, int64_t vocab, int32_t id)
{
	double most = (double)logits[likeliest(logits, vocab)], sum = 0;

	for (int64_t i = 0; i < vocab; i++)
		sum += exp((double)logits[i] - most);
	return (double)logits[id] - most - log(sum);
}
