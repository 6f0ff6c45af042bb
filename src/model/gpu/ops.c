/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the GPU's operations, which launch assay's kernels (kernel/train*.h say what each computes).
 * Costs are those of model/backend/plan_backend.c. */
#include "kernel/train/cross_entropy.h"
#include "kernel/train/rows.h"
#include "model/tensor/dtype.h"
#include "model/gpu/fp8.h"
#include "model/gpu/paged/lists.h"

static uint64_t bytes_of(const struct mat *m, int64_t elements)
{
	return dtype_bytes(m->dtype, (uint64_t)elements);
}

enum status gpu_over(struct backend *back, enum gpu_kernel_id kernel, int64_t rows, int64_t cols,
		     const void *args, struct error *err)
{
	return gpu_run(back, kernel, train_blocks((uint64_t)rows, (uint64_t)cols), TRAIN_THREADS, 0, args,
		       err);
}

enum status gpu_end_sums(struct backend *back, const struct mat *sums, struct mat to, struct error *err)
{
	const struct train_sums_args args = {
		.sums = gpu_address(sums->data),
		.out = gpu_address(to.data),
		.count = (uint64_t)sums->rows,
		.cols = (uint64_t)sums->cols,
		.bf16 = to.dtype == DTYPE_BF16,
	};

	return gpu_run(back, GPU_KERNEL_SUMS_ADD, (unsigned)((sums->cols + 31) / 32), TRAIN_THREADS, 0, &args,
		       err);
}

static enum status copy_bytes(struct backend *back, enum gpu_kernel_id kernel, struct mat from, struct mat to,
			      struct error *err)
{
	const bool packed = from.ld == from.cols && to.ld == to.cols;
	const int64_t rows = packed ? 1 : to.rows, cols = packed ? to.rows * to.cols : to.cols;
	const struct train_copy_args args = {
		.from = gpu_address(from.data),
		.to = gpu_address(to.data),
		.pitch_from = (int64_t)bytes_of(&from, packed ? cols : from.ld),
		.pitch_to = (int64_t)bytes_of(&to, packed ? cols : to.ld),
		.rows = (uint32_t)rows,
		.bytes = bytes_of(&to, cols),
	};

	return gpu_over(back, kernel, rows, (int64_t)args.bytes / 2, &args, err);
}

static enum status gpu_zero(struct backend *back, struct mat x, struct error *err)
{
	cost_touch(back, &x, 1);
	return x.rows ? copy_bytes(back, GPU_KERNEL_ZERO, x, x, err) : STATUS_OK;
}

static enum status gpu_random(struct backend *back, struct mat to, const struct random_fill *f,
			      struct error *err)
{
	const struct train_random_args args = {
		.to = gpu_address(to.data),
		.ld_to = to.ld,
		.seed = f->seed,
		.first = f->first,
		.cols = (uint64_t)to.cols,
		.rows = (uint32_t)to.rows,
		.stream = f->stream,
		.centre = f->centre,
		.width = f->width,
	};

	cost_touch(back, &to, 1);
	return gpu_over(back, to.dtype == DTYPE_F32 ? GPU_KERNEL_RANDOM_F32 : GPU_KERNEL_RANDOM_BF16, to.rows,
			to.cols, &args, err);
}

/* from: its first row has number `first`. */
static enum status gather(struct backend *back, enum gpu_kernel_id kernel, struct mat from, int64_t first,
			  struct mat to, const int32_t *row, int64_t rows, struct error *err)
{
	const struct train_gather_args args = {
		.from = gpu_address(from.data),
		.to = gpu_address(to.data),
		.row = gpu_address(row),
		.ld_from = from.ld,
		.ld_to = to.ld,
		.rows = (uint32_t)rows,
		.cols = (uint32_t)from.cols,
		.first = (int32_t)first,
		.count = (uint32_t)from.rows,
	};

	return gpu_over(back, kernel, rows, from.cols, &args, err);
}

static enum status gpu_embed(struct backend *back, const struct batch *b, struct mat table, struct mat x,
			     struct error *err)
{
	cost_touch(back, &x, 2);
	return gather(back, GPU_KERNEL_GATHER, table, 0, x, b->token, x.rows, err);
}

static enum status gpu_embed_part(struct backend *back, const struct batch *b, struct mat table,
				  int64_t first, struct mat x, struct error *err)
{
	cost_touch(back, &x, 2);
	return gather(back, GPU_KERNEL_GATHER, table, first, x, b->token, x.rows, err);
}

static enum status gpu_embed_part_bwd(struct backend *back, const struct batch *b, struct mat dx,
				      int64_t first, struct mat dtable, struct error *err)
{
	const struct train_embed_bwd_args args = {
		.dx = gpu_address(dx.data),
		.dtable = gpu_address(dtable.data),
		.token = gpu_address(b->token),
		.ld_dx = dx.ld,
		.ld_dtable = dtable.ld,
		.rows = (uint32_t)dx.rows,
		.cols = (uint32_t)dx.cols,
		.bf16 = dtable.dtype == DTYPE_BF16,
		.first = (int32_t)first,
		.count = (uint32_t)dtable.rows,
	};

	cost_touch(back, &dx, 3);
	return gpu_run(back, GPU_KERNEL_EMBED_BWD, (unsigned)dx.rows, TRAIN_THREADS, 0, &args, err);
}

static enum status gpu_embed_bwd(struct backend *back, const struct batch *b, struct mat dx,
				 struct mat dtable, struct error *err)
{
	return gpu_embed_part_bwd(back, b, dx, 0, dtable, err);
}

static enum status gpu_rows_copy(struct backend *back, struct mat from, struct mat to, const int32_t *row,
				 bool scatter_add, struct error *err)
{
	cost_touch(back, scatter_add ? &from : &to, scatter_add ? 3 : 2);
	return gather(back, scatter_add ? GPU_KERNEL_SCATTER_ADD : GPU_KERNEL_GATHER, from, 0, to, row,
		      scatter_add ? from.rows : to.rows, err);
}

static struct train_swiglu_args swiglu_args(struct mat gate_up, struct mat h)
{
	return (struct train_swiglu_args){
		.gate_up = gpu_address(gate_up.data),
		.h = gpu_address(h.data),
		.ld_gate_up = gate_up.ld,
		.ld_h = h.ld,
		.rows = (uint32_t)h.rows,
		.ffn = (uint32_t)h.cols,
	};
}

static enum status gpu_swiglu(struct backend *back, struct mat gate_up, struct mat h, struct error *err)
{
	const struct train_swiglu_args args = swiglu_args(gate_up, h);

	cost_touch(back, &h, 3);
	if (h.e4m3 && fp8_is_rows(h.e4m3))
		return gpu_swiglu_fp8(back, &gate_up, &h, NULL, h.e4m3, err);
	if (h.e4m3 || (h.rows <= GPU_FEW_ROWS && h.dtype == DTYPE_BF16))
		return gpu_step_swiglu(back, gate_up, h, err);
	return gpu_over(back, GPU_KERNEL_SWIGLU, h.rows, h.cols, &args, err);
}

static enum status gpu_swiglu_bwd(struct backend *back, struct mat dh, struct mat gate_up, bool again,
				  struct error *err)
{
	struct train_swiglu_args args = swiglu_args(gate_up, dh);

	if (again) {
		args.h_again = args.h;
		args.ld_h_again = args.ld_h;
	}
	cost_touch(back, &dh, again ? 6 : 5);
	if (again && gate_up.e4m3 && gate_up.e4m3_columns && dh.e4m3_columns)
		return gpu_swiglu_bwd_columns(back, &dh, &gate_up, err);
	if (gate_up.e4m3)
		return gpu_swiglu_fp8(back, &gate_up, &dh, again ? &dh : NULL, gate_up.e4m3, err);
	return gpu_over(back, GPU_KERNEL_SWIGLU_BWD, dh.rows, dh.cols, &args, err);
}

static enum status gpu_cross_entropy(struct backend *back, struct mat logits, const int32_t *target,
				     const int32_t *row, float grad_scale, struct mat loss, struct error *err)
{
	const unsigned shared = train_loss_shared(
		(uint64_t)logits.cols, (unsigned)dtype_bytes(logits.dtype, 1), gpu_of(back)->shared_most);
	const struct train_loss_args args = {
		.logits = gpu_address(logits.data),
		.target = gpu_address(target),
		.row = gpu_address(row),
		.loss = gpu_address(loss.data),
		.ld = logits.ld,
		.ld_loss = loss.ld,
		.rows = (uint32_t)logits.rows,
		.vocab = (uint32_t)logits.cols,
		.grad_scale = grad_scale,
		.shared_bytes = shared,
	};

	const unsigned sms = gpu_sm_count(gpu_of(back)->device);

	cost_touch(back, &logits, grad_scale != 0 ? 2 : 1);
	return gpu_run(back, GPU_KERNEL_CROSS_ENTROPY, args.rows < sms ? args.rows : sms, TRAIN_LOSS_THREADS,
		       shared, &args, err);
}

static struct train_loss_part_args loss_args(struct mat logits, const int32_t *target, const int32_t *row,
					     int64_t first, struct mat part)
{
	return (struct train_loss_part_args){
		.logits = gpu_address(logits.data),
		.target = gpu_address(target),
		.row = gpu_address(row),
		.part = gpu_address(part.data),
		.ld = logits.ld,
		.ld_part = part.ld,
		.rows = (uint32_t)logits.rows,
		.vocab = (uint32_t)logits.cols,
		.ranks = (uint32_t)(part.rows / logits.rows),
		.first = (int32_t)first,
	};
}

static enum status run_loss(struct backend *back, enum gpu_kernel_id kernel,
			    const struct train_loss_part_args *args, struct error *err)
{
	const unsigned sms = gpu_sm_count(gpu_of(back)->device);

	return gpu_run(back, kernel, args->rows < sms ? args->rows : sms, TRAIN_LOSS_THREADS, 0, args, err);
}

static enum status gpu_loss_part(struct backend *back, struct mat logits, const int32_t *target,
				 const int32_t *row, int64_t first, struct mat part, struct error *err)
{
	const struct train_loss_part_args args = loss_args(logits, target, row, first, part);

	cost_touch(back, &logits, 1);
	return run_loss(back, GPU_KERNEL_LOSS_PART, &args, err);
}

static enum status gpu_loss_join(struct backend *back, struct mat logits, const int32_t *target,
				 const int32_t *row, int64_t first, struct mat parts, float grad_scale,
				 struct mat loss, struct error *err)
{
	struct train_loss_part_args args = loss_args(logits, target, row, first, parts);

	args.loss = gpu_address(loss.data);
	args.ld_loss = loss.ld;
	args.grad_scale = grad_scale;
	cost_touch(back, &logits, grad_scale != 0 ? 2 : 0);
	return run_loss(back, GPU_KERNEL_LOSS_JOIN, &args, err);
}

static enum status gpu_dropout(struct backend *back, struct mat x, const struct dropout *d, struct mat y,
			       bool add, struct error *err)
{
	const struct train_dropout_args args = {
		.x = gpu_address(x.data),
		.y = gpu_address(y.data),
		.ld_x = x.ld,
		.ld_y = y.ld,
		.seed = d->seed,
		.row_begin = d->row_begin,
		.rows = (uint32_t)x.rows,
		.cols = (uint32_t)x.cols,
		.site = d->site,
		.least = (uint32_t)((double)d->p * 4294967296.0),
		.scale = 1 / (1 - d->p),
		.add = add,
		.col_begin = (uint32_t)d->col_begin,
	};

	cost_touch(back, &x, add ? 3 : 2);
	return gpu_over(back, GPU_KERNEL_DROPOUT, x.rows, x.cols, &args, err);
}

enum status gpu_backend_convert(struct backend *back, struct mat from, struct mat to,
				struct gpu_stream *stream, struct error *err)
{
	const struct train_convert_args args = {
		.from = gpu_address(from.data),
		.to = gpu_address(to.data),
		.ld_from = from.cols,
		.ld_to = to.cols,
		.rows = 1,
		.cols = (uint64_t)from.cols,
	};
	const enum gpu_kernel_id kernel = to.dtype == DTYPE_BF16 ? GPU_KERNEL_TO_BF16 : GPU_KERNEL_TO_F32;

	return gpu_launch_1d(gpu_of(back)->kernel[kernel], stream, train_blocks(1, args.cols), TRAIN_THREADS,
			     0, &args, err);
}

static enum status gpu_convert(struct backend *back, struct mat from, struct mat to, struct error *err)
{
	const bool packed = from.ld == from.cols && to.ld == to.cols;
	const int64_t rows = packed ? 1 : to.rows, cols = packed ? to.rows * to.cols : to.cols;
	const struct train_convert_args args = {
		.from = gpu_address(from.data),
		.to = gpu_address(to.data),
		.ld_from = packed ? cols : from.ld,
		.ld_to = packed ? cols : to.ld,
		.rows = (uint32_t)rows,
		.cols = (uint64_t)cols,
	};

	cost_touch(back, &from, 1);
	cost_touch(back, &to, 1);
	if (from.dtype == to.dtype)
		return copy_bytes(back, GPU_KERNEL_COPY, from, to, err);
	if ((from.dtype != DTYPE_F32 || to.dtype != DTYPE_BF16) &&
	    (from.dtype != DTYPE_BF16 || to.dtype != DTYPE_F32))
		return error_set(err, STATUS_UNSUPPORTED, "a GPU converts only F32 and BF16");
	return gpu_over(back, to.dtype == DTYPE_BF16 ? GPU_KERNEL_TO_BF16 : GPU_KERNEL_TO_F32, rows, cols,
			&args, err);
}

static enum status gpu_column_sum(struct backend *back, struct mat x, struct mat sum_add, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct train_columns_args args = {
		.x = gpu_address(x.data), .ld_x = x.ld, .rows = (uint32_t)x.rows, .cols = (uint32_t)x.cols};
	struct mat sums;
	enum status st = workspace_sums(back, train_column_parts((uint64_t)x.rows), x.cols, &sums, err);
	unsigned grid[3] = {(unsigned)((x.cols + TRAIN_THREADS - 1) / TRAIN_THREADS), 1, 1};

	cost_touch(back, &x, 1);
	if (!st) {
		args.sums = gpu_address(sums.data);
		grid[1] = (unsigned)sums.rows;
		st = gpu_run_3d(back, GPU_KERNEL_COLUMN_SUMS, grid, TRAIN_THREADS, 0, &args, err);
	}
	if (!st)
		st = gpu_end_sums(back, &sums, sum_add, err);
	arena_reset(back->arena, &mark);
	return st;
}

const struct ops gpu_ops = {
	.name = "gpu",
	.put = gpu_backend_put,
	.get = gpu_backend_get,
	.batch = gpu_batch,
	.span = gpu_layer_graph,
	.random = gpu_random,
	.zero = gpu_zero,
	.gemm = gpu_gemm,
	.quantize_e4m3 = gpu_quantize_e4m3,
	.quantize_both = gpu_quantize_both,
	.embed = gpu_embed,
	.embed_bwd = gpu_embed_bwd,
	.embed_part = gpu_embed_part,
	.embed_part_bwd = gpu_embed_part_bwd,
	.loss_part = gpu_loss_part,
	.loss_join = gpu_loss_join,
	.rmsnorm = gpu_rmsnorm,
	.rmsnorm_bwd = gpu_rmsnorm_bwd,
	.head_norm_rope = gpu_head_norm_rope,
	.head_norm_rope_bwd = gpu_head_norm_rope_bwd,
	.attention = gpu_attention_forward,
	.attention_bwd = gpu_attention_bwd,
	.paged_put = gpu_paged_put,
	.paged_attention = gpu_paged_attention,
	.gemm_swiglu = gpu_gemm_swiglu,
	.paged_embed = gpu_paged_embed,
	.paged_rope = gpu_paged_rope,
	.adapter_mask = gpu_adapter_mask,
	.gemm_adapted = gpu_gemm_adapted,
	.adapter_scale = gpu_adapter_scale,
	.sample = gpu_sample,
	.sample_count = gpu_sample_count,
	.fetch_begin = gpu_fetch_begin,
	.fetch_wait = gpu_fetch_wait,
	.replay = gpu_replay,
	.swiglu = gpu_swiglu,
	.swiglu_bwd = gpu_swiglu_bwd,
	.cross_entropy = gpu_cross_entropy,
	.rows_copy = gpu_rows_copy,
	.dropout = gpu_dropout,
	.convert = gpu_convert,
	.refresh = gpu_refresh,
	.quantize = gpu_quantize,
	.slot_fill = gpu_slot_fill,
	.slot_ready = gpu_slot_ready,
	.slot_free = gpu_slot_free,
	.lane_copy = gpu_lane_copy,
	.lane_event = gpu_lane_event,
	.lane_run = gpu_lane_run,
	.lane_join = gpu_lane_join,
	.lane_wait = gpu_lane_wait,
	.column_sum = gpu_column_sum,
	.reduce = gpu_reduce,
	.adamw = gpu_adamw,
};
