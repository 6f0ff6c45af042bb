/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs with E4M3 weights, and GEMMs whose rows must not depend on their number, by assay's own kernels.
 * Activations are quantized for E4M3 weights, and cuBLASLt runs those GEMMs in which it is faster. Nothing is
 * timed here, because requests may be running (choose.c).
 */
#include "gpu/matmul/skinny_adapters.h"
#include "kernel/matmul/skinny.h"
#include "kernel/step/rows.h"
#include "model/gpu/gemm/gemm.h"
#include "model/tensor/matrix.h"

/* Rows up to which own kernels run unless timing chose something else. */
enum { OWN_ROWS = 64 };

enum status few_rows_open(struct gpu_state *g, struct error *err)
{
	struct error why = {0};
	enum status st;

	if (!g->options.few_rows)
		return STATUS_OK;
	st = skinny_open(&g->skinny, g->device, &why);
	if (!st && g->options.adapters != GPU_ADAPTERS_APART)
		st = skinny_adapters_open(g->skinny, g->stream, &why);
	if (!g->options.invariant && (st == STATUS_UNSUPPORTED || st == STATUS_UNAVAILABLE))
		return STATUS_OK; /* cuBLASLt does all of BF16's; those of E4M3 are refused */
	return st ? error_set_cause(err, st, why.cause, "%s", why.text) : STATUS_OK;
}

struct skinny_problem few_rows_problem(const struct gemm *m, const struct mat *h, int64_t row, int64_t rows)
{
	const struct mat a = mat_rows(&m->a, row, rows), d = mat_rows(h->rows ? h : &m->d, row, rows);
	const struct mat c = m->beta != 0 ? mat_rows(&m->c, row, rows) : (struct mat){0};

	return (struct skinny_problem){
		.w = gpu_address(m->b.data),
		.x = gpu_address(a.data),
		.y = gpu_address(d.data),
		.w_scale = m->b.dtype == DTYPE_E4M3 ? gpu_address(m->b.scales.data) : 0,
		.x_scale = a.dtype == DTYPE_E4M3 ? gpu_address(a.scales.data) : 0,
		.bias = m->bias.rows ? gpu_address(m->bias.data) : 0,
		.residual = c.rows ? gpu_address(c.data) : 0,
		.rows = (uint32_t)rows,
		.outputs = (uint32_t)d.cols,
		.k = (uint32_t)a.cols,
		.swiglu = h->rows > 0,
		.row_w = (uint64_t)m->b.ld,
		.row_x = (uint64_t)a.ld,
		.row_y = (uint64_t)d.ld,
		.row_residual = (uint64_t)c.ld,
	};
}

bool few_rows_can(const struct gpu_state *g, const struct gemm *m)
{
	return g->skinny && !m->trans_a && m->trans_b && m->alpha == 1 && (m->beta == 0 || m->beta == 1) &&
	       m->a.dtype == DTYPE_BF16 && m->d.dtype == DTYPE_BF16 && m->d.rows && m->b.rows <= UINT32_MAX &&
	       (!m->bias.rows || m->bias.dtype == DTYPE_BF16);
}

bool few_rows_take(const struct gpu_state *g, const struct gemm *m)
{
	const bool is_e4m3 = m->b.dtype == DTYPE_E4M3 && mat_has_row_scales(&m->b);

	return (is_e4m3 || (g->options.invariant && m->b.dtype == DTYPE_BF16)) && few_rows_can(g, m);
}

/* Launches of at most `most` rows each. Without a choice (NULL) it is a function of the shape. */
static enum status run_own(struct backend *back, const struct gemm *m, const struct mat *h, int64_t most,
			   const struct skinny_choice *own, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	enum status st = STATUS_OK;

	for (int64_t row = 0; !st && row < m->d.rows; row += most) {
		const struct skinny_problem p =
			few_rows_problem(m, h, row, m->d.rows - row < most ? m->d.rows - row : most);
		struct skinny_choice choice[SKINNY_CHOICES_MOST];

		st = skinny_check(&p, err);
		if (st)
			return st;
		if (own)
			choice[0] = *own;
		else if (g->options.invariant)
			choice[0] = skinny_invariant(g->skinny, &p);
		else if (!skinny_choices(g->skinny, &p, choice))
			return error_set(err, STATUS_UNSUPPORTED,
					 "no division of a GEMM of %u rows fits the device", p.rows);
		st = skinny_enqueue(g->skinny, &p, &choice[0], true, g->stream, err);
	}
	return st;
}

/* Whether step_quantize takes such rows. */
static bool is_quantized_at_once(const struct mat *from, const struct mat *to)
{
	return from->rows > 0 && from->cols <= STEP_QUANTIZE_MAX &&
	       !(from->cols % 8 || from->ld % 8 || to->ld % 8 || gpu_address(from->data) % 16 ||
		 gpu_address(to->data) % 8);
}

static enum status quantize_at_once(const struct gpu_state *g, const struct mat *from, const struct mat *to,
				    struct error *err)
{
	const unsigned grid[3] = {(unsigned)from->rows, 1, 1},
		       block[3] = {step_quantize_threads((uint64_t)from->cols), 1, 1};
	const struct step_quantize_args args = {
		.x = gpu_address(from->data),
		.y_e4m3 = gpu_address(to->data),
		.scale = gpu_address(to->scales.data),
		.ld_x = from->ld,
		.ld_e4m3 = to->ld,
		.rows = (uint32_t)from->rows,
		.cols = (uint32_t)from->cols,
	};

	return gpu_launch_early(g->kernel[GPU_KERNEL_STEP_QUANTIZE], g->stream, grid, block, STEP_NORM_SHARED,
				&args, err);
}

enum status few_rows_quantize(struct gpu_state *g, const struct mat *from, const struct mat *to,
			      struct error *err)
{
	const struct skinny_quantize q = {
		.from = gpu_address(from->data),
		.to = gpu_address(to->data),
		.scale = gpu_address(to->scales.data),
		.rows = (uint64_t)from->rows,
		.cols = (uint64_t)from->cols,
		.row_from = (uint64_t)from->ld,
		.row_to = (uint64_t)to->ld,
	};

	return is_quantized_at_once(from, to) ? quantize_at_once(g, from, to, err)
					      : skinny_quantize(g->skinny, &q, true, g->stream, err);
}

/* Without a choice by timing. On an H200 cuBLASLt is faster from 128 rows on, unless splitting a long k pays.
 */
static bool is_for_library(const struct gemm *m)
{
	return m->d.rows > SKINNY_ROWS_MOST || (m->d.rows > OWN_ROWS && m->a.cols <= 2 * m->d.cols);
}

/* OK without a result if cuBLASLt has no such GEMM, which no_e4m3_library says from then on. */
static enum status run_library(struct backend *back, const struct gemm *m, const struct mat *h,
			       struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct error why = {0};
	enum status st = gemm_plans_run(back, m, back->cost.flop, &why);

	if (!st)
		return h->rows ? back->ops->swiglu(back, m->d, *h, err) : STATUS_OK;
	if (st != STATUS_UNSUPPORTED)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	g->no_e4m3_library = true;
	return STATUS_OK;
}

static enum status run_quantized(struct backend *back, const struct gemm *m, const struct mat *h,
				 const struct gemm_way *way, struct error *err)
{
	const bool is_library = way ? way->engine == GEMM_LIBRARY : is_for_library(m);
	enum status st;

	if (is_library && !gpu_of(back)->no_e4m3_library) {
		st = run_library(back, m, h, err);
		if (st || !gpu_of(back)->no_e4m3_library)
			return st;
	}
	st = run_own(back, m, h, SKINNY_ROWS_MOST, way && !is_library ? &way->own : NULL, err);
	return st || !h->e4m3 ? st : few_rows_quantize(gpu_of(back), h, h->e4m3, err);
}

enum status few_rows_quantized(struct backend *back, const struct gemm *m, few_rows_quantized_run *run,
			       void *arg, struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct gemm quantized = *m;
	enum status st = STATUS_OK;

	if (m->b.dtype != DTYPE_E4M3)
		return run(back, m, arg, err);
	if (m->a.e4m3 && m->a.e4m3->cols == m->a.cols) {
		quantized.a = *m->a.e4m3;
		quantized.a.rows = m->a.rows;
		return run(back, &quantized, arg, err);
	}
	st = workspace_e4m3(back, m, &quantized.a, err);
	if (!st)
		st = few_rows_quantize(gpu_of(back), &m->a, &quantized.a, err);
	if (!st)
		st = run(back, &quantized, arg, err);
	arena_reset(back->arena, &mark);
	return st;
}

struct wanted {
	const struct mat *h;
	const struct gemm_way *way;
};

static enum status run_wanted(struct backend *back, const struct gemm *m, void *arg, struct error *err)
{
	const struct wanted *w = arg;

	return run_quantized(back, m, w->h, w->way, err);
}

enum status few_rows_run(struct backend *back, const struct gemm *m, const struct mat *h,
			 const struct gemm_way *way, struct error *err)
{
	struct wanted wanted = {.h = h, .way = way};

	/* Rows that must not depend on their number are never quantized: their kind is one for all numbers.
	 */
	if (m->b.dtype == DTYPE_BF16)
		return run_own(back, m, h, SKINNY_ROWS_MOST, way ? &way->own : NULL, err);
	if (gpu_of(back)->options.invariant)
		return run_own(back, m, h, SKINNY_MIXED_ROWS_MOST, NULL, err);
	return few_rows_quantized(back, m, run_wanted, &wanted, err);
}

/* Activations beside E4M3 weights as they are when the own kernels read them. */
static struct gemm quantized(const struct gemm *m)
{
	struct gemm q = *m;

	if (m->b.dtype != DTYPE_E4M3)
		return q;
	q.a.dtype = DTYPE_E4M3;
	q.a.ld = q.a.cols;
	q.a.scales = scales_of_rows(m->b.scales.data, m->a.cols); /* any address */
	return q;
}

unsigned few_rows_ways(const struct gpu_state *g, const struct gemm *m, const struct mat *h,
		       struct gemm_way out[FEW_ROWS_WAYS_MOST])
{
	const bool is_taken = few_rows_take(g, m);
	struct skinny_choice own[SKINNY_CHOICES_MOST];
	unsigned count = 0, choices = 0;
	struct error ignored = {0};

	if (g->options.invariant || (!is_taken && (!few_rows_can(g, m) || m->b.dtype != DTYPE_BF16)))
		return 0;
	if (m->d.rows <= SKINNY_ROWS_MOST) {
		const struct gemm q = quantized(m);
		const struct skinny_problem p = few_rows_problem(&q, h, 0, m->d.rows);

		if (is_taken || !skinny_check(&p, &ignored))
			choices = skinny_choices(g->skinny, &p, own);
	}
	for (unsigned i = 0; i < choices && i < FEW_ROWS_OWN_MOST; i++) {
		out[count] = (struct gemm_way){.engine = GEMM_OWN, .own = own[i]};
		out[count++].own.short_fetch = true; /* on an H200 mostly faster, by 1 to 2 % */
	}
	if (is_taken && !g->no_e4m3_library)
		out[count++] = (struct gemm_way){.engine = GEMM_LIBRARY};
	return count;
}

enum status gpu_gemm_swiglu(struct backend *back, const struct gemm *m, struct mat h, struct error *err)
{
	const bool is_fused = !m->bias.rows && m->beta == 0;
	enum status st;

	if (is_fused)
		return gemm_run(back, m, &h, err);
	st = gpu_gemm(back, m, err);
	return st ? st : back->ops->swiglu(back, m->d, h, err);
}
