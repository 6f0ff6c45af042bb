/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/gradient_tree.h"
#include <errno.h>
#include <stdlib.h>
#include "train/data/deal.h"
#include "train/mesh/tree_sum.h"

enum status gradient_tree_create(struct gradient_tree *t, struct arena *a, uint64_t packs, size_t length,
				 struct error *err)
{
	enum status st = STATUS_OK;

	*t = (struct gradient_tree){.levels = deal_depth(packs), .room = packs};
	if (t->levels > GRADIENT_TREE_LEVELS)
		return error_set(err, STATUS_BAD_INPUT, "a step of %llu packs", (unsigned long long)packs);
	for (unsigned i = 0; i < t->levels && !st; i++) {
		t->level[i] = (struct mat){.rows = 1, .cols = (int64_t)length, .dtype = DTYPE_F32};
		st = arena_mat(a, MEM_GRADIENT, &t->level[i], "sums of gradients", err);
	}
	t->loss = st ? NULL : calloc(packs + 1, sizeof(*t->loss));
	return st || t->loss
		       ? st
		       : error_errno(err, ENOMEM, "the losses of %llu packs", (unsigned long long)packs);
}

void gradient_tree_release(struct gradient_tree *t)
{
	free(t->loss);
	*t = (struct gradient_tree){0};
}

void gradient_tree_begin(struct gradient_tree *t, uint64_t packs)
{
	t->held = 0;
	t->at = 0;
	t->packs = packs;
}

void gradient_tree_add(struct gradient_tree *t, struct mat *grad, double loss)
{
	const size_t length = (size_t)grad->cols;

	for (unsigned ends = deal_ends(t->packs, t->at); ends; ends--)
		tree_add(grad->data, t->level[--t->held].data, length);
	t->loss[t->at++] = loss;
	if (t->at == t->packs)
		return;
	memcpy(t->level[t->held++].data, grad->data, length * sizeof(float));
	memset(grad->data, 0, length * sizeof(float));
}
