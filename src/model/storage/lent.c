/* SPDX-License-Identifier: Apache-2.0 */
#include "model/storage/lent.h"
#include <stdlib.h>
#include "model/decoder/layer_tensors.h"
#include "model/tensor/matrix.h"

enum { EMBEDDING }; /* its part */

enum status lent_create(struct lent *l, const struct params *p, int64_t layers, struct error *err)
{
	const struct param *norm = params_find(p, NAME_NORM);
	const size_t parts = (size_t)layers + 2;

	*l = (struct lent){.begin = calloc(parts, sizeof(*l->begin)),
			   .end = calloc(parts, sizeof(*l->end)),
			   .layers = layers};
	if (!l->begin || !l->end)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a table of layers");
	for (int64_t i = 0; i < layers; i++)
		l->begin[i + 1] = params_layer_begin(p, i);
	l->begin[layers + 1] = norm ? norm->offset : p->length;
	return STATUS_OK;
}

void lent_release(struct lent *l)
{
	free(l->begin);
	free(l->end);
	*l = (struct lent){0};
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t beyond(size_t bytes, size_t room)
{
	return bytes > room ? bytes - room : 0;
}

/* Of the rank whose range begins and ends with these elements. */
static size_t lead_of_range(const struct lent *l, enum dtype dtype, size_t first, size_t last, size_t scratch)
{
	size_t lead = 0;

	for (int64_t layer = 1; layer < l->layers; layer++) {
		const size_t begin = larger(l->begin[layer + 1], first);

		if (begin < last && begin < l->begin[layer + 2])
			lead = larger(lead,
				      beyond(scratch + l->end[layer - 1], dtype_bytes(dtype, begin - first)));
	}
	return lead;
}

size_t lent_lead(const struct saved *s, const struct params *p, size_t scratch)
{
	const struct lent *l = &s->lent;
	size_t lead = 0;

	if (p->border && p->shards.gradient) {
		for (unsigned r = 0; r < p->shards.ranks; r++)
			lead = larger(lead, lead_of_range(l, p->grad.dtype, p->border[r], p->border[r + 1],
							  scratch));
		return lead;
	}
	lead = l->embedding;
	for (int64_t part = 1; part < l->layers + 2; part++)
		lead = larger(lead,
			      beyond(scratch + l->end[part], dtype_bytes(p->grad.dtype, l->begin[part])));
	return lead;
}

/* End of the matrices that a pass reads while it writes the part. */
static uintptr_t end_of_read(const struct pass *p, int64_t part)
{
	const struct lent *l = &p->saved->lent;

	return part == EMBEDDING ? (uintptr_t)p->back->arena->base + l->embedding
				 : (uintptr_t)l->saved->base + l->end[part];
}

static enum status clear(const struct pass *p, size_t first, size_t last, struct error *err)
{
	const struct params *all = &p->model->params;

	return first < last
		       ? p->back->ops->zero(p->back, params_cut(all, &all->grad, first, last - first), err)
		       : STATUS_OK;
}

enum status lent_overlap(int64_t part, struct error *err)
{
	return error_set(err, STATUS_BUG,
			 "the gradient of part %lld of the model would overwrite matrices that its backward "
			 "pass reads",
			 (long long)part);
}

enum status lent_return(const struct pass *p, int64_t layer, struct error *err)
{
	const struct lent *l = &p->saved->lent;
	const struct mat *grad = &p->model->params.grad;
	const int64_t part = layer + 1;
	size_t end;

	if (!l->saved || p->model->divided.gradient)
		return STATUS_OK;
	if (grad->data &&
	    end_of_read(p, part) > (uintptr_t)grad->data + dtype_bytes(grad->dtype, l->begin[part]))
		return lent_overlap(part, err);
	end = part < l->layers + 1 ? l->begin[part + 1] : p->model->params.length;
	return clear(p, l->begin[part], end < l->elements ? end : l->elements, err);
}

void lent_left(const struct pass *p, int64_t layer)
{
	const struct lent *l = &p->saved->lent;

	if (l->saved && p->model->divided.gradient)
		p->model->divided.read_end = layer < 0 ? 0 : (uintptr_t)l->saved->base + l->end[layer];
}

enum status lent_return_all(const struct pass *p, struct error *err)
{
	return p->saved->lent.saved && !p->model->divided.gradient ? clear(p, 0, p->saved->lent.elements, err)
								   : STATUS_OK;
}
