/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/attention/backward/args.h on the host, a launch at a time, pair by pair in double precision: what one
 * launch leaves for the next is what the next reads. */
#include "kernel/attention/backward/args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ref.h"
#include "ref_number.h"

#define COUNTED(a) (sizeof(a) / sizeof((a)[0]))

/* One query head of one sequence: first elements and rows. */
struct head {
	const struct attention_backward_args *a;
	enum attention_type type;
	uint64_t q, k, v, o, lse, padded;
	int64_t q_len, kv_len;
	double *of_q, *of_k, *of_v, *of_d_o; /* [rows][head_dim] */
};

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static struct head head_of(const struct attention_backward_args *a, enum attention_type type, uint32_t b,
			   uint32_t head)
{
	const uint32_t *qs = at(a->q_starts), *ks = at(a->kv_starts),
		       kv_head = head / (a->heads / a->kv_heads);
	const uint64_t q_row = qs ? qs[b] : 0, kv_row = ks ? ks[b] : 0, batch = qs ? 0 : b;
	struct head h = {.a = a, .type = type, .q_len = a->q_len, .kv_len = a->kv_len};

	if (qs) {
		h.q_len = (int64_t)qs[b + 1] - (int64_t)qs[b];
		h.kv_len = (int64_t)ks[b + 1] - (int64_t)ks[b];
	}
	h.q = batch * (uint64_t)a->q_step.batch + head * (uint64_t)a->q_step.head +
	      q_row * (uint64_t)a->q_step.row;
	h.o = batch * (uint64_t)a->o_step.batch + head * (uint64_t)a->o_step.head +
	      q_row * (uint64_t)a->o_step.row;
	h.k = batch * (uint64_t)a->k_step.batch + kv_head * (uint64_t)a->k_step.head +
	      kv_row * (uint64_t)a->k_step.row;
	h.v = batch * (uint64_t)a->v_step.batch + kv_head * (uint64_t)a->v_step.head +
	      kv_row * (uint64_t)a->v_step.row;
	h.lse = ((uint64_t)b * a->heads + head) * a->q_len;
	h.padded = (uint64_t)head * a->rows +
		   (qs ? ATTENTION_BACKWARD_ROW(b, q_row) : b * (uint64_t)(a->rows / a->batch));
	return h;
}

static double *rows_of(const struct head *h, uint64_t tensor, uint64_t first, int64_t step, int64_t rows)
{
	const uint64_t d = h->a->head_dim;
	double *out = calloc((uint64_t)rows * d + 1, sizeof(*out));

	if (!out)
		abort();
	for (uint64_t i = 0; i < (uint64_t)rows * d; i++)
		out[i] = ref_number_load(h->type, at(tensor), first + i / d * (uint64_t)step + i % d);
	return out;
}

static void load(struct head *h)
{
	const struct attention_backward_args *a = h->a;

	h->of_q = rows_of(h, a->q, h->q, a->q_step.row, h->q_len);
	h->of_k = rows_of(h, a->k, h->k, a->k_step.row, h->kv_len);
	h->of_v = rows_of(h, a->v, h->v, a->v_step.row, h->kv_len);
	h->of_d_o = rows_of(h, a->d_o, h->o, a->o_step.row, h->q_len);
}

static void unload(struct head *h)
{
	free(h->of_q);
	free(h->of_k);
	free(h->of_v);
	free(h->of_d_o);
}

static double dot(const struct head *h, const double *x, const double *y)
{
	double sum = 0;

	for (uint32_t d = 0; d < h->a->head_dim; d++)
		sum += x[d] * y[d];
	return sum;
}

/* P and dS of a pair; false: it is not kept. */
static bool pair(const struct head *h, int64_t i, int64_t j, double *p, double *d_s)
{
	const struct attention_backward_args *a = h->a;
	const int64_t place = i + h->kv_len - h->q_len;
	const uint64_t row = h->padded + (uint64_t)i;
	const double scale = (double)a->scale, *q = h->of_q + i * a->head_dim, *k = h->of_k + j * a->head_dim;

	if (j < place - a->left || j > place + a->right)
		return false;
	*p = exp2(scale * 1.4426950408889634 * dot(h, q, k) - (double)((const float *)at(a->lse2))[row]);
	*d_s = *p * (scale * dot(h, h->of_d_o + i * a->head_dim, h->of_v + j * a->head_dim) -
		     (double)((const float *)at(a->sums))[row]);
	return true;
}

static void store_row(const struct head *h, uint64_t tensor, uint64_t first, const double *row)
{
	for (uint32_t d = 0; d < h->a->head_dim; d++)
		ref_number_store(h->type, at(tensor), first + d, row[d]);
}

/* -- the launches' parts of one head -- */

static void begin(const struct head *h)
{
	const struct attention_backward_args *a = h->a;
	double *of_o = rows_of(h, a->o, h->o, a->o_step.row, h->q_len);
	const uint64_t pad = ATTENTION_BACKWARD_PAD, end = ((uint64_t)h->q_len + pad - 1) / pad * pad;

	for (uint64_t i = 0; i < end; i++) {
		double lse = i < (uint64_t)h->q_len ? (double)((const float *)at(a->lse))[h->lse + i]
						    : -(double)INFINITY;

		((float *)at(a->lse2))[h->padded + i] =
			isinf(lse) ? INFINITY : (float)(lse * 1.4426950408889634);
		((float *)at(a->sums))[h->padded + i] =
			isinf(lse) ? 0
				   : (float)((double)a->scale *
					     dot(h, of_o + i * a->head_dim, h->of_d_o + i * a->head_dim));
		if (a->sum_q)
			memset((float *)at(a->sum_q) + (h->padded + i) * a->head_dim, 0,
			       a->head_dim * sizeof(float));
	}
	free(of_o);
}

/* Where element d of row i of a head's dQ stands in its sum (backward_end). */
static uint64_t in_sum(const struct head *h, uint64_t i, uint64_t d)
{
	const uint64_t queries = ATTENTION_BACKWARD_QUERIES(h->a->head_dim), r = i % queries % 64, c = d % 64;
	const uint64_t group = queries == 128 ? i % queries / 64 : d / 64;
	const uint64_t thread = r / 16 * 32 + r % 8 * 4 + c % 8 / 2;

	return (h->padded + i - i % queries) * h->a->head_dim + group * 4096 + c / 8 * 512 + thread * 4 +
	       r % 16 / 8 * 2 + c % 2;
}

static void end(const struct head *h)
{
	for (int64_t i = 0; i < h->q_len; i++)
		for (uint32_t d = 0; d < h->a->head_dim; d++)
			ref_number_store(h->type, at(h->a->d_q), h->q + (uint64_t)(i * h->a->q_step.row) + d,
					 (double)((const float *)at(h->a->sum_q))[in_sum(h, (uint64_t)i, d)]);
}

static void queries(const struct head *h)
{
	const struct attention_backward_args *a = h->a;
	double p, d_s;

	for (int64_t i = 0; i < h->q_len; i++) {
		double row[ATTENTION_HEAD_DIM_MAX] = {0};

		for (int64_t j = 0; j < h->kv_len; j++) {
			if (!pair(h, i, j, &p, &d_s))
				continue;
			for (uint32_t d = 0; d < a->head_dim; d++)
				row[d] += d_s * h->of_k[j * a->head_dim + d];
		}
		if (a->sum_q)
			for (uint32_t d = 0; d < a->head_dim; d++)
				((float *)at(a->sum_q))[in_sum(h, (uint64_t)i, d)] += (float)row[d];
		else
			store_row(h, a->d_q, h->q + (uint64_t)(i * a->q_step.row), row);
	}
}

/* Of the first query head of a key head: for all that read it. */
static void keys(const struct head *first, uint32_t b, uint32_t head)
{
	const struct attention_backward_args *a = first->a;
	const uint64_t d = a->head_dim, count = (uint64_t)first->kv_len * d;
	double *d_k = calloc(2 * count + 1, sizeof(*d_k)), *d_v = d_k + count, p, d_s;

	if (!d_k)
		abort();
	for (uint32_t g = 0; g < a->heads / a->kv_heads; g++) {
		struct head h = head_of(a, first->type, b, head + g);

		load(&h);
		for (int64_t i = 0; i < h.q_len; i++)
			for (int64_t j = 0; j < h.kv_len; j++)
				for (uint64_t e = 0, kept = pair(&h, i, j, &p, &d_s); kept && e < d; e++) {
					d_k[(uint64_t)j * d + e] += d_s * h.of_q[(uint64_t)i * d + e];
					d_v[(uint64_t)j * d + e] += p * h.of_d_o[(uint64_t)i * d + e];
				}
		unload(&h);
	}
	for (int64_t j = 0; j < first->kv_len; j++) {
		store_row(first, a->d_k, first->k + (uint64_t)(j * a->k_step.row), d_k + (uint64_t)j * d);
		store_row(first, a->d_v, first->v + (uint64_t)(j * a->v_step.row), d_v + (uint64_t)j * d);
	}
	free(d_k);
}

/* -- rows -- */

static const struct part {
	const char *word; /* in the entry */
	bool begin, end, keys, queries;
} parts[] = {
	{"_begin_", .begin = true},
	{"_end_", .end = true},
	{"_keys_", .keys = true},
	{"_queries_", .queries = true},
	{"_once_", .keys = true, .queries = true},
	{"_late_", .keys = true, .queries = true},
	{"_split_", .keys = true, .queries = true},
	{"_ahead_", .keys = true, .queries = true},
	{"_bulk_", .keys = true, .queries = true},
};

static void portable(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_backward_args *a = args;
	const struct part *p = parts;

	(void)grid;
	while (!strstr(entry, p->word))
		if (++p == parts + COUNTED(parts))
			abort();
	for (uint32_t b = 0; b < a->batch; b++)
		for (uint32_t head = 0; head < a->heads; head++) {
			struct head h =
				head_of(a, strstr(entry, "bf16") ? ATTENTION_BF16 : ATTENTION_F16, b, head);

			load(&h);
			if (p->begin)
				begin(&h);
			if (p->end)
				end(&h);
			if (p->keys && head % (a->heads / a->kv_heads) == 0)
				keys(&h, b, head);
			if (p->queries)
				queries(&h);
			unload(&h);
		}
}

static void sm90(const char *entry, struct ref_grid grid, const void *args)
{
	struct attention_backward_args a;

	memcpy(&a, (const char *)args + offsetof(struct attention_backward_sm90_args, a), sizeof(a));
	portable(entry, grid, &a);
}

#define PORTABLE(entry, out)                                                                                 \
	{                                                                                                    \
		entry, portable, sizeof(struct attention_backward_args),                                     \
			offsetof(struct attention_backward_args, out)                                        \
	}
#define SM90(entry, out)                                                                                     \
	{                                                                                                    \
		entry, sm90, sizeof(struct attention_backward_sm90_args),                                    \
			offsetof(struct attention_backward_sm90_args, a.out)                                 \
	}
const struct ref_row ref_attention_backward[] = {
	PORTABLE("backward_begin_", lse2),
	PORTABLE("backward_end_", d_q),
	PORTABLE("backward_keys_", d_k),
	PORTABLE("backward_queries_", d_q),
	SM90("backward_sm90_keys_", d_v),
	SM90("backward_sm90_queries_", d_q),
	SM90("backward_sm90_once_", sum_q),
	SM90("backward_sm90_late_", sum_q),
	SM90("backward_sm90_split_", sum_q),
	SM90("backward_sm90_ahead_", sum_q),
	SM90("backward_sm90_bulk_", sum_q),
	{NULL, NULL, 0, 0},
};
