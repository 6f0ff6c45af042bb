/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact passes of backward: data for which the correct gradients of every row are known without a matrix
 * of pairs. With Q = 0 or K = 0 all logits are 0, so P is 1 / n, with n the number of keys of a row. Then
 *
 *   dV_j = sum_i dO_i / n_i
 *   dS_ij = scale (dO_i . V_j - D_i) / n_i,  D_i = dO_i . mean V
 *   dQ_i = scale / n_i (dO_i M_i - D_i sum_j K_j),  M_i = sum_j V_j^T K_j  over the row's keys
 *   dK_j = scale (V_j N_j - w_j),  N_j = sum_i dO_i^T Q_i / n_i,  w_j = sum_i D_i Q_i / n_i  over the key's
 * rows
 *
 * MEAN (Q = 0) checks every element of dQ and dV, KEYLESS (K = 0) every element of dK; the third gradient is
 * 0. The keys of a row and the rows of a key are spans whose ends ascend, so M and N are updated by adding
 * and subtracting terms.
 */
#include <math.h>
#include <stdlib.h>
#include "probe/attention/attention.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

#define ACCUMULATED 0x1p-20
#define DEVIATIONS 6
#define DRIFT                                                                                                \
	0x1p-36 /* error of the reference's own sums, from adding and subtracting; one pair has a weight of  \
		   at least 2^-20 */

struct check_job { /* argument of the pool's work functions */
	const struct attention *a;
	enum attention_data data;
	const void *found[ATTENTION_TENSORS];
	struct wrong *wrong; /* (threads) */
	bool *room;	     /* (threads) false: the thread did not have enough memory */
};

/* State of one key head, for one thread. `moments` is M or N. */
struct head {
	uint32_t b, g;
	float *k, *v;	       /* (kv_len, head_dim) */
	double *sums;	       /* (kv_len + 1, head_dim): sum of the values of all keys before */
	double *moments, *sum; /* (head_dim, head_dim), (head_dim) */
	/* (kv_len + 1, head_dim): terms that start at a key minus terms that end at it */
	double *d_v, *squares_v, *sum_v;
	double squares, size; /* for dK's roundings at the current key */
};

static bool head_alloc(struct head *k, const struct attention_problem *p)
{
	size_t d = p->head_dim, keys = (size_t)p->kv_len + 1;

	*k = (struct head){.k = malloc(keys * d * sizeof(float)),
			   .v = malloc(keys * d * sizeof(float)),
			   .sums = malloc(keys * d * sizeof(double)),
			   .moments = malloc(d * d * sizeof(double)),
			   .sum = malloc(d * sizeof(double)),
			   .d_v = malloc(keys * d * sizeof(double)),
			   .squares_v = malloc(keys * d * sizeof(double)),
			   .sum_v = malloc(keys * d * sizeof(double))};
	return k->k && k->v && k->sums && k->moments && k->sum && k->d_v && k->squares_v && k->sum_v;
}

static void head_free(struct head *k)
{
	free(k->k);
	free(k->v);
	free(k->sums);
	free(k->moments);
	free(k->sum);
	free(k->d_v);
	free(k->squares_v);
	free(k->sum_v);
}

static void head_load(const struct check_job *c, struct head *k)
{
	const struct attention_problem *p = &c->a->c.problem;
	size_t d = p->head_dim, bytes = ((size_t)p->kv_len + 1) * d * sizeof(double);

	memset(k->sums, 0, d * sizeof(*k->sums));
	for (uint32_t j = 0; j < attention_kv_len(p, k->b); j++) {
		attention_row_values(c->a, c->data, ATTENTION_K, k->b, k->g, j, k->k + j * d);
		attention_row_values(c->a, c->data, ATTENTION_V, k->b, k->g, j, k->v + j * d);
		for (size_t i = 0; i < d; i++)
			k->sums[(j + 1) * d + i] = k->sums[j * d + i] + (double)k->v[j * d + i];
	}
	memset(k->d_v, 0, bytes);
	memset(k->squares_v, 0, bytes);
	memset(k->sum_v, 0, bytes);
}

static void forget(struct head *k, uint32_t d)
{
	memset(k->moments, 0, (size_t)d * d * sizeof(*k->moments));
	memset(k->sum, 0, d * sizeof(*k->sum));
	k->squares = k->size = 0;
}

/* moments += weight x^T y, sum += share y; x has many zeros. */
static void add_moment(struct head *k, uint32_t d, double weight, const float *x, double share,
		       const float *y)
{
	for (uint32_t i = 0; i < d; i++) {
		double w = weight * (double)x[i], *to = k->moments + (size_t)i * d;

		k->sum[i] += share * (double)y[i];
		if (fabs(w) > 0)
			for (uint32_t e = 0; e < d; e++)
				to[e] += w * (double)y[e];
	}
}

/* out = x moments */
static void times_moments(const struct head *k, uint32_t d, const float *x, double *out)
{
	memset(out, 0, d * sizeof(*out));
	for (uint32_t i = 0; i < d; i++) {
		const double *from = k->moments + (size_t)i * d;

		if (fabs((double)x[i]) > 0)
			for (uint32_t e = 0; e < d; e++)
				out[e] += (double)x[i] * from[e];
	}
}

/* Known quantities of one row of dO: its size, its D, and the change of D by the rounding of O. */
struct row {
	struct attention_keys seen;
	double n, squares, mean, mean_squares;
	float d_o[ATTENTION_HEAD_DIM_MAX];
};

static void row_of(const struct check_job *c, const struct head *k, uint32_t h, uint32_t i, struct row *r)
{
	const struct attention_problem *p = &c->a->c.problem;

	*r = (struct row){.seen = attention_keys(p, k->b, i)};
	r->n = r->seen.to > r->seen.from ? r->seen.to - r->seen.from : 0;
	attention_row_values(c->a, c->data, ATTENTION_D_O, k->b, h, i, r->d_o);
	for (uint32_t d = 0; r->n > 0 && d < p->head_dim; d++) {
		double x = (double)r->d_o[d], value = (k->sums[(size_t)r->seen.to * p->head_dim + d] -
						       k->sums[(size_t)r->seen.from * p->head_dim + d]) /
						      r->n;

		r->squares += x * x;
		r->mean += x * value;
		r->mean_squares += x * x * value * value;
	}
}

static void check_row(const struct check_job *c, unsigned thread, enum attention_tensor t, uint32_t b,
		      uint32_t h, uint32_t row, const double *right, const double *beside)
{
	const struct attention_problem *p = &c->a->c.problem;
	float found[ATTENTION_HEAD_DIM_MAX];

	attention_load(p->type, found,
		       (const char *)c->found[t] +
			       attention_tensor_at(p, t, b, h, row) * attention_type_bytes(p->type),
		       p->head_dim);
	for (uint32_t d = 0; d < p->head_dim; d++) {
		double allowed = beside ? 2 * attention_roundoff(p->type) * fabs(right[d]) +
						  attention_underflow(p->type) + DRIFT + beside[d]
					: 0;

		if (!(fabs((double)found[d] - (right ? right[d] : 0)) <= allowed))
			attention_note(p, &c->wrong[thread], t, b, h, row, d, right ? right[d] : 0,
				       (double)found[d]);
	}
	c->wrong[thread].checked += beside ? p->head_dim : 0;
}

/* -- Q = 0: dQ by rows; dV from the terms that start and end at each key -- */

/* The root sum of squares of dS over a row's keys is at most scale |dO| / sqrt(n), for values of variance
 * 1/2. */
static void check_d_q(const struct check_job *c, unsigned thread, struct head *k, uint32_t h, uint32_t i,
		      const struct row *r)
{
	const struct attention_problem *p = &c->a->c.problem;
	double right[ATTENTION_HEAD_DIM_MAX] = {0}, beside[ATTENTION_HEAD_DIM_MAX] = {0};
	double scale = attention_scale(p), size = scale * sqrt(r->squares), most = sqrt(3);
	double error = 0;

	if (r->n > 0) {
		times_moments(k, p->head_dim, r->d_o, right);
		error = most * (DEVIATIONS * attention_rounding(p->type, size / r->n) * sqrt(r->n) +
				4 * ACCUMULATED * size);
	}
	for (uint32_t d = 0; r->n > 0 && d < p->head_dim; d++) {
		right[d] = scale / r->n * (right[d] - r->mean * k->sum[d]);
		beside[d] = error + DEVIATIONS * attention_roundoff(p->out_type) * scale *
					    sqrt(r->mean_squares) * fabs(k->sum[d]) / r->n;
	}
	check_row(c, thread, ATTENTION_D_Q, k->b, h, i, right, beside);
}

static void add_d_v(struct head *k, const struct attention_problem *p, const struct row *r)
{
	double *const to[] = {k->d_v, k->squares_v, k->sum_v};
	double weight = 1 / r->n, round = attention_rounding(p->type, weight);

	for (uint32_t d = 0; d < p->head_dim; d++) {
		double x = (double)r->d_o[d], term[] = {x * weight, x * x * round * round, fabs(x) * weight};

		for (unsigned i = 0; i < 3; i++) {
			to[i][(size_t)r->seen.from * p->head_dim + d] += term[i];
			to[i][(size_t)r->seen.to * p->head_dim + d] -= term[i];
		}
	}
}

static void check_d_v(const struct check_job *c, unsigned thread, struct head *k)
{
	const struct attention_problem *p = &c->a->c.problem;
	double right[ATTENTION_HEAD_DIM_MAX] = {0}, squares[ATTENTION_HEAD_DIM_MAX] = {0},
	       sum[ATTENTION_HEAD_DIM_MAX] = {0}, beside[ATTENTION_HEAD_DIM_MAX];

	for (uint32_t j = 0; j < attention_kv_len(p, k->b); j++) {
		for (uint32_t d = 0; d < p->head_dim; d++) {
			size_t at = (size_t)j * p->head_dim + d;

			right[d] += k->d_v[at];
			squares[d] += k->squares_v[at];
			sum[d] += k->sum_v[at];
			beside[d] =
				DEVIATIONS * sqrt(fmax(squares[d], 0)) + 4 * ACCUMULATED * fmax(sum[d], 0);
		}
		check_row(c, thread, ATTENTION_D_V, k->b, k->g, j, right, beside);
		check_row(c, thread, ATTENTION_D_K, k->b, k->g, j, NULL, NULL);
	}
}

static void check_mean(const struct check_job *c, unsigned thread, struct head *k)
{
	const struct attention_problem *p = &c->a->c.problem;
	uint32_t group = p->heads / p->kv_heads, d = p->head_dim;
	struct row r;

	for (uint32_t h = k->g * group; h < (k->g + 1) * group; h++) {
		uint32_t from = 0, to = 0;

		forget(k, d);
		for (uint32_t i = 0; i < attention_q_len(p, k->b); i++) {
			row_of(c, k, h, i, &r);
			for (; r.n > 0 && to < r.seen.to; to++)
				add_moment(k, d, 1, k->v + (size_t)to * d, 1, k->k + (size_t)to * d);
			for (; r.n > 0 && from < r.seen.from; from++)
				add_moment(k, d, -1, k->v + (size_t)from * d, -1, k->k + (size_t)from * d);
			check_d_q(c, thread, k, h, i, &r);
			if (r.n > 0)
				add_d_v(k, p, &r);
		}
	}
	check_d_v(c, thread, k);
}

/* -- K = 0: dK by keys -- */

/* Adds (sign 1) or subtracts (sign -1) row i of all query heads, when it starts or stops to keep the current
 * key. */
static void add_rows(const struct check_job *c, struct head *k, uint32_t i, double sign)
{
	const struct attention_problem *p = &c->a->c.problem;
	uint32_t group = p->heads / p->kv_heads;
	double scale = attention_scale(p), most = sqrt(3);
	float q[ATTENTION_HEAD_DIM_MAX];
	struct row r;

	for (uint32_t h = k->g * group; h < (k->g + 1) * group; h++) {
		double round, beside;

		row_of(c, k, h, i, &r);
		attention_row_values(c->a, c->data, ATTENTION_Q, k->b, h, i, q);
		add_moment(k, p->head_dim, sign / r.n, r.d_o, sign * r.mean / r.n, q);
		round = attention_rounding(p->type, scale * sqrt(r.squares) / r.n);
		beside = scale * attention_roundoff(p->out_type) * sqrt(r.mean_squares) / r.n;
		k->squares += sign * (round * round + beside * beside) * most * most;
		k->size += sign * scale * sqrt(r.squares) / r.n * most;
	}
}

static void check_keyless(const struct check_job *c, unsigned thread, struct head *k)
{
	const struct attention_problem *p = &c->a->c.problem;
	uint32_t rows = attention_q_len(p, k->b), begins = 0, ends = 0, group = p->heads / p->kv_heads;
	double right[ATTENTION_HEAD_DIM_MAX], beside[ATTENTION_HEAD_DIM_MAX], scale = attention_scale(p);

	forget(k, p->head_dim);
	for (uint32_t j = 0; j < attention_kv_len(p, k->b); j++) {
		for (; begins < rows && attention_keys(p, k->b, begins).from <= j; begins++)
			if (attention_keys(p, k->b, begins).to > attention_keys(p, k->b, begins).from)
				add_rows(c, k, begins, 1);
		for (; ends < begins && attention_keys(p, k->b, ends).to <= j; ends++)
			if (attention_keys(p, k->b, ends).to > attention_keys(p, k->b, ends).from)
				add_rows(c, k, ends, -1);
		times_moments(k, p->head_dim, k->v + (size_t)j * p->head_dim, right);
		for (uint32_t d = 0; d < p->head_dim; d++) {
			right[d] = scale * (right[d] - k->sum[d]);
			beside[d] =
				DEVIATIONS * sqrt(fmax(k->squares, 0)) + 4 * ACCUMULATED * fmax(k->size, 0);
		}
		check_row(c, thread, ATTENTION_D_K, k->b, k->g, j, right, beside);
	}
	for (uint32_t h = k->g * group; h < (k->g + 1) * group; h++)
		for (uint32_t i = 0; i < rows; i++)
			check_row(c, thread, ATTENTION_D_Q, k->b, h, i, NULL, NULL);
}

static void check_work(void *arg, unsigned thread)
{
	const struct check_job *c = arg;
	const struct attention_problem *p = &c->a->c.problem;
	struct head k;
	uint64_t first, last;

	c->room[thread] = head_alloc(&k, p);
	cpu_share((uint64_t)p->batch * p->kv_heads, 1, thread, cpu_pool_count(c->a->pool), &first, &last);
	for (uint64_t i = first; c->room[thread] && i < last; i++) {
		k.b = (uint32_t)(i / p->kv_heads);
		k.g = (uint32_t)(i % p->kv_heads);
		head_load(c, &k);
		if (c->data == ATTENTION_DATA_MEAN)
			check_mean(c, thread, &k);
		else
			check_keyless(c, thread, &k);
	}
	head_free(&k);
}

enum status attention_check_gradients(struct attention *a, enum attention_data data, struct wrong *wrong,
				      struct error *err)
{
	unsigned threads = cpu_pool_count(a->pool);
	void *found[ATTENTION_TENSORS] = {NULL};
	struct check_job c = {.a = a,
			      .data = data,
			      .wrong = calloc(threads, sizeof(*c.wrong)),
			      .room = calloc(threads, sizeof(*c.room))};
	bool room = c.wrong && c.room;
	enum status st = STATUS_OK;

	for (enum attention_tensor t = ATTENTION_D_Q; !st && t <= ATTENTION_D_V; t++) {
		c.found[t] = found[t] = malloc(attention_tensor_bytes(&a->c.problem, t));
		room = room && found[t];
		st = room ? a->access->read(a, 0, t, found[t], err)
			  : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					    "attention: not enough memory to verify");
	}
	if (!st)
		st = attention_check_threads(a->pool, check_work, &c, c.wrong, c.room, wrong, err);
	for (int t = 0; t < ATTENTION_TENSORS; t++)
		free(found[t]);
	free(c.room);
	free(c.wrong);
	return st;
}
