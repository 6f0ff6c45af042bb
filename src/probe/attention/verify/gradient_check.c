/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check of backward on the case's own data: every element of dQ, dK and dV of the first and the last key head
 * is compared with double precision. The inputs are recomputed from the generator and never read back. The
 * allowed error is that of docs/explanation/methods/attention.md, "Tolerance of gradients".
 */
#include <math.h>
#include <stdlib.h>
#include "probe/attention/verify/gradient.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

#define ACCUMULATED 0x1p-20 /* relative error of an FP32 sum on tensor cores */
#define DEVIATIONS 6	    /* standard deviations allowed for independent roundings */
#define PAIRS_FOR_TWO                                                                                        \
	0x1p26 /* pairs of query and key per key head; with more pairs, only the first key head is checked   \
		*/

enum { HEADS = 2 };

/* Allowed error of a sum of rounded terms: the squares of the roundings, to be added in quadrature, and a
 * part that is proportional to the sum of the terms. */
struct error_terms {
	double squares, sum;
};

struct reference_head {
	uint32_t b, g;
	double *d_q, *d_k, *d_v;		/* (group * q_len, head_dim); (kv_len, head_dim) */
	struct error_terms *of_q, *of_k, *of_v; /* (rows) */
};

struct attention_gradients {
	struct reference_head head[HEADS];
	unsigned count;
};

struct reference_work { /* argument of the pool's work functions */
	const struct attention *a;
	struct reference_head *head;
	struct attention_gradient *gradient; /* (threads) */
	struct error_terms *of_k, *of_v;     /* (threads, kv_len) */
};

static void make_row(const void *from, enum attention_tensor t, uint32_t b, uint32_t h, uint32_t row,
		     float *out)
{
	const struct attention *a = from;

	attention_row_values(a, a->data, t, b, h, row, out);
}

static double largest(const float *x, uint32_t n)
{
	double most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)x[i]));
	return most;
}

static double norm(const float *x, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

/* Adds the error terms of one row's keys: the roundings of P, of dS and of O (in D), and the error of the
 * exponents. */
static void add_error_terms(const struct reference_work *w, unsigned thread,
			    const struct attention_gradient *g, const float *q, const float *d_o,
			    struct attention_keys seen, struct error_terms *of_q)
{
	const struct attention_problem *p = &w->a->c.problem;
	double scale = attention_scale(p), q_most = largest(q, p->head_dim),
	       o_most = largest(d_o, p->head_dim);
	double k_most = w->a->data == ATTENTION_DATA_LARGE ? 2 : sqrt(3), reach = sqrt(3.0 * p->head_dim);
	double exponent = ACCUMULATED * (1 + scale * norm(q, p->head_dim) * reach),
	       d_o_norm = norm(d_o, p->head_dim);
	double share = 2 * exponent + ACCUMULATED, squares = 0, d_error;
	struct error_terms *of_k = w->of_k + (size_t)thread * p->kv_len,
			   *of_v = w->of_v + (size_t)thread * p->kv_len;

	for (uint32_t j = seen.from; j < seen.to; j++)
		squares += 3 * g->p[j] * g->p[j]; /* variance of O: that of a value is at most 3 */
	d_error = scale * attention_roundoff(p->out_type) * sqrt(squares) * d_o_norm;
	*of_q = (struct error_terms){0};
	for (uint32_t j = seen.from; j < seen.to; j++) {
		double term = attention_rounding(p->type, g->d_s[j]), d_term = g->p[j] * d_error;
		/* dP - D cancels. The FP32 rounding error of dP is proportional to the sizes of dO and V. It
		 * remains, weighted by P. */
		double sum = share * fabs(g->d_s[j]) + ACCUMULATED * scale * g->p[j] * d_o_norm * reach;

		of_q->squares += term * term * k_most * k_most;
		of_q->sum += sum * k_most;
		of_k[j].squares += (term * term + d_term * d_term) * q_most * q_most;
		of_k[j].sum += sum * q_most;
		of_v[j].squares += attention_rounding(p->type, g->p[j]) *
				   attention_rounding(p->type, g->p[j]) * o_most * o_most;
		of_v[j].sum += share * g->p[j] * o_most;
	}
	of_q->sum += DEVIATIONS * d_error * k_most; /* all keys of the row share one D */
}

static void reference_work(void *arg, unsigned thread)
{
	const struct reference_work *w = arg;
	const struct attention_problem *p = &w->a->c.problem;
	const struct attention_rows rows = {make_row, w->a};
	struct attention_gradient *g = &w->gradient[thread];
	struct reference_head *head = w->head;
	uint32_t group = p->heads / p->kv_heads, count = attention_q_len(p, head->b);
	uint64_t first, last;

	attention_gradient_begin(g, p, &rows, head->b, head->g);
	cpu_share((uint64_t)group * count, 1, thread, cpu_pool_count(w->a->pool), &first, &last);
	for (uint64_t i = first; i < last; i++) {
		uint32_t h = head->g * group + (uint32_t)(i / count), row = (uint32_t)(i % count);
		float q[ATTENTION_HEAD_DIM_MAX], d_o[ATTENTION_HEAD_DIM_MAX];
		struct attention_keys seen;

		make_row(w->a, ATTENTION_Q, head->b, h, row, q);
		make_row(w->a, ATTENTION_D_O, head->b, h, row, d_o);
		seen = attention_gradient_row(g, p, q, d_o, head->b, row, head->d_q + i * p->head_dim);
		add_error_terms(w, thread, g, q, d_o, seen, &head->of_q[i]);
	}
}

/* Adds up the parts of the threads. */
static void gather(const struct reference_work *w, unsigned threads)
{
	const struct attention_problem *p = &w->a->c.problem;
	struct reference_head *head = w->head;
	size_t elements = (size_t)p->kv_len * p->head_dim;

	for (unsigned t = 0; t < threads; t++) {
		for (size_t i = 0; i < elements; i++) {
			head->d_k[i] += w->gradient[t].d_k[i];
			head->d_v[i] += w->gradient[t].d_v[i];
		}
		for (uint32_t j = 0; j < p->kv_len; j++) {
			head->of_k[j].squares += w->of_k[(size_t)t * p->kv_len + j].squares;
			head->of_k[j].sum += w->of_k[(size_t)t * p->kv_len + j].sum;
			head->of_v[j].squares += w->of_v[(size_t)t * p->kv_len + j].squares;
			head->of_v[j].sum += w->of_v[(size_t)t * p->kv_len + j].sum;
		}
	}
}

static bool head_alloc(struct reference_head *h, const struct attention_problem *p)
{
	size_t q_rows = (size_t)p->heads / p->kv_heads * p->q_len, d = p->head_dim;

	h->d_q = calloc(q_rows * d, sizeof(double));
	h->d_k = calloc(p->kv_len * d, sizeof(double));
	h->d_v = calloc(p->kv_len * d, sizeof(double));
	h->of_q = calloc(q_rows, sizeof(*h->of_q));
	h->of_k = calloc(p->kv_len, sizeof(*h->of_k));
	h->of_v = calloc(p->kv_len, sizeof(*h->of_v));
	return h->d_q && h->d_k && h->d_v && h->of_q && h->of_k && h->of_v;
}

static bool reference_head(const struct attention *a, struct reference_head *head)
{
	const struct attention_problem *p = &a->c.problem;
	unsigned threads = cpu_pool_count(a->pool);
	struct reference_work w = {.a = a,
				   .head = head,
				   .gradient = calloc(threads, sizeof(*w.gradient)),
				   .of_k = calloc((size_t)threads * p->kv_len, sizeof(*w.of_k)),
				   .of_v = calloc((size_t)threads * p->kv_len, sizeof(*w.of_v))};
	bool room = head_alloc(head, p) && w.gradient && w.of_k && w.of_v;

	for (unsigned i = 0; room && i < threads; i++)
		room = attention_gradient_alloc(&w.gradient[i], p);
	if (room) {
		cpu_pool_run(a->pool, reference_work, &w);
		gather(&w, threads);
	}
	for (unsigned i = 0; w.gradient && i < threads; i++)
		attention_gradient_free(&w.gradient[i]);
	free(w.gradient);
	free(w.of_k);
	free(w.of_v);
	return room;
}

enum status attention_gradient_reference(struct attention *a, struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t heads = p->batch * p->kv_heads;
	double pairs = attention_pairs(p) / heads;
	struct attention_gradients *g;
	bool room;

	if (a->gradients)
		return STATUS_OK;
	g = a->gradients = calloc(1, sizeof(*g));
	room = g;
	for (unsigned i = 0; room && i < HEADS && i < heads && (!i || pairs <= PAIRS_FOR_TWO); i++) {
		g->head[i].b = i ? p->batch - 1 : 0;
		g->head[i].g = i ? p->kv_heads - 1 : 0;
		g->count = i + 1;
		room = reference_head(a, &g->head[i]);
	}
	return room ? STATUS_OK
		    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				      "attention: not enough memory for the reference");
}

void attention_gradient_reference_free(struct attention_gradients *g)
{
	for (unsigned i = 0; g && i < g->count; i++) {
		struct reference_head *h = &g->head[i];

		free(h->d_q);
		free(h->d_k);
		free(h->d_v);
		free(h->of_q);
		free(h->of_k);
		free(h->of_v);
	}
	free(g);
}

static double allowed_error(struct error_terms d)
{
	return DEVIATIONS * sqrt(d.squares) + d.sum;
}

static double allowed(const struct attention_problem *p, struct error_terms d, double value)
{
	return attention_roundoff(p->type) * fabs(value) + attention_underflow(p->type) + allowed_error(d);
}

static void check_row(struct attention *a, const void *found, enum attention_tensor t, uint32_t b, uint32_t h,
		      uint32_t row, const double *right, struct error_terms terms, struct wrong *wrong)
{
	const struct attention_problem *p = &a->c.problem;
	float values[ATTENTION_HEAD_DIM_MAX];

	attention_load(p->type, values,
		       (const char *)found +
			       attention_tensor_at(p, t, b, h, row) * attention_type_bytes(p->type),
		       p->head_dim);
	for (uint32_t d = 0; d < p->head_dim; d++) {
		double error = (double)values[d] - right[d];

		a->errors.count++;
		a->errors.squares += error * error;
		a->errors.most = fmax(a->errors.most, fabs(error));
		if (!(fabs(error) <= allowed(p, terms, right[d])))
			attention_note(p, wrong, t, b, h, row, d, right[d], (double)values[d]);
	}
	wrong->checked += p->head_dim;
}

void attention_check_gradient_heads(struct attention *a, void *const *found, struct wrong *wrong)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t group = p->heads / p->kv_heads;
	size_t d = p->head_dim;

	for (unsigned i = 0; i < a->gradients->count; i++) {
		const struct reference_head *head = &a->gradients->head[i];
		uint32_t rows = attention_q_len(p, head->b), b = head->b, g = head->g;

		for (uint32_t k = 0; k < group * rows; k++)
			check_row(a, found[ATTENTION_D_Q], ATTENTION_D_Q, b, g * group + k / rows, k % rows,
				  head->d_q + k * d, head->of_q[k], wrong);
		for (uint32_t j = 0; j < attention_kv_len(p, b); j++) {
			check_row(a, found[ATTENTION_D_K], ATTENTION_D_K, b, g, j, head->d_k + j * d,
				  head->of_k[j], wrong);
			check_row(a, found[ATTENTION_D_V], ATTENTION_D_V, b, g, j, head->d_v + j * d,
				  head->of_v[j], wrong);
		}
	}
}

double attention_gradient_apart(const struct attention *a, enum attention_tensor t)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t group = p->heads / p->kv_heads;
	double most = 0;

	for (unsigned i = 0; i < a->gradients->count; i++) {
		const struct reference_head *head = &a->gradients->head[i];
		const struct error_terms *terms = t == ATTENTION_D_Q   ? head->of_q
						  : t == ATTENTION_D_K ? head->of_k
								       : head->of_v;
		const double *value = t == ATTENTION_D_Q   ? head->d_q
				      : t == ATTENTION_D_K ? head->d_k
							   : head->d_v;
		uint32_t rows = t == ATTENTION_D_Q ? group * attention_q_len(p, head->b)
						   : attention_kv_len(p, head->b);

		for (uint32_t row = 0; row < rows; row++)
			for (uint32_t d = 0; d < p->head_dim; d++)
				most = fmax(most,
					    2 * allowed(p, terms[row], value[(size_t)row * p->head_dim + d]));
	}
	return most;
}
