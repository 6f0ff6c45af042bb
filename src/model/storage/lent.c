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

size_t lent_lead(const struct saved *s, const struct params *p, size_t scratch)
{
	const struct lent *l = &s->lent;
	size_t lead = s->shared.used; /* dx is all that is left when the embedding's is written */

	for (int64_t part = 1; part < l->layers + 2; part++) {
		const size_t read = scratch + l->end[part],
			     begin = dtype_bytes(p->grad.dtype, l->begin[part]);

		lead = larger(lead, read > begin ? read - begin : 0);
	}
	return lead;
}

/* End of the matrices that a pass reads while it writes the part. */
static uintptr_t end_of_read(const struct saved *s, int64_t part)
{
	const struct mat *dx = &s->dx;

	return part == EMBEDDING ? (uintptr_t)dx->data + dtype_bytes(dx->dtype, (uint64_t)(dx->rows * dx->ld))
				 : (uintptr_t)s->lent.saved->base + s->lent.end[part];
}

static enum status clear(const struct pass *p, size_t first, size_t last, struct error *err)
{
	const struct params *all = &p->model->params;

	return first < last
		       ? p->back->ops->zero(p->back, params_cut(all, &all->grad, first, last - first), err)
		       : STATUS_OK;
}

enum status lent_return(const struct pass *p, int64_t layer, struct error *err)
{
	const struct lent *l = &p->saved->lent;
	const struct mat *grad = &p->model->params.grad;
	const int64_t part = layer + 1;
	size_t end;

	if (!l->saved)
		return STATUS_OK;
	if (grad->data &&
	    end_of_read(p->saved, part) > (uintptr_t)grad->data + dtype_bytes(grad->dtype, l->begin[part]))
		return error_set(err, STATUS_BUG,
				 "the gradient of part %lld of the model would overwrite matrices that its "
				 "backward pass reads",
				 (long long)part);
	end = part < l->layers + 1 ? l->begin[part + 1] : p->model->params.length;
	return clear(p, l->begin[part], end < l->elements ? end : l->elements, err);
}

enum status lent_return_all(const struct pass *p, struct error *err)
{
	return p->saved->lent.saved ? clear(p, 0, p->saved->lent.elements, err) : STATUS_OK;
}
