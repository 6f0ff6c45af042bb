/* SPDX-License-Identifier: Apache-2.0 */
#include "model/decoder/paged_step.h"
#include <stdlib.h>
#include "model/backend/cost.h"
#include "model/gpu/decode.h"
#include "model/model.h"
#include "model/tensor/matrix.h"

/* Matrices of a step. x and x2 are the residual stream; every other matrix is overwritten by each layer. */
struct step_matrices {
	struct mat x, x2, rstd, n, qkv, o, gate_up, h;
	struct mat u_qkv, u_o, u_gate_up, u_down; /* x A' of adapters that are not in fused form */
	struct mat out, out_rstd, out_n, logits;  /* rows that need logits */
	struct mat counts, last, results;
	struct mat n_e4m3, h_e4m3; /* n and h in E4M3, if the layers' weights are */
	struct mat n_scale, h_scale;
};

struct paged_step {
	struct model *model;
	struct backend *back;
	struct paged_step_options options;
	struct paged_room room;
	struct step_matrices m;
	struct paged_layer *cache; /* [layers] */
	struct attention attention;
	struct decode *decode;	/* for steps with one row; NULL: not used */
	bool persistent;	/* and they use it */
	int64_t layers;		/* that steps run */
	int64_t first, end;	/* layers of the last piece of a pass */
	struct paged_rows rows; /* of the last forward pass, as the operations read them */
	struct mat logits;	/* of the last forward pass */
	struct sample sample;	/* of the last call */
	int turn;
};

/* Columns of x A' that need a place of their own. */
static int64_t own_columns(const struct linear *l)
{
	return linear_tail(l) ? 0 : l->adapters * l->rank;
}

struct place {
	struct mat *mat;
	int64_t rows, cols, tail;
	enum dtype dtype;
	enum memory_kind kind;
	const char *name;
};

static enum status place_all(struct backend *back, const struct place *all, size_t count, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < count; i++) {
		const struct place *p = &all[i];

		*p->mat = (struct mat){
			.rows = p->cols ? p->rows : 0, .cols = p->cols + p->tail, .dtype = p->dtype};
		if (p->mat->rows)
			st = arena_mat(back->arena, p->kind, p->mat, p->name, err);
		p->mat->cols = p->cols;
	}
	return st;
}

static enum status place_layers(struct paged_step *s, struct error *err)
{
	const struct shape *shape = &s->model->shape;
	const struct layer *l = s->model->layer;
	const int64_t rows = s->options.most.rows, q = shape->heads * shape->head_dim;
	const int64_t kv = shape->kv_heads * shape->head_dim;
	const int64_t tail_n = linear_tail(&l->qkv) > linear_tail(&l->gate_up) ? linear_tail(&l->qkv)
									       : linear_tail(&l->gate_up);
	const enum dtype type = s->back->dtype, stat = s->back->stat;
	struct step_matrices *m = &s->m;
	const struct place all[] = {
		{&m->x, rows, shape->hidden, 0, type, MEM_SCRATCH, "residual stream"},
		{&m->x2, rows, shape->hidden, 0, type, MEM_SCRATCH, "residual stream after attention"},
		{&m->rstd, rows, 1, 0, stat, MEM_SCRATCH, "norms of rows"},
		{&m->n, rows, shape->hidden, tail_n, type, MEM_SCRATCH, "rows after a norm"},
		{&m->qkv, rows, q + 2 * kv, 0, type, MEM_SCRATCH, "q, k and v"},
		{&m->o, rows, q, linear_tail(&l->o), type, MEM_SCRATCH, "output of attention"},
		{&m->gate_up, rows, 2 * shape->ffn, 0, type, MEM_SCRATCH, "gate and up"},
		{&m->h, rows, shape->ffn, linear_tail(&l->down), type, MEM_SCRATCH, "input of down"},
		{&m->u_qkv, rows, own_columns(&l->qkv), 0, type, MEM_SCRATCH, "x A' of q, k and v"},
		{&m->u_o, rows, own_columns(&l->o), 0, type, MEM_SCRATCH, "x A' of o"},
		{&m->u_gate_up, rows, own_columns(&l->gate_up), 0, type, MEM_SCRATCH, "x A' of gate and up"},
		{&m->u_down, rows, own_columns(&l->down), 0, type, MEM_SCRATCH, "x A' of down"},
	};

	return place_all(s->back, all, sizeof(all) / sizeof(all[0]), err);
}

/* Activations in E4M3 next to those in BF16. */
static enum status place_e4m3(struct paged_step *s, struct error *err)
{
	const struct shape *shape = &s->model->shape;
	const bool is_e4m3 = s->back->kind == BACKEND_GPU && s->model->layer[0].qkv.w.w.dtype == DTYPE_E4M3;
	const int64_t rows = is_e4m3 ? s->options.most.rows : 0;
	struct step_matrices *m = &s->m;
	const struct place all[] = {
		{&m->n_e4m3, rows, shape->hidden, 0, DTYPE_E4M3, MEM_SCRATCH, "rows after a norm in E4M3"},
		{&m->n_scale, 1, rows, 0, DTYPE_F32, MEM_SCRATCH, "their factors"},
		{&m->h_e4m3, rows, shape->ffn, 0, DTYPE_E4M3, MEM_SCRATCH, "input of down in E4M3"},
		{&m->h_scale, 1, rows, 0, DTYPE_F32, MEM_SCRATCH, "its factors"},
	};
	enum status st = place_all(s->back, all, sizeof(all) / sizeof(all[0]), err);

	m->n_e4m3.scales = scales_of_rows(m->n_scale.data, m->n_e4m3.cols);
	m->h_e4m3.scales = scales_of_rows(m->h_scale.data, m->h_e4m3.cols);
	m->n.e4m3 = is_e4m3 ? &m->n_e4m3 : NULL;
	m->h.e4m3 = is_e4m3 ? &m->h_e4m3 : NULL;
	return st;
}

static enum status place_head(struct paged_step *s, struct error *err)
{
	const struct shape *shape = &s->model->shape;
	const int64_t rows = s->options.most.outputs;
	const enum dtype type = s->back->dtype, stat = s->back->stat;
	struct step_matrices *m = &s->m;
	const struct place all[] = {
		{&m->out, rows, shape->hidden, 0, type, MEM_SCRATCH, "rows of the head"},
		{&m->out_rstd, rows, 1, 0, stat, MEM_SCRATCH, "their norms"},
		{&m->out_n, rows, shape->hidden, 0, type, MEM_SCRATCH, "rows after the last norm"},
		{&m->logits, rows, shape->vocab, 0, type, MEM_LOGITS, "logits"},
		{&m->counts, s->options.places, s->options.counts ? shape->vocab : 0, 0, DTYPE_U16,
		 MEM_SCRATCH, "counts of tokens"},
		{&m->last, 1, s->options.places, 0, DTYPE_I32, MEM_SCRATCH, "last tokens"},
		{&m->results, rows, SAMPLE_RESULT_WORDS, 0, DTYPE_I32, MEM_SCRATCH, "results of sampling"},
	};

	return place_all(s->back, all, sizeof(all) / sizeof(all[0]), err);
}

enum status paged_step_create(struct paged_step **out, struct model *m, struct backend *back,
			      const struct paged_step_options *options, struct error *err)
{
	struct paged_step *s = calloc(1, sizeof(*s));
	enum status st;

	*out = s;
	if (!s || !(s->cache = calloc((size_t)m->shape.layers, sizeof(*s->cache)))) {
		free(s);
		*out = NULL;
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate the table of a KV cache");
	}
	s->model = m;
	s->back = back;
	s->options = *options;
	s->layers = m->shape.layers;
	s->attention = layer_attention(&m->shape);
	st = workspace_paged(back, &s->attention, &s->options.most, &s->room, err);
	if (!st)
		st = place_layers(s, err);
	if (!st)
		st = place_e4m3(s, err);
	if (!st)
		st = place_head(s, err);
	/* the persistent kernel knows neither the adapters of rows nor DoRA's ratio */
	if (!st && back->kind == BACKEND_GPU && !options->cache_e4m3 && !options->deterministic &&
	    m->owners <= 1 && !m->lora.dora)
		st = decode_create(&s->decode, m, back, s->cache, err);
	s->persistent = s->decode != NULL;
	if (st)
		paged_step_release(out);
	return st;
}

void paged_step_release(struct paged_step **out)
{
	if (*out) {
		decode_release(&(*out)->decode);
		free((*out)->cache);
	}
	free(*out);
	*out = NULL;
}

uint64_t paged_step_page_bytes(const struct model *m, const struct backend *back,
			       const struct paged_step_options *options)
{
	const uint64_t row = 2 * (uint64_t)(m->shape.kv_heads * m->shape.head_dim);
	const uint64_t bytes = options->cache_e4m3 ? row + 2 * (uint64_t)m->shape.kv_heads * sizeof(float)
						   : dtype_bytes(back->dtype, row);

	return bytes * (uint64_t)options->most.page_tokens * (uint64_t)m->shape.layers;
}

enum status paged_step_pages(struct paged_step *s, int64_t pages, struct error *err)
{
	const struct shape *shape = &s->model->shape;
	const int64_t rows = pages * s->options.most.page_tokens;
	enum status st = STATUS_OK;

	for (int64_t i = 0; !st && i < shape->layers; i++) {
		const struct place all[] = {
			{&s->cache[i].kv, rows, 2 * shape->kv_heads * shape->head_dim, 0,
			 s->options.cache_e4m3 ? DTYPE_E4M3 : s->back->dtype, MEM_CACHE, "KV cache"},
			{&s->cache[i].scale, rows, s->options.cache_e4m3 ? 2 * shape->kv_heads : 0, 0,
			 DTYPE_F32, MEM_CACHE, "scales of the KV cache"},
		};

		st = place_all(s->back, all, sizeof(all) / sizeof(all[0]), err);
	}
	return st;
}

/* The matrices of a step with this number of rows. */
static struct step_matrices first_rows(const struct paged_step *s, int64_t rows, int64_t outputs)
{
	struct step_matrices m = s->m;
	struct mat *layers[] = {&m.x, &m.x2,	  &m.rstd,  &m.n,	  &m.qkv,    &m.o,
				&m.h, &m.gate_up, &m.u_qkv, &m.u_gate_up, &m.u_down, &m.u_o};
	struct mat *head[] = {&m.out, &m.out_rstd, &m.out_n, &m.logits};

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		layers[i]->rows = layers[i]->rows ? rows : 0;
	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		head[i]->rows = outputs;
	return m;
}

/* In fused form, x A' is the tail of the input. */
static struct mat u_of(const struct linear *l, const struct mat *x, struct mat own)
{
	struct mat wide = *x;

	if (!linear_tail(l))
		return own;
	wide.cols = wide.ld;
	return mat_cols(&wide, l->in, linear_tail(l));
}

static enum status norm(const struct paged_step *s, const struct weight *w, struct mat x, struct mat y,
			struct mat rstd, struct error *err)
{
	return s->back->ops->rmsnorm(s->back, x, w->w, (float)s->model->shape.norm_eps, y, rstd, err);
}

static enum status attend(const struct paged_step *s, const struct layer *l, const struct paged_layer *cache,
			  const struct step_matrices *m, struct error *err)
{
	struct backend *back = s->back;
	enum status st =
		back->ops->paged_rope(back, &s->rows, &s->attention, m->qkv, l->q_norm.w, l->k_norm.w,
				      (float)s->model->shape.norm_eps, s->model->cos_sin, cache, err);

	return st ? st : back->ops->paged_attention(back, &s->rows, &s->attention, m->qkv, cache, m->o, err);
}

/* From x to x. */
static enum status run_layer(const struct paged_step *s, const struct layer *l,
			     const struct paged_layer *cache, const struct step_matrices *m,
			     struct error *err)
{
	const struct linear_run run = {
		.back = s->back, .owner = s->rows.adapter, .base = s->model->owners > 1 && !s->rows.adapted};
	const struct mat none = {0};
	enum status st = norm(s, &l->norm1, m->x, m->n, m->rstd, err);

	if (!st)
		st = linear_forward(&run, &l->qkv, m->n, m->qkv, none, u_of(&l->qkv, &m->n, m->u_qkv), err);
	if (!st)
		st = attend(s, l, cache, m, err);
	if (!st)
		st = linear_forward(&run, &l->o, m->o, m->x2, m->x, u_of(&l->o, &m->o, m->u_o), err);
	if (!st)
		st = norm(s, &l->norm2, m->x2, m->n, m->rstd, err);
	if (!st)
		st = linear_forward_swiglu(&run, &l->gate_up, m->n, m->gate_up, m->h,
					   u_of(&l->gate_up, &m->n, m->u_gate_up), err);
	if (!st)
		st = linear_forward(&run, &l->down, m->h, m->x, m->x2, u_of(&l->down, &m->h, m->u_down), err);
	return st;
}

/* Logits of the rows that need them. */
static enum status run_head(const struct paged_step *s, const struct step_matrices *m, struct error *err)
{
	struct backend *back = s->back;
	const struct gemm g = {
		.a = m->out_n, .b = s->model->head.w, .d = m->logits, .trans_b = true, .alpha = 1};
	enum status st;

	if (!s->rows.outputs)
		return STATUS_OK;
	st = back->ops->rows_copy(back, m->x, m->out, s->rows.output, false, err);
	if (!st)
		st = norm(s, &s->model->norm, m->out, m->out_n, m->out_rstd, err);
	return st ? st : back->ops->gemm(back, &g, err);
}

/* Layers first .. end - 1. The embedding comes before the first layer, and the head after the last one. */
static enum status run_piece(void *arg, struct error *err)
{
	const struct paged_step *s = arg;
	const struct step_matrices m = first_rows(s, s->rows.rows, s->rows.outputs);
	enum status st = STATUS_OK;

	if (!s->first)
		st = s->back->ops->paged_embed(s->back, &s->rows, s->model->embed.w, m.last, m.x, err);
	for (int64_t i = s->first; !st && i < s->end; i++)
		st = run_layer(s, &s->model->layer[i], &s->cache[i], &m, err);
	return st || s->end < s->layers ? st : run_head(s, &m, err);
}

/* Steps with one row per sequence repeat; a step with prefill rows is long enough to launch each time. */
static uint64_t key_of(const struct paged_step *s, const struct paged_rows *rows)
{
	const bool repeats = s->options.replays && s->layers == s->model->shape.layers &&
			     rows->outputs == rows->rows && rows->sequences <= rows->rows &&
			     rows->begin[rows->sequences] == (int32_t)rows->sequences;

	const uint64_t adapted = s->model->owners > 1 && rows->adapted;

	return repeats ? 1 | adapted << 1 | (uint64_t)rows->rows << 8 : 0;
}

static enum status check(const struct paged_step *s, const struct paged_rows *r, struct error *err)
{
	const struct paged_limits *most = &s->options.most;

	if (r->rows < 1 || r->rows > most->rows || r->sequences > most->sequences ||
	    r->outputs > most->outputs || r->page_ld > most->pages)
		return error_set(err, STATUS_BAD_INPUT,
				 "a step has %lld rows of %lld sequences, %lld outputs and %lld pages per "
				 "sequence; the limits are %lld, %lld, %lld and %lld",
				 (long long)r->rows, (long long)r->sequences, (long long)r->outputs,
				 (long long)r->page_ld, (long long)most->rows, (long long)most->sequences,
				 (long long)most->outputs, (long long)most->pages);
	return STATUS_OK;
}

bool paged_step_persistent(struct paged_step *s, bool use)
{
	s->persistent = use && s->decode;
	return s->decode != NULL;
}

void paged_step_layers(struct paged_step *s, int64_t layers)
{
	s->layers = layers < s->model->shape.layers ? layers : s->model->shape.layers;
}

enum status paged_step_begin(struct paged_step *s, const struct paged_rows *rows, struct error *err)
{
	enum status st = check(s, rows, err);

	if (!st)
		st = s->back->ops->paged_put(s->back, rows, &s->room, &s->rows, err);
	s->end = 0;
	s->logits = first_rows(s, s->rows.rows, s->rows.outputs).logits;
	return st;
}

/* The next layers, as a graph if the key is not 0. */
static enum status advance(struct paged_step *s, int64_t layers, uint64_t key, struct error *err)
{
	const struct replay work = {.key = key, .run = run_piece, .arg = s};

	s->first = s->end;
	s->end = layers < s->layers - s->first ? s->first + layers : s->layers;
	return s->back->ops->replay(s->back, &work, err);
}

enum status paged_step_advance(struct paged_step *s, int64_t layers, int64_t *left, struct error *err)
{
	enum status st = advance(s, layers, 0, err);

	*left = s->layers - s->end;
	return st;
}

enum status paged_step_forward(struct paged_step *s, const struct paged_rows *rows, struct error *err)
{
	enum status st = paged_step_begin(s, rows, err);

	if (st)
		return st;
	if (s->persistent && rows->rows == 1 && rows->sequences == 1 && rows->outputs == 1)
		return decode_forward(s->decode, &s->rows, s->m.last, &s->logits, err);
	return advance(s, s->layers, key_of(s, rows), err);
}

/* The copy of a row of old results comes after all work. */
enum status paged_step_stop(struct paged_step *s, struct error *err)
{
	const void *ignored;
	enum status st = s->back->ops->fetch_begin(s->back, mat_rows(&s->m.results, 0, 1), s->turn, err);

	return st ? st : s->back->ops->fetch_wait(s->back, s->turn, &ignored, err);
}

/* The logits in the type that is sampled fastest: the kernel for draws without further options reads the
 * activations' type, but the persistent kernel writes F32. */
static enum status as_sampled(struct paged_step *s, const struct sample_lists *lists, struct mat *logits,
			      struct error *err)
{
	*logits = s->logits;
	if (s->logits.dtype == s->back->dtype || !lists->plain || lists->greedy)
		return STATUS_OK;
	*logits = mat_rows(&s->m.logits, 0, s->logits.rows);
	return s->back->ops->convert(s->back, s->logits, *logits, err);
}

enum status paged_step_sample(struct paged_step *s, const struct sample_lists *lists, int *turn,
			      struct error *err)
{
	struct mat logits;
	enum status st;

	if (lists->rows != s->rows.outputs)
		return error_set(err, STATUS_BAD_INPUT,
				 "%lld rows are to be sampled, but a step has %lld outputs",
				 (long long)lists->rows, (long long)s->rows.outputs);
	st = as_sampled(s, lists, &logits, err);
	if (st)
		return st;
	s->sample = (struct sample){.room = &s->room,
				    .logits = logits,
				    .lists = *lists,
				    .vocab = s->options.most.vocab,
				    .counts = s->m.counts,
				    .last = s->m.last,
				    .results = mat_rows(&s->m.results, 0, lists->rows)};
	st = s->back->ops->sample(s->back, &s->sample, err);
	*turn = s->turn;
	s->turn = (s->turn + 1) % FETCHES;
	return st ? st : s->back->ops->fetch_begin(s->back, s->sample.results, *turn, err);
}

enum status paged_step_results(struct paged_step *s, int turn, const struct sample_result **results,
			       struct error *err)
{
	const void *out = NULL;
	enum status st = s->back->ops->fetch_wait(s->back, turn, &out, err);

	*results = out;
	return st;
}

enum status paged_step_history(struct paged_step *s, const struct sample_history *history, struct error *err)
{
	return s->back->ops->sample_count(s->back, s->m.counts, history, err);
}

struct mat paged_step_logits(const struct paged_step *s)
{
	return s->logits;
}
