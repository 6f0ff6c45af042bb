/* SPDX-License-Identifier: Apache-2.0 */
#include "model/bnb4/bnb4.h"

#include <math.h>
#include <stdlib.h>
#include "model/tensor/dtype.h"

enum { ITEM_BLOCKS = 1024 }; /* blocks that a thread takes at a time */

struct quantizing {
	const struct bnb4 *m;
	const struct mat *from;
	float *absmax; /* one per block */
	uint64_t blocks;
	float offset;
};

/* Unpacks elements [first, first + count), counted row after row. */
static void read_elements(const struct mat *from, uint64_t first, uint64_t count, float *out)
{
	const uint64_t cols = (uint64_t)from->cols;

	while (count) {
		const uint64_t row = first / cols, col = first % cols;
		const uint64_t n = count < cols - col ? count : cols - col;
		const uint8_t *at = (const uint8_t *)from->data +
				    dtype_bytes(from->dtype, row * (uint64_t)from->ld + col);

		dtype_unpack(from->dtype, at, out, n);
		first += n;
		count -= n;
		out += n;
	}
}

static void round_nf4(const float *x, float inverse, uint8_t *code)
{
	static const float limit[] = {BNB4_NF4_LIMITS};

	for (int i = 0; i < BNB4_BLOCK; i++) {
		const float scaled = x[i] * inverse;
		int above = 0;

		for (size_t k = 0; k < sizeof(limit) / sizeof(limit[0]); k++)
			above += scaled > limit[k];
		code[i] = (uint8_t)above;
	}
}

static void round_fp4(const float *x, float inverse, uint8_t *code)
{
	static const float limit[] = {BNB4_FP4_LIMITS};
	static const uint8_t order[] = {BNB4_FP4_ORDER};

	for (int i = 0; i < BNB4_BLOCK; i++) {
		const float scaled = x[i] * inverse;
		int above = 0;

		for (size_t k = 0; k < sizeof(limit) / sizeof(limit[0]); k++)
			above += fabsf(scaled) > limit[k];
		code[i] = (uint8_t)(order[above] | (scaled < 0) << 3);
	}
}

/* In a block of zeros the inverse is infinite and each product NaN, which no limit is below: code 0. */
static void quantize_block(const struct quantizing *q, uint64_t block)
{
	const uint64_t all = (uint64_t)q->m->rows * (uint64_t)q->m->cols, first = block * BNB4_BLOCK;
	const uint64_t count = all - first < BNB4_BLOCK ? all - first : BNB4_BLOCK;
	float x[BNB4_BLOCK] = {0}, absmax = 0;
	uint8_t code[BNB4_BLOCK], *to = q->m->codes + first / 2;

	read_elements(q->from, first, count, x);
	for (int i = 0; i < BNB4_BLOCK; i++)
		absmax = fabsf(x[i]) > absmax ? fabsf(x[i]) : absmax;
	if (q->m->type == BNB4_NF4)
		round_nf4(x, 1.0f / absmax, code);
	else
		round_fp4(x, 1.0f / absmax, code);
	for (uint64_t i = 0; i < (count + 1) / 2; i++)
		to[i] = (uint8_t)(code[2 * i] << 4 | code[2 * i + 1]);
	memcpy((uint8_t *)q->absmax + block * sizeof(absmax), &absmax, sizeof(absmax));
}

static void quantize_item(void *arg, int64_t item, unsigned thread)
{
	const struct quantizing *q = arg;
	const uint64_t first = (uint64_t)item * ITEM_BLOCKS;

	(void)thread;
	for (uint64_t i = first; i < first + ITEM_BLOCKS && i < q->blocks; i++)
		quantize_block(q, i);
}

/* The mean in double: groups first, then their sums, each in ascending order, as the kernel adds them. */
static float mean_of(const float *absmax, uint64_t count)
{
	double sum = 0;

	for (uint64_t i = 0; i < count;) {
		double group = 0;

		for (uint64_t end = count - i < BNB4_GROUP ? count : i + BNB4_GROUP; i < end; i++)
			group += (double)absmax[i];
		sum += group;
	}
	return (float)(sum / (double)count);
}

static void nest_group(void *arg, int64_t group, unsigned thread)
{
	const struct quantizing *q = arg;
	const uint64_t first = (uint64_t)group * BNB4_GROUP;
	const uint64_t count = q->blocks - first < BNB4_GROUP ? q->blocks - first : BNB4_GROUP;
	const float *absmax = q->absmax + first;
	float most = 0, inverse;

	(void)thread;
	for (uint64_t i = 0; i < count; i++)
		most = fabsf(absmax[i] - q->offset) > most ? fabsf(absmax[i] - q->offset) : most;
	inverse = 1.0f / most;
	for (uint64_t i = 0; i < count; i++)
		q->m->absmax_codes[first + i] =
			(uint8_t)bnb4_absmax_code(bnb4_absmax_map(), (absmax[i] - q->offset) * inverse);
	memcpy((uint8_t *)q->m->absmax + (uint64_t)group * sizeof(most), &most, sizeof(most));
}

static void share(struct cpu_pool *pool, int64_t count, void (*work)(void *, int64_t, unsigned), void *arg)
{
	if (pool)
		cpu_pool_share(pool, count, work, arg);
	for (int64_t i = 0; !pool && i < count; i++)
		work(arg, i, 0);
}

enum status bnb4_quantize(const struct bnb4 *m, const struct mat *from, struct cpu_pool *pool,
			  struct error *err)
{
	struct quantizing q = {.m = m, .from = from, .absmax = m->absmax};

	q.blocks = bnb4_blocks(m->rows, m->cols);
	if (m->nested)
		q.absmax = malloc((q.blocks + 1) * sizeof(*q.absmax));
	if (!q.absmax)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the absmax of %llu blocks",
				       (unsigned long long)q.blocks);
	share(pool, (int64_t)((q.blocks + ITEM_BLOCKS - 1) / ITEM_BLOCKS), quantize_item, &q);
	if (m->nested && q.blocks) {
		q.offset = mean_of(q.absmax, q.blocks);
		memcpy(m->offset, &q.offset, sizeof(q.offset));
		memcpy(m->map, bnb4_absmax_map(), BNB4_MAP * sizeof(*m->map));
		share(pool, (int64_t)bnb4_groups(m->rows, m->cols), nest_group, &q);
	}
	if (m->nested)
		free(q.absmax);
	return STATUS_OK;
}
