/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/buckets.h"
#include <inttypes.h>
#include <stdlib.h>
#include "model/tensor/dtype.h"

/* The borders of all ranks' ranges, as numbers of elements of each bucket. */
static enum status make_borders(struct buckets *b, const struct params *p, struct error *err)
{
	const size_t ends = (size_t)p->shards.ranks + 1;

	if (!p->border)
		return STATUS_OK;
	b->borders = calloc(b->count * ends + 1, sizeof(*b->borders));
	if (!b->borders)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the ranges of %zu buckets", b->count);
	for (size_t i = 0; i < b->count; i++) {
		struct bucket *one = &b->list[i];

		params_borders(p, one->first, one->last, b->borders + i * ends);
		one->border = b->borders + i * ends;
	}
	return STATUS_OK;
}

enum status buckets_make(struct buckets *b, const struct params *p, int64_t layers, double bytes,
			 struct error *err)
{
	size_t end = p->length;

	*b = (struct buckets){.list = calloc((size_t)layers + 1, sizeof(*b->list))};
	if (!b->list)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %" PRId64 " buckets", layers);
	for (int64_t layer = layers - 1; layer >= 0; layer--) {
		const size_t begin = params_layer_begin(p, layer);

		if (begin >= end || (double)(end - begin) * sizeof(float) < bytes)
			continue;
		b->list[b->count++] = (struct bucket){.first = begin, .last = end, .layer = layer};
		end = begin;
	}
	if (end) /* with the embedding, whose gradient comes last */
		b->list[b->count++] = (struct bucket){.last = end, .layer = -1};
	return make_borders(b, p, err);
}

void buckets_release(struct buckets *b)
{
	free(b->list);
	free(b->borders);
	*b = (struct buckets){0};
}

enum status buckets_sum(struct buckets *b, struct comm *c, const struct mat *grad, int64_t layer,
			struct error *err)
{
	enum status st = STATUS_OK;

	for (; b->begun < b->count && b->list[b->begun].layer >= layer && !st; b->begun++) {
		const struct bucket *one = &b->list[b->begun];
		struct mat part = *grad;

		part.cols = part.ld = (int64_t)(one->last - one->first);
		if (grad->data) /* NULL while planning */
			part.data = (char *)grad->data + dtype_bytes(grad->dtype, one->first);
		c->layer = b->count > 1 ? one->layer : -1;
		st = one->border ? c->ops->reduce_scatter(c, part, one->border, err)
				 : c->ops->all_reduce(c, part, err);
	}
	return st;
}
