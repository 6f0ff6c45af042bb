/* SPDX-License-Identifier: Apache-2.0 */
#include "model/bnb4/bnb4.h"

#include "model/tensor/dtype.h"

enum { ITEM_ELEMENTS = 1 << 16 }; /* elements that a thread takes at a time, at least */

struct dequantizing {
	const struct bnb4 *m;
	const struct mat *to;
	int64_t row, item_rows;
	float pair[256][2]; /* numbers of the two codes in a byte */
};

/* Elements [first, first + count) of one block, before they are multiplied by its absmax. */
static void look_up(const struct dequantizing *d, uint64_t first, uint64_t count, float *out)
{
	const uint8_t *at = d->m->codes + first / 2;
	uint64_t i = 0;

	if (first % 2 && count)
		out[i++] = d->pair[*at++][1];
	for (; i + 2 <= count; i += 2)
		memcpy(out + i, d->pair[*at++], 2 * sizeof(*out));
	if (i < count)
		out[i] = d->pair[*at][0];
}

static void dequantize_row(const struct dequantizing *d, int64_t row, uint8_t *to)
{
	const uint64_t cols = (uint64_t)d->m->cols;
	uint64_t at = (uint64_t)row * cols;
	const uint64_t end = at + cols;

	while (at < end) {
		const uint64_t left = BNB4_BLOCK - at % BNB4_BLOCK, n = end - at < left ? end - at : left;
		const float absmax = bnb4_absmax(d->m, at / BNB4_BLOCK);
		float x[BNB4_BLOCK];

		look_up(d, at, n, x);
		for (uint64_t i = 0; i < n; i++)
			x[i] *= absmax;
		dtype_pack(d->to->dtype, x, to, n);
		to += dtype_bytes(d->to->dtype, n);
		at += n;
	}
}

static void dequantize_item(void *arg, int64_t item, unsigned thread)
{
	const struct dequantizing *d = arg;
	const int64_t first = item * d->item_rows;

	(void)thread;
	for (int64_t i = first; i < first + d->item_rows && i < d->to->rows; i++)
		dequantize_row(d, d->row + i,
			       (uint8_t *)d->to->data + dtype_bytes(d->to->dtype, (uint64_t)(i * d->to->ld)));
}

void bnb4_dequantize(const struct bnb4 *m, int64_t row, const struct mat *to, struct cpu_pool *pool)
{
	struct dequantizing d = {.m = m, .to = to, .row = row};
	const float *table = bnb4_table(m->type);
	int64_t items;

	for (int i = 0; i < 256; i++) {
		d.pair[i][0] = table[i >> 4];
		d.pair[i][1] = table[i & 15];
	}
	d.item_rows = to->cols < ITEM_ELEMENTS && to->cols > 0 ? ITEM_ELEMENTS / to->cols : 1;
	items = (to->rows + d.item_rows - 1) / d.item_rows;
	if (pool)
		cpu_pool_share(pool, items, dequantize_item, &d);
	for (int64_t i = 0; !pool && i < items; i++)
		dequantize_item(&d, i, 0);
}
