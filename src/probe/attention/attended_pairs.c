/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/attended_pairs.h"
#include <stdlib.h>
#include <string.h>

uint32_t attention_attended_room(const struct attention_blocks *l)
{
	return l ? l->k_blocks : 1;
}

/* Appends the span unless it is empty. If it touches the previous span, that one is extended. */
static uint32_t append(struct attention_keys *out, uint32_t count, uint64_t from, uint64_t to)
{
	if (from >= to)
		return count;
	if (count && out[count - 1].to == from) {
		out[count - 1].to = (uint32_t)to;
		return count;
	}
	out[count] = (struct attention_keys){(uint32_t)from, (uint32_t)to};
	return count + 1;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint32_t attention_pairs_spans(const struct attention_problem *p, const struct attention_blocks *l,
			       uint32_t b, uint32_t h, uint32_t row, struct attention_keys *out)
{
	struct attention_keys seen = attention_keys(p, b, row);
	struct attention_row list;
	uint32_t count = 0, f = 0, q = 0;

	if (!l)
		return append(out, 0, seen.from, seen.to);
	list = attention_blocks_row(l, b, h, row / l->q_block);
	while (f < list.full_count || q < list.partial_count) {
		bool full =
			q == list.partial_count || (f < list.full_count && list.full[f] < list.partial[q]);
		uint64_t from = (uint64_t)(full ? list.full[f++] : list.partial[q++]) * l->k_block;
		uint64_t to = from + l->k_block;

		if (full)
			count = append(out, count, from, to);
		else
			count = append(out, count, larger(from, seen.from), smaller(to, seen.to));
	}
	return count;
}

/* Pairs of one query block with a key block that the mask or the end of a sequence may cut. */
static uint64_t partial_pairs(const struct attention_problem *p, const struct attention_blocks *l, uint32_t b,
			      uint32_t q, uint32_t k)
{
	uint64_t from = (uint64_t)k * l->k_block, to = from + l->k_block, sum = 0;
	uint64_t end = smaller(((uint64_t)q + 1) * l->q_block, attention_q_len(p, b));

	for (uint64_t row = (uint64_t)q * l->q_block; row < end; row++) {
		struct attention_keys seen = attention_keys(p, b, (uint32_t)row);
		uint64_t low = larger(from, seen.from), high = smaller(to, seen.to);

		sum += high > low ? high - low : 0;
	}
	return sum;
}

static double listed_pairs(const struct attention_problem *p, const struct attention_blocks *l, uint32_t b,
			   uint32_t h)
{
	uint64_t sum = 0;

	for (uint32_t q = 0; q < l->q_blocks; q++) {
		struct attention_row row = attention_blocks_row(l, b, h, q);

		sum += (uint64_t)row.full_count * l->q_block * l->k_block;
		for (uint32_t i = 0; i < row.partial_count; i++)
			sum += partial_pairs(p, l, b, q, row.partial[i]);
	}
	return (double)sum;
}

double attention_attended_pairs(const struct attention_problem *p, const struct attention_blocks *l)
{
	uint32_t batches; /* batches with lists of their own: lists that all batches share count once */
	double sum = 0;

	if (!l)
		return attention_pairs(p);
	batches = p->q_starts ? p->batch : l->batches;
	for (uint32_t b = 0; b < batches; b++)
		for (uint32_t h = 0; h < l->heads; h++)
			sum += listed_pairs(p, l, b, h);
	return sum * ((double)p->batch / batches) * ((double)p->heads / l->heads);
}

/* Marks the key blocks in the lists of one query head. */
static void mark(const struct attention_blocks *l, uint32_t b, uint32_t h, unsigned char *named)
{
	for (uint32_t q = 0; q < l->q_blocks; q++) {
		struct attention_row row = attention_blocks_row(l, b, h, q);

		for (uint32_t i = 0; i < row.full_count; i++)
			named[row.full[i]] = 1;
		for (uint32_t i = 0; i < row.partial_count; i++)
			named[row.partial[i]] = 1;
	}
}

double attention_attended_keys(const struct attention_problem *p, const struct attention_blocks *l)
{
	uint32_t groups = l && l->heads > 1 ? p->kv_heads : 1, share = l ? l->heads / groups : 0;
	unsigned char *named = l ? malloc(l->k_blocks) : NULL;
	double sum = 0;

	if (!named)
		return 1;
	for (uint32_t b = 0; b < l->batches; b++)
		for (uint32_t g = 0; g < groups; g++) {
			memset(named, 0, l->k_blocks);
			for (uint32_t h = 0; h < share; h++)
				mark(l, b, g * share + h, named);
			for (uint32_t k = 0; k < l->k_blocks; k++)
				sum += named[k];
		}
	free(named);
	return sum / ((double)l->batches * groups * l->k_blocks);
}
