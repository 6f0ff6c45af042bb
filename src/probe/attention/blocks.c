/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/blocks.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "kernel/attention/sparse/block_lists.h"

enum {
	LIST_MOST = 1 << 28,   /* numbers in a list: 1 GiB */
	CHOICE_MOST = 1 << 28, /* blocks that a pattern has to decide on: two seconds of one core */
};

static size_t rows_of(const struct attention_blocks *l)
{
	return (size_t)l->batches * l->heads * l->q_blocks;
}

struct attention_blocks *attention_blocks_create(const struct attention_blocks *sizes)
{
	struct attention_blocks *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	*l = *sizes;
	l->full = l->partial = NULL;
	l->full_begin = calloc(rows_of(l) + 1, sizeof(*l->full_begin));
	l->partial_begin = calloc(rows_of(l) + 1, sizeof(*l->partial_begin));
	if (l->full_begin && l->partial_begin)
		return l;
	attention_blocks_free(l);
	return NULL;
}

void attention_blocks_free(struct attention_blocks *l)
{
	if (!l)
		return;
	free(l->full_begin);
	free(l->full);
	free(l->partial_begin);
	free(l->partial);
	free(l);
}

/* The allocated size doubles at each power of two. */
bool attention_blocks_append(uint32_t **list, uint32_t *count, uint32_t block)
{
	if (*count == LIST_MOST)
		return false;
	if (!(*count & (*count - 1))) {
		size_t room = *count ? 2 * (size_t)*count : 1;
		uint32_t *grown = realloc(*list, room * sizeof(*grown));

		if (!grown)
			return false;
		*list = grown;
	}
	(*list)[(*count)++] = block;
	return true;
}

struct attention_row attention_blocks_row(const struct attention_blocks *l, uint32_t b, uint32_t h,
					  uint32_t q)
{
	size_t row = ((size_t)(b % l->batches) * l->heads + h % l->heads) * l->q_blocks + q;

	return (struct attention_row){
		/* an empty list has no memory */
		.full = l->full ? l->full + l->full_begin[row] : NULL,
		.partial = l->partial ? l->partial + l->partial_begin[row] : NULL,
		.full_count = l->full_begin[row + 1] - l->full_begin[row],
		.partial_count = l->partial_begin[row + 1] - l->partial_begin[row],
	};
}

uint64_t attention_blocks_listed(const struct attention_blocks *l)
{
	return (uint64_t)l->full_begin[rows_of(l)] + l->partial_begin[rows_of(l)];
}

double attention_blocks_density(const struct attention_blocks *l)
{
	return (double)attention_blocks_listed(l) / ((double)rows_of(l) * l->k_blocks);
}

/* -- the part of a block within the mask -- */

enum left { LEFT_NOTHING, LEFT_PART, LEFT_ALL };

/* From one query to the next, the first and last key in its mask rise by at most one. So the first and the
 * last query determine the result for a whole block. */
struct seen {
	struct attention_keys top, bottom;
	bool some, whole; /* rows of the block that exist: at least one, all */
};

static struct seen seen_of(const struct attention_problem *p, uint32_t b, uint32_t q_block, uint32_t q)
{
	uint64_t from = (uint64_t)q * q_block, to = from + q_block;
	uint32_t queries = attention_q_len(p, b);
	struct seen seen = {.some = from < queries, .whole = to <= queries};

	if (!seen.some)
		return seen;
	seen.top = attention_keys(p, b, (uint32_t)from);
	seen.bottom = attention_keys(p, b, seen.whole ? (uint32_t)to - 1 : queries - 1);
	return seen;
}

static enum left left_of(const struct seen *seen, uint32_t k_block, uint32_t k)
{
	uint64_t first = (uint64_t)k * k_block, last = first + k_block;

	if (!seen->some || seen->bottom.to <= first || seen->top.from >= last)
		return LEFT_NOTHING;
	return seen->whole && seen->bottom.from <= first && seen->top.to >= last ? LEFT_ALL : LEFT_PART;
}

/* -- patterns -- */

struct builder {
	const struct attention_problem *p;
	const struct attention_pattern_of *how;
	struct attention_blocks *l;
	uint32_t full, partial; /* numbers in the lists so far */
	uint64_t drawn_at;	/* index of the group of four words in `drawn`; UINT64_MAX: none yet */
	uint32_t drawn[4];
};

/* The key block with the position of the query block's last query. */
static uint32_t own_block(const struct builder *m, uint32_t b, uint32_t q)
{
	int64_t queries = attention_q_len(m->p, b), last = ((int64_t)q + 1) * m->how->q_block;
	int64_t place = (last < queries ? last : queries) - 1 + attention_kv_len(m->p, b) - queries;

	return place > 0 ? (uint32_t)(place / m->how->k_block) : 0;
}

/* random_u32 for consecutive indices; each group of four words is drawn once. */
static uint32_t word_of(struct builder *m, uint64_t index)
{
	const uint32_t counter[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32),
				     ATTENTION_BLOCK_STREAM},
		       key[2] = {(uint32_t)m->how->seed, (uint32_t)(m->how->seed >> 32)};

	if (m->drawn_at != index / 4)
		philox4x32(m->drawn, counter, key);
	m->drawn_at = index / 4;
	return m->drawn[index % 4];
}

static bool chosen(struct builder *m, uint32_t b, uint32_t h, uint32_t q, uint32_t k)
{
	const struct attention_blocks *l = m->l;
	uint32_t stride, own;
	uint64_t index;

	switch (m->how->pattern) {
	case ATTENTION_STRIDED:
		stride = (uint32_t)lrint(1 / m->how->density);
		own = own_block(m, b, q);
		return (own > k ? own - k : k - own) % (stride ? stride : 1) == 0;
	case ATTENTION_RANDOM:
		index = (((uint64_t)b * l->heads + h) * l->q_blocks + q) * l->k_blocks + k;
		return word_of(m, index) < m->how->density * 0x1p32;
	default:
		return true;
	}
}

static bool build_row(struct builder *m, uint32_t b, uint32_t h, uint32_t q)
{
	struct attention_blocks *l = m->l;
	size_t row = ((size_t)b * l->heads + h) * l->q_blocks + q;
	const struct seen seen = seen_of(m->p, b, l->q_block, q);
	bool room = true;

	for (uint32_t k = 0; room && k < l->k_blocks; k++) {
		enum left left = left_of(&seen, l->k_block, k);

		if (left == LEFT_NOTHING || !chosen(m, b, h, q, k))
			continue;
		if (left == LEFT_ALL)
			room = attention_blocks_append(&l->full, &m->full, k);
		else
			room = attention_blocks_append(&l->partial, &m->partial, k);
	}
	l->full_begin[row + 1] = m->full;
	l->partial_begin[row + 1] = m->partial;
	return room;
}

static enum status check_choices(const struct attention_blocks *sizes, struct error *err)
{
	double choices = (double)rows_of(sizes) * sizes->k_blocks;

	if (choices <= CHOICE_MOST)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "attention: the pattern has to decide on %.4g blocks of %" PRIu32
			 " queries and %" PRIu32
			 " keys, more than %d; use larger blocks, fewer heads or shorter sequences",
			 choices, sizes->q_block, sizes->k_block, CHOICE_MOST);
}

static bool stopped(const volatile sig_atomic_t *stop)
{
	return stop && *stop;
}

enum status attention_blocks_build(struct attention_blocks **out, const struct attention_problem *p,
				   const struct attention_pattern_of *how, const volatile sig_atomic_t *stop,
				   struct error *err)
{
	bool each = how->pattern == ATTENTION_RANDOM, room;
	struct attention_blocks sizes = {
		.batches = each || p->q_starts ? p->batch : 1,
		.heads = each ? p->heads : 1,
		.q_blocks = (p->q_len + how->q_block - 1) / how->q_block,
		.k_blocks = (p->kv_len + how->k_block - 1) / how->k_block,
		.q_block = how->q_block,
		.k_block = how->k_block,
	};
	struct builder m = {.p = p, .how = how, .drawn_at = UINT64_MAX};
	enum status st = check_choices(&sizes, err);

	if (st)
		return st;
	m.l = attention_blocks_create(&sizes);
	room = m.l;
	for (uint32_t b = 0; room && b < sizes.batches; b++)
		for (uint32_t h = 0; room && h < sizes.heads; h++)
			for (uint32_t q = 0; room && !stopped(stop) && q < sizes.q_blocks; q++)
				room = build_row(&m, b, h, q);
	if (!room || stopped(stop)) {
		attention_blocks_free(m.l);
		return room ? error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					      "attention: interrupted while making block lists")
			    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					      "attention: not enough memory for the block lists");
	}
	*out = m.l;
	return STATUS_OK;
}

/* -- lists from a file -- */

static enum status fit_sizes(const struct attention_blocks *l, const struct attention_problem *p,
			     const char *place, struct error *err)
{
	uint32_t q_blocks = (p->q_len + l->q_block - 1) / l->q_block,
		 k_blocks = (p->kv_len + l->k_block - 1) / l->k_block;

	if ((l->batches != 1 && l->batches != p->batch) || (l->heads != 1 && l->heads != p->heads))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: the file has lists for %u batches and %u heads, but batch=%u and heads=%u need as many, "
			"or 1 list for all",
			place, l->batches, l->heads, p->batch, p->heads);
	if (l->q_blocks != q_blocks || l->k_blocks != k_blocks)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s: the file has %u blocks of %u queries and %u blocks of %u keys, but sequences of %u and %u need "
			"%u and %u blocks",
			place, l->q_blocks, l->q_block, l->k_blocks, l->k_block, p->q_len, p->kv_len,
			q_blocks, k_blocks);
	return STATUS_OK;
}

enum status attention_blocks_fit(const struct attention_blocks *l, const struct attention_problem *p,
				 const char *place, struct error *err)
{
	uint32_t batches = p->q_starts ? p->batch : l->batches;
	enum status st = fit_sizes(l, p, place, err);

	for (uint32_t b = 0; !st && b < batches; b++)
		for (uint32_t h = 0; !st && h < l->heads; h++)
			for (uint32_t q = 0; !st && q < l->q_blocks; q++) {
				struct attention_row row = attention_blocks_row(l, b, h, q);
				const struct seen seen = seen_of(p, b, l->q_block, q);

				for (uint32_t i = 0; !st && i < row.full_count; i++)
					if (left_of(&seen, l->k_block, row.full[i]) != LEFT_ALL)
						st = error_set(
							err, STATUS_BAD_INPUT,
							"%s: (batch %u, head %u, query block %u): key "
							"block %u is listed as full, but the mask or the "
							"end of the sequence cuts it; list it as partial",
							place, b, h, q, row.full[i]);
			}
	return st;
}
