/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder/linear.h"
#include "model/backend/cost.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"

bool linear_is_trained(const struct linear *l)
{
	return l->adapters > 0 || l->w.grad.rows > 0 || l->bias.grad.rows > 0;
}

const struct stored *linear_stored(const struct linear *l, int64_t begin)
{
	for (int i = 0; i < l->stored_count; i++)
		if (l->stored[i].begin == begin)
			return &l->stored[i];
	return NULL;
}

int64_t linear_tail(const struct linear *l)
{
	return l->block.rows ? l->adapters * l->rank : 0;
}

/* m including its tail. */
static struct mat with_tail(const struct linear *l, const struct mat *m)
{
	struct mat wide = *m;

	wide.cols += linear_tail(l);
	return wide;
}

static bool is_rounded(const struct linear_run *run)
{
	return run->back->dtype == DTYPE_BF16;
}

/* d = alpha op(a) op(b) + beta d */
static enum status product(struct backend *back, struct mat a, bool trans_a, struct mat b, bool trans_b,
			   float alpha, float beta, struct mat d, struct error *err)
{
	const struct gemm g = {.a = a,
			       .b = b,
			       .c = d,
			       .d = d,
			       .trans_a = trans_a,
			       .trans_b = trans_b,
			       .alpha = alpha,
			       .beta = beta};

	return back->ops->gemm(back, &g, err);
}

static struct mat of_adapter(const struct linear *l, const struct mat *stacked, int i)
{
	return mat_rows(stacked, i * l->rank, l->rank);
}

static struct dropout mask_of(const struct linear_run *run, const struct linear *l, int i)
{
	return (struct dropout){
		.seed = run->dropout_seed,
		.row_begin = run->row_begin,
		.col_begin = l->in_begin,
		.site = l->site * PEFT_TARGET_COUNT + l->adapter[i].target,
		.p = run->dropout_p,
	};
}

/* Allocates a masked input, or a gradient before its mask, for one adapter at a time. */
static enum status place_masked(const struct linear_run *run, const struct mat *x, struct mat *masked,
				struct error *err)
{
	*masked = (struct mat){.rows = x->rows, .cols = x->cols, .dtype = run->back->dtype};
	return arena_mat(run->back->arena, MEM_SCRATCH, masked, "input after dropout", err);
}

/* u = x A' in one GEMM, or per adapter if each has its own dropout mask. */
static enum status down(const struct linear_run *run, const struct linear *l, struct mat x, struct mat u,
			struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	struct mat masked;
	enum status st;

	if (run->has_u)
		return STATUS_OK;
	if (run->dropout_p == 0) {
		st = product(run->back, x, false, l->a.w, true, linear_tail(l) ? l->lora_scale : 1, 0, u,
			     err);
		return st || !l->owner_rank ? st
					    : run->back->ops->adapter_mask(run->back, u, run->owner, l->rank,
									   l->owner_rank, err);
	}
	st = place_masked(run, &x, &masked, err);
	for (int i = 0; !st && i < l->adapters; i++) {
		const struct dropout mask = mask_of(run, l, i);

		st = run->back->ops->dropout(run->back, x, &mask, masked, false, err);
		if (!st)
			st = product(run->back, masked, false, of_adapter(l, &l->a.w, i), true, 1, 0,
				     mat_cols(&u, i * l->rank, l->rank), err);
	}
	arena_reset(run->back->arena, &mark);
	return st;
}

static enum status forward_extended(const struct linear_run *run, const struct linear *l, struct mat x,
				    struct mat y, struct mat residual, struct mat u, struct error *err)
{
	const struct gemm both = {
		.a = with_tail(l, &x),
		.b = mat_rows(&l->block, 0, l->out),
		.c = residual,
		.d = y,
		.bias = l->bias.w,
		.trans_b = true,
		.alpha = 1,
		.beta = residual.rows ? 1 : 0,
	};
	const struct mat tail = mat_cols(&both.a, l->in, linear_tail(l));
	enum status st = down(run, l, x, tail, err);

	if (!st)
		st = run->back->ops->gemm(run->back, &both, err);
	return st || run->has_u || !u.rows || u.ld == tail.ld
		       ? st
		       : run->back->ops->convert(run->back, tail, u, err);
}

/* d = or += s u B' for each adapter. Columns of y without an adapter become 0 unless the result is added. */
static enum status up(const struct linear_run *run, const struct linear *l, struct mat u, bool add,
		      struct mat d, struct error *err)
{
	enum status st = STATUS_OK;
	int64_t at = 0;

	for (int i = 0; !st && i < l->adapters; i++) {
		const struct adapter *a = &l->adapter[i];

		if (!add && a->out_begin > at)
			st = run->back->ops->zero(run->back, mat_cols(&d, at, a->out_begin - at), err);
		if (!st)
			st = product(run->back, mat_cols(&u, i * l->rank, l->rank), false, a->b.w, true,
				     l->lora_scale, add ? 1 : 0, mat_cols(&d, a->out_begin, a->out), err);
		at = a->out_begin + a->out;
	}
	if (!st && !add && at < l->out)
		st = run->back->ops->zero(run->back, mat_cols(&d, at, l->out - at), err);
	return st;
}

/* Where the scales of inputs that are not finite are counted, or of gradients. */
static int32_t *count_at(const struct linear *l, bool gradients)
{
	return l->overflows ? l->overflows + gradients : NULL;
}

/* Columns of a GEMM's result: rows of b, and the columns of everything that is added. */
static struct gemm columns_of(const struct gemm *g, int64_t begin, int64_t count)
{
	struct gemm part = *g;

	part.b = mat_rows(&g->b, begin, count);
	part.d = mat_cols(&g->d, begin, count);
	if (g->c.rows)
		part.c = mat_cols(&g->c, begin, count);
	if (g->bias.rows)
		part.bias = mat_cols(&g->bias, begin, count);
	return part;
}

/* In FP8, but the first columns from numbers. A tile of scales may have columns of both. Then FP8 computes
 * all columns, of which the first are replaced. */
static enum status base_fp8(const struct linear_run *run, const struct linear *l, const struct gemm *fp8,
			    struct error *err)
{
	const int64_t count = l->exact.rows, first = count % FP8_TILE ? 0 : count;
	const struct gemm rest = columns_of(fp8, first, l->out - first);
	struct gemm numbers = columns_of(fp8, 0, count);
	enum status st = run->back->ops->gemm(run->back, &rest, err);

	numbers.b = l->exact;
	numbers.overflows = NULL;
	return st ? st : run->back->ops->gemm(run->back, &numbers, err);
}

/* Whether W's GEMM adds the adapters' part to its product. */
static bool adds_part(const struct linear_run *run, const struct linear *l)
{
	return l->adapters > 0 && !run->base && is_rounded(run);
}

static enum status base(const struct linear_run *run, const struct linear *l, struct mat x, struct mat c,
			struct mat bias, struct mat y, struct error *err)
{
	const struct gemm g = {
		.a = x,
		.b = l->is_fp8 ? l->fp8 : l->w.w,
		.overflows = count_at(l, false),
		.c = c,
		.d = y,
		.bias = bias,
		.trans_b = true,
		.alpha = 1,
		.beta = c.rows ? 1 : 0,
		.whole_sums = adds_part(run, l),
	};

	return l->is_fp8 && l->exact.rows ? base_fp8(run, l, &g, err)
					  : run->back->ops->gemm(run->back, &g, err);
}

/* A matrix for the adapters' part of d. It has d's row pitch, as a GEMM requires of its c. */
static enum status place_part(const struct linear_run *run, struct mat d, struct mat *part, struct error *err)
{
	enum status st;

	*part = (struct mat){.rows = d.rows, .cols = d.ld, .dtype = d.dtype};
	st = arena_mat(run->back->arena, MEM_SCRATCH, part, "part of a result that adapters add", err);
	part->cols = d.cols;
	return st;
}

/*
 * With results rounded to BF16, the adapter's part is often less than half of the last place of y
 * (docs/explanation/design/training.md, "Rounding"). Adding it to a rounded y would lose most of the part. So
 * it is computed first, and the layer's own GEMM adds it to its product, which preserves it on average. It
 * has a matrix of its own, because cuBLASLt may round the product first if the addend is in the place of the
 * result. The residual is added last.
 */
static enum status forward_rounded(const struct linear_run *run, const struct linear *l, struct mat x,
				   struct mat y, struct mat residual, struct mat u, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	const struct dropout none = {0};
	struct mat part;
	enum status st = down(run, l, x, u, err);

	if (!st)
		st = place_part(run, y, &part, err);
	if (!st)
		st = up(run, l, u, false, part, err);
	if (!st)
		st = base(run, l, x, part, l->bias.w, y, err);
	if (!st && residual.rows)
		st = run->back->ops->dropout(run->back, residual, &none, y, true, err);
	arena_reset(run->back->arena, &mark);
	return st;
}

/* The ratio applies to what W and the adapter give together; bias and residual come after it. */
static enum status forward_dora(const struct linear_run *run, const struct linear *l, struct mat x,
				struct mat y, struct mat residual, struct mat u, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	const struct mat none = {0};
	struct mat part = y;
	enum status st = down(run, l, x, u, err);

	if (!st && (is_rounded(run) || l->is_fp8)) /* base_fp8 computes some columns twice */
		st = place_part(run, y, &part, err);
	if (!st)
		st = up(run, l, u, false, part, err);
	if (!st)
		st = base(run, l, x, part, none, y, err);
	arena_reset(run->back->arena, &mark);
	return st ? st
		  : run->back->ops->adapter_scale(run->back, y, l->owner_rank ? run->owner : NULL, l->ratio,
						  l->bias.w, residual, err);
}

static enum status apart(struct backend *back, const struct adapted_gemm *g, struct error *err)
{
	const struct linear_run run = {.back = back, .owner = g->adapter};
	enum status st = forward_rounded(&run, g->layer, g->base.a, g->base.d, g->base.c, g->u, err);

	return st || !g->h.rows ? st : back->ops->swiglu(back, g->base.d, g->h, err);
}

/* Several adapters whose Bs are one matrix. */
static bool is_adapted(const struct linear_run *run, const struct linear *l)
{
	const void *end = NULL;

	if (!run->back->ops->gemm_adapted || !l->owner_rank || l->ratio.rows || linear_tail(l) ||
	    !is_rounded(run) || run->has_u || run->dropout_p > 0 || l->lora_scale != 1)
		return false;
	for (int i = 0; i < l->adapters; i++) {
		const struct mat *b = &l->adapter[i].b.w;

		if (b->ld != l->rank || (i && b->data != end))
			return false;
		end = mat_rows(b, b->rows, 0).data;
	}
	return l->adapters > 0;
}

/* residual.rows, h.rows 0: none. */
static enum status forward_adapted(const struct linear_run *run, const struct linear *l, struct mat x,
				   struct mat y, struct mat residual, struct mat h, struct mat u,
				   struct error *err)
{
	struct adapted_gemm g = {
		.base = {.a = x,
			 .b = l->w.w,
			 .c = residual,
			 .d = y,
			 .bias = l->bias.w,
			 .trans_b = true,
			 .alpha = 1,
			 .beta = residual.rows ? 1 : 0},
		.h = h,
		.a = l->a.w,
		.b = l->adapter[0].b.w,
		.u = u,
		.adapter = run->owner,
		.width = l->rank,
		.rank = l->owner_rank,
		.parts = l->adapters,
		.apart = apart,
		.layer = l,
	};

	g.b.rows = 0;
	for (int i = 0; i < l->adapters; i++) {
		g.part[i].begin = l->adapter[i].out_begin;
		g.part[i].count = l->adapter[i].out;
		g.b.rows += l->adapter[i].out;
	}
	return run->back->ops->gemm_adapted(run->back, &g, err);
}

enum status linear_forward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat y,
			   struct mat residual, struct mat u, struct error *err)
{
	const struct mat none = {0};
	enum status st;

	if (l->adapters && run->base)
		return base(run, l, x, residual, l->bias.w, y, err);
	if (l->ratio.rows)
		return forward_dora(run, l, x, y, residual, u, err);
	if (linear_tail(l))
		return forward_extended(run, l, x, y, residual, u, err);
	if (is_adapted(run, l))
		return forward_adapted(run, l, x, y, residual, none, u, err);
	if (l->adapters && is_rounded(run))
		return forward_rounded(run, l, x, y, residual, u, err);
	st = base(run, l, x, residual, l->bias.w, y, err);
	if (!st && l->adapters)
		st = down(run, l, x, u, err);
	return st || !l->adapters ? st : up(run, l, u, true, y, err);
}

enum status linear_forward_columns(const struct linear_run *run, const struct linear *l, struct mat x,
				   struct mat y, struct mat u, int64_t first, struct error *err)
{
	struct linear_run part_run = *run;
	struct linear part = *l;

	part_run.has_u = first > 0;
	part.out = y.cols;
	part.w.w = mat_rows(&l->w.w, first, y.cols);
	if (l->bias.w.rows)
		part.bias.w = mat_cols(&l->bias.w, first, y.cols);
	if (l->block.rows)
		part.block = mat_rows(&l->block, first, y.cols + linear_tail(l));
	for (int i = 0; i < l->adapters; i++) {
		part.adapter[i].out = y.cols;
		part.adapter[i].b.w = mat_rows(&l->adapter[i].b.w, first, y.cols);
	}
	return linear_forward(&part_run, &part, x, y, (struct mat){0}, u, err);
}

enum status linear_forward_swiglu(const struct linear_run *run, const struct linear *l, struct mat x,
				  struct mat y, struct mat h, struct mat u, struct error *err)
{
	const struct gemm g = {
		.a = x,
		.b = l->is_fp8 ? l->fp8 : l->w.w,
		.overflows = count_at(l, false),
		.d = y,
		.bias = l->bias.w,
		.trans_b = true,
		.alpha = 1,
	};
	enum status st;

	if (!l->adapters || run->base)
		return run->back->ops->gemm_swiglu(run->back, &g, h, err);
	if (is_adapted(run, l))
		return forward_adapted(run, l, x, y, (struct mat){0}, h, u, err);
	st = linear_forward(run, l, x, y, (struct mat){0}, u, err);
	return st ? st : run->back->ops->swiglu(run->back, y, h, err);
}

/* v = s dy B for each adapter. */
static enum status up_bwd(const struct linear_run *run, const struct linear *l, struct mat dy, struct mat v,
			  struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < l->adapters; i++)
		st = product(run->back, mat_cols(&dy, l->adapter[i].out_begin, l->adapter[i].out), false,
			     l->adapter[i].b.w, false, l->lora_scale, 0, mat_cols(&v, i * l->rank, l->rank),
			     err);
	return st;
}

/* dB += s dy' u. In fused form u already contains s. */
static enum status up_trained(const struct linear_run *run, const struct linear *l, struct mat u,
			      struct mat dy, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < l->adapters; i++)
		st = product(run->back, mat_cols(&dy, l->adapter[i].out_begin, l->adapter[i].out), true,
			     mat_cols(&u, i * l->rank, l->rank), false, linear_tail(l) ? 1 : l->lora_scale, 1,
			     l->adapter[i].b.grad, err);
	return st;
}

/* dA += v' drop(x); dx = or += drop'(v A) */
static enum status down_bwd(const struct linear_run *run, const struct linear *l, struct mat x, struct mat v,
			    struct mat dx, bool add, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	struct backend *back = run->back;
	struct mat masked;
	enum status st;

	if (run->dropout_p == 0) {
		st = product(back, v, true, x, false, 1, 1, l->a.grad, err);
		return st || !dx.rows ? st : product(back, v, false, l->a.w, false, 1, add ? 1 : 0, dx, err);
	}
	st = place_masked(run, &x, &masked, err);
	for (int i = 0; !st && i < l->adapters; i++) {
		const struct dropout mask = mask_of(run, l, i);
		struct mat vi = mat_cols(&v, i * l->rank, l->rank);

		st = back->ops->dropout(back, x, &mask, masked, false, err);
		if (!st)
			st = product(back, vi, true, masked, false, 1, 1, of_adapter(l, &l->a.grad, i), err);
		if (st || !dx.rows)
			continue;
		st = product(back, vi, false, of_adapter(l, &l->a.w, i), false, 1, 0, masked, err);
		if (!st)
			st = back->ops->dropout(back, masked, &mask, dx, add || i > 0, err);
	}
	arena_reset(back->arena, &mark);
	return st;
}

static enum status adapters_bwd(const struct linear_run *run, const struct linear *l, struct mat x,
				struct mat u, struct mat dy, struct mat dx, bool add, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	struct mat v = {.rows = x.rows, .cols = l->adapters * l->rank, .dtype = run->back->dtype};
	enum status st = arena_mat(run->back->arena, MEM_SCRATCH, &v, "gradient of x A'", err);

	if (!st)
		st = up_bwd(run, l, dy, v, err);
	if (!st)
		st = up_trained(run, l, u, dy, err);
	if (!st)
		st = down_bwd(run, l, x, v, dx, add, err);
	arena_reset(run->back->arena, &mark);
	return st;
}

/* dx = dy W, and the adapters' part if there is one. In FP8 W is read transposed, because rows of both
 * operands run along k there. */
static enum status base_bwd(const struct linear_run *run, const struct linear *l, struct mat dy,
			    struct mat part, struct mat dx, struct error *err)
{
	const struct gemm g = {
		.a = dy,
		.b = l->is_fp8 ? l->fp8_transposed : l->w.w,
		.c = part,
		.d = dx,
		.trans_b = l->is_fp8,
		.alpha = 1,
		.beta = part.rows ? 1 : 0,
		.overflows = count_at(l, true),
		.whole_sums = part.rows > 0,
	};

	return run->back->ops->gemm(run->back, &g, err);
}

/* dW += dy' x */
static enum status base_trained(const struct linear_run *run, const struct linear *l, struct mat x,
				struct mat dy, struct error *err)
{
	const struct gemm g = {
		.a = dy,
		.b = x,
		.c = l->w.grad,
		.d = l->w.grad,
		.trans_a = true,
		.alpha = 1,
		.beta = 1,
		.fp8 = l->is_fp8,
		.overflows = count_at(l, true),
	};

	return run->back->ops->gemm(run->back, &g, err);
}

enum status linear_quantize_gradient(const struct linear_run *run, const struct linear *l, struct mat *dy,
				     struct gradient_copies *copies, struct error *err)
{
	struct backend *back = run->back;
	enum status st;

	if (back->kind != BACKEND_GPU || !l->is_fp8 || !l->w.grad.rows || dy->e4m3)
		return STATUS_OK;
	st = workspace_fp8_rows(back, dy, false, &copies->rows, err);
	if (!st)
		st = workspace_fp8_rows(back, dy, true, &copies->columns, err);
	copies->rows.overflows = copies->columns.overflows = count_at(l, true);
	dy->e4m3 = &copies->rows;
	dy->e4m3_columns = &copies->columns;
	return st ? st : back->ops->quantize_both(back, *dy, err);
}

bool linear_has_halves(const struct linear_run *run, const struct linear *l)
{
	return linear_tail(l) || !l->adapters || (is_rounded(run) && run->dropout_p == 0);
}

/* Separate adapters without dropout: v is computed in each half, because it has no place in between. */
static enum status adapters_half(const struct linear_run *run, const struct linear *l, const struct mat *x,
				 struct mat u, struct mat dy, struct mat dx, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	struct mat v = {.rows = dy.rows, .cols = l->adapters * l->rank, .dtype = run->back->dtype};
	enum status st = arena_mat(run->back->arena, MEM_SCRATCH, &v, "gradient of x A'", err);

	if (!st)
		st = up_bwd(run, l, dy, v, err);
	if (!st && x)
		st = up_trained(run, l, u, dy, err);
	if (!st && x)
		st = product(run->back, v, true, *x, false, 1, 1, l->a.grad, err);
	if (!st && dx.rows)
		st = product(run->back, v, false, l->a.w, false, 1, 0, dx, err);
	arena_reset(run->back->arena, &mark);
	return st;
}

/* Not in fused form. */
static enum status separate_bwd_input(const struct linear_run *run, const struct linear *l, struct mat dy,
				      struct mat dx, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	const struct mat none = {0};
	struct mat part = {0};
	enum status st = l->adapters ? place_part(run, dx, &part, err) : STATUS_OK;

	if (!st && l->adapters)
		st = adapters_half(run, l, NULL, none, dy, part, err);
	if (!st)
		st = base_bwd(run, l, dy, part, dx, err);
	arena_reset(run->back->arena, &mark);
	return st;
}

enum status linear_backward_input(const struct linear_run *run, const struct linear *l, struct mat dy,
				  struct mat dx, struct error *err)
{
	const struct mat wide = with_tail(l, &dy);
	enum status st;

	if (!linear_tail(l))
		return dx.rows ? separate_bwd_input(run, l, dy, dx, err) : STATUS_OK;
	st = up_bwd(run, l, dy, mat_cols(&wide, l->out, linear_tail(l)), err);
	return st || !dx.rows
		       ? st
		       : product(run->back, wide, false, mat_cols(&l->block, 0, l->in), false, 1, 0, dx, err);
}

/* W and the bias, if they are trained. */
static enum status own_trained(const struct linear_run *run, const struct linear *l, struct mat x,
			       struct mat dy, struct error *err)
{
	enum status st = l->w.grad.rows ? base_trained(run, l, x, dy, err) : STATUS_OK;

	return st || !l->bias.grad.rows ? st : run->back->ops->column_sum(run->back, dy, l->bias.grad, err);
}

enum status linear_backward_trained(const struct linear_run *run, const struct linear *l, struct mat x,
				    struct mat u, struct mat dy, struct error *err)
{
	const struct mat wide = with_tail(l, &dy), none = {0};
	enum status st = STATUS_OK;

	if (linear_tail(l)) {
		st = up_trained(run, l, u, dy, err);
		return st ? st
			  : product(run->back, mat_cols(&wide, l->out, linear_tail(l)), true, x, false, 1, 1,
				    l->a.grad, err);
	}
	if (l->adapters)
		st = adapters_half(run, l, &x, u, dy, none, err);
	return st ? st : own_trained(run, l, x, dy, err);
}

/* In the order of forward_rounded. */
static enum status backward_rounded(const struct linear_run *run, const struct linear *l, struct mat x,
				    struct mat u, struct mat dy, struct mat dx, struct error *err)
{
	const struct arena_mark mark = arena_mark(run->back->arena);
	struct mat part = {0};
	enum status st = dx.rows ? place_part(run, dx, &part, err) : STATUS_OK;

	if (!st)
		st = adapters_bwd(run, l, x, u, dy, part, false, err);
	if (!st && dx.rows)
		st = base_bwd(run, l, dy, part, dx, err);
	arena_reset(run->back->arena, &mark);
	return st ? st : own_trained(run, l, x, dy, err);
}

enum status linear_backward(const struct linear_run *run, const struct linear *l, struct mat x, struct mat u,
			    struct mat dy, struct mat dx, struct error *err)
{
	const struct mat none = {0};
	enum status st = STATUS_OK;

	if (linear_tail(l) || !l->adapters) {
		st = linear_backward_input(run, l, dy, dx, err);
		return st ? st : linear_backward_trained(run, l, x, u, dy, err);
	}
	if (is_rounded(run))
		return backward_rounded(run, l, x, u, dy, dx, err);
	if (dx.rows)
		st = base_bwd(run, l, dy, none, dx, err);
	if (!st)
		st = own_trained(run, l, x, dy, err);
	return st ? st : adapters_bwd(run, l, x, u, dy, dx, true, err);
}

enum status linear_merge(struct backend *back, struct linear *l, struct error *err)
{
	enum status st = STATUS_OK;

	if (l->adapters && (l->owner_rank || l->ratio.rows))
		return error_set(err, STATUS_BUG,
				 "several adapters, or DoRA, cannot be merged on the device");
	if (l->adapters && (l->stored_count || l->w.w.dtype != l->a.w.dtype))
		return error_set(err, STATUS_UNSUPPORTED,
				 "an adapter cannot be merged into quantized weights");
	for (int i = 0; !st && i < l->adapters; i++)
		st = product(back, l->adapter[i].b.w, false, of_adapter(l, &l->a.w, i), false, l->lora_scale,
			     1, mat_rows(&l->w.w, l->adapter[i].out_begin, l->adapter[i].out), err);
	if (!st)
		l->adapters = 0;
	return st;
}

bool linear_is_quantized(const struct linear *l)
{
	return l->is_fp8 && !l->w.master.rows && !l->stored_count;
}

enum status linear_quantize(struct backend *back, const struct linear *l, struct error *err)
{
	if (!l->is_fp8 || !l->w.master.rows)
		return STATUS_OK;
	return back->ops->quantize_e4m3(back, l->w.w, l->fp8, (struct mat){0}, count_at(l, false), err);
}

enum status linear_clear(struct backend *back, const struct linear *l, struct error *err)
{
	const int64_t tail = linear_tail(l);

	return tail ? back->ops->zero(back, mat_view(&l->block, 0, l->in, l->out, tail), err) : STATUS_OK;
}

void linear_live(const struct linear *l, const struct params *p, struct live_part *live, int *count)
{
	if (!linear_tail(l))
		return;
	live[(*count)++] = (struct live_part){.begin = params_at(p, &l->a.master), .to = l->a.w};
	for (int i = 0; i < l->adapters; i++)
		live[(*count)++] = (struct live_part){.begin = params_at(p, &l->adapter[i].b.master),
						      .to = l->adapter[i].b.w};
}
