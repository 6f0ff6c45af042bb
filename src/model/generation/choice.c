/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generation/choice.h"
#include <stdbool.h>

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

/* Keeps the candidates that are allowed, and returns their number. They are then at the end of the array, the
 * most likely last. Only these are sorted, not the whole vocabulary. */
static int64_t cut(const struct choice *s, struct candidate *c, int64_t count)
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
	if (!stay) { /* a share is NaN */
		stay = 1;
		if (!taken)
			take_one(c, count);
	}
	while (stay > 1 && c[count - stay].share < s->min_p)
		stay--;
	return stay;
}

int32_t choice_take(const struct choice *choice, struct candidate *c, int64_t count, double number)
{
	const bool ordered = choice->top_k || choice->top_p < 1 || choice->min_p > 0;
	const int64_t stay = ordered ? cut(choice, c, count) : count;
	double all = 0, sum = 0;

	for (int64_t i = 0; i < stay; i++)
		all += c[ordered ? count - 1 - i : i].share;
	for (int64_t i = 0; i < stay; i++) {
		const struct candidate *next = &c[ordered ? count - 1 - i : i];

		sum += next->share;
		if (number * all < sum)
			return next->id;
	}
	return c[ordered ? count - stay : stay - 1].id;
}
