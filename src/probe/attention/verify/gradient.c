/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/verify/gradient.h"
#include <math.h>
#include <stdlib.h>

enum { LANES = 4 }; /* head_dim is a multiple of 8 */
typedef float floats __attribute__((vector_size(LANES * sizeof(float)), may_alias, aligned(4)));
typedef double doubles __attribute__((vector_size(LANES * sizeof(double)), may_alias, aligned(8)));

static double dot(const float *a, const float *b, uint32_t n)
{
	doubles sum = {0};

	for (uint32_t i = 0; i < n; i += LANES)
		sum += __builtin_convertvector(*(const floats *)(a + i), doubles) *
		       __builtin_convertvector(*(const floats *)(b + i), doubles);
	return sum[0] + sum[1] + sum[2] + sum[3];
}

static void add(double *to, double weight, const float *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += LANES)
		*(doubles *)(to + i) += weight * __builtin_convertvector(*(const floats *)(x + i), doubles);
}

bool attention_gradient_alloc(struct attention_gradient *g, const struct attention_problem *p)
{
	size_t elements = (size_t)p->kv_len * p->head_dim;

	*g = (struct attention_gradient){
		.k = malloc(elements * sizeof(float)),
		.v = malloc(elements * sizeof(float)),
		.p = malloc(p->kv_len * sizeof(double)),
		.d_s = malloc(p->kv_len * sizeof(double)),
		.d_k = malloc(elements * sizeof(double)),
		.d_v = malloc(elements * sizeof(double)),
	};
	return g->k && g->v && g->p && g->d_s && g->d_k && g->d_v;
}

void attention_gradient_free(struct attention_gradient *g)
{
	free(g->k);
	free(g->v);
	free(g->p);
	free(g->d_s);
	free(g->d_k);
	free(g->d_v);
	*g = (struct attention_gradient){0};
}

void attention_gradient_begin(struct attention_gradient *g, const struct attention_problem *p,
			      const struct attention_rows *rows, uint32_t b, uint32_t kv_head)
{
	size_t d = p->head_dim;

	for (uint32_t j = 0; j < attention_kv_len(p, b); j++) {
		rows->row(rows->from, ATTENTION_K, b, kv_head, j, g->k + j * d);
		rows->row(rows->from, ATTENTION_V, b, kv_head, j, g->v + j * d);
	}
	memset(g->d_k, 0, p->kv_len * d * sizeof(*g->d_k));
	memset(g->d_v, 0, p->kv_len * d * sizeof(*g->d_v));
}

/* Computes P of the row's keys. */
static void softmax(struct attention_gradient *g, const struct attention_problem *p, const float *q,
		    struct attention_keys seen)
{
	double most = -INFINITY, sum = 0, scale = attention_scale(p);

	for (uint32_t j = seen.from; j < seen.to; j++) {
		g->p[j] = scale * dot(q, g->k + (size_t)j * p->head_dim, p->head_dim);
		most = fmax(most, g->p[j]);
	}
	for (uint32_t j = seen.from; j < seen.to; j++)
		sum += g->p[j] = exp(g->p[j] - most);
	for (uint32_t j = seen.from; j < seen.to; j++)
		g->p[j] /= sum;
}

struct attention_keys attention_gradient_row(struct attention_gradient *g, const struct attention_problem *p,
					     const float *q, const float *d_o, uint32_t b, uint32_t row,
					     double *d_q)
{
	struct attention_keys seen = attention_keys(p, b, row);
	double scale = attention_scale(p), mean = 0; /* mean of dP weighted by P, which is dO . O */
	uint32_t d = p->head_dim;

	memset(d_q, 0, d * sizeof(*d_q));
	softmax(g, p, q, seen);
	for (uint32_t j = seen.from; j < seen.to; j++) {
		g->d_s[j] = dot(d_o, g->v + (size_t)j * d, d);
		mean += g->p[j] * g->d_s[j];
	}
	for (uint32_t j = seen.from; j < seen.to; j++) {
		g->d_s[j] = scale * g->p[j] * (g->d_s[j] - mean);
		add(d_q, g->d_s[j], g->k + (size_t)j * d, d);
		add(g->d_k + (size_t)j * d, g->d_s[j], q, d);
		add(g->d_v + (size_t)j * d, g->p[j], d_o, d);
	}
	return seen;
}
