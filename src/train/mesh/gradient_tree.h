/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the gradients of one rank's packs along the tree of halves (train/data/deal.h), on a CPU. The sum over
 * ranks continues the tree, so the whole sum has the same bits on 1, 2, 4 .. ranks.
 */
#ifndef TRAIN_MESH_GRADIENT_TREE_H
#define TRAIN_MESH_GRADIENT_TREE_H
#include "model/tensor/arena.h"

enum { GRADIENT_TREE_LEVELS = 32 };

struct gradient_tree {
	struct mat level[GRADIENT_TREE_LEVELS]; /* sums of subtrees that wait for their right half */
	unsigned levels, held;
	uint64_t packs, at;
	double *loss; /* [room]: sum of each pack's losses */
	uint64_t room;
};

/* Places the levels for at most `packs` packs. Owner: caller, gradient_tree_release. */
enum status gradient_tree_create(struct gradient_tree *t, struct arena *a, uint64_t packs, size_t length,
				 struct error *err);
void gradient_tree_release(struct gradient_tree *t);
/* Begins a step with this number of packs of this rank, at most those of gradient_tree_create. */
void gradient_tree_begin(struct gradient_tree *t, uint64_t packs);
/* Takes the gradient and the loss of the next pack. Afterwards `grad` is zero for the next pack, or after the
 * last pack the sum of all. */
void gradient_tree_add(struct gradient_tree *t, struct mat *grad, double loss);
#endif
