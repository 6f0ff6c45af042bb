/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder/head.h"
#include "model/tensor/matrix.h"

enum { CHUNK_ROWS = 1024, CHUNK_ROWS_GPU = 2048 };

static int64_t chunk_rows(const struct backend *back)
{
	return back->kind == BACKEND_GPU ? CHUNK_ROWS_GPU : CHUNK_ROWS;
}

/* One chunk: rows of the layers' output after the norm, and their logits, which the caller allocates. */
struct chunk {
	struct mat x, rstd, n, logits, loss, dn, dx;
};

/* Rows of a chunk's GEMMs. On a GPU they are rounded up to one of a few sizes, so that few GEMM shapes need
 * a plan; the results of the extra rows are not used. */
static int64_t product_rows(const struct pass *p, int64_t rows, int64_t most)
{
	enum { TOGETHER = 512 };
	int64_t up = (rows + TOGETHER - 1) / TOGETHER * TOGETHER;

	if (p->back->kind == BACKEND_CPU)
		return rows;
	up = up < most ? up : most;
	return up < p->batch->tokens ? up : p->batch->tokens;
}

static enum status place(const struct pass *p, int64_t rows, int64_t in_products, bool backward,
			 struct chunk *c, struct error *err)
{
	const struct backend *back = p->back;
	const int64_t hidden = p->model->shape.hidden;
	const struct {
		struct mat *mat;
		int64_t rows, cols;
		enum dtype dtype;
		enum memory_kind kind;
		const char *name;
		bool wanted;
	} all[] = {
		{&c->x, rows, hidden, back->dtype, MEM_SCRATCH, "rows of the head", true},
		{&c->rstd, rows, 1, back->stat, MEM_SCRATCH, "their norm", true},
		{&c->n, in_products, hidden, back->dtype, MEM_SCRATCH, "rows after the last norm", true},
		{&c->loss, rows, 1, back->stat, MEM_SCRATCH, "losses", true},
		{&c->dn, in_products, hidden, back->dtype, MEM_SCRATCH, "gradient after the last norm",
		 backward},
		{&c->dx, rows, hidden, back->dtype, MEM_SCRATCH, "gradient of the head's rows", backward},
	};
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i].mat = (struct mat){
			.rows = all[i].wanted ? all[i].rows : 0, .cols = all[i].cols, .dtype = all[i].dtype};
		if (all[i].wanted)
			st = arena_mat(p->back->arena, all[i].kind, all[i].mat, all[i].name, err);
	}
	return st;
}

static enum status logits_of(const struct pass *p, const struct chunk *c, const int32_t *row,
			     struct error *err)
{
	struct backend *back = p->back;
	const struct model *m = p->model;
	const struct gemm g = {.a = c->n, .b = m->head.w, .d = c->logits, .trans_b = true, .alpha = 1};
	enum status st = back->ops->rows_copy(back, p->saved->out, c->x, row, false, err);

	if (!st)
		st = back->ops->rmsnorm(back, c->x, m->norm.w, (float)m->shape.norm_eps, c->n, c->rstd, err);
	return st ? st : back->ops->gemm(back, &g, err);
}

static enum status loss_of(const struct pass *p, const struct chunk *c, const int32_t *row, float grad_scale,
			   double *loss_sum, struct error *err)
{
	struct backend *back = p->back;
	enum status st = back->ops->cross_entropy(back, mat_rows(&c->logits, 0, c->x.rows), p->batch->target,
						  row, grad_scale, c->loss, err);

	return st ? st : back->ops->reduce(back, c->loss, REDUCE_SUM, loss_sum, err);
}

/* On entry c->logits hold the gradient. */
static enum status chunk_backward(const struct pass *p, const struct chunk *c, const int32_t *row,
				  struct mat dx, struct error *err)
{
	struct backend *back = p->back;
	const struct model *m = p->model;
	const struct gemm to_n = {.a = c->logits, .b = m->head.w, .d = c->dn, .alpha = 1};
	const struct gemm to_w = {
		.a = mat_rows(&c->logits, 0, c->x.rows),
		.b = mat_rows(&c->n, 0, c->x.rows),
		.c = m->head.grad,
		.d = m->head.grad,
		.trans_a = true,
		.alpha = 1,
		.beta = 1,
	};
	enum status st = back->ops->gemm(back, &to_n, err);

	if (!st && m->head.grad.rows)
		st = back->ops->gemm(back, &to_w, err);
	if (!st)
		st = back->ops->zero(back, c->dx, err);
	if (!st)
		st = back->ops->rmsnorm_bwd(back, c->dn, c->x, m->norm.w, c->rstd, c->dx, m->norm.grad, err);
	return st ? st : back->ops->rows_copy(back, c->dx, dx, row, true, err);
}

/* A row of a list; NULL while planning, which has no lists. */
static const int32_t *rows_from(const int32_t *list, int64_t begin)
{
	return list ? list + begin : NULL;
}

/* No layer reads the matrices that all of them share while the head runs. */
static void take_shared(const struct pass *p)
{
	if (arena_mark(p->back->arena).used == p->saved->end.used)
		arena_reset(p->back->arena, &p->saved->shared);
}

static enum status all_chunks(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
			      struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	const int64_t most = p->head_chunk ? p->head_chunk : chunk_rows(p->back);
	enum status st = STATUS_OK;

	for (int64_t begin = 0; !st && begin < p->batch->targets; begin += most) {
		int64_t rows = p->batch->targets - begin < most ? p->batch->targets - begin : most;
		const int64_t in_products = product_rows(p, rows, most);
		const int32_t *row = rows_from(p->batch->trained, begin);
		struct chunk c;

		st = place(p, rows, in_products, dx.rows > 0, &c, err);
		c.logits = (struct mat){
			.rows = in_products, .cols = p->model->shape.vocab, .dtype = p->back->dtype};
		if (!st)
			st = arena_mat(p->back->arena, MEM_LOGITS, &c.logits, "logits", err);
		if (!st)
			st = logits_of(p, &c, row, err);
		if (!st)
			st = loss_of(p, &c, row, grad_scale, loss_sum, err);
		if (!st && dx.rows)
			st = chunk_backward(p, &c, row, dx, err);
		arena_reset(p->back->arena, &mark);
	}
	return st;
}

enum status head_backward(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
			  struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	enum status st;

	take_shared(p);
	st = all_chunks(p, grad_scale, dx, loss_sum, err);
	arena_reset(p->back->arena, &mark);
	return st;
}

enum status model_loss(const struct pass *p, double *loss_sum, struct error *err)
{
	return head_backward(p, 0, (struct mat){0}, loss_sum, err);
}

enum status model_logits(const struct pass *p, const int32_t *row, int64_t count, struct mat logits,
			 struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	const int64_t most = chunk_rows(p->back);
	struct chunk c;
	enum status st = STATUS_OK;

	for (int64_t begin = 0; !st && begin < count; begin += most) {
		int64_t rows = count - begin < most ? count - begin : most;

		st = place(p, rows, rows, false, &c, err);
		c.logits = mat_rows(&logits, begin, rows);
		if (!st)
			st = logits_of(p, &c, rows_from(row, begin), err);
		arena_reset(p->back->arena, &mark);
	}
	return st;
}
