/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cost.h"
#include "gpu/bnb4/bnb4_kernels.h"
#include "kernel/step/sample.h"
#include "kernel/train/flat_vector.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/generation/choice.h"
#include "model/gpu/paged/lists.h"
#include "model/gpu/paged/tiles.h"
#include "model/gpu/paged/work.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"

void cost_touch(struct backend *back, const struct mat *m, double times)
{
	back->cost.bytes += times * (double)dtype_bytes(m->dtype, (uint64_t)(m->rows * m->cols));
}

void cost_adamw(struct backend *back, const struct adamw_part *p)
{
	const struct mat *const changed[] = {&p->m, &p->v, &p->m_scale, &p->v_scale, &p->w, &p->rest};

	cost_touch(back, &p->g, 1);
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++)
		cost_touch(back, changed[i], 2);
}

void cost_add(struct op_cost *to, const struct op_cost *more)
{
	to->flop += more->flop;
	to->again += more->again;
	to->bytes += more->bytes;
	to->gemm_flop += more->gemm_flop;
	to->gemm_s += more->gemm_s;
	to->in_bytes += more->in_bytes;
	to->out_bytes += more->out_bytes;
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

void cost_refresh(struct backend *back, const struct live_range *range)
{
	for (int i = range->first; i < range->first + range->count; i++)
		cost_touch(back, &range->all[i].to, 3); /* reads F32, writes BF16 */
}

void cost_slot_fill(struct backend *back, const struct slot_fill *fill)
{
	for (int i = 0; i < fill->parts; i++) {
		const struct slot_part *p = &fill->part[i];

		for (int j = 0; j < p->count; j++)
			back->cost.bytes += (double)stored_bytes(&p->from[j]);
		if (p->count || p->transposed.rows)
			cost_touch(back, &p->to, 1);
		cost_touch(back, &p->transposed, 1);
	}
	cost_refresh(back, &fill->live);
}

void cost_lane(struct backend *back, const struct lane_copies *copies)
{
	double bytes = 0;

	for (int i = 0; i < copies->count; i++) {
		const struct mat *m = &copies->copy[i].host;

		bytes += (double)dtype_bytes(m->dtype, (uint64_t)(m->rows * m->cols));
	}
	if (copies->out)
		back->cost.out_bytes += bytes;
	else
		back->cost.in_bytes += bytes;
}

enum status workspace_quantize(struct backend *back, const struct stored *to, struct mat *room,
			       struct error *err)
{
	const struct bnb4 *q = &to->bnb4;
	const uint64_t bytes =
		back->kind == BACKEND_GPU ? bnb4_kernels_scratch(q->rows, q->cols, q->nested) : 0;

	*room = (struct mat){.rows = bytes > 0, .cols = (int64_t)bytes, .dtype = DTYPE_U8};
	return bytes ? arena_mat(back->arena, MEM_WORKSPACE, room, "absmax of blocks", err) : STATUS_OK;
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

/* Bytes that a CPU thread needs to sample from one row: the changed logits, then the candidates. */
static int64_t sample_room_bytes(int64_t vocab)
{
	const int64_t bytes = vocab * (int64_t)(sizeof(float) + sizeof(struct candidate));

	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* A thread has each query with its result, its scores and two sums, and a tile of keys and values. */
static enum status workspace_paged_cpu(struct backend *back, const struct attention *at,
				       struct paged_room *room, struct error *err)
{
	const int64_t queries = CPU_PAGED_ROWS * (at->heads / at->kv_heads);
	enum status st;

	room->partial = (struct mat){.rows = back->threads,
				     .cols = 2 * (queries + CPU_PAGED_TILE) * at->head_dim +
					     queries * (CPU_PAGED_TILE + 2),
				     .dtype = back->stat};
	room->sampling = (struct mat){
		.rows = back->threads, .cols = sample_room_bytes(room->limits.vocab), .dtype = DTYPE_U8};
	st = arena_mat(back->arena, MEM_WORKSPACE, &room->partial, "tiles of attention to a paged KV cache",
		       err);
	return st ? st
		  : arena_mat(back->arena, MEM_WORKSPACE, &room->sampling, "candidates of sampling", err);
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

static enum status workspace_copy(struct backend *back, const struct attention *at, struct paged_room *room,
				  struct error *err)
{
	room->copy = (struct mat){.rows = paged_lists_copy_blocks(at, &room->limits) *
					  PAGED_TILES_KEYS(at->head_dim),
				  .cols = 2 * at->kv_heads * at->head_dim,
				  .dtype = DTYPE_BF16};
	return room->copy.rows ? arena_mat(back->arena, MEM_WORKSPACE, &room->copy,
					   "contiguous keys and values of prompts", err)
			       : STATUS_OK;
}

enum status workspace_paged(struct backend *back, const struct attention *at, const struct paged_limits *most,
			    struct paged_room *room, struct error *err)
{
	enum status st;

	*room = (struct paged_room){
		.limits = *most, .heads = at->heads, .kv_heads = at->kv_heads, .head_dim = at->head_dim};
	if (back->kind == BACKEND_CPU)
		return workspace_paged_cpu(back, at, room, err);
	if (at->head_dim != 64 && at->head_dim != 128)
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GPU has a paged KV cache for heads of 64 or 128 elements, but this model "
				 "has %d; use --device cpu, which supports any",
				 at->head_dim);
	st = workspace_sampling(back, room, err);
	if (st)
		return st;
	room->lists = (struct mat){.rows = 1, .cols = paged_lists_words(at, most), .dtype = DTYPE_I32};
	room->partial = (struct mat){.rows = paged_work_places(PAGED_BLOCKS) + PAGED_BLOCKS,
				     .cols = PAGED_PARTIAL(at->head_dim),
				     .dtype = DTYPE_F32};
	st = arena_mat(back->arena, MEM_WORKSPACE, &room->lists, "lists of a step", err);
	if (!st)
		st = arena_mat(back->arena, MEM_WORKSPACE, &room->partial, "partial results of attention",
			       err);
	return st || !most->copies ? st : workspace_copy(back, at, room, err);
}

enum status workspace_blocks(struct backend *back, const struct gemm *g, struct mat *room, struct error *err)
{
	*room = (struct mat){.rows = 1, .cols = cpu_rows_bytes(g->d.rows, g->a.cols), .dtype = DTYPE_U8};
	return arena_mat(back->arena, MEM_WORKSPACE, room, "quantized rows of a GEMM", err);
}

enum status workspace_e4m3(struct backend *back, const struct gemm *g, struct mat *rows, struct error *err)
{
	struct mat scale = {.rows = 1, .cols = g->a.rows, .dtype = DTYPE_F32};
	enum status st = arena_mat(back->arena, MEM_WORKSPACE, &scale, "factors of a GEMM's rows", err);

	*rows = (struct mat){.rows = g->a.rows, .cols = g->a.cols, .dtype = DTYPE_E4M3};
	if (!st)
		st = arena_mat(back->arena, MEM_WORKSPACE, rows, "rows of a GEMM in E4M3", err);
	rows->scales = scales_of_rows(scale.data, rows->cols);
	return st;
}

void cost_quantize(struct backend *back, const struct mat *from, const struct mat *transposed)
{
	cost_touch(back, from, 1);
	back->cost.bytes += (transposed->rows ? 2 : 1) * (double)(from->rows * from->cols);
}

enum status workspace_slot_numbers(struct backend *back, const struct slot_part *part, struct mat *rows,
				   struct error *err)
{
	const int64_t most = (int64_t)back->threads * FP8_TILE;

	*rows = (struct mat){.rows = most < part->to.rows ? most : part->to.rows,
			     .cols = part->to.cols,
			     .dtype = DTYPE_F32};
	return arena_mat(back->arena, MEM_WORKSPACE, rows, "weights before they become E4M3", err);
}

enum status workspace_fp8_numbers(struct backend *back, const struct gemm *g, struct mat *a, struct mat *b,
				  struct error *err)
{
	enum status st;

	*a = (struct mat){.rows = g->a.rows, .cols = g->a.cols, .dtype = DTYPE_F32};
	*b = (struct mat){.rows = g->b.rows, .cols = g->b.cols, .dtype = DTYPE_F32};
	st = arena_mat(back->arena, MEM_WORKSPACE, a, "input of a GEMM in FP8", err);
	return st ? st : arena_mat(back->arena, MEM_WORKSPACE, b, "weights of a GEMM in FP8", err);
}

const struct mat *workspace_fp8_copy(const struct mat *x, bool along_rows)
{
	const struct mat *copy = along_rows ? x->e4m3_columns : x->e4m3;
	const int64_t rows = along_rows ? x->cols : x->rows, k = along_rows ? x->rows : x->cols;

	return copy && fp8_is_rows(copy) && copy->rows == rows && copy->cols == k ? copy : NULL;
}

enum status workspace_fp8_rows(struct backend *back, const struct mat *x, bool along_rows, struct mat *q,
			       struct error *err)
{
	const int64_t rows = along_rows ? x->cols : x->rows, k = along_rows ? x->rows : x->cols;
	struct mat scale = {.rows = fp8_tiles(k), .cols = rows, .dtype = DTYPE_F32};
	enum status st = arena_mat(back->arena, MEM_WORKSPACE, &scale, "scales of a GEMM in FP8", err);

	*q = (struct mat){.rows = rows, .cols = k, .dtype = DTYPE_E4M3};
	if (!st)
		st = arena_mat(back->arena, MEM_WORKSPACE, q, "operand of a GEMM in FP8", err);
	q->scales = fp8_scales_of_rows(scale.data, rows);
	return st;
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
