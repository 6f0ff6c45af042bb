/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "model/decoder/layer.h"
#include "model/tensor/matrix.h"

static enum status norm(const struct layer_run *run, const struct weight *w, struct mat x, struct mat y,
			struct mat rstd, struct error *err)
{
	struct backend *back = run->linear.back;

	return back->ops->rmsnorm(back, x, w->w, (float)run->shape->norm_eps, y, rstd, err);
}

/* The columns of q or k in a matrix that holds q, k (and v) side by side. */
static struct mat heads_of(const struct layer_run *run, const struct mat *m, bool k)
{
	const struct shape *s = run->shape;

	if (!m->rows)
		return *m;
	return mat_cols(m, k ? s->heads * s->head_dim : 0, (k ? s->kv_heads : s->heads) * s->head_dim);
}

static struct mat rstd_of(const struct layer_run *run, const struct mat *m, bool k)
{
	if (!m->rows)
		return *m;
	return mat_cols(m, k ? run->shape->heads : 0, k ? run->shape->kv_heads : run->shape->heads);
}

/* Heads rotated in one call: q's and k's together, unless each has its own norm. */
struct rotated {
	struct mat x, raw, rstd;
	int heads;
};

static int rotations(const struct layer *l)
{
	return l->q_norm.w.rows ? 2 : 1;
}

static struct rotated rotated_of(const struct layer_run *run, const struct layer *l,
				 const struct layer_saved *s, const struct mat *qkv, int part)
{
	const struct shape *shape = run->shape;
	const int64_t both = shape->heads + shape->kv_heads;

	if (rotations(l) == 1)
		return (struct rotated){.x = mat_cols(qkv, 0, both * shape->head_dim), .heads = (int)both};
	return (struct rotated){.x = heads_of(run, qkv, part),
				.raw = heads_of(run, &s->raw, part),
				.rstd = rstd_of(run, &s->head_rstd, part),
				.heads = (int)(part ? shape->kv_heads : shape->heads)};
}

static enum status rope(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st = STATUS_OK;

	for (int part = 0; !st && part < rotations(l); part++) {
		const struct rotated r = rotated_of(run, l, s, &s->qkv, part);

		st = back->ops->head_norm_rope(back, r.x, r.heads, part ? l->k_norm.w : l->q_norm.w,
					       (float)run->shape->norm_eps, run->batch->position,
					       run->cos_sin, r.raw, r.rstd, err);
	}
	return st;
}

static enum status rope_bwd(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			    struct mat dqkv, struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st = STATUS_OK;

	for (int part = 0; !st && part < rotations(l); part++) {
		const struct rotated r = rotated_of(run, l, s, &dqkv, part);
		const struct weight *w = part ? &l->k_norm : &l->q_norm;

		st = back->ops->head_norm_rope_bwd(back, r.x, r.heads, w->w, run->batch->position,
						   run->cos_sin, r.raw, r.rstd, w->grad, err);
	}
	return st;
}

struct attention layer_attention(const struct shape *s)
{
	return (struct attention){
		.heads = (int)s->heads,
		.kv_heads = (int)s->kv_heads,
		.head_dim = (int)s->head_dim,
		.scale = (float)(1 / sqrt((double)s->head_dim)),
	};
}

static enum status attend(const struct layer_run *run, const struct layer_saved *s, struct error *err)
{
	const struct attention at = layer_attention(run->shape);
	struct backend *back = run->linear.back;

	return back->ops->attention(back, &at, run->batch, s->qkv, s->o, s->lse, err);
}

/* From the layer's input to the sum after attention. */
static enum status forward_attention(const struct layer_run *run, const struct layer *l,
				     const struct layer_saved *s, struct error *err)
{
	const struct linear_run *linear = &run->linear;
	enum status st = norm(run, &l->norm1, s->x, s->n1, s->rstd1, err);

	if (!st)
		st = linear_forward(linear, &l->qkv, s->n1, s->qkv, (struct mat){0}, s->u_qkv, err);
	if (!st)
		st = rope(run, l, s, err);
	if (!st)
		st = attend(run, s, err);
	return st ? st : linear_forward(linear, &l->o, s->o, s->x2, s->x, s->u_o, err);
}

/* From there to the input of SwiGLU. */
static enum status forward_gate_up(const struct layer_run *run, const struct layer *l,
				   const struct layer_saved *s, struct error *err)
{
	enum status st = norm(run, &l->norm2, s->x2, s->n2, s->rstd2, err);

	return st ? st
		  : linear_forward(&run->linear, &l->gate_up, s->n2, s->gate_up, (struct mat){0},
				   s->u_gate_up, err);
}

static enum status forward_mlp(const struct layer_run *run, const struct layer *l,
			       const struct layer_saved *s, struct mat out, struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st = forward_gate_up(run, l, s, err);

	if (!st)
		st = back->ops->swiglu(back, s->gate_up, s->h, err);
	return st ? st : linear_forward(&run->linear, &l->down, s->h, out, s->x2, s->u_down, err);
}

/* Rows of the MLP that are taken at once. */
struct tile {
	struct batch batch; /* as long as they */
	struct layer_run run;
	struct layer_saved saved;
};

static int64_t tile_rows(const struct layer_run *run)
{
	return run->mlp_tile ? run->mlp_tile : run->batch->tokens;
}

static struct mat rows_of(const struct mat *m, int64_t first, int64_t rows)
{
	return m->rows ? mat_rows(m, first, rows) : *m;
}

/* All tiles use the same memory for the MLP's own matrices. `t` lends its batch to its run. */
static void tile_at(struct tile *t, const struct layer_run *run, const struct layer_saved *s, int64_t first)
{
	const int64_t left = run->batch->tokens - first, rows = left < tile_rows(run) ? left : tile_rows(run);

	t->batch = *run->batch;
	t->batch.tokens = rows;
	t->run = *run;
	t->run.batch = &t->batch;
	t->run.linear.row_begin += (uint64_t)first;
	t->saved = (struct layer_saved){.x2 = rows_of(&s->x2, first, rows),
					.rstd2 = rows_of(&s->rstd2, first, rows),
					.n2 = rows_of(&s->n2, 0, rows),
					.gate_up = rows_of(&s->gate_up, 0, rows),
					.h = rows_of(&s->h, 0, rows),
					.u_gate_up = rows_of(&s->u_gate_up, 0, rows),
					.u_down = rows_of(&s->u_down, first, rows)};
}

static bool is_tiled(const struct layer_run *run)
{
	return tile_rows(run) < run->batch->tokens;
}

enum status layer_forward(const struct layer_run *run, const struct layer *l, const struct layer_saved *saved,
			  struct mat out, struct error *err)
{
	enum status st = forward_attention(run, l, saved, err);

	if (!st && !is_tiled(run))
		return forward_mlp(run, l, saved, out, err);
	for (int64_t first = 0; !st && first < run->batch->tokens; first += tile_rows(run)) {
		struct tile t;

		tile_at(&t, run, saved, first);
		st = forward_mlp(&t.run, l, &t.saved, mat_rows(&out, first, t.batch.tokens), err);
	}
	return st;
}

/* Whether backward recomputes h in the place of its gradient, in the pass that reads gate and up anyway. */
static bool h_comes_of_gradient(const struct layer *l)
{
	return linear_has_halves(&l->down);
}

/* Without its copy for GEMMs in FP8, which none will read. */
static struct mat alone(struct mat m)
{
	m.e4m3 = NULL;
	return m;
}

/* Recomputes the input of SwiGLU, and its output if backward does not make it. */
static enum status make_mlp_again(const struct layer_run *run, const struct layer *l,
				  const struct layer_saved *s, struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st = forward_gate_up(run, l, s, err);

	return st || h_comes_of_gradient(l) ? st : back->ops->swiglu(back, s->gate_up, alone(s->h), err);
}

/* Recomputes what forward did not save, without the MLP if it is tiled. */
static enum status make_again(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			      struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st;

	if (run->recompute == RECOMPUTE_NONE)
		return STATUS_OK;
	if (run->recompute == RECOMPUTE_FULL) {
		st = forward_attention(run, l, s, err);
		return st || is_tiled(run) ? st : make_mlp_again(run, l, s, err);
	}
	st = norm(run, &l->norm1, s->x, alone(s->n1), s->rstd1, err);
	if (!st)
		st = norm(run, &l->norm2, s->x2, alone(s->n2), s->rstd2, err);
	return st || h_comes_of_gradient(l) ? st : back->ops->swiglu(back, s->gate_up, alone(s->h), err);
}

static enum status scratch(const struct layer_run *run, int64_t cols, int64_t tail, struct mat *m,
			   const char *name, struct error *err)
{
	enum status st;

	*m = (struct mat){.rows = run->batch->tokens, .cols = cols + tail, .dtype = run->linear.back->dtype};
	st = arena_mat(run->linear.back->arena, MEM_SCRATCH, m, name, err);
	m->cols = cols;
	return st;
}

static enum status norm_bwd(const struct layer_run *run, const struct weight *w, struct mat dy, struct mat x,
			    struct mat rstd, struct mat dx_add, struct error *err)
{
	struct backend *back = run->linear.back;

	return back->ops->rmsnorm_bwd(back, dy, x, w->w, rstd, dx_add, w->grad, err);
}

/* dx: gradient of the output. gate_up becomes its own gradient. */
static enum status swiglu_down_bwd(const struct layer_run *run, const struct layer *l,
				   const struct layer_saved *s, struct mat dx, struct error *err)
{
	const struct linear_run *linear = &run->linear;
	struct backend *back = linear->back;
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat dh;
	enum status st;

	if (h_comes_of_gradient(l)) {
		st = linear_backward_input(linear, &l->down, dx, s->h, err);
		if (!st)
			st = back->ops->swiglu_bwd(back, s->h, s->gate_up, true, err);
		return st ? st : linear_backward_trained(linear, &l->down, s->h, s->u_down, dx, err);
	}
	st = scratch(run, run->shape->ffn, 0, &dh, "gradient of h", err);
	if (!st)
		st = linear_backward(linear, &l->down, s->h, s->u_down, dx, dh, err);
	if (!st)
		st = back->ops->swiglu_bwd(back, dh, s->gate_up, false, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* dx: gradient of the output on entry, of x2 on return. */
static enum status mlp_bwd(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			   struct mat dx, struct error *err)
{
	struct backend *back = run->linear.back;
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat dn;
	enum status st = scratch(run, run->shape->hidden, 0, &dn, "gradient of a norm", err);

	if (!st)
		st = swiglu_down_bwd(run, l, s, dx, err);
	if (!st)
		st = linear_backward(&run->linear, &l->gate_up, s->n2, s->u_gate_up, s->gate_up, dn, err);
	if (!st)
		st = norm_bwd(run, &l->norm2, dn, s->x2, s->rstd2, dx, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* dx: gradient of x2 on entry, of x on return. */
static enum status attention_bwd(const struct layer_run *run, const struct layer *l,
				 const struct layer_saved *s, struct mat dx, bool input_wanted,
				 struct error *err)
{
	struct backend *back = run->linear.back;
	const struct arena_mark mark = arena_mark(back->arena);
	const struct attention at = layer_attention(run->shape);
	const bool norm_wanted = input_wanted || l->norm1.grad.rows;
	struct mat d_o, dqkv, dn = {0};
	enum status st;

	if (run->mlp)
		arena_reset(back->arena, run->mlp);
	st = scratch(run, s->o.cols, linear_tail(&l->o), &d_o, "gradient of attention", err);
	if (!st)
		st = scratch(run, s->qkv.cols, linear_tail(&l->qkv), &dqkv, "gradient of q, k, v", err);
	if (!st && norm_wanted)
		st = scratch(run, run->shape->hidden, 0, &dn, "gradient of a norm", err);
	if (!st)
		st = linear_backward(&run->linear, &l->o, s->o, s->u_o, dx, d_o, err);
	if (!st)
		st = back->ops->attention_bwd(back, &at, run->batch, s->qkv, s->o, s->lse, d_o, dqkv, err);
	if (!st)
		st = rope_bwd(run, l, s, dqkv, err);
	if (!st)
		st = linear_backward(&run->linear, &l->qkv, s->n1, s->u_qkv, dqkv, dn, err);
	if (!st && norm_wanted)
		st = norm_bwd(run, &l->norm1, dn, s->x, s->rstd1, dx, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* Runs `make`, counted as repeated work. */
static enum status remake(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			  enum status (*make)(const struct layer_run *, const struct layer *,
					      const struct layer_saved *, struct error *),
			  struct error *err)
{
	struct op_cost *cost = &run->linear.back->cost;
	const double before = cost->flop;
	enum status st = make(run, l, s, err);

	cost->again += cost->flop - before;
	return st;
}

/* dx: gradient of the output on entry, of x2 on return. */
static enum status tiles_bwd(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			     struct mat dx, struct error *err)
{
	enum status st = STATUS_OK;

	for (int64_t first = 0; !st && first < run->batch->tokens; first += tile_rows(run)) {
		struct tile t;

		tile_at(&t, run, s, first);
		st = remake(&t.run, l, &t.saved, make_mlp_again, err);
		if (!st)
			st = mlp_bwd(&t.run, l, &t.saved, mat_rows(&dx, first, t.batch.tokens), err);
	}
	return st;
}

enum status layer_backward(const struct layer_run *run, const struct layer *l,
			   const struct layer_saved *saved, struct mat dx, bool input_wanted,
			   struct error *err)
{
	enum status st = remake(run, l, saved, make_again, err);

	if (!st)
		st = is_tiled(run) ? tiles_bwd(run, l, saved, dx, err) : mlp_bwd(run, l, saved, dx, err);
	if (!st)
		st = attention_bwd(run, l, saved, dx, input_wanted, err);
	return st;
}
