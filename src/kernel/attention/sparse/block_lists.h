/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_ATTENTION_SPARSE_BLOCK_LISTS_H
#define KERNEL_ATTENTION_SPARSE_BLOCK_LISTS_H
#include "kernel/args.h"

/*
 * Which blocks of keys a block of queries attends to. Row r = ((b % batches) * heads + h % heads) * q_blocks
 * + q is of query block q (queries q * q_block ..) of batch b and query head h; lists of one batch or head
 * are shared by all. Row r's full blocks are full[full_begin[r] .. full_begin[r + 1] - 1], its partial ones
 * likewise: numbers of key blocks (keys k * k_block ..), rising, none in both lists. Of a full block every
 * pair (query, key) is kept: it lies inside of both lengths and of the mask. Of a partial block those that
 * the mask keeps and that lie inside. A row without blocks gives zeros and a log-sum-exp of -inf.
 */
struct attention_block_lists {
	DEVICE_PTR(const uint32_t) full_begin; /* (batches * heads * q_blocks + 1) */
	DEVICE_PTR(const uint32_t) full;
	DEVICE_PTR(const uint32_t) partial_begin; /* as full_begin */
	DEVICE_PTR(const uint32_t) partial;
	uint32_t batches, heads;     /* of the lists: 1, or the problem's */
	uint32_t q_blocks, k_blocks; /* of one (batch, head) */
	uint32_t q_block, k_block;   /* rows and keys of a block */
};
static_assert(sizeof(struct attention_block_lists) == 56, "layout shared with nvcc");

/* The pattern of seed at a density keeps block (b, h, q, k) when word ((b * heads + h) * q_blocks + q) *
 * k_blocks + k of this stream of the generator is below density * 2^32. */
#define ATTENTION_BLOCK_STREAM 96
#endif
