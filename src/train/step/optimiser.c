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

/* Elements [begin, begin + count) of a state of 8-bit moments that belong to elements [first, last) of the
 * flat vector, in the own range of the state. */
static struct mat part_of_state(const struct params *p, const struct mat *state, size_t first, size_t last,
				enum params_state which)
{
	const size_t own = params_part(p, 0, params_begin(p), which).count;
	const struct params_range range = params_part(p, first, last, which);
	struct mat m = mat_cols(state, (int64_t)(range.first - own), (int64_t)range.count);

	m.ld = m.cols;
	return m;
}

/* The operands of elements [first, last), which belong to table entry `one` and, except with 8-bit moments,
 * to those behind it. */
static struct adamw_part part_of(const struct params *p, const struct param *one, size_t first, size_t last)
{
	const size_t count = last - first;
	const bool codes = p->format.moments == MOMENTS_8BIT && !one->is_small;
	const bool small = p->format.moments == MOMENTS_8BIT && one->is_small;
	struct adamw_part out = {
		.g = params_cut(p, &p->grad, first, count),
		.w = params_cut(p, &p->master, first, count),
		.rest = params_cut(p, &p->rest, first, count),
		.first = first,
	};

	if (small) {
		out.m = part_of_state(p, &p->m_small, first, last, PARAMS_STATE_m_small);
		out.v = part_of_state(p, &p->v_small, first, last, PARAMS_STATE_v_small);
		return out;
	}
	out.m = params_cut(p, &p->m, first, count);
	out.v = params_cut(p, &p->v, first, count);
	if (codes) {
		out.m_scale = part_of_state(p, &p->m_scale, first, last, PARAMS_STATE_m_scale);
		out.v_scale = part_of_state(p, &p->v_scale, first, last, PARAMS_STATE_v_scale);
	}
	return out;
}

/* The end of the entries that one call steps: adjacent ones of equal decay. Blocks of 8-bit moments do not
 * cross tensors, so each tensor has its own call. */
static int end_of(const struct params *p, int first)
{
	int next = first + 1;

	while (p->format.moments != MOMENTS_8BIT && next < p->count &&
	       p->table[next].decay == p->table[first].decay)
		next++;
	return next;
}

/* On a CPU in blocks of each tensor, so that the sum has the same order if ranks divide the vector: *squares
 * then begins with the sum of the ranges before. */
enum status optimiser_squares(struct backend *back, const struct params *p, double *squares,
			      struct error *err)
{
	const size_t begin = params_begin(p), end = params_end(p);
	enum status st = STATUS_OK;

	if (back->kind == BACKEND_GPU)
		return end > begin ? back->ops->reduce(back, params_cut(p, &p->grad, begin, end - begin),
						       REDUCE_SUM_SQUARES, squares, err)
				   : STATUS_OK;
	for (int i = 0; i < p->count && !st; i++) {
		const size_t next = i + 1 < p->count ? p->table[i + 1].offset : p->length;
		const size_t first = p->table[i].offset > begin ? p->table[i].offset : begin;
		const size_t last = next < end ? next : end;

		if (first < last)
			st = back->ops->reduce(back, params_cut(p, &p->grad, first, last - first),
					       REDUCE_SUM_SQUARES, squares, err);
	}
	return st;
}

enum status optimiser_step(const struct optimiser *o, struct backend *back, const struct params *p,
			   double rate, uint64_t step, const double *squares, struct error *err)
{
	struct adamw a = {
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
	const size_t own = params_begin(p), own_end = params_end(p);
	enum status st = STATUS_OK;

	for (int at = 0, next; at < p->count && !st; at = next) {
		const struct param *one = &p->table[at];
		size_t first = one->offset, last;
		struct adamw_part operands;

		next = end_of(p, at);
		last = next < p->count ? p->table[next].offset : p->length;
		first = first > own ? first : own;
		last = last < own_end ? last : own_end;
		if (first >= last)
			continue;
		operands = part_of(p, one, first, last);
		a.decay = o->decay * one->decay;
		st = back->ops->adamw(back, &operands, &a, err);
	}
	return st;
}
