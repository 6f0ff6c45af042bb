/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generation/choice.h"
#include <stdbool.h>

enum { PARTS = 512 }; /* of the candidates, to find a bound for top_k */

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

/* A share that at least `k` candidates reach: the k-th largest of the maxima of disjoint parts. */
static double reached_by(const struct candidate *c, int64_t count, int64_t k)
{
	struct candidate largest[PARTS];

	for (int64_t part = 0; part < PARTS; part++) {
		const int64_t end = count * (part + 1) / PARTS;

		largest[part] = c[count * part / PARTS];
		for (int64_t i = count * part / PARTS; i < end; i++)
			largest[part] = c[i].share > largest[part].share ? c[i] : largest[part];
	}
	for (int64_t i = PARTS / 2; i-- > 0;)
		sink(largest, PARTS, i);
	for (int64_t i = 0; i + 1 < k; i++)
		take_one(largest, PARTS - i);
	return largest[0].share;
}

/* No candidate below this share is chosen. `all`: sum of all shares, if top_k cuts nothing. Candidates below
 * a share of (1 - top_p) all / count have less than (1 - top_p) all together; half of it leaves room for
 * rounding. */
static double least_share(const struct choice *s, const struct candidate *c, int64_t count, double all)
{
	double least;

	if (s->top_k && s->top_k < count)
		return s->top_k <= PARTS / 2 && count >= 4 * PARTS ? reached_by(c, count, s->top_k) : 0;
	least = 0.5 * (1 - s->top_p) * all / (double)count;
	return least > s->min_p ? least : s->min_p;
}

/* Keeps candidates with at least this share, in their order. */
static int64_t filter(struct candidate *c, int64_t count, double least)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < count; i++) {
		const struct candidate one = c[i];

		c[kept] = one;
		kept += one.share >= least;
	}
	return kept ? kept : 1; /* 1: a share is NaN */
}

/* Keeps the candidates that are allowed, and returns their number. They are then at the end of the array of
 * *count, the most likely last. Only these are sorted, not the whole vocabulary. */
static int64_t cut(const struct choice *s, struct candidate *c, int64_t *length)
{
	const bool by_number = s->top_k && s->top_k < *length;
	int64_t taken = 0, stay = 0, count, most;
	double all = 0, sum = 0;

	for (int64_t i = 0; !by_number && i < *length; i++)
		all += c[i].share;
	*length = count = filter(c, *length, least_share(s, c, *length, all));
	most = by_number && s->top_k < count ? s->top_k : count;
	for (int64_t i = count / 2; i-- > 0;)
		sink(c, count, i);
	for (; by_number && taken < most; taken++)
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
	const int64_t stay = ordered ? cut(choice, c, &count) : count;
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
