/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/paged/tiles.h"
#include <stdlib.h>

static int32_t rows_of(const struct paged_tiles *t)
{
	return PAGED_TILES_ROWS(t->head_dim);
}

int32_t paged_tiles_rows_least(uint32_t head_dim)
{
	return (head_dim == 64 ? 2 : 1) * PAGED_TILES_ROWS(head_dim);
}

int64_t paged_tiles_most(uint32_t heads, uint32_t head_dim, int64_t rows)
{
	return heads * (rows / PAGED_TILES_ROWS(head_dim) + rows / PAGED_TILES_LEAST);
}

int64_t paged_tiles_parts_most(int64_t rows)
{
	return rows < PAGED_TILES_LEAST ? 1 : rows / PAGED_TILES_LEAST;
}

static int64_t blocks_of(uint32_t head_dim, int64_t positions)
{
	return (positions + PAGED_TILES_KEYS(head_dim) - 1) / PAGED_TILES_KEYS(head_dim);
}

int64_t paged_tiles_blocks_most(const struct paged_tiles_limits *most)
{
	const int64_t sequences = most->rows / PAGED_TILES_LEAST;

	return (sequences < most->sequences ? sequences : most->sequences) *
	       blocks_of(most->head_dim, most->positions);
}

int64_t paged_tiles_copy_blocks(const struct paged_tiles_limits *most)
{
	const int64_t all = paged_tiles_blocks_most(most);
	const int64_t blocks =
		blocks_of(most->head_dim, most->positions) + blocks_of(most->head_dim, 2 * most->rows);

	return blocks < all ? blocks : all;
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

static enum status open_part(struct paged_tiles *t, struct error *err)
{
	if (t->parts == t->part_room)
		return error_set(err, STATUS_BUG, "attention has more than %lld parts of tiles",
				 (long long)t->part_room);
	t->part[t->parts++] = (struct paged_part){.tile = (uint32_t)t->count, .block = (uint32_t)t->blocks};
	return STATUS_OK;
}

static void close_part(struct paged_tiles *t)
{
	struct paged_part *p = &t->part[t->parts - 1];

	p->tiles = (uint32_t)t->count - p->tile;
	p->blocks = (uint32_t)t->blocks - p->block;
	qsort(t->tile + p->tile, p->tiles, sizeof(*t->tile), by_keys);
}

/* Blocks of the last part so far. */
static int64_t part_blocks(const struct paged_tiles *t)
{
	return t->blocks - t->part[t->parts - 1].block;
}

/* Blocks that the copy needs for a sequence, in a part that has room for them. *key: row of the copy that has
 * the sequence's first key. */
static enum status add_blocks(struct paged_tiles *t, int32_t keys, uint32_t page, uint32_t page_tokens,
			      uint32_t *key, struct error *err)
{
	const int32_t each = PAGED_TILES_KEYS(t->head_dim);
	const int64_t blocks = blocks_of(t->head_dim, keys);
	enum status st = STATUS_OK;

	if (!t->parts || part_blocks(t) + blocks > t->copy_blocks) {
		if (t->parts)
			close_part(t);
		st = open_part(t, err);
	}
	if (!st && (blocks > t->copy_blocks || t->blocks + blocks > t->block_room))
		st = error_set(err, STATUS_BUG, "%d keys have no room in the copy of pages", keys);
	*key = st ? 0 : (uint32_t)(part_blocks(t) * each);
	for (int32_t at = 0; !st && at < keys; at += each)
		t->block[t->blocks++] =
			(struct paged_block){.page = page + (uint32_t)at / page_tokens,
					     .keys = (uint32_t)(keys - at < each ? keys - at : each)};
	return st;
}

/* The units of a sequence. */
static enum status add_sequence(struct paged_tiles *t, struct paged_tile unit, struct error *err)
{
	enum status st = STATUS_OK;

	for (int32_t row = 0; !st && row < unit.rows; row += rows_of(t)) {
		unit.first = row / 64;
		st = add_unit(t, unit, err);
	}
	return st;
}

enum status paged_tiles_fill(struct paged_tiles *t, const struct paged_work_rows *r, struct error *err)
{
	enum status st = STATUS_OK;
	uint32_t page = 0;

	t->count = t->parts = t->blocks = 0;
	for (int64_t s = 0; !st && s < r->sequences; s++) {
		const int32_t rows = r->begin[s + 1] - r->begin[s];
		struct paged_tile unit = {.row = r->begin[s], .rows = rows, .keys = r->keys[s]};

		if (rows >= t->rows_least) {
			st = add_blocks(t, unit.keys, page, r->page_tokens, &unit.key, err);
			if (!st)
				st = add_sequence(t, unit, err);
		}
		page += ((uint32_t)r->keys[s] + r->page_tokens - 1) / r->page_tokens;
	}
	if (!st && t->parts)
		close_part(t);
	return st;
}
