/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/paged/tiles.h"
#include <stdlib.h>

static int32_t rows_of(const struct paged_tiles *t)
{
	return PAGED_TILES_ROWS(t->head_dim);
}

int64_t paged_tiles_most(uint32_t heads, uint32_t head_dim, int64_t rows)
{
	return heads * (rows / PAGED_TILES_ROWS(head_dim) + rows / PAGED_TILES_LEAST);
}

/* The most blocks of keys first; else in the order of rows and heads, so that neighbours share keys. */
static int by_keys(const void *a_, const void *b_)
{
	const struct paged_tile *a = a_, *b = b_;

	if (a->blocks != b->blocks)
		return a->blocks < b->blocks ? 1 : -1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return (a->head > b->head) - (a->head < b->head);
}

static enum status add_unit(struct paged_tiles *t, struct paged_tile unit, struct error *err)
{
	const int32_t keys = PAGED_TILES_KEYS(t->head_dim), end = unit.first * 64 + rows_of(t);
	const int32_t seen = unit.keys - unit.rows + (end < unit.rows ? end : unit.rows);

	if (t->count + t->heads > t->room)
		return error_set(err, STATUS_BUG, "attention has more than %lld units of work",
				 (long long)t->room);
	unit.blocks = (uint32_t)((seen + keys - 1) / keys);
	for (unit.head = 0; unit.head < t->heads; unit.head++)
		t->tile[t->count++] = unit;
	return STATUS_OK;
}

enum status paged_tiles_fill(struct paged_tiles *t, const struct paged_work_rows *r, struct error *err)
{
	enum status st = STATUS_OK;
	uint32_t page = 0;

	t->count = 0;
	for (int64_t s = 0; !st && s < r->sequences; s++) {
		const int32_t rows = r->begin[s + 1] - r->begin[s];

		for (int32_t row = 0; !st && rows >= PAGED_TILES_LEAST && row < rows; row += rows_of(t))
			st = add_unit(t,
				      (struct paged_tile){.row = r->begin[s],
							  .rows = rows,
							  .keys = r->keys[s],
							  .page = page,
							  .first = row / 64},
				      err);
		page += ((uint32_t)r->keys[s] + r->page_tokens - 1) / r->page_tokens;
	}
	if (!st)
		qsort(t->tile, (size_t)t->count, sizeof(*t->tile), by_keys);
	return st;
}
