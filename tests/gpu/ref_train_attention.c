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

static double dot(uint64_t x, int64_t i, uint64_t y, int64_t j, int64_t dim)
{
	double sum = 0;

	for (int64_t d = 0; d < dim; d++)
		sum += ref_number(x, i + d) * ref_number(y, j + d);
	return sum;
}

static void forward_row(const struct train_attention_args *a, int64_t begin, int64_t t, int64_t head)
{
	const struct columns c = columns_of(a, head);
	const int64_t ld = a->ld_qkv, dim = a->head_dim;
	double o[TRAIN_HEAD_DIM_MAX] = {0}, most = -INFINITY, sum = 0;
	double *s = malloc((size_t)(t - begin + 1) * sizeof(double));

	if (!s)
		abort();
	for (int64_t j = begin; j <= t; j++) {
		s[j - begin] = dot(a->qkv, t * ld + c.q, a->qkv, j * ld + c.k, dim) * (double)a->scale;
		most = fmax(most, s[j - begin]);
	}
	for (int64_t j = begin; j <= t; j++) {
		double e = exp(s[j - begin] - most);

		sum += e;
		for (int64_t d = 0; d < dim; d++)
			o[d] += e * ref_number(a->qkv, j * ld + c.v + d);
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
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t h = 0; h < a->heads; h++)
			AT(float, a->delta)
	[t * a->heads + h] = (float)dot(a->o, t * a->ld_o + h * dim, a->d_o, t * a->ld_d_o + h * dim, dim);
}

/* What one query row of one head adds: to its own dq, to dk and dv of the keys it sees (of the document, in
 * double). */
static void backward_row(const struct train_attention_args *a, int64_t begin, int64_t t, int64_t head,
			 double *dq, double *dk, double *dv)
{
	const struct columns c = columns_of(a, head);
	const int64_t ld = a->ld_qkv, dim = a->head_dim;

	for (int64_t j = begin; j <= t; j++) {
		double s = dot(a->qkv, t * ld + c.q, a->qkv, j * ld + c.k, dim) * (double)a->scale;
		double p = exp(s - (double)AT(const float, a->lse)[t * a->ld_lse + head]);
		double dp = dot(a->d_o, t * a->ld_d_o + c.q, a->qkv, j * ld + c.v, dim);
		double ds =
			p * (dp - (double)AT(const float, a->delta)[t * a->heads + head]) * (double)a->scale;

		for (int64_t d = 0; d < dim; d++) {
			dq[d] += ds * ref_number(a->qkv, j * ld + c.k + d);
			dk[(j - begin) * dim + d] += ds * ref_number(a->qkv, t * ld + c.q + d);
			dv[(j - begin) * dim + d] += p * ref_number(a->d_o, t * a->ld_d_o + c.q + d);
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

	if (!dk)
		abort();
	for (int64_t head = kv * group; head < (kv + 1) * group; head++)
		for (int64_t t = begin; t < end; t++) {
			double dq[TRAIN_HEAD_DIM_MAX] = {0};

			backward_row(a, begin, t, head, dq, dk, dv);
			for (int64_t d = 0; of_q && d < dim; d++)
				ref_put_number(a->dqkv, t * ld + head * dim + d, dq[d]);
		}
	for (int64_t i = 0; !of_q && i < (end - begin) * dim; i++) {
		const int64_t at = (begin + i / dim) * ld + i % dim;

		ref_put_number(a->dqkv, at + (a->heads + kv) * dim, dk[i]);
		ref_put_number(a->dqkv, at + (a->heads + a->kv_heads + kv) * dim, dv[i]);
	}
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
		for (int64_t t = start[doc]; t < start[doc + 1]; t++)
			for (int64_t head = 0; head < a->heads; head++)
				forward_row(a, start[doc], t, head);
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
