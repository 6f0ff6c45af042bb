/* SPDX-License-Identifier: Apache-2.0 */
#include "model/bnb4/bnb4.h"

#include <math.h>

static const float nf4[BNB4_CODES] = {BNB4_NF4_TABLE}, fp4[BNB4_CODES] = {BNB4_FP4_TABLE};
static const float map[BNB4_MAP] = {BNB4_ABSMAX_MAP};

const float *bnb4_table(enum bnb4_type type)
{
	return type == BNB4_NF4 ? nf4 : fp4;
}

const float *bnb4_absmax_map(void)
{
	return map;
}

const char *bnb4_type_name(enum bnb4_type type)
{
	static const char *const names[] = {
#define X(name, text) [BNB4_##name] = text,
		BNB4_TYPE_LIST(X)
#undef X
	};

	return type < BNB4_TYPE_COUNT ? names[type] : "?";
}

static uint64_t divide_up(uint64_t count, uint64_t by)
{
	return count / by + (count % by != 0);
}

uint64_t bnb4_blocks(int64_t rows, int64_t cols)
{
	return divide_up((uint64_t)rows * (uint64_t)cols, BNB4_BLOCK);
}

uint64_t bnb4_groups(int64_t rows, int64_t cols)
{
	return divide_up(bnb4_blocks(rows, cols), BNB4_GROUP);
}

uint64_t bnb4_code_bytes(int64_t rows, int64_t cols)
{
	return divide_up((uint64_t)rows * (uint64_t)cols, 2);
}

enum { PART_ALIGN = 256 };

/* Takes the next part of a piece of memory. */
static void *part(uint8_t *base, uint64_t *used, uint64_t bytes)
{
	const uint64_t at = *used;

	*used += divide_up(bytes, PART_ALIGN) * PART_ALIGN;
	return base ? base + at : NULL;
}

static uint64_t place(struct bnb4 *m, uint8_t *base)
{
	const uint64_t blocks = bnb4_blocks(m->rows, m->cols), groups = bnb4_groups(m->rows, m->cols);
	uint64_t used = 0;

	m->codes = part(base, &used, bnb4_code_bytes(m->rows, m->cols));
	m->absmax_codes = m->nested ? part(base, &used, blocks) : NULL;
	m->absmax = part(base, &used, (m->nested ? groups : blocks) * sizeof(float));
	m->offset = m->nested ? part(base, &used, sizeof(float)) : NULL;
	m->map = m->nested ? part(base, &used, BNB4_MAP * sizeof(float)) : NULL;
	return used;
}

uint64_t bnb4_bytes(int64_t rows, int64_t cols, bool nested)
{
	return place(&(struct bnb4){.rows = rows, .cols = cols, .nested = nested}, NULL);
}

void bnb4_place(struct bnb4 *m, void *base)
{
	place(m, base);
}

static float f32_at(const float *p, uint64_t i)
{
	float f;

	memcpy(&f, (const uint8_t *)p + i * sizeof(f), sizeof(f));
	return f;
}

float bnb4_absmax(const struct bnb4 *m, uint64_t block)
{
	float product;

	if (!m->nested)
		return f32_at(m->absmax, block);
	/* exact in double, so that it is rounded before the sum even where multiply-add instructions exist */
	product = (float)((double)f32_at(m->map, m->absmax_codes[block]) *
			  (double)f32_at(m->absmax, block / BNB4_GROUP));
	return product + f32_at(m->offset, 0);
}

bool bnb4_finite(const struct bnb4 *m)
{
	const uint64_t count = m->nested ? bnb4_groups(m->rows, m->cols) : bnb4_blocks(m->rows, m->cols);
	const float offset = m->nested ? f32_at(m->offset, 0) : 0;

	for (uint64_t i = 0; i < count; i++) {
		const float absmax = fabsf(f32_at(m->absmax, i));

		if (!isfinite(absmax + fabsf(offset))) /* the map's numbers are at most 1 */
			return false;
	}
	return isfinite(offset);
}
