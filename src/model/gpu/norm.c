/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and RoPE by assay's kernels (kernel/train/rmsnorm_rope.h). */
#include "kernel/train/rmsnorm_rope.h"
#include "model/gpu/fp8.h"

static enum status check_norm(int64_t cols, struct error *err)
{
	return cols <= TRAIN_ROW_COLS_MAX
		       ? STATUS_OK
		       : error_set(err, STATUS_UNSUPPORTED,
				   "a norm over %lld elements; the kernel supports up to %d", (long long)cols,
				   TRAIN_ROW_COLS_MAX);
}

enum status gpu_check_heads(int64_t head_dim, struct error *err)
{
	return head_dim % 8 == 0 && head_dim <= TRAIN_HEAD_DIM_MAX
		       ? STATUS_OK
		       : error_set(err, STATUS_UNSUPPORTED,
				   "a head size of %lld; the kernels support multiples of 8 up to %d",
				   (long long)head_dim, TRAIN_HEAD_DIM_MAX);
}

enum status gpu_backend_takes(const struct shape *s, struct error *err)
{
	enum status st = gpu_check_heads(s->head_dim, err);

	return st ? st : check_norm(s->hidden, err);
}

enum status gpu_rmsnorm(struct backend *back, struct mat x, struct mat w, float eps, struct mat y,
			struct mat rstd, struct error *err)
{
	const struct train_norm_args args = {
		.x = gpu_address(x.data),
		.w = gpu_address(w.data),
		.y = gpu_address(y.data),
		.rstd = gpu_address(rstd.data),
		.ld_x = x.ld,
		.ld_y = y.ld,
		.ld_rstd = rstd.ld,
		.rows = (uint32_t)x.rows,
		.cols = (uint32_t)x.cols,
		.eps = eps,
	};
	enum status st = check_norm(x.cols, err);

	cost_touch(back, &x, 2);
	if (!st && y.e4m3 && fp8_is_rows(y.e4m3))
		return gpu_rmsnorm_fp8(back, &x, &w, eps, &y, &rstd, err);
	if (!st && (y.e4m3 || (x.rows <= GPU_FEW_ROWS && x.dtype == DTYPE_BF16)))
		return gpu_step_rmsnorm(back, x, w, eps, y, rstd, err);
	return st ? st
		  : gpu_run(back, GPU_KERNEL_RMSNORM, (unsigned)x.rows, train_row_threads((uint64_t)x.cols),
			    0, &args, err);
}

enum status gpu_rmsnorm_bwd(struct backend *back, struct mat dy, struct mat x, struct mat w, struct mat rstd,
			    struct mat dx_add, struct mat dw, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct train_norm_bwd_args args = {
		.dy = gpu_address(dy.data),
		.x = gpu_address(x.data),
		.w = gpu_address(w.data),
		.rstd = gpu_address(rstd.data),
		.dx = gpu_address(dx_add.data),
		.ld_dy = dy.ld,
		.ld_x = x.ld,
		.ld_rstd = rstd.ld,
		.ld_dx = dx_add.ld,
		.rows = (uint32_t)x.rows,
		.cols = (uint32_t)x.cols,
	};
	struct mat sums = {.rows = x.rows};
	enum status st = check_norm(x.cols, err);

	cost_touch(back, &x, dw.rows ? 6 : 4);
	if (!st && dw.rows)
		st = workspace_sums(back, x.rows, x.cols, &sums, err);
	if (dw.rows)
		args.sums = gpu_address(sums.data);
	if (!st)
		st = gpu_run(back, GPU_KERNEL_RMSNORM_BWD, (unsigned)sums.rows,
			     train_row_threads((uint64_t)x.cols), 0, &args, err);
	if (!st && dw.rows)
		st = gpu_end_sums(back, &sums, dw, err);
	arena_reset(back->arena, &mark);
	return st;
}

static struct train_head_args head_args(struct mat x, int heads, struct mat w, const int32_t *position,
					struct mat cos_sin, struct mat raw, struct mat rstd)
{
	return (struct train_head_args){
		.x = gpu_address(x.data),
		.w = w.rows ? gpu_address(w.data) : 0,
		.position = gpu_address(position),
		.cos_sin = gpu_address(cos_sin.data),
		.raw = raw.rows ? gpu_address(raw.data) : 0,
		.rstd = rstd.rows ? gpu_address(rstd.data) : 0,
		.ld_x = x.ld,
		.ld_cos_sin = cos_sin.ld,
		.ld_raw = raw.ld,
		.ld_rstd = rstd.ld,
		.rows = (uint32_t)x.rows,
		.heads = (uint32_t)heads,
		.dim = (uint32_t)(x.cols / heads),
	};
}

enum status gpu_head_norm_rope(struct backend *back, struct mat x, int heads, struct mat w, float eps,
			       const int32_t *position, struct mat cos_sin, struct mat raw, struct mat rstd,
			       struct error *err)
{
	struct train_head_args args = head_args(x, heads, w, position, cos_sin, raw, rstd);

	enum status st = gpu_check_heads(x.cols / heads, err);

	args.eps = eps;
	cost_touch(back, &x, w.rows ? 3 : 2);
	return st ? st : gpu_over(back, GPU_KERNEL_HEAD_ROPE, x.rows, x.cols, &args, err);
}

enum status gpu_head_norm_rope_bwd(struct backend *back, struct mat dx, int heads, struct mat w,
				   const int32_t *position, struct mat cos_sin, struct mat raw,
				   struct mat rstd, struct mat dw, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct train_head_args args = head_args(dx, heads, w, position, cos_sin, raw, rstd);
	struct mat sums = {.rows = train_blocks((uint64_t)dx.rows, (uint64_t)dx.cols)};
	enum status st = STATUS_OK;

	cost_touch(back, &dx, w.rows ? 5 : 2);
	if (dw.rows)
		st = workspace_sums(back, sums.rows, dw.cols, &sums, err);
	if (dw.rows)
		args.sums = gpu_address(sums.data);
	if (!st)
		st = gpu_run(back, GPU_KERNEL_HEAD_ROPE_BWD, (unsigned)sums.rows, TRAIN_THREADS, 0, &args,
			     err);
	if (!st && dw.rows)
		st = gpu_end_sums(back, &sums, dw, err);
	arena_reset(back->arena, &mark);
	return st;
}
