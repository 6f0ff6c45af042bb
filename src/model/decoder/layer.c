/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "model/decoder/layer.h"
#include "model/tensor/matrix.h"

/* All rows to all ranks; then other collectives may begin. */
static enum status gather(const struct layer_run *run, struct mat all, struct error *err)
{
	enum status st = split_gather(run->split, all, err);

	return st || !run->gathered ? st : run->gathered(run->gathered_arg, err);
}

/* Of the own rows x; y becomes that of all rows. */
static enum status norm(const struct layer_run *run, const struct weight *w, struct mat x, struct mat y,
			struct mat rstd, struct error *err)
{
	struct backend *back = run->linear.back;
	const struct split_range own = split_rows(run->split, y.rows);
	const struct mat to = split_is(run->split) ? mat_rows(&y, own.begin, own.count) : y;
	enum status st = back->ops->rmsnorm(back, x, w->w, (float)run->shape->norm_eps, to, rstd, err);

	return st ? st : gather(run, y, err);
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

/* From the layer's input to the MLP's. */
/* All rows, in scratch memory. */
static enum status all_rows(const struct layer_run *run, int64_t tail, struct mat *m, const char *name,
			    struct error *err)
{
	enum status st;

	*m = (struct mat){.rows = run->batch->tokens,
			  .cols = run->shape->hidden + tail,
			  .dtype = run->linear.back->dtype};
	st = arena_mat(run->linear.back->arena, MEM_SCRATCH, m, name, err);
	m->cols = run->shape->hidden;
	return st;
}

static struct mat own_rows(const struct layer_run *run, const struct mat *all)
{
	const struct split_range own = split_rows(run->split, all->rows);

	return mat_rows(all, own.begin, own.count);
}

/* The partial sums of some columns of a linear layer's output, or room for them. */
struct chunk {
	struct mat part;
	int64_t first;
};

static enum status place_chunks(const struct layer_run *run, struct chunk *chunks, int *count,
				struct error *err)
{
	const int64_t cols = run->shape->hidden, each = split_chunk(run->split, cols);
	enum status st = STATUS_OK;

	for (*count = 0; *count * each < cols && !st; (*count)++) {
		struct chunk *c = &chunks[*count];

		c->first = *count * each;
		c->part = (struct mat){.rows = run->batch->tokens,
				       .cols = cols - c->first < each ? cols - c->first : each,
				       .dtype = run->linear.back->dtype};
		st = arena_mat(run->linear.back->arena, MEM_SCRATCH, &c->part,
			       "partial sums of a linear layer", err);
	}
	return st;
}

/* A linear layer of which each rank has some columns of W: the sum over the ranks gives the own rows. A chunk
 * of columns is summed while the next one is computed. */
static enum status forward_sum(const struct layer_run *run, const struct linear *l, struct mat x,
			       struct mat y, struct mat residual, struct mat u, struct error *err)
{
	static const struct dropout none = {0};
	struct backend *back = run->linear.back;
	const struct arena_mark mark = arena_mark(back->arena);
	struct chunk chunks[SPLIT_CHUNKS];
	int count;
	enum status st = place_chunks(run, chunks, &count, err);

	for (int i = 0; i < count && !st; i++) {
		st = linear_forward_columns(&run->linear, l, x, chunks[i].part, u, chunks[i].first, err);
		if (!st)
			st = split_sum_begin(run->split, chunks[i].part, i, err);
	}
	if (!st)
		st = split_wait(run->split, err);
	if (!st)
		st = back->ops->convert(back, residual, y, err);
	for (int i = 0; i < count && !st; i++)
		st = back->ops->dropout(back, own_rows(run, &chunks[i].part), &none,
					mat_cols(&y, chunks[i].first, chunks[i].part.cols), true, err);
	arena_reset(back->arena, &mark);
	return st;
}

static enum status forward_to_residual(const struct layer_run *run, const struct linear *l, struct mat x,
				       struct mat y, struct mat residual, struct mat u, struct error *err)
{
	return split_is(run->split) ? forward_sum(run, l, x, y, residual, u, err)
				    : linear_forward(&run->linear, l, x, y, residual, u, err);
}

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
	return st ? st : forward_to_residual(run, &l->o, s->o, s->x2, s->x, s->u_o, err);
}

/* From the MLP's input to that of SwiGLU. */
static enum status forward_to_gate_up(const struct layer_run *run, const struct layer *l,
				      const struct layer_saved *s, struct error *err)
{
	struct arena *arena = run->linear.back->arena;
	const struct arena_mark mark = arena_mark(arena);
	enum status st = norm(run, &l->norm2, s->x2, s->n2, s->rstd2, err);

	if (run->to_gate_up)
		arena_reset(arena, run->to_gate_up);
	if (!st)
		st = linear_forward(&run->linear, &l->gate_up, s->n2, s->gate_up, (struct mat){0},
				    s->u_gate_up, err);
	arena_reset(arena, &mark);
	return st;
}

/* A tile of rows that the MLP processes at once. */
struct tile {
	struct layer_run run;
	struct layer_saved saved;
	int64_t begin, rows;
};

static int64_t tile_rows(const struct layer_run *run)
{
	return run->mlp_rows ? run->mlp_rows : run->batch->tokens;
}

static struct tile tile_of(const struct layer_run *run, const struct layer_saved *s, int64_t begin)
{
	const int64_t all = run->batch->tokens, left = all - begin, most = tile_rows(run);
	struct tile t = {.run = *run, .saved = *s, .begin = begin, .rows = left < most ? left : most};
	struct layer_saved *of = &t.saved;
	struct mat *const rows[] = {&of->x2, &of->rstd2, &of->n2, &of->u_gate_up, &of->u_down};

	if (t.rows == all)
		return t;
	t.run.linear.row_begin += (uint64_t)begin;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i]->rows)
			*rows[i] = mat_rows(rows[i], begin, t.rows);
	of->gate_up = mat_rows(&s->gate_up, 0, t.rows);
	of->h = mat_rows(&s->h, 0, t.rows);
	return t;
}

/* The tile's rows of a matrix of own rows. With tensor parallel there is one tile. */
static struct mat tile_of_own(const struct tile *t, const struct mat *m)
{
	return split_is(t->run.split) ? *m : mat_rows(m, t->begin, t->rows);
}

static enum status forward_mlp(const struct tile *t, const struct layer *l, struct mat out, struct error *err)
{
	const struct layer_saved *s = &t->saved;
	struct backend *back = t->run.linear.back;
	enum status st = forward_to_gate_up(&t->run, l, s, err);

	if (!st)
		st = back->ops->swiglu(back, s->gate_up, s->h, err);
	return st ? st
		  : forward_to_residual(&t->run, &l->down, s->h, tile_of_own(t, &out), s->x2, s->u_down, err);
}

enum status layer_forward(const struct layer_run *run, const struct layer *l, const struct layer_saved *saved,
			  struct mat out, struct error *err)
{
	enum status st = forward_attention(run, l, saved, err);

	for (int64_t begin = 0; !st && begin < run->batch->tokens; begin += tile_rows(run)) {
		const struct tile t = tile_of(run, saved, begin);

		st = forward_mlp(&t, l, out, err);
	}
	return st;
}

/* Whether backward recomputes h in the place of its gradient, in the pass that reads gate and up anyway. */
static bool h_comes_of_gradient(const struct layer_run *run, const struct layer *l)
{
	return linear_has_halves(&run->linear, &l->down);
}

/* Without its copies for GEMMs in FP8, which none will read. */
static struct mat alone(struct mat m)
{
	m.e4m3 = m.e4m3_columns = NULL;
	return m;
}

/* Recomputes what forward did not save, except of the MLP with FULL. */
static enum status make_again(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			      struct error *err)
{
	enum status st;

	if (run->recompute == RECOMPUTE_NONE)
		return STATUS_OK;
	if (run->recompute == RECOMPUTE_FULL)
		return forward_attention(run, l, s, err);
	st = norm(run, &l->norm1, s->x, alone(s->n1), s->rstd1, err);
	return st ? st : norm(run, &l->norm2, s->x2, alone(s->n2), s->rstd2, err);
}

static enum status make_mlp_again(const struct layer_run *run, const struct layer *l,
				  const struct layer_saved *s, struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st = STATUS_OK;

	if (run->recompute == RECOMPUTE_FULL)
		st = forward_to_gate_up(run, l, s, err);
	if (st || run->recompute == RECOMPUTE_NONE || h_comes_of_gradient(run, l))
		return st;
	return back->ops->swiglu(back, s->gate_up, alone(s->h), err);
}

/* The work of `make`, counted as repeated. */
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

static enum status scratch(const struct layer_run *run, int64_t rows, int64_t cols, int64_t tail,
			   struct mat *m, const char *name, struct error *err)
{
	enum status st;

	*m = (struct mat){.rows = rows, .cols = cols + tail, .dtype = run->linear.back->dtype};
	st = arena_mat(run->linear.back->arena, MEM_SCRATCH, m, name, err);
	m->cols = cols;
	return st;
}

/* dy: of all rows, of which the rank reads its own. */
static enum status norm_bwd(const struct layer_run *run, const struct weight *w, struct mat dy, struct mat x,
			    struct mat rstd, struct mat dx_add, struct error *err)
{
	struct backend *back = run->linear.back;

	if (split_is(run->split))
		dy = own_rows(run, &dy);
	return back->ops->rmsnorm_bwd(back, dy, x, w->w, rstd, dx_add, w->grad, err);
}

/* The gradient of a linear layer's input dx, summed over the ranks, and of its trained parameters, which are
 * computed while dx is summed. */
static enum status backward_sum(const struct layer_run *run, const struct linear *l, struct mat x,
				struct mat u, struct mat dy, struct mat dx, struct error *err)
{
	const bool apart = split_is(run->split) && linear_has_halves(&run->linear, l);
	enum status st = apart ? linear_backward_input(&run->linear, l, dy, dx, err)
			       : linear_backward(&run->linear, l, x, u, dy, dx, err);

	if (!st && dx.rows)
		st = split_sum_begin(run->split, dx, 0, err);
	if (!st && apart)
		st = linear_backward_trained(&run->linear, l, x, u, dy, err);
	return st || !dx.rows ? st : split_wait(run->split, err);
}

/* The gradient of all rows, with a tail for `l`, from that of the own rows. */
static enum status gather_dy(const struct layer_run *run, const struct linear *l, struct mat own,
			     struct mat *all, struct error *err)
{
	struct backend *back = run->linear.back;
	enum status st;

	*all = own;
	if (!split_is(run->split))
		return STATUS_OK;
	st = all_rows(run, linear_tail(l), all, "gradient of all rows", err);
	if (!st)
		st = back->ops->convert(back, own, own_rows(run, all), err);
	return st ? st : gather(run, *all, err);
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

	if (h_comes_of_gradient(run, l)) {
		st = linear_backward_input(linear, &l->down, dx, s->h, err);
		if (!st)
			st = back->ops->swiglu_bwd(back, s->h, s->gate_up, true, err);
		return st ? st : linear_backward_trained(linear, &l->down, s->h, s->u_down, dx, err);
	}
	if (s->h.e4m3_columns) /* then h is not in BF16, and only the case above writes the columns */
		return error_set(err, STATUS_BUG, "the gradient of down reads an h that was not written");
	st = scratch(run, dx.rows, run->shape->ffn, 0, &dh, "gradient of h", err);
	if (!st)
		st = linear_backward(linear, &l->down, s->h, s->u_down, dx, dh, err);
	if (!st)
		st = back->ops->swiglu_bwd(back, dh, s->gate_up, false, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* dx: rows of the gradient of the output on entry, of x2 on return. */
static enum status tile_bwd(const struct tile *t, const struct layer *l, struct mat dx, struct error *err)
{
	const struct layer_saved *s = &t->saved;
	const struct layer_run *run = &t->run;
	struct backend *back = run->linear.back;
	const struct arena_mark mark = arena_mark(back->arena);
	struct gradient_copies of_dy, of_gate_up;
	struct mat dn, dy, d_gate_up = s->gate_up;
	enum status st = remake(run, l, s, make_mlp_again, err);

	if (!st)
		st = scratch(run, t->rows, run->shape->hidden, 0, &dn, "gradient of a norm", err);
	if (!st)
		st = gather_dy(run, &l->down, dx, &dy, err);
	if (!st)
		st = linear_quantize_gradient(&run->linear, &l->down, &dy, &of_dy, err);
	if (!st)
		st = swiglu_down_bwd(run, l, s, dy, err);
	if (!st)
		st = linear_quantize_gradient(&run->linear, &l->gate_up, &d_gate_up, &of_gate_up, err);
	if (!st)
		st = backward_sum(run, &l->gate_up, s->n2, s->u_gate_up, d_gate_up, dn, err);
	if (!st)
		st = norm_bwd(run, &l->norm2, dn, s->x2, s->rstd2, dx, err);
	arena_reset(back->arena, &mark);
	return st;
}

/* dx: gradient of the output on entry, of x2 on return. */
static enum status mlp_bwd(const struct layer_run *run, const struct layer *l, const struct layer_saved *s,
			   struct mat dx, struct error *err)
{
	enum status st = STATUS_OK;

	for (int64_t begin = 0; !st && begin < run->batch->tokens; begin += tile_rows(run)) {
		const struct tile t = tile_of(run, s, begin);

		st = tile_bwd(&t, l, tile_of_own(&t, &dx), err);
	}
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
	const int64_t rows = run->batch->tokens;
	struct gradient_copies of_dy, of_dqkv;
	struct mat d_o, dqkv, dn = {0}, dy;
	enum status st;

	if (run->mlp)
		arena_reset(back->arena, run->mlp);
	st = scratch(run, rows, s->o.cols, linear_tail(&l->o), &d_o, "gradient of attention", err);
	if (!st)
		st = scratch(run, rows, s->qkv.cols, linear_tail(&l->qkv), &dqkv, "gradient of q, k, v", err);
	if (!st && norm_wanted)
		st = scratch(run, rows, run->shape->hidden, 0, &dn, "gradient of a norm", err);
	if (!st)
		st = gather_dy(run, &l->o, dx, &dy, err);
	if (!st)
		st = linear_quantize_gradient(&run->linear, &l->o, &dy, &of_dy, err);
	if (!st)
		st = linear_backward(&run->linear, &l->o, s->o, s->u_o, dy, d_o, err);
	if (!st)
		st = back->ops->attention_bwd(back, &at, run->batch, s->qkv, s->o, s->lse, d_o, dqkv, err);
	if (!st)
		st = rope_bwd(run, l, s, dqkv, err);
	if (!st)
		st = linear_quantize_gradient(&run->linear, &l->qkv, &dqkv, &of_dqkv, err);
	if (!st)
		st = backward_sum(run, &l->qkv, s->n1, s->u_qkv, dqkv, dn, err);
	if (!st && norm_wanted)
		st = norm_bwd(run, &l->norm1, dn, s->x, s->rstd1, dx, err);
	arena_reset(back->arena, &mark);
	return st;
}

enum status layer_backward(const struct layer_run *run, const struct layer *l,
			   const struct layer_saved *saved, struct mat dx, bool input_wanted,
			   struct error *err)
{
	enum status st = remake(run, l, saved, make_again, err);

	if (!st)
		st = mlp_bwd(run, l, saved, dx, err);
	if (!st)
		st = attention_bwd(run, l, saved, dx, input_wanted, err);
	return st;
}
