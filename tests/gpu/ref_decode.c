/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/decode/decode.cu, in double; only what stands in memory between two steps is rounded. */
#include "kernel/decode/decode.h"
#include "ref.h"
#include "ref_number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double bf16(uint64_t p, uint64_t i)
{
	uint32_t bits = (uint32_t)((const uint16_t *)(uintptr_t)p)[i] << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

static uint16_t to_bf16(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static float *floats(uint64_t p)
{
	return (float *)(uintptr_t)p;
}

static double *doubles(uint64_t count)
{
	double *d = calloc(count ? count : 1, sizeof(*d));

	if (!d)
		abort();
	return d;
}

/* The vector that a map multiplies: F32, normed where norm is there. Owner: caller. */
static double *input(const struct decode_linear_args *a)
{
	double *x = doubles(a->map.in), squares = 0, rstd;

	for (uint32_t i = 0; i < a->map.in; i++) {
		x[i] = (double)floats(a->x)[i];
		squares += x[i] * x[i];
	}
	rstd = 1 / sqrt(squares / a->map.in + (double)a->eps);
	for (uint32_t i = 0; a->norm && i < a->map.in; i++)
		x[i] *= rstd * bf16(a->norm, i);
	return x;
}

static double row_times(uint64_t w, uint64_t first, uint32_t in, const double *x)
{
	double sum = 0;

	for (uint32_t i = 0; i < in; i++)
		sum += bf16(w, first + i) * x[i];
	return sum;
}

static double weights_times(const struct decode_map *m, uint32_t row, const double *x)
{
	double sum = 0;

	if (!m->w_scale)
		return row_times(m->w, (uint64_t)row * m->ld, m->in, x);
	for (uint32_t i = 0; i < m->in; i++)
		sum += ref_number_load(ATTENTION_E4M3, (const void *)(uintptr_t)m->w, (uint64_t)row * m->ld + i) * x[i];
	return sum * (double)floats(m->w_scale)[row];
}

static double y_of(const struct decode_linear_args *a, const double *x, uint32_t row)
{
	const struct decode_map *m = &a->map;
	double y = weights_times(m, row, x);

	if (m->bias)
		y += bf16(m->bias, row);
	for (uint32_t i = 0; i < m->adapters; i++)
		for (uint32_t j = 0; j < m->rank && row >= m->begin[i] && row < m->end[i]; j++)
			y += (double)m->scale * bf16(m->b[i], (uint64_t)(row - m->begin[i]) * m->rank + j) *
			     (double)floats(a->u)[i * m->rank + j];
	return y;
}

static void linear(const char *entry, struct ref_grid grid, const void *args)
{
	const struct decode_linear_args *a = args;
	const struct decode_map *m = &a->map;
	double *x = input(a);

	(void)entry, (void)grid;
	if (a->kind == DECODE_DOWN) {
		for (uint32_t i = 0; i < m->adapters * m->rank; i++)
			floats(a->u)[i] = (float)row_times(m->a, (uint64_t)i * m->in, m->in, x);
		free(x);
		return;
	}
	for (uint32_t i = 0; i < (a->kind == DECODE_SWIGLU ? m->out / 2 : m->out); i++) {
		double y = y_of(a, x, i);

		if (a->kind == DECODE_SWIGLU)
			y = y / (1 + exp(-y)) * y_of(a, x, m->out / 2 + i);
		if (a->kind == DECODE_ADD)
			y += (double)floats(a->residual)[i];
		floats(a->out)[i] = (float)y;
	}
	free(x);
}

/* One head, normed and rotated. */
static void rotate(const struct decode_attend_args *a, const float *from, uint64_t w, double *to)
{
	const uint32_t dim = a->heads.head_dim;
	const float *angle = floats(a->cos_sin) + (uint64_t)a->position * dim;
	double squares = 0, rstd = 1;

	for (uint32_t i = 0; i < dim; i++)
		squares += (double)from[i] * (double)from[i];
	if (w)
		rstd = 1 / sqrt(squares / dim + (double)a->heads.eps);
	for (uint32_t i = 0; i < dim / 2; i++) {
		double low = (double)from[i] * rstd * (w ? bf16(w, i) : 1);
		double high = (double)from[dim / 2 + i] * rstd * (w ? bf16(w, dim / 2 + i) : 1);
		double c = (double)angle[i], s = (double)angle[dim / 2 + i];

		to[i] = low * c - high * s;
		to[dim / 2 + i] = high * c + low * s;
	}
}

/* The first element of a position's row in the cache. */
static uint64_t row_of(const struct decode_attend_args *a, uint32_t position)
{
	const uint32_t size = 1u << a->page_bits;
	const int32_t page = ((const int32_t *)(uintptr_t)a->page)[position / size];

	return ((uint64_t)page * size + position % size) * 2 * a->heads.kv_heads * a->heads.head_dim;
}

/* o (head_dim) of a query head to all keys of the sequence. */
static void attend_head(const struct decode_attend_args *a, uint32_t head, const double *q, double *o)
{
	const struct decode_heads *h = &a->heads;
	const uint32_t dim = h->head_dim, kv = head / (h->heads / h->kv_heads), keys = a->position + 1;
	double *score = doubles(keys), most = -INFINITY, sum = 0;

	for (uint32_t j = 0; j < keys; j++) {
		for (uint32_t i = 0; i < dim; i++)
			score[j] += q[i] * bf16(a->kv, row_of(a, j) + kv * dim + i);
		score[j] *= (double)h->scale;
		most = fmax(most, score[j]);
	}
	memset(o, 0, dim * sizeof(*o));
	for (uint32_t j = 0; j < keys; j++) {
		double share = exp(score[j] - most);

		sum += share;
		for (uint32_t i = 0; i < dim; i++)
			o[i] += share * bf16(a->kv, row_of(a, j) + (h->kv_heads + kv) * dim + i);
	}
	for (uint32_t i = 0; i < dim; i++)
		o[i] /= sum;
	free(score);
}

static void attend(const char *entry, struct ref_grid grid, const void *args)
{
	const struct decode_attend_args *a = args;
	const struct decode_heads *h = &a->heads;
	const uint32_t dim = h->head_dim;
	uint16_t *row = (uint16_t *)(uintptr_t)a->kv + row_of(a, a->position);
	double *k = doubles(2 * dim), *o = k + dim;

	(void)entry, (void)grid;
	for (uint32_t i = 0; i < h->kv_heads; i++) {
		const float *from = floats(a->qkv) + (h->heads + i) * dim;

		rotate(a, from, a->k_norm, k);
		for (uint32_t j = 0; j < dim; j++) {
			row[i * dim + j] = to_bf16(k[j]);
			row[(h->kv_heads + i) * dim + j] = to_bf16((double)from[h->kv_heads * dim + j]);
		}
	}
	for (uint32_t i = 0; i < h->heads; i++) {
		rotate(a, floats(a->qkv) + i * dim, a->q_norm, k);
		attend_head(a, i, k, o);
		for (uint32_t j = 0; j < dim; j++)
			floats(a->o)[i * dim + j] = (float)o[j];
	}
	free(k);
}

static void map_run(struct decode_linear_args a, struct ref_grid grid)
{
	const uint32_t kind = a.kind;

	if (a.map.adapters) {
		a.kind = DECODE_DOWN;
		linear("", grid, &a);
		a.kind = kind;
	}
	linear("", grid, &a);
}

static void layer_run(const struct decode_token_args *a, const struct decode_layer *l, struct ref_grid grid)
{
	const struct decode_attend_args at = {.qkv = a->qkv,
					      .cos_sin = a->cos_sin,
					      .q_norm = l->q_norm,
					      .k_norm = l->k_norm,
					      .kv = l->kv,
					      .page = a->page,
					      .o = a->o,
					      .heads = a->heads,
					      .position = *(const uint32_t *)(uintptr_t)a->position,
					      .page_bits = a->page_bits};
	struct decode_linear_args m = {
		.map = l->qkv, .x = a->x, .norm = l->norm1, .out = a->qkv, .u = a->u, .eps = a->heads.eps};

	map_run(m, grid);
	attend("", grid, &at);
	map_run((struct decode_linear_args){.map = l->o,
					    .x = a->o,
					    .residual = a->x,
					    .out = a->x2,
					    .u = a->u,
					    .kind = DECODE_ADD},
		grid);
	m.map = l->gate_up;
	m.x = a->x2;
	m.norm = l->norm2;
	m.out = a->h;
	m.kind = DECODE_SWIGLU;
	map_run(m, grid);
	map_run((struct decode_linear_args){.map = l->down,
					    .x = a->h,
					    .residual = a->x2,
					    .out = a->x,
					    .u = a->u,
					    .kind = DECODE_ADD},
		grid);
}

static int32_t id_of(const struct decode_token_args *a)
{
	const int32_t token = *(const int32_t *)(uintptr_t)a->token;

	if (token >= 0)
		return token;
	return -1 - token < (int32_t)a->places ? ((const int32_t *)(uintptr_t)a->last)[-1 - token] : -1;
}

static void token(const char *entry, struct ref_grid grid, const void *args)
{
	const struct decode_token_args *a = args;
	const struct decode_layer *layers = (const struct decode_layer *)(uintptr_t)a->layers;
	const struct decode_linear_args head = {.map = {.w = a->head, .out = a->vocab, .in = a->hidden, .ld = a->hidden},
						.x = a->x,
						.norm = a->norm,
						.out = a->logits,
						.eps = a->heads.eps};
	const int32_t id = id_of(a);

	(void)entry;
	for (uint32_t i = 0; i < a->hidden; i++)
		floats(a->x)[i] = id < 0 || (uint32_t)id >= a->vocab
					  ? 0
					  : (float)bf16(a->embed, (uint64_t)(uint32_t)id * a->hidden + i);
	for (uint32_t i = 0; i < a->layer_count; i++)
		layer_run(a, layers + i, grid);
	linear("", grid, &head);
}

const struct ref_row ref_decode[] = {
	{"decode_linear", linear, sizeof(struct decode_linear_args), offsetof(struct decode_linear_args, out)},
	{"decode_attend", attend, sizeof(struct decode_attend_args), offsetof(struct decode_attend_args, o)},
	{"decode_token_e4m3", token, sizeof(struct decode_token_args), offsetof(struct decode_token_args, logits)},
	{"decode_token", token, sizeof(struct decode_token_args), offsetof(struct decode_token_args, logits)},
	{NULL, NULL, 0, 0},
};
