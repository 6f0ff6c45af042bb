/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel/step/sample.h in double with a sort. Every entry but step_sample_scan makes the whole choice.
 * Penalties are rounded to float after each operation, as the kernels' are.
 */
#include "core/math/random.h"
#include "ref_step_sample.h"
#include "ref_train.h"
#include <stdlib.h>

enum { OK, NOT_FINITE, EMPTY }; /* enum sample_status */

static double logit(const struct step_sample_args *a, int64_t row, int64_t id)
{
	return a->bf16 ? ref_bf16(a->logits, row * a->ld + id)
		       : (double)AT(const float, a->logits)[row * a->ld + id];
}

/* The value with penalties and bias; false: the id is not allowed. */
static bool adjusted(const struct step_sample_args *a, const struct step_sample_row *r, int64_t id, float *v)
{
	const uint32_t count = r->counted ? AT(const uint16_t, a->counts)[r->place * a->ld_counts + id] : 0;
	const float times = (float)(count & 0x7fff);
	const struct step_sample_bias *bias = AT(const struct step_sample_bias, a->bias) + r->bias_begin;
	float add = 0;
	bool has = false;

	if (count)
		*v = *v > 0 ? *v / r->repetition : *v * r->repetition;
	if (times > 0)
		*v -= r->frequency * times + r->presence;
	for (int32_t i = 0; i < r->biases; i++)
		if (bias[i].id == id) {
			add += bias[i].add;
			has = true;
		}
	*v = has ? *v + add : *v;
	if (isnan(*v) || *v < -3.402823466e38f)
		return false;
	*v = *v > 3.402823466e38f ? 3.402823466e38f : *v;
	return r->mask < 0 ||
	       (AT(const uint32_t, a->mask)[(int64_t)r->mask * a->mask_words + id / 32] >> id % 32 & 1);
}

static int by_order(const void *x, const void *y)
{
	const struct ref_candidate *c = x, *d = y;

	if (c->value > d->value || c->value < d->value)
		return c->value > d->value ? -1 : 1;
	return c->id < d->id ? -1 : c->id > d->id;
}

int64_t ref_sample_order(const struct step_sample_args *a, int64_t row, bool raw, struct ref_candidate *c,
			 bool *finite)
{
	const struct step_sample_row *r = AT(const struct step_sample_row, a->row) + row;
	int64_t count = 0;

	*finite = true;
	for (int64_t id = 0; id < a->vocab; id++) {
		float v = (float)logit(a, row, id);

		if (!isfinite(v))
			*finite = false;
		if (raw || adjusted(a, r, id, &v))
			c[count++] = (struct ref_candidate){.value = (double)v, .id = (int32_t)id};
	}
	qsort(c, (size_t)count, sizeof(*c), by_order);
	return count;
}

/* Sum of the shares of the first `count`. */
static double sum_of(const struct ref_candidate *c, int64_t count)
{
	double sum = 0;

	for (int64_t i = 0; i < count; i++)
		sum += c[i].share;
	return sum;
}

static int by_id(const void *x, const void *y)
{
	const struct ref_candidate *c = x, *d = y;

	return c->id < d->id ? -1 : c->id > d->id;
}

int64_t ref_sample_keep(const struct step_sample_row *r, struct ref_candidate *c, int64_t count)
{
	double all, sum = 0;
	int64_t stay = 0, heavy = 0;

	for (int64_t i = 0; i < count; i++)
		c[i].share = exp((c[i].value - c[0].value) / (double)r->temperature);
	if (r->top_k <= 0 && r->top_p >= 1 && r->min_p <= 0) {
		qsort(c, (size_t)count, sizeof(*c), by_id);
		return count;
	}
	if (r->top_k > 0 && r->top_k < count)
		count = r->top_k;
	all = sum_of(c, count);
	if (r->top_p < 1) {
		while (stay < count && (!stay || sum < (double)r->top_p * all))
			sum += c[stay++].share;
		count = stay;
	}
	while (heavy < count && c[heavy].share >= (double)r->min_p)
		heavy++;
	return heavy;
}

int64_t ref_sample_point(const struct step_sample_row *r, const struct ref_candidate *c, int64_t kept,
			 double *distance)
{
	const double all = sum_of(c, kept);
	const double point = ((double)random_u32(r->seed, r->stream, r->index) + 0.5) * 0x1p-32 * all;
	double sum = 0;

	*distance = 1;
	for (int64_t i = 0; i < kept; i++) {
		const double before = sum;

		sum += c[i].share;
		if (point < sum || i == kept - 1) {
			*distance = fmin(point - before, sum - point) / all;
			return i;
		}
	}
	return 0;
}

static void put_logprobs(const struct step_sample_args *a, const struct step_sample_row *r, int64_t row, int32_t id,
			 struct ref_candidate *c)
{
	int32_t *out = AT(int32_t, a->results) + row * a->ld_results;
	float *numbers = (float *)out;
	double sum = 0;
	bool finite;
	const int64_t count = ref_sample_order(a, row, true, c, &finite);

	for (int64_t i = 0; i < count; i++)
		sum += exp(c[i].value - c[0].value);
	numbers[2] = (float)(logit(a, row, id) - c[0].value - log(sum));
	for (; out[3] < r->logprobs && out[3] < count; out[3]++) {
		out[4 + out[3]] = c[out[3]].id;
		numbers[4 + STEP_SAMPLE_TOPS + out[3]] = (float)(c[out[3]].value - c[0].value - log(sum));
	}
}

static int32_t chosen(const struct step_sample_args *a, const struct step_sample_row *r, int64_t row,
		      struct ref_candidate *c, int32_t *status)
{
	bool finite;
	const int64_t count = ref_sample_order(a, row, false, c, &finite);
	double distance;

	*status = !finite ? NOT_FINITE : !count && r->given < 0 ? EMPTY : OK;
	if (*status)
		return 0;
	if (r->given >= 0)
		return r->given;
	return r->temperature == 0
		       ? c[0].id
		       : c[ref_sample_point(r, c, ref_sample_keep(r, c, count), &distance)].id;
}

static void sample_row(const struct step_sample_args *a, int64_t row, struct ref_candidate *c)
{
	const struct step_sample_row *r = AT(const struct step_sample_row, a->row) + row;
	int32_t *out = AT(int32_t, a->results) + row * a->ld_results;

	memset(out, 0, 4 * sizeof(*out));
	out[0] = chosen(a, r, row, c, &out[1]);
	if (out[1] == OK && (r->logprobs >= 0 || r->given >= 0))
		put_logprobs(a, r, row, out[0], c);
	if (r->place >= 0)
		AT(int32_t, a->last)[r->place] = out[0];
	if (r->counted && out[1] == OK) {
		uint16_t *count = AT(uint16_t, a->counts) + r->place * a->ld_counts + out[0];

		*count += (*count & 0x7fff) < 0x7fff;
	}
}

static void sample(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_sample_args *a = args;
	struct ref_candidate *c = malloc((size_t)a->vocab * sizeof(*c));

	(void)entry, (void)grid;
	for (int64_t row = 0; c && row < a->rows; row++)
		sample_row(a, row, c);
	free(c);
}

static void scan(const char *entry, struct ref_grid grid, const void *args)
{
	(void)entry, (void)grid, (void)args;
}

static void count(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_count_args *a = args;
	uint16_t *counts = AT(uint16_t, a->counts);

	(void)entry, (void)grid;
	if (a->clear)
		memset(counts, 0, a->vocab * sizeof(*counts));
	for (uint64_t i = 0; i < a->count; i++) {
		const int32_t id = AT(const int32_t, a->id)[i];

		if (id < 0 || (uint32_t)id >= a->vocab)
			continue;
		if (i < a->prompt)
			counts[id] |= 0x8000;
		else
			counts[id] += (counts[id] & 0x7fff) < 0x7fff;
	}
}

#define ROW(entry, run, type, out)                                                                           \
	{                                                                                                    \
		entry, run, sizeof(struct type), offsetof(struct type, out)                                  \
	}
const struct ref_row ref_step_sample[] = {
	ROW("step_sample_greedy", sample, step_sample_args, results),
	ROW("step_sample_plain", sample, step_sample_args, results),
	ROW("step_sample_scan", scan, step_sample_args, part),
	ROW("step_sample_choose", sample, step_sample_args, results),
	ROW("step_sample_count", count, step_count_args, counts),
	{NULL, NULL, 0, 0},
};
