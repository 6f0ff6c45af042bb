/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "model/generation/sampling.h"

struct candidate {
	double share; /* probability before normalization */
	int32_t id;
};
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

/* Most likely first; equals are ordered by id, so that the order is unique. */
static bool before(const struct candidate *x, const struct candidate *y)
{
	return x->share != y->share ? x->share > y->share : x->id < y->id;
}

/* Moves the candidate at `i` down until the heap is in order. */
static void sink(struct candidate *heap, int64_t count, int64_t i)
{
	const struct candidate c = heap[i];

	for (int64_t below = 2 * i + 1; below < count; below = 2 * i + 1) {
		if (below + 1 < count && before(&heap[below + 1], &heap[below]))
			below++;
		if (!before(&heap[below], &c))
			break;
		heap[i] = heap[below];
		i = below;
	}
	heap[i] = c;
}

/* Moves the most likely candidate behind the heap. */
static double take_one(struct candidate *heap, int64_t count)
{
	const struct candidate first = heap[0];

	heap[0] = heap[count - 1];
	sink(heap, count - 1, 0);
	heap[count - 1] = first;
	return first.share;
}

/* Keeps the candidates that top_k and top_p allow, and returns their number. They are then at the end of the
 * array, the most likely last. Only these are sorted, not the whole vocabulary. */
static int64_t cut(const struct sampling *s, struct candidate *c, int64_t count)
{
	const int64_t most = s->top_k && s->top_k < count ? s->top_k : count;
	double all = 0, sum = 0;
	int64_t taken = 0, stay = 0;

	for (int64_t i = 0; most == count && i < count; i++)
		all += c[i].share;
	for (int64_t i = count / 2; i-- > 0;)
		sink(c, count, i);
	for (; most < count && taken < most; taken++)
		all += take_one(c, count - taken);
	while (stay < most && sum < s->top_p * all) {
		if (stay == taken)
			take_one(c, count - taken++);
		sum += c[count - 1 - stay++].share;
	}
	return stay;
}

int32_t sampling_choose(const struct sampling *s, struct sampler_room *room, const float *logits,
			int64_t vocab, uint64_t index)
{
	struct candidate *c = room->candidate;
	int64_t count = vocab < room->vocab ? vocab : room->vocab, stay = count;
	const double most = (double)logits[likeliest(logits, count)];
	const bool ordered = s->top_k || s->top_p < 1;
	double all = 0, sum = 0, point;

	if (s->temperature == 0)
		return likeliest(logits, count);
	for (int64_t i = 0; i < count; i++)
		c[i] = (struct candidate){.share = exp(((double)logits[i] - most) / s->temperature),
					  .id = (int32_t)i};
	if (ordered)
		stay = cut(s, c, count);
	for (int64_t i = 0; i < stay; i++)
		all += c[ordered ? count - 1 - i : i].share;
	point = ((double)random_u32(s->seed, 0, index) + 0.5) * 0x1p-32 * all;
	for (int64_t i = 0; i < stay; i++) {
		const struct candidate *next = &c[ordered ? count - 1 - i : i];

		sum += next->share;
		if (point < sum)
			return next->id;
	}
	return c[ordered ? count - stay : stay - 1].id;
}

double sampling_logprob(const float *logits, int64_t vocab, int32_t id)
{
	double most = (double)logits[likeliest(logits, vocab)], sum = 0;

	for (int64_t i = 0; i < vocab; i++)
		sum += exp((double)logits[i] - most);
	return (double)logits[id] - most - log(sum);
}
