/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact passes: data for which the correct O and log-sum-exp of every row are known without a matrix of
 * pairs. See docs/explanation/methods/attention.md, "Exact passes".
 *
 * MEAN: Q is 0. So each row's O is the mean of the kept values, and its log-sum-exp is the logarithm of their
 * number. This checks every pair of query and key, and every element of V.
 *
 * SELECT: keys are codes of signs, and each query is the code of one key, much enlarged. So O is the value of
 * that key and the log-sum-exp is its logit. This checks every element of Q, and of K if the key is selected.
 *
 * The result of a row without kept pairs is 0 and -inf.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "probe/attention/attention.h"
#include "probe/attention/attended_pairs.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

struct check_job { /* argument of the pool's work functions */
	struct attention *a;
	enum attention_data data;
	const unsigned char *o;
	const float *lse;
	/* allowed error of an element, as a share of its value and as an absolute value */
	double share, least;
	struct wrong *wrong; /* (threads) */
	bool *room;	     /* (threads) false: the thread did not have enough memory */
};

/* One key head's values and a thread's work space. */
struct head {
	uint32_t b, g;
	int32_t *sums; /* MEAN: (kv_len + 1, head_dim): sum of the values of all keys before */
	struct attention_keys *span, *last; /* (room) of this row and of the previous one */
	uint32_t spans, last_spans;
	double value[ATTENTION_HEAD_DIM_MAX], lse; /* expected value of the row */
};

static void sum_values(const struct attention *a, struct head *k)
{
	const struct attention_problem *p = &a->c.problem;
	float row[ATTENTION_HEAD_DIM_MAX];
	uint32_t d = p->head_dim;

	memset(k->sums, 0, d * sizeof(*k->sums));
	for (uint32_t j = 0; j < attention_kv_len(p, k->b); j++) {
		attention_row_values(a, ATTENTION_DATA_MEAN, ATTENTION_V, k->b, k->g, j, row);
		for (uint32_t i = 0; i < d; i++)
			k->sums[(size_t)(j + 1) * d + i] = k->sums[(size_t)j * d + i] + (int32_t)row[i];
	}
}

static void expect_mean(const struct attention_problem *p, struct head *k)
{
	uint64_t keys = 0;
	int64_t sum[ATTENTION_HEAD_DIM_MAX] = {0};

	if (k->spans == k->last_spans && !memcmp(k->span, k->last, k->spans * sizeof(*k->span)) && k->spans)
		return; /* the same as the previous row */
	for (uint32_t i = 0; i < k->spans; i++) {
		const int32_t *to = k->sums + (size_t)k->span[i].to * p->head_dim;
		const int32_t *from = k->sums + (size_t)k->span[i].from * p->head_dim;

		keys += k->span[i].to - k->span[i].from;
		for (uint32_t d = 0; d < p->head_dim; d++)
			sum[d] += to[d] - from[d];
	}
	for (uint32_t d = 0; d < p->head_dim; d++)
		k->value[d] = keys ? (double)sum[d] / (double)keys : 0;
	k->lse = keys ? log((double)keys) : -INFINITY;
	memcpy(k->last, k->span, k->spans * sizeof(*k->span));
	k->last_spans = k->spans;
}

static void expect_selected(const struct attention *a, struct head *k, uint32_t row)
{
	const struct attention_problem *p = &a->c.problem;
	float value[ATTENTION_HEAD_DIM_MAX] = {0};

	if (k->spans)
		attention_row_values(a, ATTENTION_DATA_SELECT, ATTENTION_V, k->b, k->g,
				     attention_selected(a, k->span, k->spans, k->b, row), value);
	for (uint32_t d = 0; d < p->head_dim; d++)
		k->value[d] = (double)value[d];
	k->lse = k->spans ? attention_select_logit(p) : -INFINITY;
}

/* Sets the allowed error. It exceeds O's own rounding: 16-bit probabilities may be rounded once more than
 * their sum, and if values cancel, FP32 rounding errors remain. One pair too many changes the result by at
 * least 2^-20. */
static void allow(struct check_job *c)
{
	const struct attention_problem *p = &c->a->c.problem;

	c->share = attention_roundoff(p->out_type) + 0x1p-20;
	if (p->type != ATTENTION_E4M3)
		c->share += attention_roundoff(p->type);
	c->least = attention_underflow(p->out_type) + 0x1p-22;
}

static double lse_allowed(enum attention_data data, double lse)
{
	return data == ATTENTION_DATA_MEAN ? 0x1p-18 * (1 + fabs(lse)) : 1e-3 + 0x1p-16 * fabs(lse);
}

static void check_row(const struct check_job *c, const struct head *k, uint32_t h, uint32_t row,
		      struct wrong *wrong)
{
	const struct attention_problem *p = &c->a->c.problem;
	float found[ATTENTION_HEAD_DIM_MAX];
	double lse = (double)c->lse[attention_tensor_at(p, ATTENTION_LSE, k->b, h, row)];

	attention_load(p->out_type, found,
		       c->o + attention_tensor_at(p, ATTENTION_O, k->b, h, row) *
				       attention_type_bytes(p->out_type),
		       p->head_dim);
	for (uint32_t d = 0; d < p->head_dim; d++)
		if (!(fabs((double)found[d] - k->value[d]) <=
		      (k->spans ? c->share * fabs(k->value[d]) + c->least : 0)))
			attention_note(p, wrong, ATTENTION_O, k->b, h, row, d, k->value[d], (double)found[d]);
	if (k->spans ? !(fabs(lse - k->lse) <= lse_allowed(c->data, k->lse)) : !(isinf(lse) && lse < 0))
		attention_note(p, wrong, ATTENTION_LSE, k->b, h, row, 0, k->lse, lse);
	wrong->checked += p->head_dim;
}

static void check_head(const struct check_job *c, struct head *k, struct wrong *wrong)
{
	const struct attention_problem *p = &c->a->c.problem;
	uint32_t group = p->heads / p->kv_heads;

	if (c->data == ATTENTION_DATA_MEAN)
		sum_values(c->a, k);
	for (uint32_t h = k->g * group; h < (k->g + 1) * group; h++) {
		k->last_spans = 0;
		for (uint32_t row = 0; row < attention_q_len(p, k->b); row++) {
			k->spans = attention_pairs_spans(p, c->a->c.blocks, k->b, h, row, k->span);
			if (c->data == ATTENTION_DATA_MEAN)
				expect_mean(p, k);
			else
				expect_selected(c->a, k, row);
			check_row(c, k, h, row, wrong);
		}
	}
}

static void check_work(void *arg, unsigned thread)
{
	const struct check_job *c = arg;
	const struct attention_problem *p = &c->a->c.problem;
	uint32_t room = attention_attended_room(c->a->c.blocks);
	struct head k = {.span = malloc(2 * (size_t)room * sizeof(*k.span))};
	uint64_t first, last;

	if (c->data == ATTENTION_DATA_MEAN)
		k.sums = malloc(((size_t)p->kv_len + 1) * p->head_dim * sizeof(*k.sums));
	c->room[thread] = k.span && (k.sums || c->data != ATTENTION_DATA_MEAN);
	k.last = k.span + room;
	cpu_share((uint64_t)p->batch * p->kv_heads, 1, thread, cpu_pool_count(c->a->pool), &first, &last);
	for (uint64_t i = first; c->room[thread] && i < last; i++) {
		k.b = (uint32_t)(i / p->kv_heads);
		k.g = (uint32_t)(i % p->kv_heads);
		check_head(c, &k, &c->wrong[thread]);
	}
	free(k.sums);
	free(k.span);
}

enum status attention_check_exact(struct attention *a, enum attention_data data, struct wrong *wrong,
				  struct error *err)
{
	const struct attention_problem *p = &a->c.problem;
	unsigned threads = cpu_pool_count(a->pool);
	void *o = malloc(attention_tensor_bytes(p, ATTENTION_O));
	float *lse = malloc(attention_tensor_bytes(p, ATTENTION_LSE));
	struct check_job c = {.a = a,
			      .data = data,
			      .o = o,
			      .lse = lse,
			      .wrong = calloc(threads, sizeof(*c.wrong)),
			      .room = calloc(threads, sizeof(*c.room))};
	enum status st = STATUS_OK;

	allow(&c);
	if (!o || !lse || !c.wrong || !c.room)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "attention: not enough memory to verify");
	if (!st)
		st = a->access->read(a, 0, ATTENTION_O, o, err);
	if (!st)
		st = a->access->read(a, 0, ATTENTION_LSE, lse, err);
	if (!st)
		st = attention_check_threads(a->pool, check_work, &c, c.wrong, c.room, wrong, err);
	free(c.room);
	free(c.wrong);
	free(lse);
	free(o);
	return st;
}
