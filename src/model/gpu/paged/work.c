/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/paged/work.h"

/* The unit of cost is a quarter of a tile of eight columns. */
enum {
	COST_NARROW = 16, /* of a unit beside its tiles: queries, and joining the warps' results */
	COST_WIDE = 192,  /* the same with more than 16 columns: 11 us on an H200, where a narrow unit takes 1
			     us */
	LEAST = 8,	  /* tiles that are worth a block of their own: one for each warp */
	COST_JOIN = 72,	  /* joining a range's parts delays the grid by about 5 us on an H200 */
	TRIALS = 4	  /* limits of a block's cost that are tried if all ranges stay whole */
};

/* A range of columns of one sequence and KV head, with all keys that it sees. */
struct range {
	struct paged_unit unit; /* with all keys */
	int64_t tiles;
	int64_t fixed, weight; /* cost of a unit beside its tiles, and of a tile */
};

/* State of a division. */
struct dividing {
	struct paged_work *w;
	int64_t remaining; /* cost of what no block has yet */
	int64_t left;	   /* cost that the present block still takes */
	uint32_t at;	   /* present block */
	uint32_t places;   /* partial results in use */
	int64_t budget;	   /* mean cost of a block */
	int64_t limit;	   /* most cost of a block, if all ranges stay whole */
};

static uint32_t group_of(const struct paged_work *w)
{
	return w->heads / w->kv_heads;
}

static int64_t ranges_of(const struct paged_work *w, int64_t rows)
{
	return (rows * group_of(w) + PAGED_COLS - 1) / PAGED_COLS;
}

int64_t paged_work_most(uint32_t heads, uint32_t kv_heads, int64_t rows, int64_t sequences, uint32_t blocks)
{
	return kv_heads * (rows * (heads / kv_heads) / PAGED_COLS + sequences) + 2 * (int64_t)blocks;
}

static int64_t cost_of(const struct range *r, int64_t tiles)
{
	return tiles * r->weight + r->fixed;
}

static struct range range_of(const struct paged_work *w, const struct paged_work_rows *r, int64_t sequence,
			     uint32_t page, int64_t i)
{
	const int32_t rows = r->begin[sequence + 1] - r->begin[sequence], all = rows * (int32_t)group_of(w);
	const int32_t col = (int32_t)i * PAGED_COLS, cols = all - col < PAGED_COLS ? all - col : PAGED_COLS;
	const int32_t position = r->keys[sequence] - rows;
	struct range x = {
		.unit = {.row = r->begin[sequence],
			 .position = position,
			 .page = page,
			 .col = (uint32_t)col,
			 .end = position + (col + cols - 1) / (int32_t)group_of(w) + 1,
			 .cols = (uint16_t)cols,
			 .parts = 1},
		.fixed = cols <= 16 ? COST_NARROW : COST_WIDE,
		.weight = cols <= 8    ? 4
			  : cols <= 16 ? 5
				       : 3,
	};

	x.tiles = (x.unit.end + PAGED_TILE - 1) / PAGED_TILE;
	return x;
}

static uint32_t pages_of(const struct paged_work_rows *r, int64_t sequence)
{
	return ((uint32_t)r->keys[sequence] + r->page_tokens - 1) / r->page_tokens;
}

/* Calls `take` for each range. */
static enum status each_range(struct dividing *d, const struct paged_work_rows *r,
			      enum status (*take)(struct dividing *d, struct range x, struct error *err),
			      struct error *err)
{
	enum status st = STATUS_OK;
	uint32_t page = 0;

	for (int64_t s = 0; !st && s < r->sequences; s++) {
		const int32_t rows = r->begin[s + 1] - r->begin[s];

		if (rows < 1 || r->keys[s] < rows)
			return error_set(err, STATUS_BUG, "sequence %lld of a step has %d rows and %d keys",
					 (long long)s, rows, r->keys[s]);
		if (d->w->rows_less && rows >= d->w->rows_less) {
			page += pages_of(r, s);
			continue;
		}
		for (int64_t i = 0; !st && i < ranges_of(d->w, rows); i++) {
			struct range x = range_of(d->w, r, s, page, i);

			for (uint32_t head = 0; !st && head < d->w->kv_heads; head++) {
				x.unit.kv_head = (uint16_t)head;
				st = take(d, x, err);
			}
		}
		page += pages_of(r, s);
	}
	return st;
}

static enum status sum_cost(struct dividing *d, struct range x, struct error *err)
{
	(void)err;
	d->remaining += cost_of(&x, x.tiles);
	return STATUS_OK;
}

/* -- blocks -- */

static void open_block(struct dividing *d)
{
	const int64_t blocks = d->w->blocks - d->at, least = LEAST * 4 + COST_NARROW;

	d->left = (d->remaining + blocks - 1) / blocks;
	d->left = d->left < least ? least : d->left;
}

static void next_block(struct dividing *d)
{
	d->w->block[++d->at] = (uint32_t)d->w->count;
	open_block(d);
}

static bool is_last(const struct dividing *d)
{
	return d->at + 1 == d->w->blocks;
}

/* Gives tiles from .. to - 1 of the range to the present block. */
static enum status put_unit(struct dividing *d, const struct range *x, int64_t from, int64_t to,
			    struct error *err)
{
	struct paged_work *w = d->w;

	if (w->count == w->room)
		return error_set(err, STATUS_BUG, "attention has more than %lld units of work",
				 (long long)w->room);
	w->unit[w->count] = x->unit;
	w->unit[w->count].begin = (int32_t)from * PAGED_TILE;
	if (to < x->tiles)
		w->unit[w->count].end = (int32_t)to * PAGED_TILE;
	w->count++;
	d->left -= cost_of(x, to - from);
	d->remaining -= cost_of(x, to - from);
	return STATUS_OK;
}

/* The units from `first` on are the parts of one range. */
static enum status join_units(struct dividing *d, int64_t first, struct error *err)
{
	struct paged_work *w = d->w;
	const int64_t parts = w->count - first;

	if (parts < 2)
		return STATUS_OK;
	if (d->places + parts > paged_work_places(w->blocks))
		return error_set(err, STATUS_BUG, "attention has more than %u partial results",
				 paged_work_places(w->blocks));
	for (int64_t i = 0; i < parts; i++) {
		w->unit[first + i].part = (uint16_t)i;
		w->unit[first + i].parts = (uint16_t)parts;
		w->unit[first + i].place = d->places;
	}
	d->places += (uint32_t)parts;
	return STATUS_OK;
}

/* Tiles of a range with `rest` tiles that the present block takes; 0: none. Tiles that cost less than a
 * second unit are not worth one. */
static int64_t tiles_here(const struct dividing *d, const struct range *x, int64_t rest)
{
	const int64_t fit = (d->left - x->fixed) / x->weight, few = x->fixed / x->weight;

	if (is_last(d) || (fit > 0 && fit + few >= rest))
		return rest;
	return fit < few ? 0 : fit;
}

static enum status take_evenly(struct dividing *d, struct range x, struct error *err)
{
	const int64_t first = d->w->count;
	enum status st = STATUS_OK;
	int64_t at = 0;

	while (!st && at < x.tiles) {
		const int64_t here = tiles_here(d, &x, x.tiles - at);

		if (here)
			st = put_unit(d, &x, at, at + here, err);
		else
			next_block(d);
		at += here;
		if (here && at < x.tiles)
			d->remaining += x.fixed; /* of one more unit */
	}
	return st ? st : join_units(d, first, err);
}

/* -- whole ranges -- */

static enum status count_whole(struct dividing *d, struct range x, struct error *err)
{
	const int64_t cost = cost_of(&x, x.tiles);

	(void)err;
	if (d->left < cost) {
		d->at = cost > d->limit ? d->w->blocks : d->at + 1;
		d->left = d->limit;
	}
	d->left -= cost;
	return STATUS_OK;
}

static enum status take_whole(struct dividing *d, struct range x, struct error *err)
{
	if (d->left < cost_of(&x, x.tiles)) {
		d->w->block[++d->at] = (uint32_t)d->w->count;
		d->left = d->limit;
	}
	return put_unit(d, &x, 0, x.tiles, err);
}

/* Sets the limit to the least one that was tried and suffices; 0: it takes less time to divide ranges. */
static enum status find_limit(struct dividing *d, const struct paged_work_rows *r, struct error *err)
{
	int64_t less = d->budget, most = d->budget + COST_JOIN;
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < TRIALS; i++) {
		struct dividing trial = {.w = d->w, .limit = i ? (less + most) / 2 : most};

		trial.left = trial.limit;
		st = each_range(&trial, r, count_whole, err);
		if (trial.at < d->w->blocks)
			d->limit = most = trial.limit;
		else if (i)
			less = trial.limit;
		else
			return st;
	}
	return st;
}

/* -- batch-invariant -- */

/* Each split is a unit only if the range is more than a block's work, and partial results are left. */
static enum status take_splits(struct dividing *d, struct range x, struct error *err)
{
	const int64_t each = PAGED_SPLIT / PAGED_TILE, splits = (x.tiles + each - 1) / each,
		      first = d->w->count;
	const bool divided = splits > 1 && cost_of(&x, x.tiles) > d->budget &&
			     d->places + splits <= paged_work_places(d->w->blocks);
	const int64_t step = divided ? each : x.tiles;
	enum status st = STATUS_OK;

	for (int64_t at = 0; !st && at < x.tiles; at += step) {
		const int64_t to = at + step < x.tiles ? at + step : x.tiles;

		if (!is_last(d) && d->w->count > d->w->block[d->at] && d->left < cost_of(&x, to - at) / 2)
			next_block(d);
		st = put_unit(d, &x, at, to, err);
		if (to < x.tiles)
			d->remaining += x.fixed;
	}
	return st ? st : join_units(d, first, err);
}

/* Copies each block's first unit to where the block finds it without its number. */
static void copy_first(struct paged_work *w)
{
	for (uint32_t b = 0; b < w->blocks; b++) {
		w->first[b] = (struct paged_unit){0};
		if (w->block[b] < w->block[b + 1])
			w->first[b] = w->unit[w->block[b]];
	}
}

void paged_work_place(struct paged_work *w, uint32_t unit, uint32_t page)
{
	for (int64_t i = 0; i < w->count; i++)
		w->unit[i].page += page;
	copy_first(w);
	for (uint32_t b = 0; b <= w->blocks; b++)
		w->block[b] += unit;
}

enum status paged_work_fill(struct paged_work *w, const struct paged_work_rows *r, struct error *err)
{
	struct dividing d = {.w = w};
	enum status st = each_range(&d, r, sum_cost, err);

	if (st)
		return st;
	w->count = 0;
	w->block[0] = 0;
	d.budget = d.remaining / w->blocks;
	if (!w->invariant)
		st = find_limit(&d, r, err);
	if (st)
		return st;
	if (d.limit)
		d.left = d.limit;
	else
		open_block(&d);
	st = each_range(&d, r, w->invariant ? take_splits : d.limit ? take_whole : take_evenly, err);
	while (!st && d.at < w->blocks)
		w->block[++d.at] = (uint32_t)w->count;
	if (!st)
		copy_first(w);
	return st;
}
