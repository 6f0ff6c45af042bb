/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward pass over all layers. The head is in head.c. */
#include <stdlib.h>
#include "model/backend/cost.h"
#include "model/decoder/head.h"
#include "model/decoder/inputs.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"

enum status saved_create(struct saved *saved, const struct model *m, enum recompute mode, struct error *err)
{
	*saved = (struct saved){.mode = mode};
	saved->layer = calloc((size_t)m->shape.layers, sizeof(*saved->layer));
	saved->fp8 = calloc((size_t)m->shape.layers, sizeof(*saved->fp8));
	saved->host = calloc((size_t)m->shape.layers, sizeof(*saved->host));
	if (!saved->layer || !saved->fp8 || !saved->host)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of layers");
	return lent_create(&saved->lent, &m->params, m->shape.layers, err);
}

void saved_release(struct saved *saved)
{
	free(saved->layer);
	free(saved->fp8);
	free(saved->host);
	lent_release(&saved->lent);
	*saved = (struct saved){0};
}

struct field {
	const char *name;
	size_t at;
	int64_t cols;
	bool stat, cheap, full; /* stat: has the statistics' type; cheap, full: saved in that mode */
};

/* Columns of u = x A' that a linear layer must save itself. It needs them if u is not the tail of a saved
 * input. In mode FULL, u is recomputed with the input, except for `down`. */
static int64_t own_columns(const struct linear *l, enum recompute mode, bool input_kept, bool is_down)
{
	if (linear_tail(l) && (input_kept || (mode != RECOMPUTE_CHEAP && !is_down)))
		return 0;
	return l->adapters * l->rank;
}

enum { SAVED_FIELDS = sizeof(struct layer_saved) / sizeof(struct mat) };

static void fields_of(const struct model *m, enum recompute mode, struct field out[SAVED_FIELDS])
{
	const struct shape *s = &m->shape;
	const struct layer *l = m->layer;
	const struct field all[] = {
#define X(field, columns, is_stat, by_cheap, by_full)                                                        \
	{.name = #field,                                                                                     \
	 .at = offsetof(struct layer_saved, field),                                                          \
	 .cols = columns,                                                                                    \
	 .stat = is_stat,                                                                                    \
	 .cheap = by_cheap,                                                                                  \
	 .full = by_full},
		LAYER_SAVED(X)
#undef X
#define U(map, o, down)                                                                                      \
	{.name = "u of " #map,                                                                               \
	 .at = offsetof(struct layer_saved, u_##map),                                                        \
	 .cols = own_columns(&l->map, mode, o && mode == RECOMPUTE_CHEAP, down),                             \
	 .cheap = true,                                                                                      \
	 .full = down},
			U(qkv, false, false) U(o, true, false) U(gate_up, false, false) U(down, false, true)
#undef U
	};

	_Static_assert(sizeof(all) / sizeof(all[0]) == SAVED_FIELDS,
		       "each matrix of struct layer_saved has a row");
	memcpy(out, all, sizeof(all));
}

/* Extra columns of a matrix: u after the input of a linear layer in fused form, and v after the gradient of
 * its output, which has the output's layout. */
static int64_t tail_of(const struct model *m, size_t at)
{
	const struct layer *l = m->layer;
	const struct {
		size_t at;
		const struct linear *map;
	} tails[] = {
		{offsetof(struct layer_saved, n1), &l->qkv},
		{offsetof(struct layer_saved, qkv), &l->qkv},
		{offsetof(struct layer_saved, o), &l->o},
		{offsetof(struct layer_saved, n2), &l->gate_up},
		{offsetof(struct layer_saved, h), &l->down},
		{offsetof(struct layer_saved, gate_up), &l->gate_up},
	};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		if (tails[i].at == at)
			return linear_tail(tails[i].map);
	return 0;
}

/* In fused form, u = x A' is the tail of the input, unless it has its own place. */
static void place_tails(const struct model *m, struct layer_saved *s)
{
	const struct layer *l = m->layer;
	const struct {
		const struct linear *map;
		const struct mat *x;
		struct mat *u;
	} all[] = {{&l->qkv, &s->n1, &s->u_qkv},
		   {&l->o, &s->o, &s->u_o},
		   {&l->gate_up, &s->n2, &s->u_gate_up},
		   {&l->down, &s->h, &s->u_down}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct mat wide = *all[i].x;

		if (!linear_tail(all[i].map) || all[i].u->rows)
			continue;
		wide.cols = wide.ld;
		*all[i].u = mat_cols(&wide, all[i].x->cols, linear_tail(all[i].map));
	}
}

static struct mat *field_of(struct layer_saved *s, const struct field *f)
{
	return (struct mat *)((uint8_t *)s + f->at);
}

/* The copy of `of` in E4M3, in the common place. */
static void share_fp8(struct mat *of, struct mat *copy, const struct mat *room, const struct mat *scales,
		      int32_t *overflows)
{
	*copy = *room;
	copy->rows = of->rows;
	copy->cols = copy->ld = of->cols;
	copy->scales = fp8_scales_of_rows(scales->data, of->rows);
	copy->overflows = overflows;
	of->e4m3 = copy;
}

static int32_t *counter(const struct linear *l, bool gradients)
{
	return l->overflows ? l->overflows + gradients : NULL;
}

/* The place that all copies in E4M3 share. It comes before h, whose memory other matrices use. */
static enum status place_fp8_room(const struct pass *p, struct mat *room, struct mat *scales,
				  struct error *err)
{
	const struct shape *s = &p->model->shape;
	const int64_t rows = p->batch->tokens, most = s->hidden > 2 * s->ffn ? s->hidden : 2 * s->ffn;
	enum status st;

	*room = (struct mat){.rows = rows, .cols = most, .dtype = DTYPE_E4M3};
	*scales = (struct mat){.rows = rows, .cols = fp8_tiles(most), .dtype = DTYPE_F32};
	if (!p->model->fp8 || p->back->kind != BACKEND_GPU)
		return STATUS_OK;
	st = arena_mat(p->back->arena, MEM_SCRATCH, room, "inputs of GEMMs in FP8", err);
	return st ? st : arena_mat(p->back->arena, MEM_SCRATCH, scales, "scales of these inputs", err);
}

/* Lets the norms and SwiGLU quantize their results. A tile of SwiGLU's gradient must not have parts of gate
 * and of up. */
static void share_fp8_room(const struct pass *p, const struct mat *room, const struct mat *scales)
{
	const struct shape *s = &p->model->shape;

	if (!p->model->fp8 || p->back->kind != BACKEND_GPU)
		return;
	for (int64_t i = 0; i < s->layers; i++) {
		const struct layer *l = &p->model->layer[i];
		struct layer_saved *saved = &p->saved->layer[i];
		struct layer_fp8 *copy = &p->saved->fp8[i];

		if (!l->qkv.is_fp8) /* all linear layers of a layer are, or none */
			continue;
		share_fp8(&saved->n1, &copy->n1, room, scales, counter(&l->qkv, false));
		share_fp8(&saved->n2, &copy->n2, room, scales, counter(&l->gate_up, false));
		share_fp8(&saved->h, &copy->h, room, scales, counter(&l->down, false));
		if (s->ffn % FP8_TILE == 0)
			share_fp8(&saved->gate_up, &copy->gate_up, room, scales, counter(&l->gate_up, true));
	}
}

/* Whether the backward pass of SwiGLU writes columns, and nothing in BF16: only GEMMs in FP8 read its
 * results. */
static bool writes_columns(const struct pass *p, const struct layer *l)
{
	const struct linear *up = &l->gate_up, *down = &l->down;

	return p->model->fp8 && p->back->kind == BACKEND_GPU && !p->forward_only && up->is_fp8 &&
	       up->w.grad.rows && !up->adapters && !up->bias.grad.rows && down->w.grad.rows &&
	       !down->adapters && p->model->shape.ffn % FP8_TILE == 0;
}

static void share_columns(struct mat *of, struct mat *copy, const struct mat *place, int32_t *overflows)
{
	*copy = *place;
	copy->overflows = overflows;
	of->e4m3_columns = copy;
}

/* Full fine-tuning: SwiGLU's results by columns. They come last, so attention's backward pass uses their
 * memory. */
static enum status place_columns(const struct pass *p, struct error *err)
{
	const struct layer_saved *first = p->saved->layer;
	struct mat gate_up = {0}, h = {0};
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < p->model->shape.layers; i++) {
		const struct layer *l = &p->model->layer[i];

		if (!writes_columns(p, l))
			continue;
		if (!h.rows)
			st = workspace_fp8_rows(p->back, &first->gate_up, true, &gate_up, err);
		if (!st && !h.rows)
			st = workspace_fp8_rows(p->back, &first->h, true, &h, err);
		share_columns(&p->saved->layer[i].gate_up, &p->saved->fp8[i].gate_up_columns, &gate_up,
			      counter(&l->gate_up, true));
		share_columns(&p->saved->layer[i].h, &p->saved->fp8[i].h_columns, &h,
			      counter(&l->down, true));
	}
	return st;
}

static struct linear_run linear_run_of(const struct pass *p)
{
	return (struct linear_run){.back = p->back,
				   .dropout_p = p->dropout ? (float)p->model->lora.dropout : 0,
				   .dropout_seed = p->dropout_seed,
				   .row_begin = p->batch->row_begin};
}

static bool is_kept(const struct pass *p, const struct field *f)
{
	const struct linear_run run = linear_run_of(p);

	if (p->saved->mode == RECOMPUTE_NONE)
		return f->at != offsetof(struct layer_saved, h) ||
		       !linear_has_halves(&run, &p->model->layer->down);
	return p->saved->mode == RECOMPUTE_CHEAP ? f->cheap : f->full;
}

/* Matrices of one tile of rows. */
static bool is_tiled(const struct field *f)
{
	return f->at == offsetof(struct layer_saved, gate_up) || f->at == offsetof(struct layer_saved, h);
}

/* Matrices that attention's backward pass does not read. */
static bool is_of_mlp(const struct field *f)
{
	return is_tiled(f) || f->at == offsetof(struct layer_saved, x2) ||
	       f->at == offsetof(struct layer_saved, rstd2) || f->at == offsetof(struct layer_saved, n2);
}

/* Matrices of the own rows with tensor parallel. */
static bool is_of_own_rows(const struct field *f)
{
	return f->at == offsetof(struct layer_saved, x) || f->at == offsetof(struct layer_saved, rstd1) ||
	       f->at == offsetof(struct layer_saved, x2) || f->at == offsetof(struct layer_saved, rstd2);
}

/* Where saved matrices are. */
static struct arena *saved_arena(const struct pass *p)
{
	return p->saved->lent.saved ? p->saved->lent.saved : p->back->arena;
}

/* One layer's matrix. If it is not saved, all layers share that of the first one. */
static enum status place_field(const struct pass *p, const struct field *f, bool kept, int64_t layer,
			       struct error *err)
{
	struct backend *back = p->back;
	const int64_t rows =
		is_of_own_rows(f) ? split_rows(&p->model->split, p->batch->tokens).count : p->batch->tokens;
	struct mat *m = field_of(&p->saved->layer[layer], f);
	enum status st = STATUS_OK;

	if (!kept && layer) {
		*m = *field_of(&p->saved->layer[0], f);
		return STATUS_OK;
	}
	*m = (struct mat){
		.rows = f->cols ? rows : 0,
		.cols = f->cols + tail_of(p->model, f->at),
		.dtype = f->stat ? back->stat : back->dtype,
	};
	if (f->cols && !kept && is_tiled(f))
		m->rows = p->saved->mlp_rows;
	if (back->kind == BACKEND_GPU && f->at == offsetof(struct layer_saved, lse))
		m->rows *= ATTENTION_LSE_ROOM;
	if (p->saved->offload && f->at == offsetof(struct layer_saved, x))
		st = inputs_place(p, layer, saved_arena(p), m, err);
	else if (f->cols)
		st = arena_mat(kept ? saved_arena(p) : back->arena, kept ? MEM_SAVED : MEM_SCRATCH, m,
			       f->name, err);
	m->cols = f->cols;
	return st;
}

/* What a layer saves lies together. */
static enum status place_kept(const struct pass *p, const struct field field[SAVED_FIELDS], int64_t layer,
			      struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < SAVED_FIELDS; i++)
		if (is_kept(p, &field[i]))
			st = place_field(p, &field[i], true, layer, err);
	p->saved->lent.end[layer + 1] = saved_arena(p)->used;
	return st;
}

static enum status place_shared(const struct pass *p, const struct field *f, struct error *err)
{
	const struct arena_mark before = arena_mark(p->back->arena);
	enum status st = STATUS_OK;

	for (int64_t layer = 0; !st && layer < p->model->shape.layers; layer++)
		st = place_field(p, f, false, layer, err);
	p->saved->to_gate_up = f->at == offsetof(struct layer_saved, h) ? before : arena_mark(p->back->arena);
	return st;
}

/* The layers' output, and its gradient with a tail for adapters in fused form. */
static enum status place_ends(const struct pass *p, struct error *err)
{
	const int64_t o = linear_tail(&p->model->layer->o), down = linear_tail(&p->model->layer->down);
	const int64_t hidden = p->model->shape.hidden;
	const int64_t rows = split_rows(&p->model->split, p->batch->tokens).count;
	struct saved *saved = p->saved;
	enum status st;

	saved->out = (struct mat){.rows = rows, .cols = hidden, .dtype = p->back->dtype};
	st = arena_mat(saved_arena(p), MEM_SAVED, &saved->out, "output of the layers", err);
	saved->lent.end[saved->lent.layers + 1] = saved_arena(p)->used;
	saved->dx = (struct mat){.rows = p->forward_only ? 0 : rows,
				 .cols = hidden + (o > down ? o : down),
				 .dtype = p->back->dtype};
	if (!st && saved->dx.rows)
		st = arena_mat(p->back->arena, MEM_SCRATCH, &saved->dx, "gradient of the layers' output",
			       err);
	saved->dx.cols = hidden;
	return st;
}

/* Rows that the MLP processes at once. With full recomputation its matrices are of one tile of rows, if there
 * are many rows; tiles are about equal. FP8 needs whole copies in E4M3. */
static int64_t mlp_rows(const struct pass *p)
{
	enum { MOST_GPU = 4096, TOGETHER = 64 };
	const int64_t tokens = p->batch->tokens, preset = p->back->kind == BACKEND_GPU ? MOST_GPU : tokens;
	const int64_t most = p->mlp_tile ? p->mlp_tile : preset, tiles = (tokens + most - 1) / most;
	int64_t rows;

	if (p->saved->mode != RECOMPUTE_FULL || p->model->fp8 || tiles <= 1 || split_is(&p->model->split))
		return tokens;
	rows = (tokens + tiles - 1) / tiles;
	if (most >= TOGETHER)
		rows = (rows + TOGETHER - 1) / TOGETHER * TOGETHER;
	return rows < most ? rows : most;
}

/* All rows of the layers' input or of its gradient. */
static struct mat all_rows(const struct pass *p)
{
	return (struct mat){
		.rows = p->batch->tokens, .cols = p->model->shape.hidden, .dtype = p->back->dtype};
}

/* Bytes behind dx for the backward pass of the embedding. */
static size_t embedding_room(const struct pass *p)
{
	struct arena sum = {0};
	struct mat all = all_rows(p);

	return split_is(&p->model->split) && !arena_mat(&sum, MEM_SCRATCH, &all, "embeddings", NULL)
		       ? sum.used
		       : 0;
}

/* First what is saved, then what is shared, of which the MLP's comes last. */
static enum status place_saved(const struct pass *p, struct error *err)
{
	struct field field[SAVED_FIELDS];
	struct saved *saved = p->saved;
	const int64_t layers = p->model->shape.layers;
	struct mat room, scales;
	enum status st = STATUS_OK;

	fields_of(p->model, saved->mode, field);
	saved->mlp_rows = mlp_rows(p);
	for (int64_t layer = 0; !st && layer < layers; layer++)
		st = place_kept(p, field, layer, err);
	if (!st)
		st = place_ends(p, err);
	saved->shared = arena_mark(p->back->arena);
	saved->lent.embedding = saved->shared.used + embedding_room(p);
	if (!st)
		st = place_fp8_room(p, &room, &scales, err);
	for (int of_mlp = 0; of_mlp < 2; of_mlp++) {
		saved->mlp = saved->to_gate_up = arena_mark(p->back->arena);
		for (int i = 0; !st && i < SAVED_FIELDS; i++)
			if (!is_kept(p, &field[i]) && is_of_mlp(&field[i]) == of_mlp)
				st = place_shared(p, &field[i], err);
	}
	for (int64_t layer = 0; !st && layer < layers; layer++)
		place_tails(p->model, &saved->layer[layer]);
	if (!st)
		share_fp8_room(p, &room, &scales);
	if (!st)
		st = place_columns(p, err);
	saved->end = arena_mark(p->back->arena);
	return st;
}

static enum status begin_due(const void *pass, struct error *err)
{
	const struct pass *p = pass;

	return divided_due(p->model, p->back, err);
}

static struct layer_run run_of(const struct pass *p)
{
	return (struct layer_run){
		.linear = linear_run_of(p),
		.shape = &p->model->shape,
		.batch = p->batch,
		.cos_sin = p->model->cos_sin,
		.recompute = p->saved->mode,
		.split = &p->model->split,
		.gathered = split_is(&p->model->split) ? begin_due : NULL,
		.gathered_arg = p,
		.mlp = &p->saved->mlp,
		.to_gate_up = &p->saved->to_gate_up,
		.mlp_rows = p->saved->mlp_rows,
	};
}

static enum status check_pass(const struct pass *p, struct error *err)
{
	if (p->batch->doc_len_max > p->model->positions)
		return error_set(err, STATUS_BAD_INPUT,
				 "a sequence has %lld rows, but the model has room for %lld",
				 (long long)p->batch->doc_len_max, (long long)p->model->positions);
	if (split_is(&p->model->split) && p->batch->tokens < p->model->split.ranks)
		return error_set(
			err, STATUS_BAD_INPUT,
			"a micro-batch has %lld tokens, which %u ranks of tensor parallel cannot divide",
			(long long)p->batch->tokens, p->model->split.ranks);
	return STATUS_OK;
}

/* Whether the work is independent of the step, so that a device may repeat it as a graph. The caller's own
 * work between layers, communication and the copies of lanes are in no graph. */
static bool repeats(const struct pass *p)
{
	return p->back->ops->span && !split_is(&p->model->split) && !p->dropout && !p->layer_done &&
	       !p->saved->offload && !p->model->divided.gradient && !p->model->divided.weights &&
	       !p->model->divided.base;
}

static enum status in_span(const struct pass *p, enum status (*run)(void *, struct error *), void *arg,
			   struct mat first, struct error *err)
{
	const struct layer_work span = {.run = run,
					.arg = arg,
					.batch = p->batch,
					.first = first,
					.state = slots_state(&p->model->slots)};

	return repeats(p) ? p->back->ops->span(p->back, &span, err) : run(arg, err);
}

/* A pass over layers. It may run twice, if the capture of the first run fails, so it begins with the slots
 * that it found. */
struct span_run {
	const struct pass *pass;
	struct mat dx;
	uint64_t slots;
};

static struct span_run span_run_of(const struct pass *p)
{
	return (struct span_run){.pass = p, .slots = slots_state(&p->model->slots)};
}

static enum status begin_span(const struct span_run *r, bool backward, struct error *err)
{
	slots_set(&r->pass->model->slots, r->slots);
	return slots_begin(r->pass->model, r->pass->back, backward, err);
}

static enum status place_all_rows(const struct pass *p, struct mat *all, struct error *err)
{
	*all = all_rows(p);
	return arena_mat(p->back->arena, MEM_SCRATCH, all, "embeddings of all rows", err);
}

static struct mat own_part(const struct pass *p, const struct mat *all)
{
	const struct split_range own = split_rows(&p->model->split, all->rows);

	return mat_rows(all, own.begin, own.count);
}

static struct mat own_ids(const struct model *m, const struct mat *table)
{
	return mat_rows(table, 0, split_vocabulary(&m->split, m->whole->shape.vocab).count);
}

/* Each rank looks up its ids; the sum over the ranks has all. */
static enum status embed_split(const struct pass *p, struct mat x, struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	struct model *m = p->model;
	struct mat all;
	enum status st = place_all_rows(p, &all, err);

	if (!st)
		st = p->back->ops->embed_part(p->back, p->batch, own_ids(m, &m->embed.w),
					      split_vocabulary(&m->split, m->whole->shape.vocab).begin, all,
					      err);
	if (!st)
		st = split_sum(&m->split, all, err);
	if (!st)
		st = p->back->ops->convert(p->back, own_part(p, &all), x, err);
	arena_reset(p->back->arena, &mark);
	return st;
}

/* The matrices of the layers are not needed any more. */
static enum status embed_split_bwd(const struct pass *p, struct mat dx, struct error *err)
{
	const struct arena_mark mark = arena_mark(p->back->arena);
	struct model *m = p->model;
	struct mat all;
	enum status st;

	arena_reset(p->back->arena, &p->saved->shared);
	st = place_all_rows(p, &all, err);
	if (!st && p->saved->lent.saved && p->back->arena->used > p->saved->lent.embedding)
		st = lent_overlap(0, err);
	if (!st)
		st = p->back->ops->convert(p->back, dx, own_part(p, &all), err);
	if (!st)
		st = split_gather(&m->split, all, err);
	if (!st)
		st = p->back->ops->embed_part_bwd(p->back, p->batch, all,
						  split_vocabulary(&m->split, m->whole->shape.vocab).begin,
						  own_ids(m, &m->embed.grad), err);
	arena_reset(p->back->arena, &mark);
	return st;
}

static enum status layers_forward(void *arg, struct error *err)
{
	const struct span_run *r = arg;
	const struct pass *p = r->pass;
	const struct layer_run run = run_of(p);
	const int64_t layers = p->model->shape.layers;
	struct layer_saved *saved = p->saved->layer;
	enum status st = begin_span(r, false, err);

	if (!st && split_is(&p->model->split))
		st = embed_split(p, saved[0].x, err);
	else if (!st)
		st = p->back->ops->embed(p->back, p->batch, p->model->embed.w, saved[0].x, err);
	for (int64_t i = 0; !st && i < layers; i++) {
		st = divided_use(p->model, p->back, i, i + 1 < layers ? i + 1 : -1, err);
		if (!st)
			st = slots_use(p->model, p->back, i, i + 1 < layers ? i + 1 : -1, err);
		if (!st)
			st = inputs_forward(p, i, err);
		if (!st)
			st = layer_forward(&run, &p->model->layer[i], &saved[i],
					   i + 1 < layers ? saved[i + 1].x : p->saved->out, err);
		if (!st)
			st = slots_done(p->model, p->back, i, err);
	}
	return st;
}

enum status model_forward(const struct pass *p, struct error *err)
{
	struct span_run run = span_run_of(p);
	enum status st = check_pass(p, err);

	if (!st)
		st = place_saved(p, err);
	if (!st)
		st = in_span(p, layers_forward, &run, p->saved->layer[0].x, err);
	if (!st)
		slots_left(p->model, 0, p->model->shape.layers - 1, false);
	return st;
}

static enum status layers_backward(void *arg, struct error *err)
{
	const struct span_run *r = arg;
	const struct pass *p = r->pass;
	const struct layer_run run = run_of(p);
	const int64_t lowest = model_lowest_trained(p->model);
	enum status st = begin_span(r, true, err);

	for (int64_t i = p->model->shape.layers - 1; !st && i >= lowest; i--) {
		bool input_wanted = i > lowest || p->model->embed.grad.rows;

		st = divided_use(p->model, p->back, i, i > lowest ? i - 1 : -1, err);
		if (!st)
			st = slots_use(p->model, p->back, i, i > lowest ? i - 1 : -1, err);
		if (!st)
			st = divided_layer(p->model, p->back, i, err);
		if (!st)
			st = inputs_backward(p, i, err);
		if (!st)
			st = lent_return(p, i, err);
		if (!st)
			st = layer_backward(&run, &p->model->layer[i], &p->saved->layer[i], r->dx,
					    input_wanted, err);
		if (!st)
			st = inputs_done(p, i, err);
		if (!st)
			st = slots_done(p->model, p->back, i, err);
		lent_left(p, i);
		if (!st)
			st = divided_layer_done(p->model, p->back, i, err);
		if (!st && p->layer_done)
			st = p->layer_done(p->layer_done_arg, i, err);
	}
	if (!st)
		st = lent_return(p, -1, err);
	if (!st && p->model->embed.grad.rows && split_is(&p->model->split))
		st = embed_split_bwd(p, r->dx, err);
	else if (!st && p->model->embed.grad.rows)
		st = p->back->ops->embed_bwd(p->back, p->batch, r->dx, p->model->embed.grad, err);
	lent_left(p, -1);
	return st ? st : divided_end(p->model, p->back, err);
}

/* What the slots hold after the backward pass. */
static void leave_backward(struct model *m)
{
	const int64_t lowest = model_lowest_trained(m);

	if (lowest < m->shape.layers)
		slots_left(m, m->shape.layers - 1, lowest, true);
}

enum status model_backward(const struct pass *p, float grad_scale, double *loss_sum, struct error *err)
{
	const struct mat dx = p->saved->dx;
	struct span_run run;
	enum status st;

	if (!p->batch->targets) {
		st = lent_return_all(p, err);
		return st ? st : divided_empty_backward(p->model, p->back, err);
	}
	if (!dx.rows)
		return error_set(err, STATUS_BUG, "a backward pass after one that is forward only");
	st = divided_begin(p->model, p->back, err);
	if (!st)
		st = p->back->ops->zero(p->back, dx, err);
	if (!st)
		st = lent_return(p, p->model->shape.layers, err);
	if (!st)
		st = head_backward(p, grad_scale, dx, loss_sum, err);
	run = span_run_of(p);
	run.dx = dx;
	if (!st)
		st = in_span(p, layers_backward, &run, dx, err);
	if (!st)
		leave_backward(p->model);
	return st;
}
