/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_ATTENTION_SPARSE_BLOCK_LISTS_H
#define KERNEL_ATTENTION_SPARSE_BLOCK_LISTS_H
#include "kernel/args.h"

/*
 * Lists of the key blocks that each query block attends to. Row r = ((b % batches) * heads + h % heads) *
 * q_blocks + q belongs to query block q (queries from q * q_block on) of batch b and query head h. Lists with
 * one batch or head apply to all of them.
 * Row r's full blocks are full[full_begin[r] .. full_begin[r + 1] - 1]; its partial blocks are stored in the
 * same way. Entries are numbers of key blocks (keys from k * k_block on), ascending, and no block is in both
 * lists.
 * In a full block every (query, key) pair is kept, so the block lies within both lengths and the mask. In a
 * partial block the pairs within the mask and both lengths are kept. A row without blocks gives zeros and a
 * log-sum-exp of -inf.
 */
struct attention_block_lists {
	DEVICE_PTR(const uint32_t) full_begin; /* (batches * heads * q_blocks + 1) */
	DEVICE_PTR(const uint32_t) full;
	DEVICE_PTR(const uint32_t) partial_begin; /* same layout as full_begin */
	DEVICE_PTR(const uint32_t) partial;
	uint32_t batches, heads;     /* of the lists: 1, or the problem's number */
	uint32_t q_blocks, k_blocks; /* blocks per (batch, head) */
	uint32_t q_block, k_block;   /* rows and keys of a block */
};
static_assert(sizeof(struct attention_block_lists) == 56, "layout shared with nvcc");

/* The random pattern of a seed and density keeps block (b, h, q, k) if word ((b * heads + h) * q_blocks + q)
 * * k_blocks + k of this stream of the generator is below density * 2^32. */
#define ATTENTION_BLOCK_STREAM 96
#endif
