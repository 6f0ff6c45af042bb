/* SPDX-License-Identifier: Apache-2.0 */
/* Training in FP8 (kernel/train/fp8.h): quantized operands of cuBLASLt's GEMMs, and norms and SwiGLU that
 * quantize their results on the way. */
#include "kernel/train/fp8.h"
#include "kernel/train/rmsnorm_rope.h"
#include "model/gpu/fp8.h"
#include "model/gpu/gemm/gemm.h"

enum { BLOCK_SCALES_CC = 90, BLOCK_SCALES_CUBLASLT = 120900 };

enum status gpu_check_fp8(const struct gpu_state *g, struct error *err)
{
	const int cc = gpu_cc(g->device), version = matmul_version(g->products->library);

	if (!g->options.fp8)
		return STATUS_OK;
	if (cc != BLOCK_SCALES_CC)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"precision: fp8 needs GEMMs in FP8 with block scales, which cuBLASLt has only for sm_90 "
			"(Hopper); %s is sm_%d",
			gpu_name(g->device), cc);
	if (version < BLOCK_SCALES_CUBLASLT)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"precision: fp8 needs cuBLASLt 12.9 or newer, for block scales; %s is %d.%d",
			matmul_path(g->products->library), version / 10000, version / 100 % 100);
	return STATUS_OK;
}

static struct train_fp8_rows rows_of(const struct mat *q, int32_t *overflows)
{
	return (struct train_fp8_rows){
		.to = gpu_address(q->data),
		.scale = gpu_address(q->scales.data),
		.overflows = gpu_address(overflows),
		.ld = q->ld,
		.step = q->scales.step_col,
	};
}

static enum status quantize_rows(struct backend *back, const struct mat *x, const struct mat *q,
				 int32_t *overflows, struct error *err)
{
	const struct train_fp8_quantize_args args = {
		.x = gpu_address(x->data),
		.y = rows_of(q, overflows),
		.ld_x = x->ld,
		.rows = (uint32_t)x->rows,
		.cols = (uint32_t)x->cols,
	};

	return gpu_run(back, GPU_KERNEL_FP8_QUANTIZE, train_fp8_blocks((uint64_t)x->rows, (uint64_t)x->cols),
		       TRAIN_THREADS, 0, &args, err);
}

/* rows NULL: columns alone. */
static enum status quantize_columns(struct backend *back, const struct mat *x, const struct mat *columns,
				    const struct mat *rows, struct error *err)
{
	struct train_fp8_columns_args args = {
		.x = gpu_address(x->data),
		.y = rows_of(columns, columns->overflows),
		.ld_x = x->ld,
		.rows = (uint32_t)x->rows,
		.cols = (uint32_t)x->cols,
	};

	if (rows)
		args.q = rows_of(rows, rows->overflows);
	return gpu_run(back, GPU_KERNEL_FP8_COLUMNS, (unsigned)(fp8_tiles(x->cols) * fp8_tiles(x->rows)),
		       TRAIN_THREADS, TRAIN_FP8_SQUARE_SHARED, &args, err);
}

enum status gpu_quantize_both(struct backend *back, struct mat x, struct error *err)
{
	return quantize_columns(back, &x, x.e4m3_columns, x.e4m3, err);
}

/* Makes the rows of a GEMM's operand along k in E4M3, unless they are so. */
static enum status make_rows(struct backend *back, const struct mat *x, bool along_rows, int32_t *overflows,
			     struct mat *q, struct error *err)
{
	const struct mat *made = fp8_is_weight(x) ? x : workspace_fp8_copy(x, along_rows);
	enum status st;

	if (made) {
		*q = *made;
		return STATUS_OK;
	}
	st = workspace_fp8_rows(back, x, along_rows, q, err);
	q->overflows = overflows;
	if (st || x->dtype != DTYPE_BF16)
		return st ? st : error_set(err, STATUS_BUG, "an operand of a GEMM in FP8 that is not BF16");
	return along_rows ? quantize_columns(back, x, q, NULL, err)
			  : quantize_rows(back, x, q, overflows, err);
}

bool gpu_takes_fp8(const struct gemm *g)
{
	return g->fp8 || fp8_is_weight(&g->b);
}

static enum status add_bias(struct backend *back, const struct gemm *g, struct error *err)
{
	const struct train_fp8_bias_args args = {
		.y = gpu_address(g->d.data),
		.bias = gpu_address(g->bias.data),
		.ld_y = g->d.ld,
		.rows = (uint32_t)g->d.rows,
		.cols = (uint32_t)g->d.cols,
	};

	return gpu_run(back, GPU_KERNEL_FP8_ADD_BIAS,
		       train_fp8_blocks((uint64_t)g->d.rows, (uint64_t)g->d.cols), TRAIN_THREADS, 0, &args,
		       err);
}

/* If the library has no bias in this mode, a pass of its own adds it. */
static enum status multiply(struct backend *back, const struct gemm *g, double before, struct error *err)
{
	struct gpu_state *gpu = gpu_of(back);
	struct gemm alone = *g;
	struct error why = {0};
	enum status st;

	if (g->bias.rows && !gpu->no_fp8_bias) {
		st = gemm_plans_run(back, g, before, &why);
		if (st != STATUS_UNSUPPORTED)
			return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
		gpu->no_fp8_bias = true;
	}
	alone.bias = (struct mat){0};
	st = gemm_plans_run(back, &alone, before, err);
	return st || !g->bias.rows ? st : add_bias(back, g, err);
}

enum status gpu_gemm_fp8(struct backend *back, const struct gemm *g, double before, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct gemm q = *g;
	enum status st = make_rows(back, &g->a, g->trans_a, g->overflows, &q.a, err);

	if (!st)
		st = make_rows(back, &g->b, !g->trans_b, g->overflows, &q.b, err);
	q.trans_a = false;
	q.trans_b = true;
	q.fp8 = false;
	if (!st)
		st = multiply(back, &q, before, err);
	arena_reset(back->arena, &mark);
	return st;
}

struct train_fp8_weights gpu_fp8_weights(const struct mat *to, const struct mat *transposed)
{
	return (struct train_fp8_weights){
		.to = gpu_address(to->data),
		.transposed = transposed->rows ? gpu_address(transposed->data) : 0,
		.scale = gpu_address(to->scales.data),
		.scale_transposed = gpu_address(transposed->scales.data),
		.ld_to = to->ld,
		.ld_transposed = transposed->ld,
		.step = to->scales.step_row,
		.step_transposed = transposed->scales.step_row,
		.rows = (uint32_t)to->rows,
		.cols = (uint32_t)to->cols,
	};
}

enum status gpu_quantize_e4m3(struct backend *back, struct mat from, struct mat to, struct mat transposed,
			      int32_t *overflows, struct error *err)
{
	struct train_fp8_weights_args args = {
		.w = gpu_address(from.data), .ld_w = from.ld, .q = gpu_fp8_weights(&to, &transposed)};

	args.q.overflows = gpu_address(overflows);
	cost_quantize(back, &from, &transposed);
	if (from.dtype != DTYPE_BF16 || !fp8_is_weight(&to) ||
	    (transposed.rows && !fp8_is_weight(&transposed)))
		return error_set(err, STATUS_BUG, "weights of types that a GPU does not quantize");
	return gpu_run(back, GPU_KERNEL_FP8_WEIGHTS, (unsigned)(fp8_tiles(from.cols) * fp8_tiles(from.rows)),
		       TRAIN_THREADS, TRAIN_FP8_TURN_SHARED, &args, err);
}

enum status gpu_fp8_transpose_on(struct backend *back, const struct mat *from, const struct mat *to,
				 struct gpu_stream *stream, struct error *err)
{
	const struct train_fp8_transpose_args args = {
		.from = gpu_address(from->data),
		.to = gpu_address(to->data),
		.scale = gpu_address(from->scales.data),
		.scale_to = gpu_address(to->scales.data),
		.ld_from = from->ld,
		.ld_to = to->ld,
		.step = from->scales.step_row,
		.step_to = to->scales.step_row,
		.rows = (uint32_t)from->rows,
		.cols = (uint32_t)from->cols,
	};

	return gpu_launch_1d(gpu_of(back)->kernel[GPU_KERNEL_FP8_TRANSPOSE], stream,
			     (unsigned)(fp8_tiles(from->cols) * fp8_tiles(from->rows)), TRAIN_THREADS,
			     TRAIN_FP8_TURN_SHARED, &args, err);
}

enum status gpu_rmsnorm_fp8(struct backend *back, const struct mat *x, const struct mat *w, float eps,
			    const struct mat *y, const struct mat *rstd, struct error *err)
{
	const struct train_fp8_norm_args args = {
		.x = gpu_address(x->data),
		.w = gpu_address(w->data),
		.y = gpu_address(y->data),
		.rstd = gpu_address(rstd->data),
		.q = rows_of(y->e4m3, y->e4m3->overflows),
		.ld_x = x->ld,
		.ld_y = y->ld,
		.ld_rstd = rstd->ld,
		.rows = (uint32_t)x->rows,
		.cols = (uint32_t)x->cols,
		.eps = eps,
	};

	return gpu_run(back, GPU_KERNEL_FP8_RMSNORM, (unsigned)x->rows, train_row_threads((uint64_t)x->cols),
		       TRAIN_FP8_NORM_SHARED, &args, err);
}

enum status gpu_swiglu_fp8(struct backend *back, const struct mat *gate_up, const struct mat *h,
			   const struct mat *h_again, const struct mat *q, struct error *err)
{
	const bool backward = q == gate_up->e4m3, alone = !backward && h->e4m3_columns;
	const struct train_fp8_swiglu_args args = {
		.gate_up = gpu_address(gate_up->data),
		.h = alone ? 0 : gpu_address(h->data),
		.h_again = h_again ? gpu_address(h_again->data) : 0,
		.q = rows_of(q, q->overflows),
		.ld_gate_up = gate_up->ld,
		.ld_h = h->ld,
		.ld_h_again = h_again ? h_again->ld : 0,
		.rows = (uint32_t)h->rows,
		.ffn = (uint32_t)h->cols,
	};

	return gpu_run(back, backward ? GPU_KERNEL_FP8_SWIGLU_BWD : GPU_KERNEL_FP8_SWIGLU,
		       train_fp8_blocks((uint64_t)h->rows, (uint64_t)h->cols), TRAIN_THREADS, 0, &args, err);
}

enum status gpu_swiglu_bwd_columns(struct backend *back, const struct mat *dh, const struct mat *gate_up,
				   struct error *err)
{
	const struct mat *rows = gate_up->e4m3, *columns = gate_up->e4m3_columns, *again = dh->e4m3_columns;
	const struct train_fp8_swiglu_columns_args args = {
		.gate_up = gpu_address(gate_up->data),
		.dh = gpu_address(dh->data),
		.q = rows_of(rows, rows->overflows),
		.y = rows_of(columns, columns->overflows),
		.again = rows_of(again, again->overflows),
		.ld_gate_up = gate_up->ld,
		.ld_dh = dh->ld,
		.rows = (uint32_t)dh->rows,
		.ffn = (uint32_t)dh->cols,
	};

	return gpu_run(back, GPU_KERNEL_FP8_SWIGLU_BWD_COLUMNS,
		       (unsigned)(fp8_tiles(dh->cols) * fp8_tiles(dh->rows)), TRAIN_THREADS,
		       TRAIN_FP8_SWIGLU_SHARED, &args, err);
}
