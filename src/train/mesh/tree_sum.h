/* SPDX-License-Identifier: Apache-2.0 */
/* Sums along the tree of halves (train/data/deal.h), so that they have the same bits on 1, 2, 4 .. ranks. */
#ifndef TRAIN_MESH_TREE_SUM_H
#define TRAIN_MESH_TREE_SUM_H
#include <stddef.h>
#include <stdint.h>

/* to[i] += from[i] */
void tree_add(float *to, const float *from, size_t count);
/* Adds `blocks` blocks of `count` numbers along the tree. The result is in the first block; the others are
 * overwritten. */
void tree_sum_blocks(float *block, unsigned blocks, size_t count);
#endif
