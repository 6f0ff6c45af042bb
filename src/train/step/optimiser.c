/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/optimiser.h"
#include <math.h>

struct optimiser optimiser_of(const struct config_training *t)
{
	return (struct optimiser){
		.beta1 = (float)t->adam_beta1,
		.beta2 = (float)t->adam_beta2,
		.eps = (float)t->adam_epsilon,
		.decay = (float)t->weight_decay,
		.max_norm = t->max_grad_norm,
	};
}

/* Elements [begin, end) of a flat vector. */
static struct mat part(const struct mat *flat, size_t begin, size_t end)
{
	struct mat m = *flat;

	m.data = flat->data ? (char *)flat->data + begin * sizeof(float) : NULL;
	m.cols = m.ld = (int64_t)(end - begin);
	return m;
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
	};
	enum status st = back->ops->reduce(back, p->grad, REDUCE_SUM_SQUARES, squares, err);

	for (int first = 0, next; first < p->count && !st;
	     first = next) { /* adjacent parameters with equal decay in one call */
		size_t begin = p->table[first].offset, end;

		for (next = first + 1; next < p->count && p->table[next].decay == p->table[first].decay;)
			next++;
		end = next < p->count ? p->table[next].offset : p->length;
		a.decay = o->decay * p->table[first].decay;
		st = back->ops->adamw(back, part(&p->grad, begin, end), part(&p->m, begin, end),
				      part(&p->v, begin, end), part(&p->master, begin, end), &a, err);
	}
	return st;
}
