/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/plain_attention.cu in double, by the definition: a query row at a time. */
#include "kernel/train/plain_attention.h"
#include "ref_train.h"
#include <stdlib.h>

/* Columns of q, k, v for a query head. */
struct columns {
	int64_t q, k, v;
};

static struct columns columns_of(const struct train_attention_args *a, int64_t head)
{
	const int64_t dim = a->head_dim, kv = head / (a->heads / a->kv_heads);

	return (struct columns){head * dim, (a->heads + kv) * dim, (a->heads + a->kv_heads + kv) * dim};
}

static double dot(const double *x, const double *y, int64_t dim)
{
	double sum[4] = {0};
	int64_t d = 0;

	for (; d + 4 <= dim; d += 4)
		for (int64_t n = 0; n < 4; n++) /* four at once, of which the compiler makes vectors */
			sum[n] += x[d + n] * y[d + n];
	for (; d < dim; d++)
		sum[0] += x[d] * y[d];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* `count` rows of dim numbers, ld apart, from element `first` on. The caller frees them. */
static double *rows_of(uint64_t p, int64_t first, int64_t ld, int64_t count, int64_t dim)
{
	double *rows = malloc((size_t)(count * dim) * sizeof(*rows));

	if (!rows)
		abort();
	for (int64_t i = 0; i < count; i++)
		for (int64_t d = 0; d < dim; d++)
			rows[i * dim + d] = ref_number(p, first + i * ld + d);
	return rows;
}

/* A document's rows for one key head, and its query row at hand: numbers are read once. */
struct head_rows {
	int64_t begin, end;
	double *k, *v;
	double q[TRAIN_HEAD_DIM_MAX], d_o[TRAIN_HEAD_DIM_MAX];
};

static struct head_rows head_rows(const struct train_attention_args *a, int64_t begin, int64_t end,
				  int64_t head)
{
	const struct columns c = columns_of(a, head);
	const int64_t first = begin * a->ld_qkv;

	return (struct head_rows){.begin = begin,
				  .end = end,
				  .k = rows_of(a->qkv, first + c.k, a->ld_qkv, end - begin, a->head_dim),
				  .v = rows_of(a->qkv, first + c.v, a->ld_qkv, end - begin, a->head_dim)};
}

static void head_rows_free(struct head_rows *r)
{
	free(r->k);
	free(r->v);
}

static void forward_row(const struct train_attention_args *a, struct head_rows *r, int64_t t, int64_t head)
{
	const struct columns c = columns_of(a, head);
	const int64_t dim = a->head_dim, keys = t - r->begin + 1;
	double o[TRAIN_HEAD_DIM_MAX] = {0}, most = -INFINITY, sum = 0;
	double *s = malloc((size_t)keys * sizeof(double));

	if (!s)
		abort();
	for (int64_t d = 0; d < dim; d++)
		r->q[d] = ref_number(a->qkv, t * a->ld_qkv + c.q + d);
	for (int64_t j = 0; j < keys; j++) {
		s[j] = dot(r->q, r->k + j * dim, dim) * (double)a->scale;
		most = fmax(most, s[j]);
	}
	for (int64_t j = 0; j < keys; j++) {
		double e = exp(s[j] - most);

		sum += e;
		for (int64_t d = 0; d < dim; d++)
			o[d] += e * r->v[j * dim + d];
	}
	for (int64_t d = 0; d < dim; d++)
		ref_put_number(a->o, t * a->ld_o + c.q + d, o[d] / sum);
	AT(float, a->lse)[t * a->ld_lse + head] = (float)(most + log(sum));
	free(s);
}

static void delta(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_attention_args *a = args;
	const int64_t dim = a->head_dim;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		double *o = rows_of(a->o, t * a->ld_o, dim, a->heads, dim);
		double *d_o = rows_of(a->d_o, t * a->ld_d_o, dim, a->heads, dim);

		for (int64_t h = 0; h < a->heads; h++)
			AT(float, a->delta)[t * a->heads + h] = (float)dot(o + h * dim, d_o + h * dim, dim);
		free(o);
		free(d_o);
	}
}

/* One query row of one head adds to its own dq, or to dk and dv of the keys it sees (of the document, in
 * double). */
static void backward_row(const struct train_attention_args *a, struct head_rows *r, int64_t t, int64_t head,
			 bool of_q, double *restrict dq, double *restrict dk, double *restrict dv)
{
	const struct columns c = columns_of(a, head);
	const int64_t dim = a->head_dim;

	for (int64_t d = 0; d < dim; d++) {
		r->q[d] = ref_number(a->qkv, t * a->ld_qkv + c.q + d);
		r->d_o[d] = ref_number(a->d_o, t * a->ld_d_o + c.q + d);
	}
	for (int64_t j = 0; j <= t - r->begin; j++) {
		const double *k = r->k + j * dim, *v = r->v + j * dim;
		double s = dot(r->q, k, dim) * (double)a->scale;
		double p = exp(s - (double)AT(const float, a->lse)[t * a->ld_lse + head]);
		double dp = dot(r->d_o, v, dim);
		double ds =
			p * (dp - (double)AT(const float, a->delta)[t * a->heads + head]) * (double)a->scale;

		for (int64_t d = 0; of_q && d < dim; d++)
			dq[d] += ds * k[d];
		for (int64_t d = 0; !of_q && d < dim; d++) {
			dk[j * dim + d] += ds * r->q[d];
			dv[j * dim + d] += p * r->d_o[d];
		}
	}
}

/* One document, one key head; bwd_q writes dq, bwd_kv dk and dv. */
static void backward_head(const struct train_attention_args *a, int64_t begin, int64_t end, int64_t kv,
			  bool of_q)
{
	const int64_t group = a->heads / a->kv_heads, dim = a->head_dim, ld = a->ld_dqkv;
	double *dk = calloc((size_t)(2 * (end - begin) * dim), sizeof(double)),
	       *dv = dk + (end - begin) * dim;
	struct head_rows rows = head_rows(a, begin, end, kv * group);

	if (!dk)
		abort();
	for (int64_t head = kv * group; head < (kv + 1) * group; head++)
		for (int64_t t = begin; t < end; t++) {
			double dq[TRAIN_HEAD_DIM_MAX] = {0};

			backward_row(a, &rows, t, head, of_q, dq, dk, dv);
			for (int64_t d = 0; of_q && d < dim; d++)
				ref_put_number(a->dqkv, t * ld + head * dim + d, dq[d]);
		}
	for (int64_t i = 0; !of_q && i < (end - begin) * dim; i++) {
		const int64_t at = (begin + i / dim) * ld + i % dim;

		ref_put_number(a->dqkv, at + (a->heads + kv) * dim, dk[i]);
		ref_put_number(a->dqkv, at + (a->heads + a->kv_heads + kv) * dim, dv[i]);
	}
	head_rows_free(&rows);
	free(dk);
}

static void attention(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_attention_args *a = args;
	const int32_t *start = AT(const int32_t, a->doc_start);

	(void)grid;
	for (uint32_t doc = 0; doc < a->docs; doc++) {
		if (strcmp(entry, REF_TRAIN_ENTRY("train_attention"))) {
			for (int64_t kv = 0; kv < a->kv_heads; kv++)
				backward_head(a, start[doc], start[doc + 1], kv,
					      !strcmp(entry, REF_TRAIN_ENTRY("train_attention_bwd_q")));
			continue;
		}
		for (int64_t head = 0; head < a->heads; head++) {
			struct head_rows rows = head_rows(a, start[doc], start[doc + 1], head);

			for (int64_t t = start[doc]; t < start[doc + 1]; t++)
				forward_row(a, &rows, t, head);
			head_rows_free(&rows);
		}
	}
}

#define ROW(name, run, member)                                                                               \
	{                                                                                                    \
		name, run, sizeof(struct train_attention_args),                                              \
			offsetof(struct train_attention_args, member)                                        \
	}
const struct ref_row REF_TRAIN_ROWS(ref_train_attention)[] = {
	ROW(REF_TRAIN_ENTRY("train_attention"), attention, o),
	ROW(REF_TRAIN_ENTRY("train_attention_delta"), delta, delta),
	ROW(REF_TRAIN_ENTRY("train_attention_bwd_kv"), attention, dqkv),
	ROW(REF_TRAIN_ENTRY("train_attention_bwd_q"), attention, dqkv),
	{NULL, NULL, 0, 0},
};
