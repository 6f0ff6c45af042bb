/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward over block lists; query blocks are of 128. Entries of file attention_sparse_sm90:
 * sparse_TYPE_dD_kK, TYPE fp16 or bf16, K the keys of a block, 64 or 128; of file attention_sparse, from
 * sm_80 on: blocks_TYPE_dD.
 */
#ifndef KERNEL_ATTENTION_SPARSE_ARGS_H
#define KERNEL_ATTENTION_SPARSE_ARGS_H
#include "kernel/attention/forward/args.h"
#include "kernel/attention/sparse/block_lists.h"

/* In `dense`, passes, head_units, section and zigzag are not used; K's and V's boxes have the rows of a
 * block. */
struct attention_sparse_args {
	struct attention_sm90_args dense;
	struct attention_block_lists lists;
	DEVICE_PTR(const uint32_t) order; /* of units, kernel/attention/sparse/make_lists.h */
	DEVICE_PTR(const uint32_t) bits; /* of partial blocks, likewise; 0: mask and lengths alone cut them */
	DEVICE_PTR(uint32_t) turn;	 /* two words, 0 before the first launch and after each */
	uint64_t reserved[2];
};
static_assert(sizeof(struct attention_sparse_args) == 832, "layout shared with nvcc");

/* Of blocks_TYPE_dD: grid (tiles of ATTENTION_FLASH_ROWS queries, heads, batch), shared memory as
 * flash_TYPE_dD. */
struct attention_sparse_flash_args {
	struct attention_args dense;
	struct attention_block_lists lists;
	DEVICE_PTR(const uint32_t) bits;
};
static_assert(sizeof(struct attention_sparse_flash_args) == 256, "layout shared with nvcc");

enum { ATTENTION_SPARSE_ROWS = 128, ATTENTION_SPARSE_THREADS = 384 };

/* Dynamic shared memory of an entry: the dense one's of two warpgroups, and a few words of units and places.
 */
#define ATTENTION_SPARSE_SHARED(d) (ATTENTION_SM90_SHARED(d, 2, 128, 256 / (d), 2) + 128)
#endif
