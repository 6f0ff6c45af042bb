/* SPDX-License-Identifier: Apache-2.0 */
/* Samples ids from rows of logits (struct sample_row of model/backend/paged.h). */
#include "core/math/random.h"
#include "model/cpu/real.h"
#include "model/generation/choice.h"
#include "model/tensor/dtype.h"

/* A row and its workspace. */
struct desk {
	const struct sample *s;
	const struct sample_row *row;
	struct candidate *candidate; /* [vocab] */
	float *logit;		     /* [vocab] a copy, which penalties and bias change */
	struct sample_result *out;
};

VECTOR static bool copy_finite(float *restrict to, const real *restrict from, int64_t n)
{
	int bad = 0;

#pragma omp simd reduction(| : bad)
	for (int64_t i = 0; i < n; i++) {
		to[i] = (float)from[i];
		bad |= !(to[i] - to[i] == 0);
	}
	return !bad;
}

VECTOR static float largest(const float *x, int64_t n)
{
	float most = x[0];

#pragma omp simd reduction(max : most)
	for (int64_t i = 0; i < n; i++)
		most = x[i] > most ? x[i] : most;
	return most;
}

static int32_t first_equal(const float *x, int64_t n, float value)
{
	int64_t i = 0;

	while (i < n - 1 && x[i] != value)
		i++;
	return (int32_t)i;
}

/* The most likely ids, and their log probabilities. */
static void find_tops(const struct desk *d, double log_all)
{
	struct sample_result *out = d->out;
	const int most = d->row->logprobs;

	for (int64_t id = 0; most > 0 && id < d->s->vocab; id++) {
		const float value = d->logit[id];
		int at = out->tops;

		if (at == most && value <= out->top_logprob[at - 1])
			continue;
		if (at < most)
			out->tops++;
		else
			at--;
		for (; at > 0 && out->top_logprob[at - 1] < value; at--) {
			out->top_id[at] = out->top_id[at - 1];
			out->top_logprob[at] = out->top_logprob[at - 1];
		}
		out->top_id[at] = (int32_t)id;
		out->top_logprob[at] = value;
	}
	for (int i = 0; i < out->tops; i++)
		out->top_logprob[i] = (float)((double)out->top_logprob[i] - log_all);
}

static void penalize(const struct desk *d)
{
	const struct sample_row *row = d->row;
	const uint16_t *counts = (const uint16_t *)d->s->counts.data + row->place * d->s->counts.ld;

	for (int64_t id = 0; id < d->s->vocab; id++) {
		const int times = counts[id] & SAMPLE_COUNT_MOST;
		float *x = &d->logit[id];

		if (!counts[id])
			continue;
		*x = *x > 0 ? *x / row->repetition : *x * row->repetition;
		*x -= row->frequency * (float)times + (times ? row->presence : 0);
	}
}

static bool is_allowed(const struct desk *d, int64_t id)
{
	const struct sample_lists *lists = &d->s->lists;

	if (d->row->mask >= 0 && !(lists->mask[d->row->mask * lists->mask_words + id / 32] >> (id % 32) & 1))
		return false;
	return d->logit[id] > -INFINITY;
}

/* Makes a list of the ids that are allowed, with their logits as shares. */
static int64_t list_candidates(const struct desk *d)
{
	int64_t count = 0;

	for (int64_t id = 0; id < d->s->vocab; id++)
		if (is_allowed(d, id))
			d->candidate[count++] =
				(struct candidate){.share = (double)d->logit[id], .id = (int32_t)id};
	return count;
}

/* exp of x <= 0 with an error of about one unit in the last place, without branches, for vectors. Below -700
 * the result stays near 1e-304. Terms of the series up to x^13 / 13!. */
static inline double exp_of(double x)
{
	static const double whole = 0x1.8p52; /* adding it leaves the nearest integer in the last bits */
	double z, r, p;
	uint64_t bits, zero;

	x = x < -700 ? -700 : x;
	z = x * 1.4426950408889634 + whole;
	memcpy(&bits, &z, sizeof(bits));
	memcpy(&zero, &whole, sizeof(zero));
	z = z - whole;
	r = x - z * 0x1.62e42feep-1;
	r = r - z * 0x1.a39ef35793c76p-33;
	p = 1 / 6227020800.0;
	p = p * r + 1 / 479001600.0;
	p = p * r + 1 / 39916800.0;
	p = p * r + 1 / 3628800.0;
	p = p * r + 1 / 362880.0;
	p = p * r + 1 / 40320.0;
	p = p * r + 1 / 5040.0;
	p = p * r + 1 / 720.0;
	p = p * r + 1 / 120.0;
	p = p * r + 1 / 24.0;
	p = p * r + 1 / 6.0;
	p = p * r + 0.5;
	p = p * r + 1;
	p = p * r + 1;
	bits = (bits - zero + 1023) << 52;
	memcpy(&z, &bits, sizeof(z));
	return p * z;
}

VECTOR static void exp_all(double *x, int64_t n)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		x[i] = exp_of(x[i]);
}

/* Logarithm of the sum of exponentials. */
VECTOR static double log_sum(const float *x, int64_t n, float most)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < n; i++)
		sum += exp_of((double)(x[i] - most));
	return (double)most + log(sum);
}

/* Logits become exp((logit - most) / temperature). */
static void shares(struct candidate *c, int64_t count, double most, double temperature)
{
	enum { CHUNK = 256 };
	double x[CHUNK];

	for (int64_t begin = 0; begin < count; begin += CHUNK) {
		const int64_t n = count - begin < CHUNK ? count - begin : CHUNK;

		for (int64_t i = 0; i < n; i++)
			x[i] = (c[begin + i].share - most) / temperature;
		exp_all(x, n);
		for (int64_t i = 0; i < n; i++)
			c[begin + i].share = x[i];
	}
}

static int32_t choose(const struct desk *d, int64_t count)
{
	const struct sample_row *row = d->row;
	const struct choice choice = {
		.top_k = row->top_k, .top_p = (double)row->top_p, .min_p = (double)row->min_p};
	struct candidate *c = d->candidate;
	int64_t best = 0;
	double most;

	for (int64_t i = 1; i < count; i++)
		best = c[i].share > c[best].share ? i : best;
	if (row->temperature == 0)
		return c[best].id;
	most = c[best].share;
	shares(c, count, most, (double)row->temperature);
	return choice_take(&choice, c, count,
			   ((double)random_u32(row->seed, row->stream, row->index) + 0.5) * 0x1p-32);
}

/* A list without entries may be NULL. */
static void add_bias(const struct desk *d)
{
	for (int32_t i = 0; i < d->row->biases; i++) {
		const struct sample_bias *bias = &d->s->lists.bias[d->row->bias_begin + i];

		d->logit[bias->id] += bias->add;
	}
}

static void sample_id(const struct desk *d)
{
	const struct sample_row *row = d->row;
	int64_t count;

	if (row->counted)
		penalize(d);
	add_bias(d);
	if (row->temperature == 0 && row->mask < 0 && !row->biases) {
		d->out->id = first_equal(d->logit, d->s->vocab, largest(d->logit, d->s->vocab));
		return;
	}
	count = list_candidates(d);
	if (count)
		d->out->id = choose(d, count);
	else
		d->out->status = SAMPLE_EMPTY;
}

static void sample_row(void *arg, int64_t item, unsigned thread)
{
	const struct sample *s = arg;
	uint8_t *room = (uint8_t *)s->room->sampling.data + thread * s->room->sampling.ld;
	const struct desk d = {
		.s = s,
		.row = &s->lists.row[item],
		.candidate = (struct candidate *)(void *)room,
		.logit = (float *)(void *)(room + (size_t)s->vocab * sizeof(struct candidate)),
		.out = (struct sample_result *)((int32_t *)s->results.data + item * s->results.ld),
	};
	const real *logits = real_row(s->logits, item);
	double log_all = 0, raw = 0;

	*d.out = (struct sample_result){.status = SAMPLE_OK};
	if (!copy_finite(d.logit, logits, s->vocab)) {
		d.out->status = SAMPLE_NOT_FINITE;
		return;
	}
	if (d.row->logprobs >= 0 || d.row->given >= 0)
		log_all = log_sum(d.logit, s->vocab, largest(d.logit, s->vocab));
	find_tops(&d, log_all);
	if (d.row->given >= 0)
		d.out->id = d.row->given;
	else
		sample_id(&d);
	raw = (double)logits[d.out->id];
	if (d.out->status == SAMPLE_OK && (d.row->logprobs >= 0 || d.row->given >= 0))
		d.out->logprob = (float)(raw - log_all);
}

/* Rows refer to entries of the lists and of matrices, which must exist. */
static enum status check(const struct sample *s, struct error *err)
{
	if (s->vocab > s->room->limits.vocab || s->logits.dtype != REAL_DTYPE)
		return error_set(err, STATUS_BUG,
				 "a sample of %lld logits in %s, but there is room for %lld in %s",
				 (long long)s->vocab, dtype_name(s->logits.dtype),
				 (long long)s->room->limits.vocab, dtype_name(REAL_DTYPE));
	for (int64_t i = 0; i < s->lists.rows; i++) {
		const struct sample_row *row = &s->lists.row[i];
		bool good = row->given < s->vocab && row->place < s->last.cols &&
			    (!row->counted || (row->place >= 0 && row->place < s->counts.rows)) &&
			    row->logprobs <= SAMPLE_TOPS && row->mask < s->lists.masks && row->biases >= 0 &&
			    row->bias_begin >= 0 && row->bias_begin + row->biases <= s->lists.biases;

		for (int32_t b = 0; good && b < row->biases; b++)
			good = s->lists.bias[row->bias_begin + b].id >= 0 &&
			       s->lists.bias[row->bias_begin + b].id < s->vocab;
		if (!good)
			return error_set(err, STATUS_BUG, "row %lld of a sample is out of its lists",
					 (long long)i);
	}
	return STATUS_OK;
}

enum status cpu_sample(struct backend *back, const struct sample *s, struct error *err)
{
	enum status st = check(s, err);

	if (st)
		return st;
	cost_touch(back, &s->logits, 1);
	cpu_pool_begin(cpu_of(back)->pool);
	cpu_items(back, s->lists.rows, (double)((s->lists.rows - 1) * s->vocab) * sizeof(real), sample_row,
		  (void *)(uintptr_t)s);
	cpu_pool_end(cpu_of(back)->pool);
	for (int64_t i = 0; i < s->lists.rows; i++) {
		const struct sample_row *row = &s->lists.row[i];
		const struct sample_result *out =
			(const struct sample_result *)((const int32_t *)s->results.data + i * s->results.ld);
		uint16_t *counts = (uint16_t *)s->counts.data + row->place * s->counts.ld;

		if (row->place >= 0)
			((int32_t *)s->last.data)[row->place] = out->id;
		if (row->counted && out->status == SAMPLE_OK &&
		    (counts[out->id] & SAMPLE_COUNT_MOST) < SAMPLE_COUNT_MOST)
			counts[out->id]++;
	}
	return STATUS_OK;
}
