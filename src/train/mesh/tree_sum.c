/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/tree_sum.h"

void tree_add(float *to, const float *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

void tree_sum_blocks(float *block, unsigned blocks, size_t count)
{
	const unsigned left = (blocks + 1) / 2;

	if (blocks < 2)
		return;
	tree_sum_blocks(block, left, count);
	tree_sum_blocks(block + left * count, blocks - left, count);
	tree_add(block, block + left * count, count);
}
