/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cost.h"
#include "kernel/step/sample.h"
#include "kernel/train/flat_vector.h"
#include "model/cpu/quantised_gemm.h"
#include "model/tensor/dtype.h"

void cost_touch(struct backend *back, const struct mat *m, double times)
{
	back->cost.bytes += times * (double)dtype_bytes(m->dtype, (uint64_t)(m->rows * m->cols));
}

void cost_gemm(struct backend *back, const struct gemm *g)
{
	int64_t k = g->trans_a ? g->a.rows : g->a.cols;
	double flop = 2 * (double)g->d.rows * (double)g->d.cols * (double)k;

	back->cost.flop += flop;
	back->cost.gemm_flop += flop;
	cost_touch(back, &g->a, 1);
	cost_touch(back, &g->b, 1);
	cost_touch(back, &g->d, 1);
	if (g->beta != 0)
		cost_touch(back, &g->c, 1);
}

void cost_attention(struct backend *back, const struct attention *at, const struct batch *b, bool backward)
{
	double pairs = 0, width = (double)(at->heads + 2 * at->kv_heads) * at->head_dim;

	for (int64_t i = 0; i < b->docs; i++) {
		double length = b->doc_start[i + 1] - b->doc_start[i];

		pairs += length * (length + 1) / 2;
	}
	back->cost.flop += (backward ? 2.5 : 1) * 4 * pairs * at->head_dim * at->heads;
	back->cost.again += backward ? 2 * pairs * at->head_dim * at->heads : 0;
	back->cost.bytes +=
		(backward ? 3 : 1) * (double)b->tokens * width * (double)dtype_bytes(back->dtype, 1);
}

void cost_cached(struct backend *back, const struct attention *at, int64_t begin, int64_t rows)
{
	double pairs = (double)rows * (double)begin + (double)rows * (double)(rows + 1) / 2;

	back->cost.flop += 4 * pairs * at->head_dim * at->heads;
	back->cost.bytes += 2.0 * (double)(begin + rows) * at->kv_heads * at->head_dim *
			    (double)dtype_bytes(back->dtype, 1);
}

/* One tile of scores per thread, and a second one for backward. A thread sums key gradients only for its own
 * items, so that needs no room. */
enum status workspace_attention(struct backend *back, const struct batch *b, bool backward, struct mat *tile,
				struct error *err)
{
	*tile = (struct mat){
		.rows = (int64_t)back->threads * (backward ? 2 : 1) * ATTENTION_ROWS,
		.cols = b->doc_len_max,
		.dtype = back->stat,
	};
	return arena_mat(back->arena, MEM_WORKSPACE, tile, "attention scores", err);
}

enum status workspace_cached(struct backend *back, int64_t keys, struct mat *scores, struct error *err)
{
	*scores = (struct mat){.rows = back->threads, .cols = keys, .dtype = back->stat};
	return arena_mat(back->arena, MEM_WORKSPACE, scores, "attention scores with a KV cache", err);
}

void cost_paged(struct backend *back, const struct attention *at, const struct paged_rows *r)
{
	double pairs = 0, keys = 0;

	for (int64_t i = 0; i < r->sequences; i++) {
		const double rows = r->begin[i + 1] - r->begin[i];

		pairs += rows * (r->keys[i] - rows) + rows * (rows + 1) / 2;
		keys += r->keys[i];
	}
	back->cost.flop += 4 * pairs * at->head_dim * at->heads;
	back->cost.bytes += 2 * keys * at->kv_heads * at->head_dim * (double)dtype_bytes(back->dtype, 1);
}

enum { SAMPLING_BIASES = 300 }; /* per row, on average */

/* A place of `bytes` at *end, which moves behind it. */
static uint64_t place(uint64_t *end, uint64_t bytes)
{
	const uint64_t at = *end;

	*end = (at + bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	return at;
}

struct sampling_places sampling_places_of(const struct paged_limits *most)
{
	const uint64_t rows = (uint64_t)most->outputs, words = ((uint64_t)most->vocab + 31) / 32;
	struct sampling_places p = {.biases = most->outputs * SAMPLING_BIASES};
	uint64_t parts = 0, bins = 0;

	p.biases = p.biases > STEP_SAMPLE_BIASES ? p.biases : STEP_SAMPLE_BIASES;
	/* Fewer rows are divided among more blocks. */
	for (uint64_t n = 1; n <= rows; n++)
		for (int kind = STEP_SAMPLE_GREEDY; kind <= STEP_SAMPLE_ALL; kind++) {
			const unsigned each =
				step_sample_parts((enum step_sample_kind)kind, n, (uint64_t)most->vocab);
			const uint64_t bytes = n * step_sample_bins_bytes((enum step_sample_kind)kind, each);

			parts = n * each > parts ? n * each : parts;
			bins = bytes > bins ? bytes : bins;
		}
	p.row = place(&p.end, rows * sizeof(struct step_sample_row));
	p.bias = place(&p.end, (uint64_t)p.biases * sizeof(struct step_sample_bias));
	p.mask = place(&p.end, rows * words * sizeof(uint32_t));
	p.part = place(&p.end, parts * sizeof(struct step_sample_part));
	p.tops = place(&p.end, parts * STEP_SAMPLE_TOPS * sizeof(uint64_t));
	p.bins = place(&p.end, bins);
	return p;
}

enum status workspace_sampling(struct backend *back, struct paged_room *room, struct error *err)
{
	room->sampling = (struct mat){
		.rows = 1, .cols = (int64_t)sampling_places_of(&room->limits).end, .dtype = DTYPE_U8};
	return arena_mat(back->arena, MEM_WORKSPACE, &room->sampling, "lists and workspace of sampling", err);
}

enum status workspace_paged(struct backend *back, const struct attention *at, const struct paged_limits *most,
			    struct paged_room *room, struct error *err)
{
	enum status st;

	*room = (struct paged_room){.limits = *most};
	if (back->kind == BACKEND_CPU) {
		room->partial = (struct mat){
			.rows = back->threads, .cols = most->pages * most->page_tokens, .dtype = back->stat};
		return arena_mat(back->arena, MEM_WORKSPACE, &room->partial,
				 "attention scores with a paged KV cache", err);
	}
	st = workspace_sampling(back, room, err);
	return st ? st
		  : error_set(err, STATUS_UNSUPPORTED,
			      "a GPU has no operations for a paged KV cache of heads of %d yet",
			      at->head_dim);
}

enum status workspace_blocks(struct backend *back, const struct gemm *g, struct mat *room, struct error *err)
{
	if (g->d.rows <= BLOCKS_ROWS)
		*room = (struct mat){.rows = g->d.rows,
				     .cols = g->a.cols / CPU_BLOCK * (int64_t)sizeof(struct cpu_block),
				     .dtype = DTYPE_U8};
	else
		*room = (struct mat){
			.rows = (int64_t)back->threads * BLOCKS_PANEL, .cols = g->a.cols, .dtype = DTYPE_F32};
	return arena_mat(back->arena, MEM_WORKSPACE, room, "rows or panels of a GEMM with quantized weights",
			 err);
}

static enum status place_lists(struct backend *back, int64_t rows, struct mat *lists, struct error *err)
{
	*lists = (struct mat){.rows = BATCH_LISTS, .cols = rows + 1, .dtype = DTYPE_I32};
	return arena_mat(back->arena, MEM_SCRATCH, lists, "lists of a batch", err);
}

enum status workspace_batch(struct backend *back, const struct batch *b, struct mat *lists, struct error *err)
{
	return place_lists(back, b->tokens, lists, err);
}

enum status workspace_lists(struct backend *back, int64_t rows, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < 2 && back->kind == BACKEND_GPU; i++)
		st = place_lists(back, rows, &back->lists[i], err);
	return st;
}

enum status workspace_sums(struct backend *back, int64_t rows, int64_t cols, struct mat *sums,
			   struct error *err)
{
	*sums = (struct mat){
		.rows = rows < TRAIN_SUMS_MAX ? rows : TRAIN_SUMS_MAX, .cols = cols, .dtype = DTYPE_F32};
	return arena_mat(back->arena, MEM_WORKSPACE, sums, "partial sums of blocks", err);
}

/* For the kernels that need most: dQ in single precision, and two numbers per row and head. The rows of each
 * sequence are padded to whole tiles. */
uint64_t workspace_attention_bytes(const struct attention *at, int64_t tokens)
{
	return 2 * ((uint64_t)tokens + 128) * (uint64_t)at->heads * (uint64_t)(at->head_dim + 2) *
	       sizeof(float);
}

enum status workspace_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
				    struct mat *room, struct error *err)
{
	*room = (struct mat){
		.rows = 1, .cols = (int64_t)workspace_attention_bytes(at, b->tokens), .dtype = DTYPE_U8};
	return arena_mat(back->arena, MEM_WORKSPACE, room, "partial sums of attention's backward pass", err);
}

enum status workspace_reduce(struct backend *back, const struct mat *x, struct mat *sums, struct error *err)
{
	*sums = (struct mat){
		.rows = 1,
		.cols = back->kind == BACKEND_GPU ? TRAIN_REDUCE_BLOCKS
						  : (x->rows * x->cols + REDUCE_BLOCK - 1) / REDUCE_BLOCK,
		.dtype = DTYPE_F64,
	};
	return arena_mat(back->arena, MEM_WORKSPACE, sums, "partial sums of blocks", err);
}
