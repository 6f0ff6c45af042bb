/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference: sampled rows in double precision. The inputs are recomputed from the generator and never
 * read back. The allowed error is that of docs/explanation/methods/attention.md, "Tolerance".
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "probe/attention/attention.h"
#include "probe/attention/attended_pairs.h"
#include "probe/attention/element_types.h"
#include "probe/shared/cpu.h"

enum { STREAM_PLACES = 99 };

/* Relative error of an FP32 sum on tensor cores, and of FP8's short accumulator. */
static double accumulate_error(enum attention_type type)
{
	return type == ATTENTION_E4M3 ? 0x1p-12 : 0x1p-20;
}

struct key_head {     /* rounded to the type */
	float *k, *v; /* (kv_len, head_dim) */
	double *p;    /* (kv_len): probabilities of one row, scaled so that the largest is 1 */
	struct attention_keys *span;
};

static double dot(const float *a, const float *b, uint32_t n, double *magnitude)
{
	double sum = 0, absolute = 0;

	for (uint32_t i = 0; i < n; i++) {
		double product = (double)a[i] * (double)b[i];

		sum += product;
		absolute += fabs(product);
	}
	*magnitude = absolute;
	return sum;
}

/* Computes the logits into k->p. Returns the largest logit; *magnitude is the largest sum of absolute
 * products. */
static double logits(const struct attention_problem *p, struct key_head *k, uint32_t spans, const float *q,
		     double *magnitude)
{
	double most = -INFINITY, scale = attention_scale(p);

	*magnitude = 0;
	for (uint32_t s = 0; s < spans; s++)
		for (uint32_t j = k->span[s].from; j < k->span[s].to; j++) {
			double absolute;

			k->p[j] = scale * dot(q, k->k + (size_t)j * p->head_dim, p->head_dim, &absolute);
			most = fmax(most, k->p[j]);
			*magnitude = fmax(*magnitude, scale * absolute);
		}
	return most;
}

/* Computes O, and for each element the sum of its absolute terms and the sum of squares of the changes by
 * rounding of probabilities. */
static void weigh(const struct attention_problem *p, const struct key_head *k, uint32_t spans, double sum,
		  struct attention_sample *out, double *absolute, double *squares)
{
	double share = attention_roundoff(p->type), least = attention_underflow(p->type);

	if (p->type != ATTENTION_E4M3)
		least *= sum; /* the engine may have divided it by the sum before rounding */
	for (uint32_t s = 0; s < spans; s++)
		for (uint32_t j = k->span[s].from; j < k->span[s].to; j++) {
			const float *v = k->v + (size_t)j * p->head_dim;
			double weight = k->p[j] / sum, change = fmax(share * k->p[j], least) / sum;

			for (uint32_t d = 0; d < p->head_dim; d++) {
				double value = (double)v[d];

				out->o[d] += weight * value;
				absolute[d] += weight * fabs(value);
				squares[d] += change * change * value * value;
			}
		}
}

static void sample_row(const struct attention *a, struct key_head *k, struct attention_sample *s)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t spans = attention_pairs_spans(p, a->c.blocks, s->b, s->h, s->row, k->span);
	double absolute[ATTENTION_HEAD_DIM_MAX] = {0}, squares[ATTENTION_HEAD_DIM_MAX] = {0}, sum = 0, most,
	       magnitude, exponent;
	float q[ATTENTION_HEAD_DIM_MAX];

	s->lse = -INFINITY;
	if (!spans)
		return;
	attention_row_values(a, a->data, ATTENTION_Q, s->b, s->h, s->row, q);
	most = logits(p, k, spans, q, &magnitude);
	for (uint32_t i = 0; i < spans; i++)
		for (uint32_t j = k->span[i].from; j < k->span[i].to; j++)
			sum += k->p[j] = exp(k->p[j] - most);
	weigh(p, k, spans, sum, s, absolute, squares);
	s->lse = most + log(sum);
	exponent = accumulate_error(p->type) * (1 + magnitude);
	s->lse_allowed = exponent + 0x1p-20 * (1 + fabs(s->lse));
	for (uint32_t d = 0; d < p->head_dim; d++)
		s->allowed[d] = attention_roundoff(p->out_type) * fabs(s->o[d]) +
				attention_underflow(p->out_type) + 6 * sqrt(squares[d]) +
				(2 * exponent + accumulate_error(p->type)) * absolute[d];
}

struct sampling { /* argument of the pool's work functions */
	struct attention *a;
	bool *room; /* (threads) false: the thread did not have enough memory */
};

static bool head_alloc(const struct attention *a, struct key_head *k)
{
	const struct attention_problem *p = &a->c.problem;
	size_t elements = (size_t)p->kv_len * p->head_dim;

	*k = (struct key_head){
		.k = malloc(elements * sizeof(float)),
		.v = malloc(elements * sizeof(float)),
		.p = malloc(p->kv_len * sizeof(double)),
		.span = malloc(attention_attended_room(a->c.blocks) * sizeof(*k->span)),
	};
	return k->k && k->v && k->p && k->span;
}

static void head_load(const struct attention *a, struct key_head *k, uint32_t b, uint32_t g)
{
	const struct attention_problem *p = &a->c.problem;

	for (uint32_t j = 0; j < attention_kv_len(p, b); j++) {
		attention_row_values(a, a->data, ATTENTION_K, b, g, j, k->k + (size_t)j * p->head_dim);
		attention_row_values(a, a->data, ATTENTION_V, b, g, j, k->v + (size_t)j * p->head_dim);
	}
}

static void sample_work(void *arg, unsigned thread)
{
	const struct sampling *w = arg;
	struct attention *a = w->a;
	uint32_t group = a->c.problem.heads / a->c.problem.kv_heads;
	struct key_head k;
	uint64_t first, last;

	w->room[thread] = head_alloc(a, &k);
	cpu_share(a->sample_count, ATTENTION_SAMPLED_ROWS, thread, cpu_pool_count(a->pool), &first, &last);
	for (uint64_t i = first; w->room[thread] && i < last; i++) {
		struct attention_sample *s = &a->sample[i];

		if (i % ATTENTION_SAMPLED_ROWS == 0)
			head_load(a, &k, s->b, s->h / group);
		sample_row(a, &k, s);
	}
	free(k.k);
	free(k.v);
	free(k.p);
	free(k.span);
}

/* Chooses the first and the last head and row, and others by the generator. Sequences without queries have no
 * samples. */
static void places(struct attention *a)
{
	const struct attention_problem *p = &a->c.problem;
	uint64_t heads = (uint64_t)p->batch * p->heads;

	a->sample_count = 0;
	for (uint32_t i = 0; i < ATTENTION_SAMPLED_HEADS; i++) {
		uint64_t high = random_u32(a->seed, STREAM_PLACES, i);
		uint64_t head = i == 0 ? 0 : i == 1 ? heads - 1 : high * heads >> 32;
		uint32_t b = (uint32_t)(head / p->heads), rows = attention_q_len(p, b);

		for (uint32_t r = 0; rows && r < ATTENTION_SAMPLED_ROWS; r++) {
			uint64_t word =
				random_u32(a->seed, STREAM_PLACES, 1000 + i * ATTENTION_SAMPLED_ROWS + r);

			a->sample[a->sample_count++] = (struct attention_sample){
				.b = b,
				.h = (uint32_t)(head % p->heads),
				.row = r == 0	? 0
				       : r == 1 ? rows - 1
						: (uint32_t)(word * rows >> 32),
			};
		}
	}
}

enum status attention_reference(struct attention *a, struct error *err)
{
	struct sampling w = {.a = a, .room = calloc(cpu_pool_count(a->pool), sizeof(*w.room))};
	bool room = w.room;

	if (a->samples_known) {
		free(w.room);
		return STATUS_OK;
	}
	if (!a->sample)
		a->sample = calloc(ATTENTION_SAMPLED_HEADS * ATTENTION_SAMPLED_ROWS, sizeof(*a->sample));
	room = room && a->sample;
	if (room) {
		places(a);
		cpu_pool_run(a->pool, sample_work, &w);
	}
	for (unsigned i = 0; room && i < cpu_pool_count(a->pool); i++)
		room = w.room[i];
	free(w.room);
	if (!room)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: not enough memory for the reference");
	a->samples_known = true;
	return STATUS_OK;
}

static void add_error(struct attention_errors *e, double error)
{
	e->count++;
	e->squares += error * error;
	e->most = fmax(e->most, fabs(error));
}

void attention_check_samples(struct attention *a, const void *o, const float *lse, struct wrong *wrong)
{
	const struct attention_problem *p = &a->c.problem;
	unsigned bytes = attention_type_bytes(p->out_type);

	for (unsigned i = 0; i < a->sample_count; i++) {
		const struct attention_sample *s = &a->sample[i];
		float found[ATTENTION_HEAD_DIM_MAX];
		double sum = (double)lse[attention_tensor_at(p, ATTENTION_LSE, s->b, s->h, s->row)];

		attention_load(p->out_type, found,
			       (const char *)o +
				       attention_tensor_at(p, ATTENTION_O, s->b, s->h, s->row) * bytes,
			       p->head_dim);
		for (uint32_t d = 0; d < p->head_dim; d++) {
			double error = (double)found[d] - s->o[d];

			add_error(&a->errors, error);
			if (!(fabs(error) <= s->allowed[d]))
				attention_note(p, wrong, ATTENTION_O, s->b, s->h, s->row, d, s->o[d],
					       (double)found[d]);
		}
		if (isinf(s->lse) ? !(isinf(sum) && sum < 0) : !(fabs(sum - s->lse) <= s->lse_allowed))
			attention_note(p, wrong, ATTENTION_LSE, s->b, s->h, s->row, 0, s->lse, sum);
		else if (!isinf(s->lse))
			a->errors.lse_most = fmax(a->errors.lse_most, fabs(sum - s->lse));
		wrong->checked += p->head_dim;
	}
}
