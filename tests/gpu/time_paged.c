/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of attention over a paged KV cache:
 *
 *   tests/gpu/kernel_cases time paged     checks all cases of cases_paged.c first, then times these steps
 *
 * A line is one layer of a step. First comes the kernel for few rows, which reads pages. The line has its time, the rate at which
 * keys and values are read once, the share of the DRAM's rate by its clock and width, and the rate of FLOP. A chunk's line also has
 * the rate of the kernel for many rows ("tiles"), which includes the time of copying the pages. The parentheses have the time of the
 * copy, and the rate of the tiles without it. Then comes the rate of the dense kernel at the same shape, which reads the same copy, and
 * the ratio of "tiles" to it. If "tiles" is faster than the kernel for few rows, the copy pays. A decode step's line also has the times
 * with other rings. Successive calls read other pages, of 400 MB together. So keys come from memory and not from the L2.
 */
#include "cases.h"
#include "core/math/random.h"
#include "gpu/attention/own_forward.h"
#include "gpu/device/tensor_map.h"
#include "model/gpu/paged/tiles.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { PAGE_BITS = 5, SEQUENCES_MOST = 320, RANDOM_BYTES = 8 << 20 };
#define COLD_BYTES ((uint64_t)400 << 20)

struct shape {
	const char *name;
	uint32_t heads, kv_heads, dim;
};
static const struct shape qwen = {"Qwen2-7B", 28, 4, 128}, llama = {"Llama-3-8B", 32, 8, 128}, smollm = {"SmolLM2-135M", 9, 3, 64};

/* `decoding` sequences of one row and `keys` keys, and one of `rows` rows after `before` keys. */
struct timed {
	const struct shape *shape;
	bool e4m3, invariant;
	int32_t decoding, keys, rows, before;
};
static const struct timed steps[] = {
	{&qwen, false, false, 1, 600, 0, 0},	  {&qwen, false, false, 32, 600, 0, 0},	   {&qwen, false, false, 64, 600, 0, 0},
	{&qwen, false, false, 128, 600, 0, 0},	  {&qwen, false, false, 256, 600, 0, 0},   {&qwen, false, false, 1, 4096, 0, 0},
	{&qwen, false, false, 32, 4096, 0, 0},	  {&qwen, false, false, 64, 4096, 0, 0},   {&qwen, false, false, 128, 4096, 0, 0},
	{&qwen, false, false, 256, 4096, 0, 0},	  {&qwen, false, false, 1, 32768, 0, 0},   {&qwen, true, false, 1, 600, 0, 0},
	{&qwen, true, false, 64, 600, 0, 0},	  {&qwen, true, false, 256, 600, 0, 0},	   {&qwen, true, false, 64, 4096, 0, 0},
	{&qwen, true, false, 256, 4096, 0, 0},	  {&qwen, true, false, 1, 32768, 0, 0},	   {&qwen, false, true, 1, 4096, 0, 0},
	{&qwen, false, true, 64, 600, 0, 0},	  {&qwen, false, true, 256, 600, 0, 0},	   {&qwen, false, true, 64, 4096, 0, 0},
	{&llama, false, false, 64, 600, 0, 0},	  {&llama, false, false, 64, 4096, 0, 0},  {&smollm, false, false, 64, 600, 0, 0},
	{&smollm, false, false, 256, 4096, 0, 0}, {&qwen, false, false, 0, 0, 2048, 0},	   {&qwen, false, false, 0, 0, 2048, 4096},
	{&qwen, false, false, 0, 0, 2048, 2048},  {&qwen, false, false, 0, 0, 8192, 0},
	{&qwen, false, false, 0, 0, 2048, 16384}, {&llama, false, false, 0, 0, 2048, 0},   {&llama, false, false, 0, 0, 2048, 4096},
	{&smollm, false, false, 0, 0, 2048, 0},	  {&smollm, false, false, 0, 0, 2048, 4096}, {&qwen, true, false, 0, 0, 2048, 4096},
	{&qwen, true, false, 0, 0, 2048, 0},	  {&qwen, true, false, 0, 0, 8192, 0},	   {&qwen, true, false, 0, 0, 2048, 16384},
	{&llama, true, false, 0, 0, 2048, 4096},  {&smollm, true, false, 0, 0, 2048, 4096},
	{&qwen, false, false, 0, 0, 64, 4096},	  {&qwen, false, false, 0, 0, 128, 4096},  {&qwen, false, false, 0, 0, 256, 4096},
	{&qwen, false, false, 0, 0, 512, 4096},	  {&qwen, false, false, 0, 0, 64, 16384},  {&qwen, false, false, 0, 0, 128, 16384},
	{&qwen, false, false, 0, 0, 256, 16384},  {&smollm, false, false, 0, 0, 64, 4096}, {&smollm, false, false, 0, 0, 128, 4096},
	{&qwen, true, false, 0, 0, 64, 4096},	  {&qwen, true, false, 0, 0, 64, 16384},
	{&qwen, false, true, 0, 0, 2048, 4096},	  {&qwen, false, false, 64, 600, 256, 600}, {&qwen, false, false, 64, 600, 1024, 600},
	{&qwen, false, false, 60, 1100, 0, 0},	  {&qwen, false, false, 60, 1100, 32, 0},  {&qwen, false, false, 60, 1100, 96, 0},
	{&qwen, false, false, 100, 1100, 64, 0},  {&qwen, false, false, 18, 1100, 96, 0},  {&qwen, true, false, 60, 1100, 96, 0},
};

enum array { Q, O, KV, SCALE, PAGE, UNIT, BLOCK, FIRST, PARTIAL, ARRIVED, TILE, COPIED, COPY, ARRAYS };
struct bed {
	struct kit *k;
	const struct timed *t;
	struct gpu_kernel *kernel, *late; /* late: NULL if the step is not for it */
	struct paged_attention_args args;
	uint32_t blocks, shared_bytes;
	int32_t begin[SEQUENCES_MOST + 1], keys[SEQUENCES_MOST];
	int64_t sequences, pages, positions, copies, turn;
	gpu_ptr memory[ARRAYS];
	struct gpu_kernel *tiles_kernel, *copy_kernel;
	struct paged_tiles_args tiles;
	struct paged_copy_args copy;
	int64_t copy_blocks; /* 0: the step has no tiles */
	struct attention_own *dense;
	struct attention_operands operands;
};

static int64_t pages_of(int32_t keys)
{
	return (keys + (1 << PAGE_BITS) - 1) >> PAGE_BITS;
}

static void add_sequence(struct bed *b, int32_t keys, int32_t rows)
{
	b->keys[b->sequences] = keys;
	b->begin[b->sequences + 1] = b->begin[b->sequences] + rows;
	b->sequences++;
	b->pages += pages_of(keys);
	b->positions += keys;
}

static uint64_t position_bytes(const struct timed *t)
{
	return (uint64_t)2 * t->shape->kv_heads * (t->e4m3 ? t->shape->dim + 4 : 2 * t->shape->dim);
}

/* Random numbers near 1 or below, of 16 or of 8 bits. */
static enum status fill_random(struct bed *b, gpu_ptr to, uint64_t bytes, bool e4m3, struct error *err)
{
	uint16_t *host = malloc(RANDOM_BYTES);
	enum status st = host ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for random numbers");

	for (uint64_t i = 0; !st && i < RANDOM_BYTES / 2; i++) {
		const uint32_t word = random_u32(b->k->seed, 0, i);
		const float f = random_f32(b->k->seed, 1, i);
		uint32_t bits;

		memcpy(&bits, &f, sizeof(bits));
		host[i] = (uint16_t)(e4m3 ? word & 0xbfbf : bits >> 16);
	}
	for (uint64_t at = 0; !st && at < bytes; at += RANDOM_BYTES)
		st = gpu_copy_to(b->k->device, to + at, host, bytes - at < RANDOM_BYTES ? bytes - at : RANDOM_BYTES, err);
	free(host);
	return st;
}

/* Each copy of the step has pages of its own, in random order. */
static enum status fill_pages(struct bed *b, struct error *err)
{
	const int64_t all = b->pages * b->copies;
	int32_t *page = malloc((size_t)all * sizeof(*page));
	enum status st = page ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for pages");

	for (int64_t i = 0; !st && i < all; i++) {
		const int64_t other = (int64_t)(random_u32(b->k->seed, 2, (uint64_t)i) % (uint64_t)(i + 1));

		if (other < i)
			page[i] = page[other];
		page[other] = (int32_t)i;
	}
	if (!st)
		st = gpu_copy_to(b->k->device, b->memory[PAGE], page, (uint64_t)all * sizeof(*page), err);
	free(page);
	return st;
}

static enum status fill_work(struct bed *b, int64_t room, struct error *err)
{
	struct paged_work w = {.heads = b->t->shape->heads,
			       .kv_heads = b->t->shape->kv_heads,
			       .blocks = b->blocks,
			       .invariant = b->t->invariant,
			       .unit = malloc((size_t)room * sizeof(struct paged_unit)),
			       .block = malloc((b->blocks + 1) * sizeof(uint32_t)),
			       .first = malloc(b->blocks * sizeof(struct paged_unit)),
			       .room = room};
	const struct paged_work_rows rows = {
		.begin = b->begin, .keys = b->keys, .sequences = b->sequences, .page_tokens = 1 << PAGE_BITS};
	enum status st = w.unit && w.block && w.first ? paged_work_fill(&w, &rows, err)
					   : error_set(err, STATUS_NO_RESOURCE, "no memory for work");

	if (!st)
		st = gpu_copy_to(b->k->device, b->memory[UNIT], w.unit, (uint64_t)w.count * sizeof(*w.unit), err);
	if (!st)
		st = gpu_copy_to(b->k->device, b->memory[BLOCK], w.block, (b->blocks + 1) * sizeof(uint32_t), err);
	if (!st)
		st = gpu_copy_to(b->k->device, b->memory[FIRST], w.first, b->blocks * sizeof(*w.first), err);
	free(w.unit);
	free(w.block);
	free(w.first);
	return st;
}

static struct paged_tiles_limits tiles_limits(const struct bed *b)
{
	struct paged_tiles_limits most = {
		.heads = b->t->shape->heads, .head_dim = b->t->shape->dim, .rows = b->begin[b->sequences], .sequences = b->sequences};

	for (int64_t s = 0; s < b->sequences; s++)
		most.positions = b->keys[s] > most.positions ? b->keys[s] : most.positions;
	return most;
}

/* The lists of tiles to the device. */
static enum status put_tiles(struct bed *b, const struct paged_tiles *t, struct error *err)
{
	enum status st = gpu_copy_to(b->k->device, b->memory[TILE], t->tile, (uint64_t)t->count * sizeof(*t->tile), err);

	b->tiles.count = (uint32_t)t->count;
	b->copy.blocks = (uint32_t)t->blocks;
	return st ? st : gpu_copy_to(b->k->device, b->memory[COPIED], t->block, (uint64_t)t->blocks * sizeof(*t->block), err);
}

/* The copy has room for all, so that there is one part. */
static enum status fill_tiles(struct bed *b, struct error *err)
{
	const struct paged_tiles_limits most = tiles_limits(b);
	struct paged_part part;
	struct paged_tiles t = {.rows_least = PAGED_TILES_LEAST, .heads = most.heads,
				.head_dim = most.head_dim,
				.room = paged_tiles_most(most.heads, most.head_dim, most.rows),
				.part = &part,
				.part_room = 1,
				.copy_blocks = b->copy_blocks,
				.block_room = paged_tiles_blocks_most(&most)};
	const struct paged_work_rows rows = {
		.begin = b->begin, .keys = b->keys, .sequences = b->sequences, .page_tokens = 1 << PAGE_BITS};
	enum status st;

	t.tile = calloc((size_t)(t.room + 1), sizeof(*t.tile));
	t.block = calloc((size_t)(t.block_room + 1), sizeof(*t.block));
	st = t.tile && t.block ? paged_tiles_fill(&t, &rows, err) : error_set(err, STATUS_NO_RESOURCE, "no memory for work");
	if (!st)
		st = put_tiles(b, &t, err);
	free(t.tile);
	free(t.block);
	return st;
}

static enum status allocate(struct bed *b, int64_t room, struct error *err)
{
	const struct shape *s = b->t->shape;
	const struct paged_tiles_limits most = tiles_limits(b);
	const uint64_t copy_positions = (uint64_t)b->copy_blocks * PAGED_TILES_KEYS(s->dim);
	const uint64_t rows = (uint64_t)b->begin[b->sequences], positions = (uint64_t)(b->pages * b->copies) << PAGE_BITS;
	const uint64_t bytes[ARRAYS] = {
		[Q] = rows * (s->heads + 2 * s->kv_heads) * s->dim * 2,
		[O] = rows * s->heads * s->dim * 2,
		[KV] = positions * 2 * s->kv_heads * s->dim * (b->t->e4m3 ? 1 : 2),
		[SCALE] = b->t->e4m3 ? positions * 2 * s->kv_heads * 4 : 4,
		[PAGE] = (uint64_t)(b->pages * b->copies) * 4,
		[UNIT] = (uint64_t)room * sizeof(struct paged_unit),
		[BLOCK] = (b->blocks + 1) * 4,
		[FIRST] = b->blocks * sizeof(struct paged_unit),
		[PARTIAL] = (uint64_t)(paged_work_places(b->blocks) + b->blocks) * PAGED_PARTIAL(s->dim) * 4,
		[ARRIVED] = paged_work_places(b->blocks) * 4,
		[TILE] = (uint64_t)(paged_tiles_most(s->heads, s->dim, (int64_t)rows) + 1) * sizeof(struct paged_tile),
		[COPIED] = (uint64_t)(paged_tiles_blocks_most(&most) + 1) * sizeof(struct paged_block),
		[COPY] = (copy_positions + 1) * 2 * s->kv_heads * s->dim * 2,
	};
	enum status st = STATUS_OK;

	for (int i = 0; i < ARRAYS && !st; i++)
		st = gpu_alloc(b->k->device, &b->memory[i], bytes[i], err);
	if (!st)
		st = fill_random(b, b->memory[Q], bytes[Q], false, err);
	if (!st)
		st = fill_random(b, b->memory[KV], bytes[KV], b->t->e4m3, err);
	if (!st)
		st = gpu_stream_fill32(b->k->stream, b->memory[SCALE], 0x3c000000, bytes[SCALE] / 4, err);
	return st ? st : gpu_stream_fill32(b->k->stream, b->memory[ARRIVED], 0, bytes[ARRIVED] / 4, err);
}

static void point(struct bed *b)
{
	const struct shape *s = b->t->shape;

	b->args = (struct paged_attention_args){
		.q = b->memory[Q],
		.o = b->memory[O],
		.kv = b->memory[KV],
		.scale = b->t->e4m3 ? b->memory[SCALE] : 0,
		.unit = b->memory[UNIT],
		.block = b->memory[BLOCK],
		.first = b->memory[FIRST],
		.partial = b->memory[PARTIAL],
		.arrived = b->memory[ARRIVED],
		.ld_q = (s->heads + 2 * s->kv_heads) * s->dim,
		.ld_o = s->heads * s->dim,
		.ld_kv = 2 * s->kv_heads * s->dim,
		.ld_scale = 2 * s->kv_heads,
		.group = s->heads / s->kv_heads,
		.kv_heads = s->kv_heads,
		.page_bits = PAGE_BITS,
		.depth = paged_depth(s->dim, b->t->e4m3 ? 1 : 2, gpu_shared_most(b->k->device)),
		.places = paged_work_places(b->blocks),
		.split = b->t->invariant ? PAGED_SPLIT : PAGED_WHOLE,
		.scale_log2 = 1.44269504f / sqrtf((float)s->dim),
	};
	b->shared_bytes = paged_shared(s->dim, b->t->e4m3 ? 1 : 2, b->args.depth);
}

static enum status open_step(struct bed *b, struct error *err)
{
	const struct timed *t = b->t;
	char entry[40];
	enum status st;
	int64_t room;

	for (int32_t i = 0; i < t->decoding; i++)
		add_sequence(b, t->keys, 1);
	if (t->rows)
		add_sequence(b, t->before + t->rows, t->rows);
	b->copies = 1 + (int64_t)(COLD_BYTES / ((uint64_t)b->positions * position_bytes(t)));
	b->copies = b->copies < 64 ? b->copies : 64;
	b->blocks = gpu_sm_count(b->k->device);
	b->blocks = b->blocks < PAGED_BLOCKS ? b->blocks : PAGED_BLOCKS;
	if (t->rows >= PAGED_TILES_LEAST) {
		const struct paged_tiles_limits most = tiles_limits(b);

		b->copy_blocks = paged_tiles_copy_blocks(&most);
	}
	room = paged_work_most(t->shape->heads, t->shape->kv_heads, b->begin[b->sequences], b->sequences, b->blocks);
	snprintf(entry, sizeof(entry), "paged_%s_d%u", t->e4m3 ? "e4m3" : "bf16", t->shape->dim);
	st = gpu_kernel(b->k->device, &b->kernel, "paged_attention", entry, err);
	snprintf(entry, sizeof(entry), "paged_%s_d%u_late", t->e4m3 ? "e4m3" : "bf16", t->shape->dim);
	if (!st && !t->rows && !t->invariant)
		st = gpu_kernel(b->k->device, &b->late, "paged_attention", entry, err);
	if (!st)
		st = allocate(b, room, err);
	if (!st)
		st = fill_pages(b, err);
	if (!st)
		st = fill_work(b, room, err);
	if (!st && b->copy_blocks)
		st = fill_tiles(b, err);
	point(b);
	return st;
}

/* As a step does. */
static enum status start(struct bed *b, struct gpu_kernel *kernel, unsigned threads, unsigned shared_bytes, const void *args,
			 struct error *err)
{
	const unsigned grid[3] = {b->blocks, 1, 1}, block[3] = {threads, 1, 1};

	return gpu_launch_early(kernel, b->k->stream, grid, block, shared_bytes, args, err);
}

/* Page numbers of the next copy of the step. */
static gpu_ptr next_pages(struct bed *b)
{
	return b->memory[PAGE] + (uint64_t)(b->turn++ % b->copies * b->pages) * 4;
}

static enum status call_paged(void *arg, struct error *err)
{
	struct bed *b = arg;

	b->args.page = next_pages(b);
	return start(b, b->kernel, PAGED_THREADS, b->shared_bytes, &b->args, err);
}

static enum status make_map(struct bed *b, struct tensor_map *map, gpu_ptr data, int64_t rows, uint64_t ld, uint32_t heads,
			    unsigned box_rows, struct error *err)
{
	const struct gpu_tensor t = {.data = data,
				     .element_bytes = 2,
				     .columns = b->t->shape->dim,
				     .rows = (uint64_t)rows,
				     .heads = heads,
				     .batches = 1,
				     .row_step = ld,
				     .head_step = b->t->shape->dim,
				     .batch_step = (uint64_t)rows * ld};

	return gpu_tensor_map(b->k->device, map, &t, box_rows, err);
}

static void point_copy(struct bed *b)
{
	const struct shape *s = b->t->shape;

	b->copy = (struct paged_copy_args){
		.kv = b->memory[KV],
		.scale = b->memory[SCALE],
		.copy = b->memory[COPY],
		.block = b->memory[COPIED],
		.ld_kv = b->args.ld_kv,
		.ld_scale = b->args.ld_scale,
		.ld_copy = b->args.ld_kv,
		.blocks = b->copy.blocks,
		.columns = (uint32_t)b->args.ld_kv,
		.block_bits = s->dim == 64 ? 6 : 7,
		.page_bits = PAGE_BITS,
		.head_bits = s->dim == 64 ? 6 : 7,
	};
}

static enum status point_tiles(struct bed *b, struct error *err)
{
	const struct shape *s = b->t->shape;
	const unsigned each = PAGED_TILES_KEYS(s->dim);
	const int64_t rows = b->begin[b->sequences], positions = b->copy_blocks * each;
	const gpu_ptr keys = b->memory[COPY], values = keys + (uint64_t)s->kv_heads * s->dim * 2;
	struct attention_sm90_args *a = &b->tiles.dense;
	enum status st;

	b->tiles = (struct paged_tiles_args){
		.dense = {.o = b->memory[O],
			  .q_starts = b->memory[TILE],
			  .o_step = {.head = s->dim, .row = (int64_t)b->args.ld_o},
			  .heads = s->heads,
			  .kv_heads = s->kv_heads,
			  .left = ATTENTION_OPEN,
			  .passes = 1,
			  .scale_log2 = b->args.scale_log2},
		.tile = b->memory[TILE],
		.count = b->tiles.count,
	};
	point_copy(b);
	st = gpu_kernel(b->k->device, &b->tiles_kernel, "paged_attention_sm90", s->dim == 64 ? "tiles_bf16_d64" : "tiles_bf16_d128", err);
	if (!st)
		st = gpu_kernel(b->k->device, &b->copy_kernel, "paged_attention", b->t->e4m3 ? "paged_copy_e4m3" : "paged_copy_bf16", err);
	if (!st)
		st = make_map(b, &a->q_map, b->memory[Q], rows, b->args.ld_q, s->heads, 64, err);
	if (!st)
		st = make_map(b, &a->k_map, keys, positions, b->args.ld_kv, s->kv_heads, each, err);
	if (!st)
		st = make_map(b, &a->v_map, values, positions, b->args.ld_kv, s->kv_heads, each, err);
	return st ? st : make_map(b, &a->o_map, b->memory[O], rows, b->args.ld_o, s->heads, 16, err);
}

static enum status call_copy(void *arg, struct error *err)
{
	struct bed *b = arg;
	const unsigned grid[3] = {paged_copy_grid(&b->copy), 1, 1}, block[3] = {PAGED_COPY_THREADS, 1, 1};

	b->copy.page = next_pages(b);
	return gpu_launch_early(b->copy_kernel, b->k->stream, grid, block, 0, &b->copy, err);
}

static enum status call_tiles_alone(void *arg, struct error *err)
{
	struct bed *b = arg;
	const uint32_t dim = b->t->shape->dim;

	return start(b, b->tiles_kernel, (unsigned)PAGED_TILES_THREADS(dim), PAGED_TILES_SHARED(dim), &b->tiles, err);
}

static enum status call_tiles(void *arg, struct error *err)
{
	enum status st = call_copy(arg, err);

	return st ? st : call_tiles_alone(arg, err);
}

/* The rate of the kernel for many rows, with the copy, in FLOP/s; 0: it does not take the step. */
static double tiles_flops(struct bed *b, double flop)
{
	double both = 0, alone = 0, copy = 0;
	struct error ignored = {0};

	if (!b->copy_blocks || b->t->decoding || b->t->invariant || point_tiles(b, &ignored) ||
	    kit_time(b->k, call_tiles, b, 20, &both, &ignored) || kit_time(b->k, call_tiles_alone, b, 20, &alone, &ignored) ||
	    kit_time(b->k, call_copy, b, 50, &copy, &ignored) || both <= 0 || alone <= 0)
		return 0;
	printf(", tiles %6.1f (copy %.1f us, alone %6.1f)", flop / both / 1e3, copy / 1e3, flop / alone / 1e3);
	return flop / both * 1e9;
}

static enum status call_dense(void *arg, struct error *err)
{
	const struct bed *b = arg;

	return attention_own_enqueue(b->dense, &b->operands, b->k->stream, err);
}

/* The rate of the dense kernel on the copy, in FLOP/s; 0: it does not take the shape. */
static double dense_flops(struct bed *b, double flop)
{
	const struct timed *t = b->t;
	const struct shape *s = t->shape;
	const gpu_ptr kv = b->memory[COPY];
	const struct attention_problem p = {
		.type = ATTENTION_BF16,
		.out_type = ATTENTION_BF16,
		.batch = 1,
		.heads = s->heads,
		.kv_heads = s->kv_heads,
		.q_len = (uint32_t)t->rows,
		.kv_len = (uint32_t)(t->before + t->rows),
		.head_dim = s->dim,
		.mask = ATTENTION_CAUSAL,
		.q = {.batch = b->args.ld_q * (uint64_t)t->rows, .head = s->dim, .row = b->args.ld_q},
		.k = {.batch = b->args.ld_kv * (uint64_t)(t->before + t->rows), .head = s->dim, .row = b->args.ld_kv},
		.v = {.batch = b->args.ld_kv * (uint64_t)(t->before + t->rows), .head = s->dim, .row = b->args.ld_kv},
		.o = {.batch = b->args.ld_o * (uint64_t)t->rows, .head = s->dim, .row = b->args.ld_o},
	};
	struct error ignored = {0};
	double ns = 0;

	if (!b->copy_blocks || t->decoding || t->invariant || attention_own_create(&b->dense, b->k->device, &p, &ignored))
		return 0;
	b->operands = (struct attention_operands){
		.q = b->memory[Q], .k = kv, .v = kv + (uint64_t)s->kv_heads * s->dim * 2, .o = b->memory[O]};
	if (kit_time(b->k, call_dense, b, 20, &ns, &ignored) || ns <= 0)
		return 0;
	return flop / ns * 1e9;
}

static enum status call_late(void *arg, struct error *err)
{
	struct bed *b = arg;
	const uint32_t bytes = paged_shared_late(b->t->shape->dim, b->t->e4m3 ? 1 : 2, b->args.depth);

	b->args.page = next_pages(b);
	return start(b, b->late, PAGED_THREADS, bytes, &b->args, err);
}

/* Times of the entries without and with _late in turns, so that a change of the clock meets both. */
static void time_late(struct bed *b, double bytes)
{
	double plain = 1e30, late = 1e30, ns;
	struct error ignored = {0};

	for (int turn = 0; b->late && turn < 3; turn++) {
		if (!kit_time(b->k, call_paged, b, 50, &ns, &ignored))
			plain = fmin(plain, ns);
		if (!kit_time(b->k, call_late, b, 50, &ns, &ignored))
			late = fmin(late, ns);
	}
	if (b->late && late < 1e30)
		printf(", late %.1f us (%.1f %% of DRAM, %.3f of %.1f us)", late / 1e3,
		       100 * bytes / late * 1e9 / gpu_dram_rate(b->k->device), late / plain, plain / 1e3);
}

/* Times with rings of other lengths. */
static void time_depths(struct bed *b)
{
	const uint32_t usual = b->args.depth, room = gpu_shared_most(b->k->device), dim = b->t->shape->dim;
	const uint32_t element = b->t->e4m3 ? 1 : 2;
	struct error ignored = {0};
	double ns = 0;

	for (uint32_t depth = 1; depth <= PAGED_DEPTH && paged_shared(dim, element, depth) <= room; depth++) {
		b->args.depth = depth;
		b->shared_bytes = paged_shared(dim, element, depth);
		if (depth != usual && !kit_time(b->k, call_paged, b, 50, &ns, &ignored))
			printf(", depth %u %.1f us", depth, ns / 1e3);
	}
	b->args.depth = usual;
	b->shared_bytes = paged_shared(dim, element, usual);
}

static enum status time_step(struct kit *k, const struct timed *t, struct error *err)
{
	struct bed *b = calloc(1, sizeof(*b));
	const struct shape *s = t->shape;
	double ns = 0, bytes, flop, tiles, dense;
	enum status st;

	if (!b)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a step");
	b->k = k;
	b->t = t;
	st = open_step(b, err);
	if (!st)
		st = kit_time(k, call_paged, b, 50, &ns, err);
	bytes = (double)b->positions * (double)position_bytes(t);
	flop = 4.0 * s->dim * s->heads *
	       ((double)t->decoding * t->keys + (double)t->rows * t->before + (double)t->rows * (t->rows + 1) / 2);
	if (!st && ns > 0) {
		printf("%-12s %s%s %3d x %5d keys, %4d rows after %5d: %8.1f us %6.0f GB/s %5.1f %% of DRAM %6.1f TFLOPS", s->name,
		       t->e4m3 ? "e4m3" : "bf16", t->invariant ? " invariant" : "", t->decoding, t->keys, t->rows, t->before, ns / 1e3,
		       bytes / ns, 100 * bytes / ns * 1e9 / gpu_dram_rate(k->device), flop / ns / 1e3);
		tiles = tiles_flops(b, flop);
		dense = dense_flops(b, flop);
		if (dense > 0)
			printf(", dense (%s) %6.1f", attention_own_name(b->dense, 0), dense / 1e12);
		if (tiles > 0 && dense > 0)
			printf(", ratio %.3f", tiles / dense);
		time_late(b, bytes);
		if (!t->rows)
			time_depths(b);
		printf("\n");
	}
	attention_own_destroy(&b->dense);
	for (int i = 0; i < ARRAYS; i++)
		gpu_free(k->device, &b->memory[i]);
	free(b);
	return st;
}

enum status paged_time(struct kit *k, struct error *err);
enum status paged_time(struct kit *k, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < COUNT(steps) && !st; i++)
		st = time_step(k, &steps[i], err);
	return st;
}
