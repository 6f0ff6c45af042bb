/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding, RoPE and adapters of the rows of a step, and the norm and SwiGLU of few rows
 * (kernel/step/rows.h). */
#include "kernel/step/rows.h"
#include "model/gpu/internal.h"
#include "model/tensor/dtype.h"

enum status gpu_run_early(struct backend *back, enum gpu_kernel_id kernel, unsigned blocks, unsigned threads,
			  unsigned shared_bytes, const void *args, struct error *err)
{
	const unsigned grid[3] = {blocks, 1, 1}, block[3] = {threads, 1, 1};
	struct gpu_state *g = gpu_of(back);
	enum status st = blocks ? gpu_part(back, gpu_kernel_part(kernel), err) : STATUS_OK;

	return st || !blocks
		       ? st
		       : gpu_launch_early(g->kernel[kernel], g->stream, grid, block, shared_bytes, args, err);
}

enum status gpu_paged_embed(struct backend *back, const struct paged_rows *rows, struct mat table,
			    struct mat last, struct mat x, struct error *err)
{
	const struct step_embed_args args = {
		.token = gpu_address(rows->token),
		.last = gpu_address(last.data),
		.table = gpu_address(table.data),
		.x = gpu_address(x.data),
		.ld_table = table.ld,
		.ld_x = x.ld,
		.rows = (uint32_t)x.rows,
		.cols = (uint32_t)x.cols,
		.vocab = (uint32_t)table.rows,
		.places = (uint32_t)last.cols,
	};

	cost_touch(back, &x, 2);
	if (table.dtype != DTYPE_BF16 || x.dtype != DTYPE_BF16)
		return error_set(err, STATUS_UNSUPPORTED, "a GPU's embedding is BF16, but this one is %s",
				 dtype_name(table.dtype));
	/* Not early: the kernels of a step read its lists before they wait (paged/lists.c). */
	return gpu_run(back, GPU_KERNEL_STEP_EMBED, step_blocks((uint64_t)x.rows, (uint64_t)x.cols),
		       STEP_THREADS, 0, &args, err);
}

static enum status check_rope(const struct attention *at, const struct paged_layer *cache, struct error *err)
{
	const enum dtype type = cache->scale.rows ? DTYPE_E4M3 : DTYPE_BF16;

	if (at->head_dim % 16 || at->head_dim > STEP_HEAD_DIM_MAX)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"a head size of %d; text generation on a GPU supports multiples of 16 up to %d",
			at->head_dim, STEP_HEAD_DIM_MAX);
	return cache->kv.dtype == type
		       ? STATUS_OK
		       : error_set(err, STATUS_UNSUPPORTED,
				   "a GPU's KV cache is BF16, or E4M3 with scales, but this one is %s",
				   dtype_name(cache->kv.dtype));
}

enum status gpu_paged_rope(struct backend *back, const struct paged_rows *rows, const struct attention *at,
			   struct mat qkv, struct mat q_norm, struct mat k_norm, float eps,
			   struct mat cos_sin, const struct paged_layer *cache, struct error *err)
{
	const struct step_rope_args args = {
		.qkv = gpu_address(qkv.data),
		.position = gpu_address(rows->position),
		.slot = gpu_address(rows->slot),
		.cos_sin = gpu_address(cos_sin.data),
		.q_norm = q_norm.rows ? gpu_address(q_norm.data) : 0,
		.k_norm = k_norm.rows ? gpu_address(k_norm.data) : 0,
		.kv = gpu_address(cache->kv.data),
		.scale = cache->scale.rows ? gpu_address(cache->scale.data) : 0,
		.ld_qkv = qkv.ld,
		.ld_cos_sin = cos_sin.ld,
		.ld_kv = cache->kv.ld,
		.ld_scale = cache->scale.ld,
		.rows = (uint32_t)qkv.rows,
		.heads = (uint32_t)at->heads,
		.kv_heads = (uint32_t)at->kv_heads,
		.head_dim = (uint32_t)at->head_dim,
		.eps = eps,
		.lanes = step_head_lanes((unsigned)at->head_dim),
		.page_bits = log2_of(rows->page_tokens),
	};
	enum status st = check_rope(at, cache, err);

	cost_touch(back, &qkv, 2);
	return st ? st
		  : gpu_run_early(
			    back, GPU_KERNEL_STEP_ROPE,
			    step_rope_blocks((uint64_t)qkv.rows, args.heads, args.kv_heads, args.head_dim),
			    STEP_ROPE_THREADS, 0, &args, err);
}

enum status gpu_step_rmsnorm(struct backend *back, struct mat x, struct mat w, float eps, struct mat y,
			     struct mat rstd, struct error *err)
{
	const struct step_norm_args args = {
		.x = gpu_address(x.data),
		.w = gpu_address(w.data),
		.y = gpu_address(y.data),
		.rstd = rstd.rows ? gpu_address(rstd.data) : 0,
		.ld_x = x.ld,
		.ld_y = y.ld,
		.ld_rstd = rstd.ld,
		.rows = (uint32_t)x.rows,
		.cols = (uint32_t)x.cols,
		.eps = eps,
		.y_e4m3 = y.e4m3 ? gpu_address(y.e4m3->data) : 0,
		.scale = y.e4m3 ? gpu_address(y.e4m3->scales.data) : 0,
		.ld_e4m3 = y.e4m3 ? y.e4m3->ld : 0,
	};

	return gpu_run_early(back, GPU_KERNEL_STEP_RMSNORM, (unsigned)x.rows,
			     step_norm_threads((uint64_t)x.cols), STEP_NORM_SHARED, &args, err);
}

enum status gpu_step_swiglu(struct backend *back, struct mat gate_up, struct mat h, struct error *err)
{
	const struct step_swiglu_args args = {
		.gate_up = gpu_address(gate_up.data),
		.h = gpu_address(h.data),
		.ld_gate_up = gate_up.ld,
		.ld_h = h.ld,
		.rows = (uint32_t)h.rows,
		.ffn = (uint32_t)h.cols,
		.h_e4m3 = h.e4m3 ? gpu_address(h.e4m3->data) : 0,
		.scale = h.e4m3 ? gpu_address(h.e4m3->scales.data) : 0,
		.ld_e4m3 = h.e4m3 ? h.e4m3->ld : 0,
	};
	enum status st;

	if (h.e4m3 && h.cols <= STEP_FFN_MAX)
		return gpu_run_early(back, GPU_KERNEL_STEP_SWIGLU_E4M3, (unsigned)h.rows, STEP_FFN_THREADS,
				     STEP_NORM_SHARED, &args, err);
	if (h.e4m3 && h.cols <= STEP_FFN_WIDE_MAX)
		return gpu_run_early(back, GPU_KERNEL_STEP_SWIGLU_E4M3_WIDE, (unsigned)h.rows,
				     STEP_FFN_WIDE_THREADS, STEP_NORM_SHARED, &args, err);
	st = gpu_run_early(back, GPU_KERNEL_STEP_SWIGLU, step_blocks((uint64_t)h.rows, (uint64_t)h.cols),
			   STEP_THREADS, 0, &args, err);
	return st || !h.e4m3 ? st : few_rows_quantize(gpu_of(back), &h, h.e4m3, err);
}

enum status gpu_adapter_mask(struct backend *back, struct mat u, const int32_t *adapter, int64_t period,
			     int64_t rank, struct error *err)
{
	const struct step_mask_args args = {
		.adapter = gpu_address(adapter),
		.u = gpu_address(u.data),
		.ld_u = u.ld,
		.rows = (uint32_t)u.rows,
		.cols = (uint32_t)u.cols,
		.period = (uint32_t)period,
		.rank = (uint32_t)rank,
	};

	cost_touch(back, &u, 2);
	if (u.dtype != DTYPE_BF16 || rank % 8 || u.ld % 8 || (uintptr_t)u.data % 16)
		return error_set(err, STATUS_BUG,
				 "x A' of adapters is %s with rank %lld and rows at a distance of %lld",
				 dtype_name(u.dtype), (long long)rank, (long long)u.ld);
	return gpu_run_early(back, GPU_KERNEL_STEP_ADAPTER_MASK,
			     step_blocks((uint64_t)u.rows, (uint64_t)u.cols), STEP_THREADS, 0, &args, err);
}

enum status gpu_adapter_scale(struct backend *back, struct mat y, const int32_t *adapter, struct mat ratio,
			      struct mat bias, struct mat residual, struct error *err)
{
	const struct step_scale_args args = {
		.adapter = adapter ? gpu_address(adapter) : 0,
		.ratio = gpu_address(ratio.data),
		.bias = bias.rows ? gpu_address(bias.data) : 0,
		.residual = residual.rows ? gpu_address(residual.data) : 0,
		.y = gpu_address(y.data),
		.ld_ratio = ratio.ld,
		.ld_residual = residual.ld,
		.ld_y = y.ld,
		.rows = (uint32_t)y.rows,
		.cols = (uint32_t)y.cols,
	};

	cost_touch(back, &y, residual.rows ? 3 : 2);
	return gpu_run_early(back, GPU_KERNEL_STEP_ADAPTER_SCALE,
			     step_blocks((uint64_t)y.rows, (uint64_t)y.cols), STEP_THREADS, 0, &args, err);
}
