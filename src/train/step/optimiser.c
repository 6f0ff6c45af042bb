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

/* Elements [begin, begin + count) of a flat vector; absent if the vector is. */
static struct mat part(const struct mat *flat, size_t begin, size_t count)
{
	struct mat m = flat->rows ? mat_cols(flat, (int64_t)begin, (int64_t)count) : *flat;

	m.ld = m.cols;
	return m;
}

/* The operands of table entries [first, next), of which 8-bit moments allow one. */
static struct adamw_part part_of(struct params *p, int first, int next)
{
	const struct param *one = &p->table[first];
	const size_t end = next < p->count ? p->table[next].offset : p->length, count = end - one->offset;
	const bool codes = p->format.moments == MOMENTS_8BIT && !one->is_small;
	const bool small = p->format.moments == MOMENTS_8BIT && one->is_small;
	const size_t blocks = codes ? params_range(p, one, PARAMS_STATE_m_scale).count : 0;
	struct adamw_part out = {
		.g = part(&p->grad, one->offset, count),
		.m = small ? part(&p->m_small, one->state, count) : part(&p->m, one->offset, count),
		.v = small ? part(&p->v_small, one->state, count) : part(&p->v, one->offset, count),
		.w = part(&p->master, one->offset, count),
		.rest = part(&p->rest, one->offset, count),
		.first = one->offset,
	};

	if (codes) {
		out.m_scale = part(&p->m_scale, one->state, blocks);
		out.v_scale = part(&p->v_scale, one->state, blocks);
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

enum status optimiser_step(const struct optimiser *o, struct backend *back, struct params *p, double rate,
			   uint64_t step, double *squares, struct error *err)
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
	enum status st = back->ops->reduce(back, p->grad, REDUCE_SUM_SQUARES, squares, err);

	for (int first = 0, next; first < p->count && !st; first = next) {
		struct adamw_part operands;

		next = end_of(p, first);
		operands = part_of(p, first, next);
		a.decay = o->decay * p->table[first].decay;
		st = back->ops->adamw(back, &operands, &a, err);
	}
	return st;
}
