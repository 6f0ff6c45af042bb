/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/optimiser.h"
#include <math.h>
#include "model/tensor/matrix.h"

struct optimiser optimiser_of(const struct config_training *t)
{
	return (struct optimiser){
		.beta1 = (float)t->adam_beta1,
		.beta2 = (float)t->adam_beta2,
		.eps = (float)t->adam_epsilon,
		.decay = (float)t->weight_decay,
		.max_norm = t->max_grad_norm,
		.seed = t->seed,
	};
}

struct states states_of(const struct params *p)
{
	struct params all = *p;
	struct states s = {0};

	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		s.of[i] = *params_state(&all, (enum params_state)i);
		s.first[i] = params_first(p, (enum params_state)i);
	}
	return s;
}

static struct mat state_part(const struct states *s, enum params_state which, size_t begin, size_t count)
{
	struct mat m = mat_cols(&s->of[which], (int64_t)(begin - s->first[which]), (int64_t)count);

	m.ld = m.cols;
	return m;
}

/* The operands of elements [begin, end), which begin in entry `one`. */
static struct adamw_part part_of(const struct params *p, const struct states *s, const struct param *one,
				 size_t begin, size_t end)
{
	const size_t count = end - begin, into = begin - one->offset;
	const bool codes = p->format.moments == MOMENTS_8BIT && !one->is_small;
	const bool small = p->format.moments == MOMENTS_8BIT && one->is_small;
	struct adamw_part out = {
		.g = params_cut(p, &p->grad, begin, count),
		.w = state_part(s, PARAMS_STATE_master, begin, count),
		.rest = s->of[PARAMS_STATE_rest].rows ? state_part(s, PARAMS_STATE_rest, begin, count)
						      : (struct mat){0},
		.first = begin,
	};

	if (small) {
		out.m = state_part(s, PARAMS_STATE_m_small, one->state + into, count);
		out.v = state_part(s, PARAMS_STATE_v_small, one->state + into, count);
		return out;
	}
	out.m = state_part(s, PARAMS_STATE_m, begin, count);
	out.v = state_part(s, PARAMS_STATE_v, begin, count);
	if (codes) {
		const size_t first = one->state + into / ADAMW_BLOCK;
		const size_t blocks = (count + ADAMW_BLOCK - 1) / ADAMW_BLOCK;

		out.m_scale = state_part(s, PARAMS_STATE_m_scale, first, blocks);
		out.v_scale = state_part(s, PARAMS_STATE_v_scale, first, blocks);
	}
	return out;
}

static size_t end_of_entry(const struct params *p, int i)
{
	return i + 1 < p->count ? p->table[i + 1].offset : p->length;
}

/* Whether another rank counts some of the tensors. */
static bool counts_apart(const struct params *p)
{
	for (int i = 0; i < p->count; i++)
		if (p->table[i].elsewhere)
			return true;
	return false;
}

/* On a CPU in blocks of each tensor, so that the sum has the same order if ranks divide the vector: *squares
 * then begins with the sum of the ranges before. */
enum status optimiser_squares(struct backend *back, const struct params *p, double *squares,
			      struct error *err)
{
	const size_t begin = params_begin(p), end = params_end(p);
	enum status st = STATUS_OK;

	if (back->kind == BACKEND_GPU && !counts_apart(p))
		return end > begin ? back->ops->reduce(back, params_cut(p, &p->grad, begin, end - begin),
						       REDUCE_SUM_SQUARES, squares, err)
				   : STATUS_OK;
	for (int i = 0; i < p->count && !st; i++) {
		const size_t first = p->table[i].offset > begin ? p->table[i].offset : begin;
		const size_t last = end_of_entry(p, i) < end ? end_of_entry(p, i) : end;

		if (first < last && !p->table[i].elsewhere)
			st = back->ops->reduce(back, params_cut(p, &p->grad, first, last - first),
					       REDUCE_SUM_SQUARES, squares, err);
	}
	return st;
}

/* The last entry, from `first` on, that one call steps together with it: adjacent ones of equal decay.
 * Blocks of 8-bit moments do not cross tensors, so each tensor has its own call. */
static int last_of_call(const struct params *p, int first, size_t end)
{
	int last = first;

	while (p->format.moments != MOMENTS_8BIT && last + 1 < p->count && p->table[last + 1].offset < end &&
	       p->table[last + 1].decay == p->table[first].decay)
		last++;
	return last;
}

enum status optimiser_range(const struct optimiser *o, struct backend *back, const struct params *p,
			    const struct states *s, size_t begin, size_t end, const struct adamw *a,
			    struct error *err)
{
	struct adamw one = *a;
	enum status st = STATUS_OK;
	int first = 0;

	while (begin < end && end_of_entry(p, first) <= begin)
		first++;
	while (!st && begin < end) {
		const int last = last_of_call(p, first, end);
		const size_t upto = end_of_entry(p, last) < end ? end_of_entry(p, last) : end;
		const struct adamw_part operands = part_of(p, s, &p->table[first], begin, upto);

		one.decay = o->decay * p->table[first].decay;
		st = back->ops->adamw(back, &operands, &one, err);
		begin = upto;
		first = last + 1;
	}
	return st;
}

struct adamw optimiser_adamw(const struct optimiser *o, double rate, uint64_t step, const double *squares)
{
	return (struct adamw){
		.lr = (float)rate,
		.beta1 = o->beta1,
		.beta2 = o->beta2,
		.eps = o->eps,
		.correction1 = (float)(1 - pow(o->beta1, (double)step)),
		.correction2 = (float)(1 - pow(o->beta2, (double)step)),
		.max_norm = o->max_norm,
		.squares = squares,
		.seed = o->seed,
		.step = (uint32_t)step,
	};
}

enum status optimiser_step(const struct optimiser *o, struct backend *back, const struct params *p,
			   double rate, uint64_t step, const double *squares, struct error *err)
{
	const struct adamw a = optimiser_adamw(o, rate, step, squares);
	const struct states s = states_of(p);

	return optimiser_range(o, back, p, &s, params_begin(p), params_end(p), &a, err);
}
