/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over a paged KV cache. A case's p0 is heads << 16 | kv_heads, p1 a step of the table below with flags; the entry
 * tells the cache's type and the head size. Pages are in no order; positions that hold no key are NaN. Cases of tiles copy the pages by
 * paged_copy, and tiles_bf16 reads the copy; "tiles_e4m3" is no entry. The reference reads the pages themselves. So scales are powers
 * of two there, whose products are BF16 numbers. The cases of paged_copy have other scales, and the copy has the reference's bits.
 */
#include "cases.h"
#include "core/math/random.h"
#include "gpu/device/tensor_map.h"
#include "kernel/paged/attention.h"
#include "kernel/paged/copy.h"
#include "model/gpu/paged/tiles.h"
#include "ref.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { SEQUENCES_MOST = 40, PADDING_ROWS = 2 };
enum flag {
	PAGE_16 = 0x1000,
	PAGE_64 = 0x2000,
	INVARIANT = 0x4000,
	SMALL_COPY = 0x8000,	/* of the longest sequence only */
	LARGE_SCALES = 0x10000, /* 15 to 400: values up to 179,000 */
	SMALL_SCALES = 0x20000, /* about 1e-6; behind a first key of 1e-12 that has nearly all attention */
	MANY_SCALES = 0x40000,	/* 2^-60 to 2^16, and some are zero */
	WHOLE_COPY = 0x80000	/* of all sequences at once */
};

/* Keys and rows of each sequence. */
struct step {
	struct {
		int32_t keys, rows;
	} of[SEQUENCES_MOST];
};
enum { ONE_KEY, BORDERS, MIXED, SPECULATION, MANY, LONG, CHUNK, PROMPT, PROMPTS, DECODE_64, LARGE, STEPS };
static const struct step steps[STEPS] = {
	[ONE_KEY] = {{{1, 1}}},
	[BORDERS] = {{{15, 1}, {16, 1}, {17, 1}, {31, 1}, {32, 1}, {33, 1}, {63, 1}, {64, 1}, {65, 1}, {127, 1}, {128, 1}, {129, 1}}},
	[MIXED] = {{{700, 1}, {5, 5}, {1, 1}, {300, 41}, {257, 2}, {64, 64}}},
	[SPECULATION] = {{{100, 2}, {301, 4}, {77, 8}, {8, 8}}},
	[MANY] = {{{3, 1}, {40, 1}, {90, 1}, {200, 1}, {17, 1}, {6, 1}, {48, 1}, {350, 1}, {129, 1}, {2, 1}, {64, 1}, {81, 1}, {500, 1}, {33, 1},
		   {9, 1}, {260, 1}, {111, 1}}},
	[LONG] = {{{5000, 1}}},
	[CHUNK] = {{{2300, 70}, {1100, 1}}},
	[PROMPT] = {{{150, 150}}},
	[PROMPTS] = {{{130, 66}, {90, 1}, {128, 128}, {300, 64}, {70, 30}, {65, 65}, {257, 64}}},
	[LARGE] = {{{700, 300}, {65, 65}, {1000, 1}, {513, 128}, {200, 200}, {63, 63}, {4000, 64}}},
	[DECODE_64] = {{{600, 1}, {601, 1}, {602, 1}, {613, 1}, {588, 1}, {575, 1}, {640, 1}, {599, 1}, {600, 1}, {601, 1}, {602, 1}, {613, 1},
			{588, 1}, {575, 1}, {640, 1}, {599, 1}, {600, 1}, {601, 1}, {602, 1}, {613, 1}, {588, 1}, {575, 1}, {640, 1}, {599, 1},
			{600, 1}, {601, 1}, {602, 1}, {613, 1}, {588, 1}, {575, 1}, {640, 1}, {599, 1}}},
};

#define HEADS(heads, kv_heads) ((heads) << 16 | (kv_heads))
static const struct kernel_case cases[] = {
	{"paged_bf16_d64", "the first key", 1, 1, PAGED_THREADS, HEADS(9, 3), ONE_KEY},
	{"paged_bf16_d128", "the first key", 1, 3, PAGED_THREADS, HEADS(28, 4), ONE_KEY},
	{"paged_bf16_d64", "ends of pages and tiles", 129, 5, PAGED_THREADS, HEADS(9, 3), BORDERS | PAGE_16},
	{"paged_bf16_d128", "ends of pages and tiles", 129, 7, PAGED_THREADS, HEADS(14, 2), BORDERS},
	{"paged_bf16_d64", "prompts and decode rows", 700, 6, PAGED_THREADS, HEADS(9, 3), MIXED},
	{"paged_bf16_d128", "prompts and decode rows, pages of 64", 700, 5, PAGED_THREADS, HEADS(7, 1), MIXED | PAGE_64},
	{"paged_bf16_d128", "eight query heads per KV head", 700, 4, PAGED_THREADS, HEADS(8, 1), MIXED | PAGE_16},
	{"paged_bf16_d64", "one query head per KV head", 301, 4, PAGED_THREADS, HEADS(2, 2), SPECULATION},
	{"paged_bf16_d64", "two query heads per KV head", 301, 4, PAGED_THREADS, HEADS(4, 2), SPECULATION | PAGE_16},
	{"paged_bf16_d128", "four query heads per KV head", 301, 3, PAGED_THREADS, HEADS(4, 1), SPECULATION},
	{"paged_bf16_d64", "five query heads per KV head", 301, 3, PAGED_THREADS, HEADS(10, 2), SPECULATION | PAGE_64},
	{"paged_bf16_d64", "six query heads per KV head", 301, 3, PAGED_THREADS, HEADS(6, 1), SPECULATION},
	{"paged_bf16_d64", "eleven query heads per KV head", 301, 3, PAGED_THREADS, HEADS(11, 1), SPECULATION},
	{"paged_bf16_d64", "more sequences than blocks", 500, 4, PAGED_THREADS, HEADS(3, 1), MANY},
	{"paged_bf16_d128", "more blocks than work", 301, 40, PAGED_THREADS, HEADS(7, 1), SPECULATION},
	{"paged_bf16_d64", "many parts", 5000, 17, PAGED_THREADS, HEADS(3, 1), LONG | PAGE_16},
	{"paged_bf16_d128", "many parts", 5000, 9, PAGED_THREADS, HEADS(7, 1), LONG},
	{"paged_bf16_d64", "a chunk behind keys", 2300, 5, PAGED_THREADS, HEADS(3, 1), CHUNK},
	{"paged_bf16_d128", "a prompt", 150, 6, PAGED_THREADS, HEADS(2, 2), PROMPT},
	{"paged_bf16_d64", "batch-invariant, a chunk", 2300, 5, PAGED_THREADS, HEADS(3, 1), CHUNK | INVARIANT},
	{"paged_bf16_d128", "batch-invariant, divided splits", 5000, 6, PAGED_THREADS, HEADS(7, 1), LONG | INVARIANT},
	{"paged_bf16_d64", "batch-invariant, mixed", 700, 4, PAGED_THREADS, HEADS(9, 3), MIXED | INVARIANT},
	{"paged_e4m3_d64", "the first key", 1, 2, PAGED_THREADS, HEADS(9, 3), ONE_KEY},
	{"paged_e4m3_d64", "prompts and decode rows", 700, 6, PAGED_THREADS, HEADS(9, 3), MIXED | PAGE_16},
	{"paged_e4m3_d128", "prompts and decode rows", 700, 6, PAGED_THREADS, HEADS(7, 1), MIXED},
	{"paged_e4m3_d128", "ends of pages and tiles", 129, 5, PAGED_THREADS, HEADS(8, 1), BORDERS | PAGE_64},
	{"paged_e4m3_d64", "many parts", 5000, 17, PAGED_THREADS, HEADS(3, 1), LONG},
	{"paged_e4m3_d128", "batch-invariant, a chunk", 2300, 5, PAGED_THREADS, HEADS(4, 1), CHUNK | INVARIANT},
	{"paged_bf16_d64_late", "the first key", 1, 1, PAGED_THREADS, HEADS(9, 3), ONE_KEY},
	{"paged_bf16_d128_late", "the first key", 1, 3, PAGED_THREADS, HEADS(28, 4), ONE_KEY},
	{"paged_bf16_d64_late", "ends of pages and tiles", 129, 5, PAGED_THREADS, HEADS(9, 3), BORDERS | PAGE_16},
	{"paged_bf16_d128_late", "ends of pages and tiles", 129, 7, PAGED_THREADS, HEADS(14, 2), BORDERS},
	{"paged_bf16_d64_late", "more sequences than blocks", 500, 4, PAGED_THREADS, HEADS(3, 1), MANY},
	{"paged_bf16_d128_late", "one block", 500, 1, PAGED_THREADS, HEADS(7, 1), MANY | PAGE_64},
	{"paged_bf16_d64_late", "many parts", 5000, 17, PAGED_THREADS, HEADS(3, 1), LONG | PAGE_16},
	{"paged_bf16_d128_late", "many parts", 5000, 9, PAGED_THREADS, HEADS(7, 1), LONG},
	{"paged_bf16_d64_late", "parts between whole units", 613, 11, PAGED_THREADS, HEADS(2, 1), DECODE_64},
	{"paged_bf16_d128_late", "more blocks than work", 129, 40, PAGED_THREADS, HEADS(8, 1), BORDERS | PAGE_16},
	{"paged_e4m3_d64_late", "more sequences than blocks", 500, 4, PAGED_THREADS, HEADS(3, 1), MANY | PAGE_16},
	{"paged_e4m3_d128_late", "ends of pages and tiles", 129, 5, PAGED_THREADS, HEADS(8, 1), BORDERS | PAGE_64},
	{"paged_e4m3_d128_late", "many parts", 5000, 9, PAGED_THREADS, HEADS(4, 1), LONG},
	{"paged_e4m3_d64", "large scales", 700, 6, PAGED_THREADS, HEADS(9, 3), MIXED | LARGE_SCALES},
	{"paged_e4m3_d64", "small scales behind a sink", 700, 6, PAGED_THREADS, HEADS(9, 3), MIXED | SMALL_SCALES},
	{"paged_e4m3_d64", "scales of all sizes", 700, 6, PAGED_THREADS, HEADS(9, 3), MIXED | MANY_SCALES},
	{"paged_e4m3_d64", "scales of all sizes, batch-invariant", 700, 4, PAGED_THREADS, HEADS(9, 3), MIXED | INVARIANT | MANY_SCALES},
	{"paged_e4m3_d128_late", "large scales", 129, 5, PAGED_THREADS, HEADS(8, 1), BORDERS | LARGE_SCALES},
	{"paged_e4m3_d64_late", "small scales behind a sink", 500, 4, PAGED_THREADS, HEADS(3, 1), MANY | SMALL_SCALES},
	{"paged_e4m3_d128_late", "small scales behind a sink, many parts", 5000, 9, PAGED_THREADS, HEADS(4, 1), LONG | SMALL_SCALES},
	{"paged_e4m3_d64_late", "scales of all sizes", 500, 4, PAGED_THREADS, HEADS(3, 1), MANY | MANY_SCALES},
	{"tiles_bf16_d64", "a prompt", 150, 3, PAGED_TILES_THREADS(64), HEADS(2, 2), PROMPT},
	{"tiles_bf16_d128", "a prompt", 150, 3, PAGED_TILES_THREADS(128), HEADS(2, 2), PROMPT},
	{"tiles_bf16_d64", "a chunk behind keys", 2300, 4, PAGED_TILES_THREADS(64), HEADS(3, 1), CHUNK | PAGE_16},
	{"tiles_bf16_d128", "a chunk behind keys", 200000, 4, PAGED_TILES_THREADS(128), HEADS(7, 1), CHUNK},
	{"tiles_bf16_d64", "prompts and chunks", 200000, 5, PAGED_TILES_THREADS(64), HEADS(9, 3), LARGE | PAGE_64},
	{"tiles_bf16_d128", "prompts and chunks", 200000, 7, PAGED_TILES_THREADS(128), HEADS(4, 2), LARGE},
	{"tiles_bf16_d128", "prompts and chunks, pages of 16", 200000, 132, PAGED_TILES_THREADS(128), HEADS(4, 1), LARGE | PAGE_16},
	{"tiles_bf16_d128", "prompts and chunks, pages of 64", 200000, 132, PAGED_TILES_THREADS(128), HEADS(4, 1), LARGE | PAGE_64},
	{"tiles_bf16_d128", "several prompts", 300, 5, PAGED_TILES_THREADS(128), HEADS(4, 2), PROMPTS},
	{"tiles_bf16_d64", "several prompts, in parts", 300, 5, PAGED_TILES_THREADS(64), HEADS(3, 1), PROMPTS | PAGE_16 | SMALL_COPY},
	{"tiles_bf16_d128", "several prompts, in parts", 300, 5, PAGED_TILES_THREADS(128), HEADS(2, 1), PROMPTS | SMALL_COPY},
	{"tiles_bf16_d64", "no prompt", 600, 4, PAGED_TILES_THREADS(64), HEADS(3, 1), DECODE_64},
	{"tiles_bf16_d128", "prompts and chunks, in parts", 200000, 132, PAGED_TILES_THREADS(128), HEADS(28, 4), LARGE | SMALL_COPY},
	{"paged_copy_bf16", "a prompt", 150, 3, PAGED_COPY_THREADS, HEADS(2, 2), PROMPT},
	{"paged_copy_bf16", "several prompts, in parts", 300, 5, PAGED_COPY_THREADS, HEADS(9, 3), PROMPTS | PAGE_16 | SMALL_COPY},
	{"paged_copy_bf16", "several prompts, pages of 64", 300, 300, PAGED_COPY_THREADS, HEADS(8, 1), PROMPTS | PAGE_64},
	{"paged_copy_bf16", "prompts and chunks", 200000, 528, PAGED_COPY_THREADS, HEADS(28, 4), LARGE},
	{"paged_copy_e4m3", "a prompt", 150, 3, PAGED_COPY_THREADS, HEADS(2, 2), PROMPT},
	{"paged_copy_e4m3", "several prompts, in parts", 300, 5, PAGED_COPY_THREADS, HEADS(9, 3), PROMPTS | PAGE_16 | SMALL_COPY},
	{"paged_copy_e4m3", "several prompts, pages of 64", 300, 300, PAGED_COPY_THREADS, HEADS(8, 1), PROMPTS | PAGE_64},
	{"paged_copy_e4m3", "prompts and chunks", 200000, 528, PAGED_COPY_THREADS, HEADS(28, 4), LARGE},
	{"tiles_e4m3_d64", "a prompt", 150, 3, PAGED_TILES_THREADS(64), HEADS(2, 2), PROMPT},
	{"tiles_e4m3_d128", "a prompt", 150, 3, PAGED_TILES_THREADS(128), HEADS(2, 2), PROMPT | PAGE_16},
	{"tiles_e4m3_d64", "a chunk behind keys", 2300, 4, PAGED_TILES_THREADS(64), HEADS(3, 1), CHUNK | PAGE_16},
	{"tiles_e4m3_d128", "a chunk behind keys", 2300, 4, PAGED_TILES_THREADS(128), HEADS(7, 1), CHUNK},
	{"tiles_e4m3_d64", "several prompts", 300, 5, PAGED_TILES_THREADS(64), HEADS(6, 2), PROMPTS},
	{"tiles_e4m3_d128", "several prompts", 300, 5, PAGED_TILES_THREADS(128), HEADS(4, 2), PROMPTS | PAGE_64},
	{"tiles_e4m3_d64", "several prompts, in parts", 300, 5, PAGED_TILES_THREADS(64), HEADS(3, 1), PROMPTS | PAGE_16 | SMALL_COPY},
	{"tiles_e4m3_d128", "several prompts, in parts", 300, 5, PAGED_TILES_THREADS(128), HEADS(2, 1), PROMPTS | SMALL_COPY},
	{"tiles_e4m3_d64", "no prompt", 600, 4, PAGED_TILES_THREADS(64), HEADS(3, 1), DECODE_64},
	{"tiles_e4m3_d64", "prompts and chunks", 200000, 5, PAGED_TILES_THREADS(64), HEADS(9, 3), LARGE | PAGE_64},
	{"tiles_e4m3_d128", "prompts and chunks", 200000, 7, PAGED_TILES_THREADS(128), HEADS(4, 2), LARGE},
	{"tiles_e4m3_d128", "prompts and chunks, in parts", 200000, 132, PAGED_TILES_THREADS(128), HEADS(28, 4), LARGE | SMALL_COPY},
	{"tiles_e4m3_d128", "prompts and chunks, pages of 16", 200000, 132, PAGED_TILES_THREADS(128), HEADS(32, 8), LARGE | PAGE_16},
	{"paged_bf16_d128", "Qwen2-7B, 32 sequences", 200000, 132, PAGED_THREADS, HEADS(28, 4), DECODE_64},
	{"paged_bf16_d64", "SmolLM2, 32 sequences", 200000, 132, PAGED_THREADS, HEADS(9, 3), DECODE_64},
	{"paged_e4m3_d128", "Qwen2-7B, 32 sequences", 200000, 132, PAGED_THREADS, HEADS(28, 4), DECODE_64},
	{"paged_bf16_d128_late", "Qwen2-7B, 32 sequences", 200000, 132, PAGED_THREADS, HEADS(28, 4), DECODE_64},
	{"paged_bf16_d128_late", "Qwen2-7B, few blocks", 200000, 16, PAGED_THREADS, HEADS(28, 4), DECODE_64},
	{"paged_bf16_d64_late", "SmolLM2, 32 sequences", 200000, 132, PAGED_THREADS, HEADS(9, 3), DECODE_64},
	{"paged_e4m3_d128_late", "Qwen2-7B, few blocks", 200000, 16, PAGED_THREADS, HEADS(28, 4), DECODE_64},
	{"paged_bf16_d128", "Llama, a chunk", 200000, 132, PAGED_THREADS, HEADS(32, 8), CHUNK},
	{"paged_e4m3_d128", "Llama, a chunk, batch-invariant", 200000, 132, PAGED_THREADS, HEADS(32, 8), CHUNK | INVARIANT},
};

/* Arrays of a case on both sides. */
enum array { Q, O, KV, SCALE, PAGE, UNIT, BLOCK, FIRST, PARTIAL, ARRIVED, TILE, PART, COPIED, COPY, ARRAYS };
struct paged_case {
	const struct kernel_case *c;
	uint32_t dim, heads, kv_heads, page_bits, blocks;
	bool e4m3, invariant, tiled, late, copied; /* copied: a case of paged_copy alone */
	int64_t sequences, rows, pages, units, tiles;
	int64_t parts, parts_most, blocks_most, copy_blocks;
	int32_t begin[SEQUENCES_MOST + 1], keys[SEQUENCES_MOST];
	void *host[ARRAYS];
	uint64_t bytes[ARRAYS];
	struct guarded device[ARRAYS];
};

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static int64_t pages_of(const struct paged_case *p, int64_t sequence)
{
	return (p->keys[sequence] + (1 << p->page_bits) - 1) >> p->page_bits;
}

static void describe(struct paged_case *p, const struct kernel_case *c)
{
	const struct step *s = &steps[c->p1 & 0xff];

	*p = (struct paged_case){.c = c,
				 .dim = strstr(c->entry, "d64") ? 64 : 128,
				 .heads = c->p0 >> 16,
				 .kv_heads = c->p0 & 0xffff,
				 .page_bits = c->p1 & PAGE_16 ? 4 : c->p1 & PAGE_64 ? 6 : 5,
				 .blocks = c->blocks,
				 .e4m3 = strstr(c->entry, "e4m3"),
				 .invariant = c->p1 & INVARIANT,
				 .tiled = !strncmp(c->entry, "tiles", 5),
				 .copied = !strncmp(c->entry, "paged_copy", 10),
				 .late = strstr(c->entry, "late")};
	while (p->sequences < SEQUENCES_MOST && s->of[p->sequences].keys) {
		p->keys[p->sequences] = s->of[p->sequences].keys;
		p->begin[p->sequences + 1] = p->begin[p->sequences] + s->of[p->sequences].rows;
		p->pages += pages_of(p, p->sequences++);
	}
	p->rows = p->begin[p->sequences];
}

static uint64_t ld_q(const struct paged_case *p)
{
	return (uint64_t)(p->heads + 2 * p->kv_heads) * p->dim;
}

static uint64_t ld_o(const struct paged_case *p)
{
	return (uint64_t)p->heads * p->dim + 8;
}

static uint64_t ld_kv(const struct paged_case *p)
{
	return (uint64_t)2 * p->kv_heads * p->dim;
}

/* The scale of the `plane` (0: keys, 1: values) of a position. */
static float scale_of(const struct paged_case *p, uint64_t seed, uint64_t i, int64_t key, int plane)
{
	const float v = random_f32(seed, 3, i), ordinary = (p->tiled ? v < 0 ? 1 : 2 : 1.5f + v) / 256;

	if (plane == 0)
		return p->c->p1 & SMALL_SCALES ? ordinary * (key ? 0x1p-12f : 2) : ordinary;
	if (p->c->p1 & LARGE_SCALES)
		return exp2f(6.25f + 2.35f * v);
	if (p->c->p1 & SMALL_SCALES)
		return (key ? 1e-6f : 1e-12f) * (1.5f + v);
	if (p->c->p1 & MANY_SCALES)
		return v > 0.9f ? 0 : exp2f(40 * v - 20);
	return ordinary;
}

/* Numbers of the first key, and queries, are positive if it is to have the attention. Its scores are about 18 above others. */
static bool is_positive(const struct paged_case *p, int64_t key)
{
	return p->c->p1 & SMALL_SCALES && key == 0;
}

/* Keys and values of one position, of the same numbers in any step that has it. */
static void fill_position(const struct paged_case *p, uint64_t seed, int64_t sequence, int64_t key, int64_t row)
{
	const uint64_t width = ld_kv(p), first = ((uint64_t)sequence << 32 | (uint64_t)key) * width;

	for (uint64_t i = 0; i < width; i++) {
		const float v = 2 * random_f32(seed, 1, first + i);

		if (p->e4m3) /* any finite code */
			((uint8_t *)p->host[KV])[(uint64_t)row * width + i] =
				(uint8_t)((uint32_t)(127 * random_f32(seed, 2, first + i) + 127) % 127 |
					  (v < 0 && !is_positive(p, key) ? 0x80 : 0));
		else
			((uint16_t *)p->host[KV])[(uint64_t)row * width + i] = to_bf16(v);
	}
	for (uint64_t i = 0; p->e4m3 && i < 2 * p->kv_heads; i++)
		((float *)p->host[SCALE])[paged_scale_at((uint64_t)row, (uint32_t)i, 2 * p->kv_heads, p->page_bits)] =
			scale_of(p, seed, first + i, key, i >= p->kv_heads);
}

/* Page numbers go up and down, so that neighbours in a sequence are none in memory. Page 0 belongs to nobody. */
static void fill_cache(struct paged_case *p, uint64_t seed)
{
	int32_t *page = p->host[PAGE];
	int64_t at = 0;

	memset(p->host[KV], 0xff, p->bytes[KV]);
	memset(p->host[SCALE], 0xff, p->bytes[SCALE]);
	for (int64_t i = 0; i < p->pages; i++)
		page[i] = (int32_t)(1 + (i % 2 ? p->pages - 1 - i / 2 : i / 2));
	for (int64_t s = 0; s < p->sequences; at += pages_of(p, s++))
		for (int64_t key = 0; key < p->keys[s]; key++)
			fill_position(p, seed, s, key,
				      ((int64_t)page[at + (key >> p->page_bits)] << p->page_bits) +
					      key % (1 << p->page_bits));
}

static float query_of(const struct paged_case *p, uint64_t seed, uint64_t i)
{
	const float v = 6 * random_f32(seed, 4, i);

	return is_positive(p, 0) ? fabsf(v) : v;
}

/* Queries, the same for the same position of a sequence. */
static void fill_queries(struct paged_case *p, uint64_t seed)
{
	for (int64_t s = 0; s < p->sequences; s++)
		for (int64_t r = p->begin[s]; r < p->begin[s + 1]; r++) {
			const uint64_t position = (uint64_t)(p->keys[s] - p->begin[s + 1] + r);

			for (uint64_t i = 0; i < (uint64_t)p->heads * p->dim; i++)
				((uint16_t *)p->host[Q])[(uint64_t)r * ld_q(p) + i] = to_bf16(
					query_of(p, seed, ((uint64_t)s << 32 | position) * ld_q(p) + i));
		}
}

static enum status fill_work(struct paged_case *p, struct error *err)
{
	struct paged_work w = {.heads = p->heads,
			       .kv_heads = p->kv_heads,
			       .blocks = p->blocks,
			       .invariant = p->invariant,
			       .unit = p->host[UNIT],
			       .block = p->host[BLOCK],
			       .first = p->host[FIRST],
			       .room = p->units};
	const struct paged_work_rows rows = {
		.begin = p->begin, .keys = p->keys, .sequences = p->sequences, .page_tokens = 1u << p->page_bits};

	return paged_work_fill(&w, &rows, err);
}

static enum status fill_tiles(struct paged_case *p, struct error *err)
{
	struct paged_tiles t = {.rows_least = PAGED_TILES_LEAST, .heads = p->heads,
				.head_dim = p->dim,
				.tile = p->host[TILE],
				.room = p->tiles,
				.part = p->host[PART],
				.part_room = p->parts_most,
				.copy_blocks = p->copy_blocks,
				.block = p->host[COPIED],
				.block_room = p->blocks_most};
	const struct paged_work_rows rows = {
		.begin = p->begin, .keys = p->keys, .sequences = p->sequences, .page_tokens = 1u << p->page_bits};
	enum status st = p->tiled || p->copied ? paged_tiles_fill(&t, &rows, err) : STATUS_OK;

	p->parts = t.parts;
	return st;
}

/* Blocks of the copy: of the longest sequence, of all sequences, or as many as the engine has. */
static int64_t copy_blocks(const struct paged_case *p, const struct paged_tiles_limits *most)
{
	const int64_t each = PAGED_TILES_KEYS(p->dim);
	int64_t all = 0;

	for (int64_t s = 0; s < p->sequences; s++)
		all += (p->keys[s] + each - 1) / each;
	if (p->c->p1 & WHOLE_COPY)
		return all;
	return p->c->p1 & SMALL_COPY ? (most->positions + each - 1) / each : paged_tiles_copy_blocks(most);
}

static void size_tiles(struct paged_case *p)
{
	struct paged_tiles_limits most = {
		.heads = p->heads, .head_dim = p->dim, .rows = p->rows, .sequences = p->sequences, .positions = 1};
	const int64_t each = PAGED_TILES_KEYS(p->dim);

	for (int64_t s = 0; s < p->sequences; s++)
		most.positions = p->keys[s] > most.positions ? p->keys[s] : most.positions;
	p->tiles = paged_tiles_most(p->heads, p->dim, p->rows);
	p->parts_most = paged_tiles_parts_most(p->rows);
	p->bytes[TILE] = (uint64_t)(p->tiles + 1) * sizeof(struct paged_tile);
	p->bytes[PART] = (uint64_t)p->parts_most * sizeof(struct paged_part);
	if (p->tiled || p->copied) {
		p->blocks_most = paged_tiles_blocks_most(&most);
		p->copy_blocks = copy_blocks(p, &most);
		p->copy_blocks += !p->copy_blocks;
	}
	p->bytes[COPIED] = (uint64_t)(p->blocks_most + 1) * sizeof(struct paged_block);
	p->bytes[COPY] = (uint64_t)(p->copy_blocks * each + 1) * ld_kv(p) * 2;
}

static enum status open_case(struct kit *k, struct paged_case *p, struct error *err)
{
	const uint64_t positions = (uint64_t)(p->pages + 1) << p->page_bits;
	enum status st = STATUS_OK;

	p->units = paged_work_most(p->heads, p->kv_heads, p->rows, p->sequences, p->blocks);
	p->bytes[Q] = (uint64_t)(p->rows + PADDING_ROWS) * ld_q(p) * 2;
	p->bytes[O] = (uint64_t)(p->rows + PADDING_ROWS) * ld_o(p) * 2;
	p->bytes[KV] = positions * ld_kv(p) * (p->e4m3 ? 1 : 2);
	p->bytes[SCALE] = p->e4m3 ? positions * 2 * p->kv_heads * sizeof(float) : 4;
	p->bytes[PAGE] = (uint64_t)p->pages * sizeof(int32_t);
	p->bytes[UNIT] = (uint64_t)p->units * sizeof(struct paged_unit);
	p->bytes[FIRST] = p->blocks * sizeof(struct paged_unit);
	p->bytes[BLOCK] = (p->blocks + 1) * sizeof(uint32_t);
	p->bytes[PARTIAL] = (uint64_t)(paged_work_places(p->blocks) + p->blocks) * PAGED_PARTIAL(p->dim) * sizeof(float);
	p->bytes[ARRIVED] = paged_work_places(p->blocks) * sizeof(uint32_t);
	size_tiles(p);
	for (int i = 0; i < ARRAYS; i++) {
		p->host[i] = calloc(p->bytes[i], 1);
		if (!p->host[i])
			return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	}
	memset(p->host[O], 0xff, p->bytes[O]);
	memset(p->host[COPY], 0xff, p->bytes[COPY]);
	fill_cache(p, k->seed);
	fill_queries(p, k->seed);
	st = fill_work(p, err);
	if (!st)
		st = fill_tiles(p, err);
	for (int i = 0; i < ARRAYS && !st; i++)
		st = kit_put(k, &p->device[i], p->host[i], p->bytes[i], err);
	return st;
}

static void close_case(struct kit *k, struct paged_case *p)
{
	for (int i = 0; i < ARRAYS; i++) {
		kit_free(k, &p->device[i]);
		free(p->host[i]);
	}
}

static uint64_t address(const struct paged_case *p, enum array which, bool device)
{
	return device ? p->device[which].data : (uint64_t)(uintptr_t)p->host[which];
}

static struct paged_attention_args args_of(const struct paged_case *p, unsigned shared_most, bool device)
{
	return (struct paged_attention_args){
		.q = address(p, Q, device),
		.o = address(p, O, device),
		.kv = address(p, KV, device),
		.scale = p->e4m3 ? address(p, SCALE, device) : 0,
		.page = address(p, PAGE, device),
		.unit = address(p, UNIT, device),
		.block = address(p, BLOCK, device),
		.first = address(p, FIRST, device),
		.partial = address(p, PARTIAL, device),
		.arrived = address(p, ARRIVED, device),
		.ld_q = ld_q(p),
		.ld_o = ld_o(p),
		.ld_kv = ld_kv(p),
		.ld_scale = 2 * p->kv_heads,
		.group = p->heads / p->kv_heads,
		.kv_heads = p->kv_heads,
		.page_bits = p->page_bits,
		.depth = paged_depth(p->dim, p->e4m3 ? 1 : 2, shared_most),
		.places = paged_work_places(p->blocks),
		.split = p->invariant ? PAGED_SPLIT : PAGED_WHOLE,
		.scale_log2 = 1.44269504f / sqrtf((float)p->dim),
	};
}

static enum status make_map(struct kit *k, struct tensor_map *map, uint64_t data, int64_t rows, uint64_t ld, uint32_t heads,
			    uint32_t dim, unsigned box_rows, struct error *err)
{
	const struct gpu_tensor t = {.data = data,
				     .element_bytes = 2,
				     .columns = dim,
				     .rows = (uint64_t)rows,
				     .heads = heads,
				     .batches = 1,
				     .row_step = ld,
				     .head_step = dim,
				     .batch_step = (uint64_t)rows * ld};

	return gpu_tensor_map(k->device, map, &t, box_rows, err);
}

static enum status tiles_args(struct kit *k, const struct paged_case *p, int64_t part, struct paged_tiles_args *a,
			      struct error *err)
{
	const struct paged_part *host = (const struct paged_part *)p->host[PART] + part;
	const uint64_t keys = address(p, COPY, true), values = keys + (uint64_t)p->kv_heads * p->dim * 2;
	const unsigned each = PAGED_TILES_KEYS(p->dim);
	const int64_t positions = p->copy_blocks * each;
	enum status st;

	*a = (struct paged_tiles_args){
		.dense = {.o = address(p, O, true),
			  .q_starts = address(p, TILE, true),
			  .o_step = {.head = p->dim, .row = (int64_t)ld_o(p)},
			  .heads = p->heads,
			  .kv_heads = p->kv_heads,
			  .left = ATTENTION_OPEN,
			  .passes = 1,
			  .scale_log2 = 1.44269504f / sqrtf((float)p->dim)},
		.tile = address(p, TILE, true) + host->tile * sizeof(struct paged_tile),
		.count = host->tiles,
	};
	st = make_map(k, &a->dense.q_map, address(p, Q, true), p->rows, ld_q(p), p->heads, p->dim, 64, err);
	if (!st)
		st = make_map(k, &a->dense.k_map, keys, positions, ld_kv(p), p->kv_heads, p->dim, each, err);
	if (!st)
		st = make_map(k, &a->dense.v_map, values, positions, ld_kv(p), p->kv_heads, p->dim, each, err);
	return st ? st : make_map(k, &a->dense.o_map, address(p, O, true), p->rows, ld_o(p), p->heads, p->dim, 16, err);
}

static struct paged_copy_args copy_args(const struct paged_case *p, int64_t part, bool device)
{
	const struct paged_part *host = (const struct paged_part *)p->host[PART] + part;

	return (struct paged_copy_args){
		.kv = address(p, KV, device),
		.scale = address(p, SCALE, device),
		.copy = address(p, COPY, device),
		.page = address(p, PAGE, device),
		.block = address(p, COPIED, device) + host->block * sizeof(struct paged_block),
		.ld_kv = ld_kv(p),
		.ld_scale = 2 * p->kv_heads,
		.ld_copy = ld_kv(p),
		.blocks = host->blocks,
		.columns = (uint32_t)ld_kv(p),
		.block_bits = p->dim == 64 ? 6 : 7,
		.page_bits = p->page_bits,
		.head_bits = p->dim == 64 ? 6 : 7,
	};
}

static const char *copy_entry(const struct paged_case *p)
{
	return p->e4m3 ? "paged_copy_e4m3" : "paged_copy_bf16";
}

/* Enqueues; nobody waits. */
static enum status start(struct kit *k, struct gpu_kernel *kernel, const struct paged_case *p, unsigned threads,
			 unsigned shared_bytes, const void *args, bool early, struct error *err)
{
	const unsigned grid[3] = {p->blocks, 1, 1}, block[3] = {threads, 1, 1};

	return early ? gpu_launch_early(kernel, k->stream, grid, block, shared_bytes, args, err)
		     : gpu_launch(kernel, k->stream, grid, block, shared_bytes, args, err);
}

static enum status launch_part(struct kit *k, const struct paged_case *p, int64_t part, bool early, struct error *err)
{
	struct paged_tiles_args a;
	const struct paged_copy_args copied = copy_args(p, part, true);
	struct gpu_kernel *tiles, *copy;
	enum status st = gpu_kernel(k->device, &tiles, "paged_attention_sm90", p->dim == 64 ? "tiles_bf16_d64" : "tiles_bf16_d128", err);

	if (!st)
		st = gpu_kernel(k->device, &copy, "paged_attention", copy_entry(p), err);
	if (!st)
		st = tiles_args(k, p, part, &a, err);
	if (!st)
		st = start(k, copy, p, PAGED_COPY_THREADS, 0, &copied, early, err);
	return st ? st
		  : start(k, tiles, p, (unsigned)PAGED_TILES_THREADS(p->dim), PAGED_TILES_SHARED(p->dim), &a, early, err);
}

static enum status launch_tiles(struct kit *k, const struct paged_case *p, bool early, struct error *err)
{
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < p->parts; i++)
		st = launch_part(k, p, i, early, err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

/* Sequences of few rows have no tiles: nobody computes them. */
static void blank_untiled(struct paged_case *p)
{
	for (int64_t s = 0; s < p->sequences; s++)
		if (p->begin[s + 1] - p->begin[s] < PAGED_TILES_LEAST)
			memset((uint16_t *)p->host[O] + (uint64_t)p->begin[s] * ld_o(p), 0xff,
			       (uint64_t)(p->begin[s + 1] - p->begin[s]) * ld_o(p) * 2);
}

/* Tiles compute what units do. Their own arguments do not serve: only the driver can read a tensor map. */
static void run_reference(struct kit *k, struct paged_case *p)
{
	const struct ref_grid grid = {p->blocks, PAGED_THREADS};
	const struct paged_attention_args host = args_of(p, gpu_shared_most(k->device), false);

	ref_run(p->dim == 64 ? p->e4m3 ? "paged_e4m3_d64" : "paged_bf16_d64"
			     : p->e4m3 ? "paged_e4m3_d128" : "paged_bf16_d128",
		grid, &host);
	if (p->tiled)
		blank_untiled(p);
}

static const char *entry_of(const struct paged_case *p)
{
	if (p->late || p->tiled)
		return p->c->entry;
	return p->dim == 64 ? (p->e4m3 ? "paged_e4m3_d64" : "paged_bf16_d64") : p->e4m3 ? "paged_e4m3_d128" : "paged_bf16_d128";
}

static enum status launch_units(struct kit *k, const struct paged_case *p, bool early, struct error *err)
{
	const struct paged_attention_args a = args_of(p, gpu_shared_most(k->device), true);
	const uint32_t bytes = (p->late ? paged_shared_late : paged_shared)(p->dim, p->e4m3 ? 1 : 2, a.depth);
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "paged_attention", entry_of(p), err);

	if (!st && (!a.depth || bytes > gpu_shared_most(k->device)))
		return error_set(err, STATUS_UNSUPPORTED, "too little shared memory");
	if (!st)
		st = start(k, kernel, p, PAGED_THREADS, bytes, &a, early, err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

static double number(const uint16_t *p, uint64_t i)
{
	const uint32_t bits = (uint32_t)p[i] << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

/* What nobody computes is as before; the rest is as the reference, but for the rounding of O and of exponentials to BF16. */
static enum status compare(const struct paged_case *p, const uint16_t *found, struct error *err)
{
	const uint16_t *expected = p->host[O];
	const uint64_t width = (uint64_t)p->heads * p->dim, count = (uint64_t)(p->rows + PADDING_ROWS) * ld_o(p);
	double squares = 0, rms;

	for (uint64_t i = 0; i < count; i++)
		squares += expected[i] == 0xffff ? 0 : number(expected, i) * number(expected, i);
	rms = sqrt(squares / (double)((uint64_t)p->rows * width));
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t row = i / ld_o(p), col = i % ld_o(p);
		const double f = number(found, i), e = number(expected, i);

		if (expected[i] == 0xffff ? found[i] != 0xffff : !(fabs(f - e) <= fabs(e) / 128 + rms / 64))
			return error_set(err, STATUS_MISMATCH,
					 "row %" PRIu64 ", head %" PRIu64 ", element %" PRIu64
					 " is %.6g, the reference has %.6g (rms %.3g)",
					 row, col / p->dim, col % p->dim, f, e, rms);
	}
	return STATUS_OK;
}

/* The outputs of a launch, and whether it kept within its memory and left the counters at zero. Owner: caller, free. */
static enum status fetch(struct kit *k, struct paged_case *p, uint16_t **out, struct error *err)
{
	uint32_t *arrived = malloc(p->bytes[ARRIVED]);
	enum status st = STATUS_OK;

	*out = malloc(p->bytes[O]);
	if (!*out || !arrived)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (!st)
		st = gpu_copy_from(k->device, *out, p->device[O].data, p->bytes[O], err);
	if (!st)
		st = gpu_copy_from(k->device, arrived, p->device[ARRIVED].data, p->bytes[ARRIVED], err);
	for (uint64_t i = 0; !st && i < p->bytes[ARRIVED] / 4; i++)
		if (arrived[i])
			st = error_set(err, STATUS_MISMATCH, "counter %" PRIu64 " is left at %u", i, arrived[i]);
	for (int i = 0; i < ARRAYS && !st; i++)
		st = kit_guards(k, &p->device[i], p->c->entry, err);
	free(arrived);
	return st;
}

static enum status result_of(struct kit *k, struct paged_case *p, bool early, uint16_t **out, struct error *err)
{
	enum status st = p->tiled ? launch_tiles(k, p, early, err) : launch_units(k, p, early, err);

	return st ? st : fetch(k, p, out, err);
}

/* The entry without _late gives the same bits. */
static enum status compare_plain(struct kit *k, struct paged_case *p, const uint16_t *late, struct error *err)
{
	uint16_t *plain = NULL;
	enum status st;

	p->late = false;
	st = result_of(k, p, false, &plain, err);
	p->late = true;
	if (!st && memcmp(plain, late, p->bytes[O]))
		st = error_set(err, STATUS_MISMATCH, "results that are joined late have other bits");
	free(plain);
	return st;
}

/* The last rows of all sequences alone, on another grid, have the same bits. */
static enum status compare_alone(struct kit *k, const struct paged_case *p, const uint16_t *whole, struct error *err)
{
	struct paged_case alone;
	uint16_t *found = NULL;
	enum status st;

	describe(&alone, p->c);
	alone.blocks = p->blocks + 3;
	for (int64_t s = 0; s <= alone.sequences; s++)
		alone.begin[s] = (int32_t)s;
	alone.rows = alone.sequences;
	st = open_case(k, &alone, err);
	if (!st)
		st = result_of(k, &alone, false, &found, err);
	for (int64_t s = 0; !st && s < p->sequences; s++)
		if (memcmp(found + (uint64_t)s * ld_o(p), whole + (uint64_t)(p->begin[s + 1] - 1) * ld_o(p),
			   (uint64_t)p->heads * p->dim * 2))
			st = error_set(err, STATUS_MISMATCH, "the last row of sequence %" PRId64 " alone has other bits", s);
	free(found);
	close_case(k, &alone);
	return st;
}

/* Tiles in one part have the same bits. */
static enum status compare_whole(struct kit *k, const struct paged_case *p, const uint16_t *parts, struct error *err)
{
	struct kernel_case c = *p->c;
	struct paged_case whole;
	uint16_t *found = NULL;
	enum status st;

	c.p1 = (c.p1 & ~(uint32_t)SMALL_COPY) | WHOLE_COPY;
	describe(&whole, &c);
	st = open_case(k, &whole, err);
	if (!st && (whole.parts != 1 || p->parts < 2))
		st = error_set(err, STATUS_BUG, "the step has %" PRId64 " parts and %" PRId64, p->parts, whole.parts);
	if (!st)
		st = result_of(k, &whole, false, &found, err);
	if (!st && memcmp(found, parts, p->bytes[O]))
		st = error_set(err, STATUS_MISMATCH, "tiles in one part have other bits");
	free(found);
	close_case(k, &whole);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct paged_case p;
	uint16_t *found = NULL, *again = NULL;
	enum status st;

	describe(&p, c);
	st = open_case(k, &p, err);
	if (!st)
		run_reference(k, &p);
	if (!st)
		st = result_of(k, &p, false, &found, err);
	if (!st)
		st = compare(&p, found, err);
	if (!st)
		st = result_of(k, &p, true, &again, err);
	if (!st && memcmp(found, again, p.bytes[O]))
		st = error_set(err, STATUS_MISMATCH, "a second run gives other bits");
	if (!st && p.late)
		st = compare_plain(k, &p, found, err);
	if (!st && p.invariant)
		st = compare_alone(k, &p, found, err);
	if (!st && p.tiled && c->p1 & SMALL_COPY)
		st = compare_whole(k, &p, found, err);
	free(found);
	free(again);
	close_case(k, &p);
	return st;
}

/* One part of the step, against the reference's bits. */
static enum status compare_copy(struct kit *k, struct paged_case *p, int64_t part, struct error *err)
{
	const struct paged_copy_args host = copy_args(p, part, false), device = copy_args(p, part, true);
	const struct ref_grid grid = {p->blocks, PAGED_COPY_THREADS};
	uint16_t *found = malloc(p->bytes[COPY]), *expected = p->host[COPY];
	struct gpu_kernel *kernel;
	enum status st = found ? gpu_kernel(k->device, &kernel, "paged_attention", p->c->entry, err)
			       : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	ref_run(p->c->entry, grid, &host);
	if (!st)
		st = start(k, kernel, p, PAGED_COPY_THREADS, 0, &device, part % 2, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = gpu_copy_from(k->device, found, p->device[COPY].data, p->bytes[COPY], err);
	for (uint64_t i = 0; !st && i < p->bytes[COPY] / 2; i++)
		if (found[i] != expected[i])
			st = error_set(err, STATUS_MISMATCH, "position %" PRIu64 ", column %" PRIu64 " is 0x%x, the reference has 0x%x",
				       i / ld_kv(p), i % ld_kv(p), found[i], expected[i]);
	free(found);
	return st;
}

static enum status one_copy(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct paged_case p;
	enum status st;

	describe(&p, c);
	st = open_case(k, &p, err);
	if (!st && !p.parts)
		st = error_set(err, STATUS_BUG, "the step has no prompts");
	for (int64_t i = 0; !st && i < p.parts; i++)
		st = compare_copy(k, &p, i, err);
	for (int i = 0; i < ARRAYS && !st; i++)
		st = kit_guards(k, &p.device[i], c->entry, err);
	close_case(k, &p);
	return st;
}

static enum status one_of_either(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return (strncmp(c->entry, "paged_copy", 10) ? one : one_copy)(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_paged, one_of_either);
}

enum status paged_time(struct kit *k, struct error *err); /* time_paged.c */

const struct kernel_group group_paged = {
	.name = "paged", .cases = cases, .count = COUNT(cases), .test = test, .time = paged_time};
