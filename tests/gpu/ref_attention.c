/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_attention.h"
#include <math.h>
#include "ref_number.h"

/* One head of one sequence: where its rows lie, and what they hold. */
struct head {
	const struct attention_problem *p;
	const struct ref_attention *r;
	struct attention_strides qs, ks, vs, os;
	uint64_t q, k, v, o, lse; /* first elements */
	uint32_t q_len, kv_len;
	double *q_row, *k_rows, *v_rows; /* numbers of one query, of all keys and values */
};

/* The header's definition, pair by pair. */
static bool kept(const struct head *h, int64_t i, int64_t j)
{
	int64_t at = i + (int64_t)h->kv_len - (int64_t)h->q_len;
	const struct attention_problem *p = h->p;

	if (p->mask == ATTENTION_CAUSAL)
		return j <= at;
	if (p->mask == ATTENTION_WINDOW)
		return (p->window_left == ATTENTION_UNBOUNDED || j >= at - (int64_t)p->window_left) &&
		       (p->window_right == ATTENTION_UNBOUNDED || j <= at + (int64_t)p->window_right);
	return true;
}

static double dot(const struct head *h, const void *a, enum attention_type a_type, uint64_t a_at,
		  const void *b, uint64_t b_at)
{
	double sum = 0.0;

	for (uint32_t d = 0; d < h->p->head_dim; d++)
		sum += ref_number_load(a_type, a, a_at + d) * ref_number_load(h->p->type, b, b_at + d);
	return sum;
}

static void decode(const struct head *h, double *to, const void *from, uint64_t first, uint64_t stride,
		   uint32_t rows)
{
	const uint32_t n = h->p->head_dim;

	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t d = 0; d < n; d++)
			to[(uint64_t)i * n + d] = ref_number_load(h->p->type, from, first + i * stride + d);
}

static double score(const struct head *h, uint32_t j)
{
	const double *k = h->k_rows + (uint64_t)j * h->p->head_dim;
	double sum = 0.0;

	for (uint32_t d = 0; d < h->p->head_dim; d++)
		sum += h->q_row[d] * k[d];
	return attention_scale(h->p) * sum;
}

/* Shares of one row into `share`, its O and lse out. False: the row is empty. */
static bool forward_row(const struct head *h, uint32_t i, double *share)
{
	const struct attention_problem *p = h->p;
	double most = -(double)INFINITY, sum = 0.0, *o = h->r->o + h->o + i * h->os.row;

	decode(h, h->q_row, h->r->q, h->q + i * h->qs.row, 0, 1);
	for (uint32_t j = 0; j < h->kv_len; j++) {
		share[j] = kept(h, i, j) ? score(h, j) : -(double)INFINITY;
		most = fmax(most, share[j]);
	}
	for (uint32_t d = 0; d < p->head_dim; d++)
		o[d] = 0.0;
	if (most == -(double)INFINITY) {
		h->r->lse[h->lse + i] = most;
		return false;
	}
	for (uint32_t j = 0; j < h->kv_len; j++)
		sum += share[j] = exp(share[j] - most);
	for (uint32_t j = 0; j < h->kv_len; j++) {
		share[j] /= sum;
		for (uint32_t d = 0; share[j] > 0.0 && d < p->head_dim; d++)
			o[d] += share[j] * h->v_rows[(uint64_t)j * p->head_dim + d];
	}
	h->r->lse[h->lse + i] = most + log(sum);
	return true;
}

static void backward_row(const struct head *h, uint32_t i, const double *share)
{
	const struct attention_problem *p = h->p;
	uint64_t q = h->q + i * h->qs.row, o = h->o + i * h->os.row;
	double whole = 0.0;

	for (uint32_t d = 0; d < p->head_dim; d++)
		whole += ref_number_load(p->out_type, h->r->d_o, o + d) * h->r->o[o + d];
	for (uint32_t j = 0; j < h->kv_len; j++) {
		uint64_t k = h->k + j * h->ks.row, v = h->v + j * h->vs.row;
		double slope;

		if (share[j] <= 0.0)
			continue;
		slope = attention_scale(p) * share[j] *
			(dot(h, h->r->d_o, p->out_type, o, h->r->v, v) - whole);
		for (uint32_t d = 0; d < p->head_dim; d++) {
			h->r->d_q[q + d] += slope * ref_number_load(p->type, h->r->k, k + d);
			h->r->d_k[k + d] += slope * ref_number_load(p->type, h->r->q, q + d);
			h->r->d_v[v + d] += share[j] * ref_number_load(p->out_type, h->r->d_o, o + d);
		}
	}
}

static struct head head_of(const struct attention_problem *p, const struct ref_attention *r, uint32_t b,
			   uint32_t head)
{
	struct head h = {.p = p,
			 .r = r,
			 .qs = attention_q_strides(p),
			 .ks = attention_k_strides(p),
			 .vs = attention_v_strides(p),
			 .os = attention_o_strides(p)};
	uint32_t kv_head = head / (p->heads / p->kv_heads);

	h.q_len = p->q_starts ? p->q_starts[b + 1] - p->q_starts[b] : p->q_len;
	h.kv_len = p->kv_starts ? p->kv_starts[b + 1] - p->kv_starts[b] : p->kv_len;
	h.q = (p->q_starts ? p->q_starts[b] * h.qs.row : b * h.qs.batch) + head * h.qs.head;
	h.o = (p->q_starts ? p->q_starts[b] * h.os.row : b * h.os.batch) + head * h.os.head;
	h.k = (p->kv_starts ? p->kv_starts[b] * h.ks.row : b * h.ks.batch) + kv_head * h.ks.head;
	h.v = (p->kv_starts ? p->kv_starts[b] * h.vs.row : b * h.vs.batch) + kv_head * h.vs.head;
	h.lse = ((uint64_t)b * p->heads + head) * p->q_len;
	return h;
}

static void clear(double *x, uint64_t first, uint64_t rows, uint64_t stride, uint32_t elements)
{
	for (uint64_t i = 0; i < rows; i++)
		memset(x + first + i * stride, 0, elements * sizeof(*x));
}

/* What lies between rows is nobody's. */
static void clear_rows(const struct head *h, bool kv)
{
	clear(h->r->d_q, h->q, h->q_len, h->qs.row, h->p->head_dim);
	if (kv) {
		clear(h->r->d_k, h->k, h->kv_len, h->ks.row, h->p->head_dim);
		clear(h->r->d_v, h->v, h->kv_len, h->vs.row, h->p->head_dim);
	}
}

void ref_attention_run(const struct attention_problem *p, const struct ref_attention *r)
{
	const uint64_t elements = ((uint64_t)p->kv_len + 1) * p->head_dim;
	double *share = calloc(p->kv_len, sizeof(*share)), *numbers = calloc(2 * elements, sizeof(*numbers));

	if (!share || !numbers)
		abort();
	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t head = 0; head < p->heads; head++) {
			struct head h = head_of(p, r, b, head);

			h.k_rows = numbers;
			h.v_rows = numbers + elements;
			h.q_row = numbers + 2 * elements - p->head_dim;
			decode(&h, h.k_rows, r->k, h.k, h.ks.row, h.kv_len);
			decode(&h, h.v_rows, r->v, h.v, h.vs.row, h.kv_len);
			if (r->d_o) /* one head of K and V is added to by all that read it */
				clear_rows(&h, head % (p->heads / p->kv_heads) == 0);
			for (uint32_t i = 0; i < h.q_len; i++)
				if (forward_row(&h, i, share) && r->d_o)
					backward_row(&h, i, share);
		}
	free(share);
	free(numbers);
}
