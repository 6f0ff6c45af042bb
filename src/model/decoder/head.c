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
	struct mat parts; /* tensor parallel: what all ranks know of the losses */
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
		{&c->parts, rows * p->model->split.ranks, LOSS_PART, back->stat, MEM_SCRATCH,
		 "losses of parts of the vocabulary", split_is(&p->model->split)},
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

/* The ids whose logits this rank computes. */
static struct split_range ids_of(const struct pass *p)
{
	const struct model *m = p->model;

	return split_vocabulary(&m->split, m->whole ? m->whole->shape.vocab : m->shape.vocab);
}

/* The own ids' rows of the head or of its gradient. */
static struct mat head_rows(const struct pass *p, const struct mat *head)
{
	return split_is(&p->model->split) && head->rows ? mat_rows(head, 0, ids_of(p).count) : *head;
}

/* out: of the last layer, all rows. */
static enum status logits_of(const struct pass *p, struct mat out, const struct chunk *c, const int32_t *row,
			     struct error *err)
{
	struct backend *back = p->back;
	const struct model *m = p->model;
	const struct gemm g = {
		.a = c->n, .b = head_rows(p, &m->head.w), .d = c->logits, .trans_b = true, .alpha = 1};
	enum status st = back->ops->rows_copy(back, out, c->x, row, false, err);

	if (!st)
		st = back->ops->rmsnorm(back, c->x, m->norm.w, (float)m->shape.norm_eps, c->n, c->rstd, err);
	return st ? st : back->ops->gemm(back, &g, err);
}

static enum status whole_loss(const struct pass *p, const struct chunk *c, const int32_t *row,
			      float grad_scale, struct error *err)
{
	return p->back->ops->cross_entropy(p->back, mat_rows(&c->logits, 0, c->x.rows), p->batch->target, row,
					   grad_scale, c->loss, err);
}

/* Each rank tells the others of each row: the largest of its logits, the sum of their exponentials, and the
 * target's logit. */
static enum status split_loss(const struct pass *p, const struct chunk *c, const int32_t *row,
			      float grad_scale, struct error *err)
{
	struct backend *back = p->back;
	struct split *s = &p->model->split;
	const struct mat logits = mat_rows(&c->logits, 0, c->x.rows);
	const int64_t first = ids_of(p).begin;
	enum status st = back->ops->loss_part(back, logits, p->batch->target, row, first,
					      mat_rows(&c->parts, s->rank * c->x.rows, c->x.rows), err);

	if (!st)
		st = split_gather(s, c->parts, err);
	return st ? st
		  : back->ops->loss_join(back, logits, p->batch->target, row, first, c->parts, grad_scale,
					 c->loss, err);
}

static enum status loss_of(const struct pass *p, const struct chunk *c, const int32_t *row, float grad_scale,
			   double *loss_sum, struct error *err)
{
	struct backend *back = p->back;
	enum status st = split_is(&p->model->split) ? split_loss(p, c, row, grad_scale, err)
						    : whole_loss(p, c, row, grad_scale, err);

	return st ? st : back->ops->reduce(back, c->loss, REDUCE_SUM, loss_sum, err);
}

/* On entry c->logits hold the gradient. */
static enum status chunk_backward(const struct pass *p, const struct chunk *c, const int32_t *row,
				  struct mat dx, struct error *err)
{
	struct backend *back = p->back;
	const struct model *m = p->model;
	const struct gemm to_n = {.a = c->logits, .b = head_rows(p, &m->head.w), .d = c->dn, .alpha = 1};
	const struct mat grad = head_rows(p, &m->head.grad);
	const struct gemm to_w = {
		.a = mat_rows(&c->logits, 0, c->x.rows),
		.b = mat_rows(&c->n, 0, c->x.rows),
		.c = grad,
		.d = grad,
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

static enum status all_chunks(const struct pass *p, float grad_scale, struct mat out, struct mat dx,
			      double *loss_sum, struct error *err)
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
		c.logits =
			(struct mat){.rows = in_products, .cols = ids_of(p).count, .dtype = p->back->dtype};
		if (!st)
			st = arena_mat(p->back->arena, MEM_LOGITS, &c.logits, "logits", err);
		if (!st)
			st = logits_of(p, out, &c, row, err);
		if (!st)
			st = loss_of(p, &c, row, grad_scale, loss_sum, err);
		if (!st && dx.rows)
			st = chunk_backward(p, &c, row, dx, err);
		arena_reset(p->back->arena, &mark);
	}
	return st;
}

static enum status place_all_rows(const struct pass *p, bool wanted, struct mat *m, const char *name,
				  struct error *err)
{
	*m = (struct mat){.rows = wanted ? p->batch->tokens : 0,
			  .cols = p->model->shape.hidden,
			  .dtype = p->back->dtype};
	return wanted ? arena_mat(p->back->arena, MEM_SCRATCH, m, name, err) : STATUS_OK;
}

static struct mat own_rows(const struct pass *p, const struct mat *all)
{
	const struct split_range own = split_rows(&p->model->split, all->rows);

	return mat_rows(all, own.begin, own.count);
}

/* The head reads all rows, because each rank has logits of all of them. */
static enum status split_chunks(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
				struct error *err)
{
	struct backend *back = p->back;
	struct split *s = &p->model->split;
	struct mat out, all;
	enum status st = place_all_rows(p, true, &out, "output of the layers, all rows", err);

	if (!st)
		st = place_all_rows(p, dx.rows > 0, &all, "its gradient, all rows", err);
	if (!st)
		st = back->ops->convert(back, p->saved->out, own_rows(p, &out), err);
	if (!st)
		st = split_gather(s, out, err);
	if (!st && dx.rows)
		st = back->ops->zero(back, all, err);
	if (!st)
		st = all_chunks(p, grad_scale, out, all, loss_sum, err);
	if (!st && dx.rows)
		st = split_sum(s, all, err);
	return st || !dx.rows ? st : back->ops->convert(back, own_rows(p, &all), dx, err);
}

enum status head_backward(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
			  struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	enum status st;

	take_shared(p);
	st = split_is(&p->model->split) ? split_chunks(p, grad_scale, dx, loss_sum, err)
					: all_chunks(p, grad_scale, p->saved->out, dx, loss_sum, err);
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
			st = logits_of(p, p->saved->out, &c, rows_from(row, begin), err);
		arena_reset(p->back->arena, &mark);
	}
	return st;
}
