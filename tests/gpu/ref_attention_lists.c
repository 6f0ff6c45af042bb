/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/attention/sparse/make_lists.cu, by counting: a block is what the keys of each of its rows say. */
#include <stdlib.h>
#include "core/math/random.h"
#include "kernel/attention/sparse/make_lists.h"
#include "ref.h"

#define AT(type, address) ((type *)(uintptr_t)(address))

struct place {
	uint32_t b, h, q;
	int64_t queries, keys;
};

static uint32_t rows_of(const struct attention_lists_args *a)
{
	return a->lists.batches * a->lists.heads * a->lists.q_blocks;
}

static struct place place_of(const struct attention_lists_args *a, uint32_t row)
{
	const uint32_t *q_starts = AT(const uint32_t, a->q_starts),
		       *kv_starts = AT(const uint32_t, a->kv_starts);
	struct place p = {.q = row % a->lists.q_blocks, .queries = a->q_len, .keys = a->kv_len};

	p.h = row / a->lists.q_blocks % a->lists.heads;
	p.b = row / a->lists.q_blocks / a->lists.heads;
	if (q_starts) {
		p.queries = q_starts[p.b + 1] - q_starts[p.b];
		p.keys = kv_starts[p.b + 1] - kv_starts[p.b];
	}
	return p;
}

/* Does mask and length keep the pair? */
static bool seen(const struct attention_lists_args *a, const struct place *p, int64_t i, int64_t j)
{
	int64_t own = i + p->keys - p->queries;

	return i < p->queries && j < p->keys && j >= own - a->left && j <= own + a->right;
}

static enum lists_block kept(const struct attention_lists_args *a, const struct place *p, uint64_t row,
			     uint32_t k)
{
	int64_t last = ((int64_t)p->q + 1) * a->lists.q_block, place;

	switch ((enum lists_source)a->source) {
	case LISTS_STRIDED:
		place = (last < p->queries ? last : p->queries) - 1 + p->keys - p->queries;
		place = place > 0 ? place / a->lists.k_block : 0;
		return llabs(place - k) % a->stride ? LISTS_DROPPED : LISTS_KEPT;
	case LISTS_RANDOM:
		return random_u32(a->seed, ATTENTION_BLOCK_STREAM, row * a->lists.k_blocks + k) < a->below
			       ? LISTS_KEPT
			       : LISTS_DROPPED;
	case LISTS_MAP:
		return AT(const uint8_t, a->map)[row * a->lists.k_blocks + k];
	case LISTS_ALL:
		break;
	}
	return LISTS_KEPT;
}

/* 0: not listed; 1: partial; 2: full. */
static int class_of(const struct attention_lists_args *a, uint32_t row, uint32_t k)
{
	struct place p = place_of(a, row);
	enum lists_block keep = kept(a, &p, row, k);
	uint64_t pairs = 0;

	for (uint32_t i = 0; i < a->lists.q_block; i++)
		for (uint32_t j = 0; j < a->lists.k_block; j++)
			pairs += seen(a, &p, (int64_t)p.q * a->lists.q_block + i,
				      (int64_t)k * a->lists.k_block + j);
	if (!pairs || keep == LISTS_DROPPED)
		return 0;
	return keep == LISTS_KEPT && pairs == (uint64_t)a->lists.q_block * a->lists.k_block ? 2 : 1;
}

static void count(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_lists_args *a = args;
	uint32_t *counts = AT(uint32_t, a->counts);

	(void)entry, (void)grid;
	for (uint32_t row = 0; row < rows_of(a); row++) {
		counts[2 * row] = counts[2 * row + 1] = 0;
		for (uint32_t k = 0; k < a->lists.k_blocks; k++) {
			int class = class_of(a, row, k);

			counts[2 * row] += class == 2;
			counts[2 * row + 1] += class == 1;
		}
	}
}

static uint32_t unit_count(const struct attention_lists_args *a, uint32_t unit)
{
	uint32_t q = unit % a->lists.q_blocks, h = unit / a->lists.q_blocks % a->heads;
	uint32_t b = unit / a->lists.q_blocks / a->heads;
	uint32_t row = ((b % a->lists.batches) * a->lists.heads + h % a->lists.heads) * a->lists.q_blocks + q;

	return AT(const uint32_t, a->counts)[2 * row] + AT(const uint32_t, a->counts)[2 * row + 1];
}

/* By insertion: units of one count stay in their order. */
static void order_section(const struct attention_lists_args *a, uint32_t first, uint32_t end)
{
	uint32_t *order = AT(uint32_t, a->order);

	for (uint32_t unit = first; unit < end; unit++) {
		uint32_t at = unit;

		for (; at > first && unit_count(a, order[at - 1]) < unit_count(a, unit); at--)
			order[at] = order[at - 1];
		order[at] = unit;
	}
}

static void place(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_lists_args *a = args;
	const uint32_t *counts = AT(const uint32_t, a->counts);
	uint32_t *full = AT(uint32_t, a->lists.full_begin), *partial = AT(uint32_t, a->lists.partial_begin);
	uint32_t all = a->batch * a->heads * a->lists.q_blocks, wide = a->section * a->lists.q_blocks;

	(void)entry, (void)grid;
	full[0] = partial[0] = 0;
	for (uint32_t row = 0; row < rows_of(a); row++) {
		full[row + 1] = full[row] + counts[2 * row];
		partial[row + 1] = partial[row] + counts[2 * row + 1];
	}
	for (uint32_t first = 0; first < all; first += wide)
		order_section(a, first, all - first < wide ? all : first + wide);
}

static void write(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_lists_args *a = args;
	const uint32_t *full_begin = AT(const uint32_t, a->lists.full_begin),
		       *partial_begin = AT(const uint32_t, a->lists.partial_begin);

	(void)entry, (void)grid;
	for (uint32_t row = 0; row < rows_of(a); row++) {
		uint32_t *full = AT(uint32_t, a->lists.full) + full_begin[row];
		uint32_t *partial = AT(uint32_t, a->lists.partial) + partial_begin[row];

		for (uint32_t k = 0; k < a->lists.k_blocks; k++) {
			int class = class_of(a, row, k);

			if (class == 2)
				*full++ = k;
			else if (class == 1)
				*partial++ = k;
		}
	}
}

/* -- masks of elements -- */

static bool element(const struct attention_lists_args *a, const struct place *p, uint32_t i, uint32_t j)
{
	uint64_t line = ((uint64_t)p->b * a->lists.heads + p->h) * a->q_len + i;

	return i < p->queries && j < p->keys && AT(const uint8_t, a->mask)[line * a->kv_len + j];
}

static void classify(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_lists_args *a = args;

	(void)entry, (void)grid;
	for (uint32_t row = 0; row < rows_of(a); row++)
		for (uint32_t k = 0; k < a->lists.k_blocks; k++) {
			struct place p = place_of(a, row);
			uint64_t there = 0, set = 0;

			for (uint32_t i = p.q * a->lists.q_block; i < (p.q + 1) * a->lists.q_block; i++)
				for (uint32_t j = k * a->lists.k_block; j < (k + 1) * a->lists.k_block; j++) {
					there += i < p.queries && j < p.keys;
					set += element(a, &p, i, j);
				}
			AT(uint8_t, a->map)
			[(uint64_t)row * a->lists.k_blocks + k] =
				!set ? LISTS_DROPPED : (set < there ? LISTS_PART : LISTS_KEPT);
		}
}

static void bits(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_lists_args *a = args;
	const uint32_t *begin = AT(const uint32_t, a->lists.partial_begin),
		       *partial = AT(const uint32_t, a->lists.partial);
	uint64_t each = (uint64_t)a->lists.q_block * a->lists.k_block;

	(void)entry, (void)grid;
	for (uint32_t row = 0; row < rows_of(a); row++)
		for (uint32_t n = begin[row]; n < begin[row + 1]; n++) {
			struct place p = place_of(a, row);
			uint32_t *out = AT(uint32_t, a->bits) + n * each / 32;

			memset(out, 0, each / 8);
			for (uint64_t e = 0; e < each; e++)
				if (element(a, &p, p.q * a->lists.q_block + (uint32_t)(e / a->lists.k_block),
					    partial[n] * a->lists.k_block + (uint32_t)(e % a->lists.k_block)))
					out[e / 32] |= 1u << e % 32;
		}
}

#define ARGS sizeof(struct attention_lists_args)
#define OUT(member) offsetof(struct attention_lists_args, member)
const struct ref_row ref_attention_lists[] = {
	{"lists_classify", classify, ARGS, OUT(map)}, {"lists_count", count, ARGS, OUT(counts)},
	{"lists_place", place, ARGS, OUT(order)},     {"lists_write", write, ARGS, OUT(lists.full)},
	{"lists_bits", bits, ARGS, OUT(bits)},	      {NULL, NULL, 0, 0},
};
