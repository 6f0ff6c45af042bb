/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/device/tensor_map.h"
#include "kernel/paged/attention.h"
#include "model/gpu/internal.h"
#include "model/gpu/paged/lists.h"
#include "model/gpu/paged/tiles.h"
#include "model/tensor/dtype.h"

#define LOG2_E 1.44269504f

/* The step's rows, with all their operands. */
struct paged_call {
	const struct paged_rows *rows;
	const struct attention *at;
	const struct paged_layer *cache;
	struct mat qkv, o;
};

static enum gpu_kernel_id kernel_of(const struct paged_call *c, bool late)
{
	static const enum gpu_kernel_id all[2][2][2] = {
		{{GPU_KERNEL_PAGED_BF16_64, GPU_KERNEL_PAGED_BF16_64_LATE},
		 {GPU_KERNEL_PAGED_E4M3_64, GPU_KERNEL_PAGED_E4M3_64_LATE}},
		{{GPU_KERNEL_PAGED_BF16_128, GPU_KERNEL_PAGED_BF16_128_LATE},
		 {GPU_KERNEL_PAGED_E4M3_128, GPU_KERNEL_PAGED_E4M3_128_LATE}},
	};

	/* a head has 64 elements or 128: workspace_paged refuses others */
	return all[c->at->head_dim != 64][c->cache->scale.rows > 0][late];
}

static uint32_t group_of(const struct attention *at)
{
	return (uint32_t)(at->heads / at->kv_heads);
}

/* Whether the kernel that joins late takes the step: its units have one row and one split. */
static bool joins_late(const struct backend *back, const struct paged_call *c, uint32_t depth)
{
	const struct gpu_state *g = gpu_of(back);
	const struct paged_rows *host = &((const struct paged_placed *)c->rows->lists)->host;

	return !g->options.deterministic && group_of(c->at) <= 8 &&
	       host->begin[host->sequences] == host->sequences &&
	       paged_shared_late((uint32_t)c->at->head_dim, c->cache->scale.rows ? 1 : 2, depth) <=
		       g->shared_most;
}

/* rest: without the sequences that have tiles. */
static enum status run_units(struct backend *back, const struct paged_call *c, bool rest, struct error *err)
{
	const struct paged_placed *placed = c->rows->lists;
	const uint32_t blocks = paged_lists_blocks(back), dim = (uint32_t)c->at->head_dim;
	const unsigned shared_most = gpu_of(back)->shared_most;
	struct paged_attention_args args = {
		.q = gpu_address(c->qkv.data),
		.o = gpu_address(c->o.data),
		.kv = gpu_address(c->cache->kv.data),
		.scale = gpu_address(c->cache->scale.data),
		.page = placed->page,
		.unit = placed->unit,
		.block = rest ? placed->rest_block : placed->block,
		.first = rest ? placed->rest_first : placed->first,
		.partial = gpu_address(c->rows->room->partial.data),
		.arrived = placed->arrived,
		.ld_q = (uint64_t)c->qkv.ld,
		.ld_o = (uint64_t)c->o.ld,
		.ld_kv = (uint64_t)c->cache->kv.ld,
		.ld_scale = (uint64_t)c->cache->scale.ld,
		.group = group_of(c->at),
		.kv_heads = (uint32_t)c->at->kv_heads,
		.page_bits = log2_of(c->rows->page_tokens),
		.places = paged_work_places(blocks),
		.split = gpu_of(back)->options.deterministic ? PAGED_SPLIT : PAGED_WHOLE,
		.scale_log2 = c->at->scale * LOG2_E,
	};
	const bool e4m3 = c->cache->scale.rows > 0;
	bool late;

	args.depth = paged_depth(dim, e4m3 ? 1 : 2, shared_most);
	if (!args.depth)
		return error_set(err, STATUS_UNSUPPORTED,
				 "attention over a paged KV cache needs %u bytes of shared memory per block, "
				 "but the GPU has %u",
				 paged_shared(dim, e4m3 ? 1 : 2, 1), shared_most);
	late = joins_late(back, c, args.depth);
	return gpu_run_early(back, kernel_of(c, late), blocks, PAGED_THREADS,
			     (late ? paged_shared_late : paged_shared)(dim, e4m3 ? 1 : 2, args.depth), &args,
			     err);
}

/* -- tiles -- */

static enum status make_map(const struct backend *back, struct tensor_map *map, const struct mat *m,
			    int64_t first_head, int heads, int head_dim, unsigned box_rows, struct error *err)
{
	const struct gpu_tensor t = {
		.data = gpu_address(m->data) + (uint64_t)(first_head * head_dim) * 2,
		.element_bytes = 2,
		.columns = (uint64_t)head_dim,
		.rows = (uint64_t)m->rows,
		.heads = (uint64_t)heads,
		.batches = 1,
		.row_step = (uint64_t)m->ld,
		.head_step = (uint64_t)head_dim,
		.batch_step = (uint64_t)(m->rows * m->ld),
	};

	return gpu_tensor_map(gpu_of(back)->device, map, &t, box_rows, err);
}

static enum status make_maps(const struct backend *back, const struct paged_call *c,
			     struct attention_sm90_args *a, struct error *err)
{
	const struct attention *at = c->at;
	const struct mat *keys = &c->rows->room->copy;
	const unsigned each = PAGED_TILES_KEYS(at->head_dim);
	enum status st =
		make_map(back, &a->q_map, &c->qkv, 0, at->heads, at->head_dim, ATTENTION_SM90_ROWS, err);

	if (!st)
		st = make_map(back, &a->k_map, keys, 0, at->kv_heads, at->head_dim, each, err);
	if (!st)
		st = make_map(back, &a->v_map, keys, at->kv_heads, at->kv_heads, at->head_dim, each, err);
	return st ? st
		  : make_map(back, &a->o_map, &c->o, 0, at->heads, at->head_dim, ATTENTION_SM90_O_ROWS, err);
}

/* Copies the pages that a part's tiles read. */
static enum status copy_pages(struct backend *back, const struct paged_call *c, const struct paged_part *part,
			      struct error *err)
{
	const struct paged_placed *placed = c->rows->lists;
	const struct mat *copy = &c->rows->room->copy;
	const struct paged_copy_args args = {
		.kv = gpu_address(c->cache->kv.data),
		.scale = gpu_address(c->cache->scale.data),
		.copy = gpu_address(copy->data),
		.page = placed->page,
		.block = placed->copied + part->block * sizeof(struct paged_block),
		.ld_kv = (uint64_t)c->cache->kv.ld,
		.ld_scale = (uint64_t)c->cache->scale.ld,
		.ld_copy = (uint64_t)copy->ld,
		.blocks = part->blocks,
		.columns = (uint32_t)(2 * c->at->kv_heads * c->at->head_dim),
		.block_bits = log2_of(PAGED_TILES_KEYS(c->at->head_dim)),
		.page_bits = log2_of(c->rows->page_tokens),
		.head_bits = log2_of(c->at->head_dim),
	};

	return gpu_run_early(back,
			     c->cache->scale.rows ? GPU_KERNEL_PAGED_COPY_E4M3 : GPU_KERNEL_PAGED_COPY_BF16,
			     paged_copy_grid(&args), PAGED_COPY_THREADS, 0, &args, err);
}

static enum status run_part(struct backend *back, const struct paged_call *c, const struct paged_part *part,
			    struct error *err)
{
	const struct paged_placed *placed = c->rows->lists;
	const int dim = c->at->head_dim;
	struct gpu_state *g = gpu_of(back);
	struct paged_tiles_args args = {
		.dense = {.o = gpu_address(c->o.data),
			  .q_starts = placed->tile,
			  .o_step = {.head = dim, .row = c->o.ld},
			  .heads = (uint32_t)c->at->heads,
			  .kv_heads = (uint32_t)c->at->kv_heads,
			  .left = ATTENTION_OPEN,
			  .passes = 1,
			  .scale_log2 = c->at->scale * LOG2_E},
		.tile = placed->tile + part->tile * sizeof(struct paged_tile),
		.count = part->tiles,
	};
	const unsigned grid[3] = {paged_lists_blocks(back), 1, 1},
		       block[3] = {(unsigned)PAGED_TILES_THREADS(dim), 1, 1};
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(g->device, &kernel, "paged_attention_sm90",
				    dim == 64 ? "tiles_bf16_d64" : "tiles_bf16_d128", err);

	if (!st)
		st = make_maps(back, c, &args.dense, err);
	if (!st)
		st = copy_pages(back, c, part, err);
	return st ? st
		  : gpu_launch_early(kernel, g->stream, grid, block, PAGED_TILES_SHARED(dim), &args, err);
}

/* A graph is captured only of a step whose sequences have one row each. There are no parts then, whatever the
 * lengths. */
static enum status run_tiles(struct backend *back, const struct paged_call *c, struct error *err)
{
	const struct paged_placed *placed = c->rows->lists;
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < placed->parts; i++)
		st = run_part(back, c, &placed->part[i], err);
	return st;
}

enum status gpu_paged_attention(struct backend *back, const struct paged_rows *r, const struct attention *at,
				struct mat qkv, const struct paged_layer *cache, struct mat o,
				struct error *err)
{
	const struct paged_placed *placed = r->lists;
	const struct paged_call call = {.rows = r, .at = at, .cache = cache, .qkv = qkv, .o = o};
	const bool tiled = placed->parts > 0;
	const double before = back->cost.flop;
	enum status st;

	if (cache->kv.dtype != (cache->scale.rows ? DTYPE_E4M3 : DTYPE_BF16))
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU's KV cache is BF16, or E4M3 with scales, but this one is %s",
				 dtype_name(cache->kv.dtype));
	cost_paged(back, at, &placed->host);
	st = gpu_part_flop(back, GPU_PART_ATTENTION, before, err);
	if (!st && tiled)
		st = run_tiles(back, &call, err);
	return st ? st : run_units(back, &call, tiled, err);
}
