/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/deal.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct piece {
	uint64_t tokens, at; /* at: index in the given order */
	uint32_t pack;
	bool right;
};

static int largest_first(const void *a_, const void *b_)
{
	const struct piece *a = a_, *b = b_;

	if (a->tokens != b->tokens)
		return a->tokens > b->tokens ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int left_first(const void *a_, const void *b_)
{
	const struct piece *a = a_, *b = b_;

	if (a->right != b->right)
		return a->right ? 1 : -1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static uint64_t left_half(uint64_t count)
{
	return (count + 1) / 2;
}

/* Gives each piece, from the largest on, to the half with fewer tokens, while that half has room. */
static void halve(struct piece *p, uint64_t count)
{
	uint64_t room[2] = {left_half(count), count - left_half(count)}, sum[2] = {0, 0};

	qsort(p, count, sizeof(*p), largest_first);
	for (uint64_t i = 0; i < count; i++) {
		p[i].right = !room[0] || (room[1] && sum[1] < sum[0]);
		room[p[i].right]--;
		sum[p[i].right] += p[i].tokens;
	}
	qsort(p, count, sizeof(*p), left_first);
}

static void order(struct piece *p, uint64_t count)
{
	while (count > 1) {
		halve(p, count);
		order(p, left_half(count));
		p += left_half(count);
		count -= left_half(count);
	}
}

enum status deal_order(uint32_t *pack, const uint64_t *tokens, uint64_t count, struct error *err)
{
	struct piece *p = malloc((count + 1) * sizeof(*p));

	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to deal %llu packs", (unsigned long long)count);
	for (uint64_t i = 0; i < count; i++)
		p[i] = (struct piece){.tokens = tokens[i], .at = i, .pack = pack[i]};
	order(p, count);
	for (uint64_t i = 0; i < count; i++)
		pack[i] = p[i].pack;
	free(p);
	return STATUS_OK;
}

struct deal_range deal_range_of(uint64_t count, uint64_t world, uint64_t rank)
{
	struct deal_range r = {0, count};

	while (world > 1) {
		const uint64_t ranks = left_half(world), all = r.last - r.first;
		const uint64_t middle = r.first + (all * ranks + world - 1) / world;

		if (rank < ranks) {
			r.last = middle;
			world = ranks;
		} else {
			r.first = middle;
			rank -= ranks;
			world -= ranks;
		}
	}
	return r;
}

unsigned deal_ends(uint64_t count, uint64_t at)
{
	unsigned ends = 0;

	while (count > 1) {
		const uint64_t left = left_half(count);

		if (at < left) {
			ends = 0;
			count = left;
		} else {
			ends++;
			at -= left;
			count -= left;
		}
	}
	return ends;
}

unsigned deal_depth(uint64_t count)
{
	unsigned depth = 0;

	while (count > 1) {
		depth++;
		count = left_half(count);
	}
	return depth;
}
