/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optimiser.h"
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

static enum status gradient_norm(struct back *back, const struct params *p, double *norm, struct error *err)
{
	struct arena_mark mark = arena_mark(back->arena);
	struct mat sum = {.rows = 1, .cols = 1, .dtype = DTYPE_F64};
	enum status st = arena_mat(back->arena, MEM_WORKSPACE, &sum, "the gradient's norm", err);

	if (!st && sum.data)
		*(double *)sum.data = 0;
	if (!st)
		st = back->ops->reduce(back, p->grad, REDUCE_SUM_SQUARES, sum.data, err);
	*norm = !st && sum.data ? sqrt(*(double *)sum.data) : 0;
	arena_reset(back->arena, &mark);
	return st;
}

/* Elements [begin, end) of one of the vectors. */
static struct mat part(const struct mat *flat, size_t begin, size_t end)
{
	struct mat m = *flat;

	m.data = flat->data ? (char *)flat->data + begin * sizeof(float) : NULL;
	m.cols = m.ld = (int64_t)(end - begin);
	return m;
}

enum status optimiser_step(const struct optimiser *o, struct back *back, struct params *p, double rate,
			   uint64_t step, double *norm, struct error *err)
{
	struct adamw a = {
		.lr = (float)rate, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .clip_scale = 1};
	enum status st = gradient_norm(back, p, norm, err);

	if (st || !isfinite(*norm))
		return st;
	if (o->max_norm > 0 && o->max_norm < *norm + 1e-6)
		a.clip_scale = (float)(o->max_norm / (*norm + 1e-6));
	a.correction1 = (float)(1 - pow(o->beta1, (double)step));
	a.correction2 = (float)(1 - pow(o->beta2, (double)step));
	for (int first = 0, next; first < p->count && !st;
	     first = next) { /* neighbours of equal decay at once */
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
