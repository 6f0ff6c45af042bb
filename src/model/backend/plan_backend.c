/* SPDX-License-Identifier: Apache-2.0 */
/* Each entry counts the same cost and allocates the same workspace as the CPU's and GPU's entries of that
 * name; tests/unit/model_plan.c and model_gpu.c compare a step of both with the plan. */
#include "kernel/train/rows.h"
#include "model/backend/cost.h"
#include "model/cpu/fp8.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/backend/plan_backend.h"

/* The signatures are those of the table; counting needs few of the operands. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static enum status touch(struct backend *back, const struct mat *m, double times)
{
	cost_touch(back, m, times);
	return STATUS_OK;
}

static enum status plan_put(struct backend *back, struct mat to, const void *from, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_get(struct backend *back, struct mat from, void *to, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_batch(struct backend *back, const struct batch *host, struct batch *out,
			      struct error *err)
{
	struct mat lists;

	*out = *host;
	if (back->kind == BACKEND_CPU || lists_hold(back, host->tokens))
		return STATUS_OK;
	return workspace_batch(back, host, &lists, err);
}

static enum status plan_random(struct backend *back, struct mat to, const struct random_fill *fill,
			       struct error *err)
{
	return touch(back, &to, 1);
}

static enum status plan_zero(struct backend *back, struct mat x, struct error *err)
{
	return touch(back, &x, 1);
}

static enum status plan_fp8(struct backend *back, const struct gemm *g, struct error *err)
{
	struct mat room;
	enum status st = STATUS_OK;

	if (!workspace_fp8_copy(&g->a, g->trans_a))
		st = workspace_fp8_rows(back, &g->a, g->trans_a, &room, err);
	if (!st && !fp8_is_weight(&g->b) && !workspace_fp8_copy(&g->b, !g->trans_b))
		st = workspace_fp8_rows(back, &g->b, !g->trans_b, &room, err);
	return st;
}

static enum status plan_gemm(struct backend *back, const struct gemm *g, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat room, more;
	enum status st = STATUS_OK;

	cost_gemm(back, g);
	if (back->kind == BACKEND_CPU && cpu_takes_fp8(g))
		st = workspace_fp8_numbers(back, g, &room, &more, err);
	else if (cpu_takes_fp8(g))
		st = plan_fp8(back, g, err);
	else if (cpu_blocks_of(g->b.dtype))
		st = workspace_blocks(back, g, &room, err);
	else if (back->kind == BACKEND_GPU && g->b.dtype == DTYPE_E4M3)
		st = workspace_e4m3(back, g, &room, err);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_quantize_e4m3(struct backend *back, struct mat from, struct mat to,
				      struct mat transposed, int32_t *overflows, struct error *err)
{
	cost_quantize(back, &from, &transposed);
	return STATUS_OK;
}

static enum status plan_quantize_both(struct backend *back, struct mat x, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_embed(struct backend *back, const struct batch *b, struct mat table, struct mat x,
			      struct error *err)
{
	return touch(back, &x, 2);
}

static enum status plan_embed_bwd(struct backend *back, const struct batch *b, struct mat dx,
				  struct mat dtable, struct error *err)
{
	return touch(back, &dx, 3);
}

static enum status plan_embed_part(struct backend *back, const struct batch *b, struct mat table,
				   int64_t first, struct mat x, struct error *err)
{
	return touch(back, &x, 2);
}

static enum status plan_embed_part_bwd(struct backend *back, const struct batch *b, struct mat dx,
				       int64_t first, struct mat dtable, struct error *err)
{
	return touch(back, &dx, 3);
}

static enum status plan_rmsnorm(struct backend *back, struct mat x, struct mat w, float eps, struct mat y,
				struct mat rstd, struct error *err)
{
	return touch(back, &x, 2);
}

static enum status plan_sums(struct backend *back, int64_t rows, int64_t cols, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat sums;
	enum status st = workspace_sums(back, rows, cols, &sums, err);

	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_rmsnorm_bwd(struct backend *back, struct mat dy, struct mat x, struct mat w,
				    struct mat rstd, struct mat dx_add, struct mat dw, struct error *err)
{
	touch(back, &x, dw.rows ? 6 : 4);
	return back->kind == BACKEND_GPU && dw.rows ? plan_sums(back, x.rows, x.cols, err) : STATUS_OK;
}

static enum status plan_head_norm_rope(struct backend *back, struct mat x, int heads, struct mat w, float eps,
				       const int32_t *position, struct mat cos_sin, struct mat raw,
				       struct mat rstd, struct error *err)
{
	return touch(back, &x, w.rows ? 3 : 2);
}

static enum status plan_head_norm_rope_bwd(struct backend *back, struct mat dx, int heads, struct mat w,
					   const int32_t *position, struct mat cos_sin, struct mat raw,
					   struct mat rstd, struct mat dw, struct error *err)
{
	touch(back, &dx, w.rows ? 5 : 2);
	return back->kind == BACKEND_GPU && dw.rows
		       ? plan_sums(back, train_blocks((uint64_t)dx.rows, (uint64_t)dx.cols), dw.cols, err)
		       : STATUS_OK;
}

static enum status plan_attention(struct backend *back, const struct attention *at, const struct batch *b,
				  struct mat qkv, struct mat o, struct mat lse, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat tile;
	enum status st =
		back->kind == BACKEND_CPU ? workspace_attention(back, b, false, &tile, err) : STATUS_OK;

	cost_attention(back, at, b, false);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
				      struct mat qkv, struct mat o, struct mat lse, struct mat d_o,
				      struct mat dqkv, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat tile;
	enum status st = back->kind == BACKEND_GPU ? workspace_attention_bwd(back, at, b, &tile, err)
						   : workspace_attention(back, b, true, &tile, err);

	cost_attention(back, at, b, true);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_paged_put(struct backend *back, const struct paged_rows *host,
				  const struct paged_room *room, struct paged_rows *out, struct error *err)
{
	*out = *host;
	out->room = room;
	return STATUS_OK;
}

static enum status plan_paged_embed(struct backend *back, const struct paged_rows *rows, struct mat table,
				    struct mat last, struct mat x, struct error *err)
{
	return touch(back, &x, 2);
}

static enum status plan_paged_rope(struct backend *back, const struct paged_rows *rows,
				   const struct attention *at, struct mat qkv, struct mat q_norm,
				   struct mat k_norm, float eps, struct mat cos_sin,
				   const struct paged_layer *cache, struct error *err)
{
	return touch(back, &qkv, 2);
}

static enum status plan_paged_attention(struct backend *back, const struct paged_rows *rows,
					const struct attention *at, struct mat qkv,
					const struct paged_layer *cache, struct mat o, struct error *err)
{
	cost_paged(back, at, rows);
	return STATUS_OK;
}

static enum status plan_adapter_mask(struct backend *back, struct mat u, const int32_t *adapter,
				     int64_t period, int64_t rank, struct error *err)
{
	return touch(back, &u, 2);
}

static enum status plan_adapter_scale(struct backend *back, struct mat y, const int32_t *adapter,
				      struct mat ratio, struct mat bias, struct mat residual,
				      struct error *err)
{
	return touch(back, &y, residual.rows ? 3 : 2);
}

static enum status plan_sample(struct backend *back, const struct sample *s, struct error *err)
{
	return touch(back, &s->logits, 1);
}

static enum status plan_sample_count(struct backend *back, struct mat counts,
				     const struct sample_history *history, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_fetch_begin(struct backend *back, struct mat from, int turn, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_fetch_wait(struct backend *back, int turn, const void **out, struct error *err)
{
	*out = NULL;
	return STATUS_OK;
}

static enum status plan_replay(struct backend *back, const struct replay *work, struct error *err)
{
	return work->run(work->arg, err);
}

static enum status plan_swiglu(struct backend *back, struct mat gate_up, struct mat h, struct error *err)
{
	return touch(back, &h, 3);
}

static enum status plan_gemm_swiglu(struct backend *back, const struct gemm *g, struct mat h,
				    struct error *err)
{
	enum status st = plan_gemm(back, g, err);

	return st ? st : touch(back, &h, 3);
}

static enum status plan_swiglu_bwd(struct backend *back, struct mat dh, struct mat gate_up, bool again,
				   struct error *err)
{
	return touch(back, &dh, again ? 6 : 5);
}

static enum status plan_cross_entropy(struct backend *back, struct mat logits, const int32_t *target,
				      const int32_t *row, float grad_scale, struct mat loss,
				      struct error *err)
{
	return touch(back, &logits, grad_scale != 0 ? 2 : 1);
}

static enum status plan_loss_part(struct backend *back, struct mat logits, const int32_t *target,
				  const int32_t *row, int64_t first, struct mat part, struct error *err)
{
	return touch(back, &logits, 1);
}

static enum status plan_loss_join(struct backend *back, struct mat logits, const int32_t *target,
				  const int32_t *row, int64_t first, struct mat parts, float grad_scale,
				  struct mat loss, struct error *err)
{
	return touch(back, &logits, grad_scale != 0 ? 2 : 0);
}

static enum status plan_rows_copy(struct backend *back, struct mat from, struct mat to, const int32_t *row,
				  bool scatter_add, struct error *err)
{
	return touch(back, scatter_add ? &from : &to, scatter_add ? 3 : 2);
}

static enum status plan_dropout(struct backend *back, struct mat x, const struct dropout *drop, struct mat y,
				bool add, struct error *err)
{
	return touch(back, &x, add ? 3 : 2);
}

static enum status plan_convert(struct backend *back, struct mat from, struct mat to, struct error *err)
{
	cost_touch(back, &from, 1);
	return touch(back, &to, 1);
}

static enum status plan_refresh(struct backend *back, struct mat master, const struct live_range *range,
				struct error *err)
{
	cost_refresh(back, range);
	return STATUS_OK;
}

static enum status plan_quantize(struct backend *back, struct mat from, const struct stored *to,
				 struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat room;
	enum status st = workspace_quantize(back, to, &room, err);

	cost_touch(back, &from, 1);
	back->cost.bytes += (double)stored_bytes(to);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_slot_fill(struct backend *back, const struct slot_fill *fill, struct error *err)
{
	enum status st = STATUS_OK;

	cost_slot_fill(back, fill);
	for (int i = 0; !st && back->kind == BACKEND_CPU && i < fill->parts; i++) {
		const struct arena_mark mark = arena_mark(back->arena);
		struct mat rows;

		if (fill->part[i].count && fill->part[i].to.dtype == DTYPE_E4M3)
			st = workspace_slot_numbers(back, &fill->part[i], &rows, err);
		arena_reset(back->arena, &mark);
	}
	return st;
}

static enum status plan_slot_event(struct backend *back, int slot, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_lane_copy(struct backend *back, const struct lane_copies *copies, struct error *err)
{
	cost_lane(back, copies);
	return STATUS_OK;
}

static enum status plan_lane_event(struct backend *back, enum lane lane, int slot, enum lane_event event,
				   struct error *err)
{
	return STATUS_OK;
}

static enum status plan_lane_run(struct backend *back, enum lane lane,
				 enum status (*run)(void *arg, struct error *), void *arg, struct error *err)
{
	return run(arg, err);
}

static enum status plan_lane_join(struct backend *back, enum lane lane, struct error *err)
{
	return STATUS_OK;
}

static enum status plan_column_sum(struct backend *back, struct mat x, struct mat sum_add, struct error *err)
{
	touch(back, &x, 1);
	return back->kind == BACKEND_GPU
		       ? plan_sums(back, train_column_parts((uint64_t)x.rows), sum_add.cols, err)
		       : STATUS_OK;
}

static enum status plan_reduce(struct backend *back, struct mat x, enum reduction reduction, double *sum,
			       struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat sums;
	enum status st = workspace_reduce(back, &x, &sums, err);

	cost_touch(back, &x, 1);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status plan_adamw(struct backend *back, const struct adamw_part *p, const struct adamw *a,
			      struct error *err)
{
	cost_adamw(back, p);
	return STATUS_OK;
}

static const struct ops plan_ops = {
	.name = "plan",
	.put = plan_put,
	.get = plan_get,
	.batch = plan_batch,
	.random = plan_random,
	.zero = plan_zero,
	.gemm = plan_gemm,
	.quantize_e4m3 = plan_quantize_e4m3,
	.quantize_both = plan_quantize_both,
	.embed = plan_embed,
	.embed_bwd = plan_embed_bwd,
	.embed_part = plan_embed_part,
	.embed_part_bwd = plan_embed_part_bwd,
	.loss_part = plan_loss_part,
	.loss_join = plan_loss_join,
	.rmsnorm = plan_rmsnorm,
	.rmsnorm_bwd = plan_rmsnorm_bwd,
	.head_norm_rope = plan_head_norm_rope,
	.head_norm_rope_bwd = plan_head_norm_rope_bwd,
	.attention = plan_attention,
	.attention_bwd = plan_attention_bwd,
	.paged_put = plan_paged_put,
	.paged_embed = plan_paged_embed,
	.paged_rope = plan_paged_rope,
	.paged_attention = plan_paged_attention,
	.adapter_mask = plan_adapter_mask,
	.adapter_scale = plan_adapter_scale,
	.sample = plan_sample,
	.sample_count = plan_sample_count,
	.fetch_begin = plan_fetch_begin,
	.fetch_wait = plan_fetch_wait,
	.replay = plan_replay,
	.gemm_swiglu = plan_gemm_swiglu,
	.swiglu = plan_swiglu,
	.swiglu_bwd = plan_swiglu_bwd,
	.cross_entropy = plan_cross_entropy,
	.rows_copy = plan_rows_copy,
	.dropout = plan_dropout,
	.convert = plan_convert,
	.refresh = plan_refresh,
	.quantize = plan_quantize,
	.slot_fill = plan_slot_fill,
	.slot_ready = plan_slot_event,
	.slot_free = plan_slot_event,
	.lane_copy = plan_lane_copy,
	.lane_event = plan_lane_event,
	.lane_run = plan_lane_run,
	.lane_join = plan_lane_join,
	.lane_wait = plan_lane_join,
	.column_sum = plan_column_sum,
	.reduce = plan_reduce,
	.adamw = plan_adamw,
};

void plan_backend_cpu(struct backend *back, unsigned threads, struct arena *arena)
{
	*back = (struct backend){
		.ops = &plan_ops,
		.arena = arena,
		.dtype = DTYPE_F32,
		.stat = DTYPE_F32,
		.threads = (int)threads,
	};
}

void plan_backend_gpu(struct backend *back, enum dtype dtype, struct arena *arena)
{
	*back = (struct backend){
		.ops = &plan_ops, .arena = arena, .dtype = dtype, .stat = DTYPE_F32, .kind = BACKEND_GPU};
}
