/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of a step are written to pinned memory and copied at once (step/copy.c). There are three
 * places in pinned memory, so the host may prepare a step while two others wait. The device has one: the
 * stream's order keeps a step's lists until its work has ended.
 */
#include "model/gpu/paged/lists.h"
#include <stdlib.h>
#include "model/gpu/internal.h"
#include "model/gpu/paged/tiles.h"

enum {
	TURNS = 3,
	UNIT_WORDS = sizeof(struct paged_unit) / sizeof(int32_t),
	TILE_WORDS = sizeof(struct paged_tile) / sizeof(int32_t),
	PART_WORDS = sizeof(struct paged_part) / sizeof(int32_t),
	BLOCK_WORDS = sizeof(struct paged_block) / sizeof(int32_t)
};

struct turn {
	struct gpu_pinned memory;
	int32_t *host; /* the same */
	struct gpu_event *copied;
	bool used; /* the event was recorded */
	struct paged_placed placed;
};

struct paged_lists {
	struct gpu_device *device;
	struct turn turn[TURNS];
	unsigned next;
	int64_t words; /* of a turn's memory */
};

/* Offsets in words. Those up to `unit` depend on the numbers of rows and outputs only. */
struct layout {
	int64_t token, position, slot, adapter, output, begin, keys, arrived, block, rest_block, part;
	int64_t first, rest_first, tile, unit;
};

static int64_t rounded(int64_t words)
{
	return (words + 3) / 4 * 4;
}

static struct layout lay_out(const struct paged_limits *most, int64_t rows, int64_t outputs, uint32_t blocks,
			     int64_t tiles)
{
	struct layout l = {.position = rows, .slot = 2 * rows, .adapter = 3 * rows, .output = 4 * rows};

	l.begin = l.output + outputs;
	l.keys = l.begin + most->sequences + 1;
	l.arrived = l.keys + most->sequences;
	l.block = l.arrived + paged_work_places(blocks);
	l.rest_block = l.block + blocks + 1;
	l.part = rounded(l.rest_block + blocks + 1);
	l.first = l.part + (tiles ? paged_tiles_parts_most(rows) * PART_WORDS : 0);
	l.rest_first = l.first + blocks * UNIT_WORDS;
	l.tile = l.rest_first + (tiles ? blocks * UNIT_WORDS : 0);
	l.unit = l.tile + tiles * TILE_WORDS;
	return l;
}

static int64_t units_most(int heads, int kv_heads, const struct paged_limits *most, uint32_t blocks)
{
	return paged_work_most((uint32_t)heads, (uint32_t)kv_heads, most->rows, most->sequences, blocks);
}

static struct paged_tiles_limits tiles_limits(int heads, int head_dim, const struct paged_limits *most)
{
	return (struct paged_tiles_limits){.heads = (uint32_t)heads,
					   .head_dim = (uint32_t)head_dim,
					   .rows = most->rows,
					   .sequences = most->sequences,
					   .positions = most->pages * most->page_tokens};
}

int64_t paged_lists_copy_blocks(const struct attention *at, const struct paged_limits *most)
{
	const struct paged_tiles_limits limits = tiles_limits(at->heads, at->head_dim, most);

	return most->copies && most->rows >= paged_tiles_rows_least(limits.head_dim)
		       ? paged_tiles_copy_blocks(&limits)
		       : 0;
}

int64_t paged_lists_words(const struct attention *at, const struct paged_limits *most)
{
	const int64_t tiles = paged_tiles_most((uint32_t)at->heads, (uint32_t)at->head_dim, most->rows);
	const struct layout l = lay_out(most, most->rows, most->outputs, PAGED_BLOCKS, tiles);
	const struct paged_tiles_limits limits = tiles_limits(at->heads, at->head_dim, most);
	const int64_t copied = most->copies ? paged_tiles_blocks_most(&limits) * BLOCK_WORDS : 0;

	return l.unit + 2 * units_most(at->heads, at->kv_heads, most, PAGED_BLOCKS) * UNIT_WORDS +
	       rounded(most->sequences * most->pages) + copied;
}

void paged_lists_release(struct paged_lists **out)
{
	struct paged_lists *l = *out;

	for (int i = 0; l && i < TURNS; i++) {
		gpu_event_destroy(&l->turn[i].copied);
		gpu_host_free(l->device, &l->turn[i].memory.host);
	}
	free(l);
	*out = NULL;
}

static enum status create(struct paged_lists **out, struct gpu_state *g, int64_t words, struct error *err)
{
	struct paged_lists *l = calloc(1, sizeof(*l));
	enum status st = STATUS_OK;

	if (!l)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the lists of a step");
	l->device = g->device;
	l->words = words;
	for (int i = 0; !st && i < TURNS; i++) {
		st = gpu_pinned_alloc(g, &l->turn[i].memory, (uint64_t)words * sizeof(int32_t), err);
		l->turn[i].host = l->turn[i].memory.host;
		if (!st)
			st = gpu_event_create(g->device, &l->turn[i].copied, err);
	}
	if (st)
		paged_lists_release(&l);
	*out = l;
	return st;
}

uint32_t paged_lists_blocks(const struct backend *back)
{
	const unsigned sms = gpu_sm_count(gpu_of(back)->device);

	return sms < PAGED_BLOCKS ? sms : PAGED_BLOCKS;
}

bool gpu_backend_copies_pages(const struct backend *back)
{
	return gpu_cc(gpu_of(back)->device) == 90;
}

/* Whether a sequence of the step has tiles. */
static bool has_tiles(const struct backend *back, const struct paged_room *room, const struct paged_rows *r)
{
	const int32_t least = paged_tiles_rows_least((uint32_t)room->head_dim);
	bool found = false;

	if (!room->limits.copies || !room->copy.rows || !gpu_backend_copies_pages(back) ||
	    gpu_of(back)->options.deterministic)
		return false;
	for (int64_t s = 0; s < r->sequences && !found; s++)
		found = r->begin[s + 1] - r->begin[s] >= least;
	return found;
}

static int64_t pages_of(const struct paged_rows *r, int64_t sequence)
{
	return (r->keys[sequence] + r->page_tokens - 1) / r->page_tokens;
}

/* BUG: the step is larger than the room that was planned for it. */
static enum status check(const struct paged_rows *r, const struct paged_limits *most, struct error *err)
{
	if (r->rows > most->rows || r->outputs > most->outputs || r->sequences > most->sequences ||
	    r->page_tokens != most->page_tokens)
		return error_set(err, STATUS_BUG,
				 "a step of %lld rows, %lld outputs and %lld sequences with pages of %d is "
				 "larger than its room (%lld, %lld, %lld, %d)",
				 (long long)r->rows, (long long)r->outputs, (long long)r->sequences,
				 r->page_tokens, (long long)most->rows, (long long)most->outputs,
				 (long long)most->sequences, most->page_tokens);
	for (int64_t s = 0; s < r->sequences; s++)
		if (pages_of(r, s) > most->pages || pages_of(r, s) > r->page_ld)
			return error_set(err, STATUS_BUG,
					 "sequence %lld of a step has %d keys, but room for %lld pages",
					 (long long)s, r->keys[s], (long long)most->pages);
	return STATUS_OK;
}

static void put_list(int32_t *to, const int32_t *from, int64_t count)
{
	if (count)
		memcpy(to, from, (size_t)count * sizeof(*to));
}

/* A step's work in host memory. `rest` has no units if the step has no tiles. */
struct work {
	struct paged_work all, rest;
	struct paged_tiles tiles;
};

/* The units of the sequences without tiles, behind those of all. */
static enum status put_rest(struct work *w, const struct paged_work_rows *rows, const struct layout *l,
			    int32_t *host, struct error *err)
{
	w->rest = w->all;
	w->rest.rows_less = w->tiles.rows_least;
	w->rest.unit = w->all.unit + w->all.count;
	w->rest.block = (uint32_t *)host + l->rest_block;
	w->rest.first = (struct paged_unit *)(host + l->rest_first);
	return paged_work_fill(&w->rest, rows, err);
}

/* The end of the lists has page numbers, sequence after sequence. Then it has blocks of the copy. */
struct tail {
	int64_t page, copied, end;
};

static void begin_tail(struct tail *t, const struct paged_rows *r, const struct layout *l,
		       const struct work *w)
{
	t->page = l->unit + (w->all.count + w->rest.count) * UNIT_WORDS;
	t->copied = t->page;
	for (int64_t s = 0; s < r->sequences; s++)
		t->copied += pages_of(r, s);
	t->copied = t->end = rounded(t->copied);
}

/* The tiles, and the blocks that are copied for them. */
static enum status put_tiles(struct work *w, const struct paged_work_rows *rows,
			     const struct paged_room *room, struct tail *t, int32_t *host, struct error *err)
{
	const struct paged_tiles_limits most = tiles_limits(room->heads, room->head_dim, &room->limits);
	enum status st;

	w->tiles.block = (struct paged_block *)(host + t->copied);
	w->tiles.block_room = paged_tiles_blocks_most(&most);
	w->tiles.copy_blocks = room->copy.rows / PAGED_TILES_KEYS(room->head_dim);
	st = paged_tiles_fill(&w->tiles, rows, err);
	t->end += w->tiles.blocks * BLOCK_WORDS;
	return st;
}

/* Page numbers of all sequences, which units and blocks of the copy refer to. */
static void put_pages(const struct paged_rows *r, struct work *w, int64_t at, int32_t *host)
{
	paged_work_place(&w->all, 0, (uint32_t)at);
	if (w->rest.unit)
		paged_work_place(&w->rest, (uint32_t)w->all.count, (uint32_t)at);
	for (int64_t i = 0; i < w->tiles.blocks; i++)
		w->tiles.block[i].page += (uint32_t)at;
	for (int64_t s = 0; s < r->sequences; s++) {
		put_list(host + at, r->page + s * r->page_ld, pages_of(r, s));
		at += pages_of(r, s);
	}
}

static enum status put_work(const struct backend *back, const struct paged_rows *r,
			    const struct paged_room *room, const struct layout *l, bool tiled, int32_t *host,
			    struct tail *tail, int64_t *parts, struct error *err)
{
	const struct paged_work_rows rows = {.begin = r->begin,
					     .keys = r->keys,
					     .sequences = r->sequences,
					     .page_tokens = (uint32_t)r->page_tokens};
	struct work w = {
		.all = {.heads = (uint32_t)room->heads,
			.kv_heads = (uint32_t)room->kv_heads,
			.blocks = paged_lists_blocks(back),
			.invariant = gpu_of(back)->options.deterministic,
			.unit = (struct paged_unit *)(host + l->unit),
			.block = (uint32_t *)host + l->block,
			.first = (struct paged_unit *)(host + l->first),
			.room = units_most(room->heads, room->kv_heads, &room->limits,
					   paged_lists_blocks(back))},
		.tiles = {.heads = (uint32_t)room->heads,
			  .head_dim = (uint32_t)room->head_dim,
			  .rows_least = paged_tiles_rows_least((uint32_t)room->head_dim),
			  .tile = (struct paged_tile *)(host + l->tile),
			  .room = (l->unit - l->tile) / TILE_WORDS,
			  .part = (struct paged_part *)(host + l->part),
			  .part_room = (l->first - l->part) / PART_WORDS},
	};
	enum status st = paged_work_fill(&w.all, &rows, err);

	if (!st && tiled)
		st = put_rest(&w, &rows, l, host, err);
	begin_tail(tail, r, l, &w);
	if (!st && tiled)
		st = put_tiles(&w, &rows, room, tail, host, err);
	if (st)
		return st;
	put_pages(r, &w, tail->page, host);
	*parts = w.tiles.parts;
	return STATUS_OK;
}

static void put_rows(const struct paged_rows *r, const struct layout *l, uint32_t blocks, int32_t *host)
{
	put_list(host + l->token, r->token, r->rows);
	put_list(host + l->position, r->position, r->rows);
	put_list(host + l->slot, r->slot, r->rows);
	if (r->adapter)
		put_list(host + l->adapter, r->adapter, r->rows);
	put_list(host + l->output, r->output, r->outputs);
	put_list(host + l->begin, r->begin, r->sequences + 1);
	put_list(host + l->keys, r->keys, r->sequences);
	memset(host + l->arrived, 0, paged_work_places(blocks) * sizeof(*host));
}

/* The step as operations see it, with this many parts of tiles. */
static void place(const struct paged_rows *r, const struct paged_room *room, const struct layout *l,
		  const struct tail *tail, int64_t parts, struct turn *t, struct paged_rows *out)
{
	const int32_t *device = room->lists.data;

	t->placed = (struct paged_placed){
		.page = gpu_address(device),
		.unit = gpu_address(device + l->unit),
		.block = gpu_address(device + l->block),
		.arrived = gpu_address(device + l->arrived),
		.first = gpu_address(device + l->first),
		.rest_block = gpu_address(device + l->rest_block),
		.rest_first = gpu_address(device + l->rest_first),
		.tile = gpu_address(device + l->tile),
		.copied = gpu_address(device + tail->copied),
		.part = (const struct paged_part *)(t->host + l->part),
		.parts = parts,
		.host = {.begin = t->host + l->begin, .keys = t->host + l->keys, .sequences = r->sequences},
	};
	*out = *r;
	out->token = device + l->token;
	out->position = device + l->position;
	out->slot = device + l->slot;
	out->adapter = r->adapter ? device + l->adapter : NULL;
	out->output = device + l->output;
	out->begin = device + l->begin;
	out->keys = device + l->keys;
	out->page = device + tail->page; /* attention's units say where other sequences' pages are */
	out->room = room;
	out->lists = &t->placed;
}

enum status gpu_paged_put(struct backend *back, const struct paged_rows *r, const struct paged_room *room,
			  struct paged_rows *out, struct error *err)
{
	const uint32_t blocks = paged_lists_blocks(back);
	const bool tiled = has_tiles(back, room, r);
	const int64_t tiles =
		tiled ? paged_tiles_most((uint32_t)room->heads, (uint32_t)room->head_dim, r->rows) : 0;
	const struct layout l = lay_out(&room->limits, r->rows, r->outputs, blocks, tiles);
	struct gpu_state *g = gpu_of(back);
	enum status st = check(r, &room->limits, err);
	int64_t parts = 0;
	struct turn *t;
	struct tail tail;

	if (!st && g->paged && g->paged->words < room->lists.cols) {
		st = gpu_stream_wait(g->stream, err);
		paged_lists_release(&g->paged);
	}
	if (!st && !g->paged)
		st = create(&g->paged, g, room->lists.cols, err);
	if (st)
		return st;
	t = &g->paged->turn[g->paged->next];
	g->paged->next = (g->paged->next + 1) % TURNS;
	if (t->used)
		st = gpu_event_wait(t->copied, err);
	if (st)
		return st;
	put_rows(r, &l, blocks, t->host);
	st = put_work(back, r, room, &l, tiled, t->host, &tail, &parts, err);
	if (!st)
		st = gpu_few_to(g, gpu_address(room->lists.data), &t->memory,
				(uint64_t)tail.end * sizeof(int32_t), err);
	if (!st)
		st = gpu_event_record(t->copied, g->stream, err);
	if (st)
		return st;
	t->used = true;
	place(r, room, &l, &tail, parts, t, out);
	return STATUS_OK;
}
