/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward over block lists, with query blocks of 128. Entries of file attention_sparse_sm90 are
 * sparse_TYPE_dD_kK, with TYPE fp16 or bf16, and K the keys of a block, 64 or 128. Entries of file
 * attention_sparse, from sm_80 on, are blocks_TYPE_dD.
 */
#ifndef KERNEL_ATTENTION_SPARSE_ARGS_H
#define KERNEL_ATTENTION_SPARSE_ARGS_H
#include "kernel/attention/forward/args.h"
#include "kernel/attention/sparse/block_lists.h"

/* In `dense`, passes, head_units, section and zigzag are not used. The boxes of K and V have the rows of a
 * block. */
struct attention_sparse_args {
	struct attention_sm90_args dense;
	struct attention_block_lists lists;
	DEVICE_PTR(const uint32_t) order; /* order of units, see kernel/attention/sparse/make_lists.h */
	/* bits of partial blocks; 0: only mask and lengths cut */
	DEVICE_PTR(const uint32_t) bits;
	DEVICE_PTR(uint32_t) turn; /* two words, 0 before the first launch and after each launch */
	uint64_t reserved[2];
};
static_assert(sizeof(struct attention_sparse_args) == 832, "layout shared with nvcc");

/* Arguments of blocks_TYPE_dD. Grid: (tiles of ATTENTION_FLASH_ROWS queries, heads, batch). Shared memory as
 * for flash_TYPE_dD. */
struct attention_sparse_flash_args {
	struct attention_args dense;
	struct attention_block_lists lists;
	DEVICE_PTR(const uint32_t) bits;
};
static_assert(sizeof(struct attention_sparse_flash_args) == 256, "layout shared with nvcc");

enum { ATTENTION_SPARSE_ROWS = 128, ATTENTION_SPARSE_THREADS = 384 };

/* Dynamic shared memory of an entry: that of the dense entry with two warpgroups, and a few words of units
 * and places. */
#define ATTENTION_SPARSE_SHARED(d) (ATTENTION_SM90_SHARED(d, 2, 128, 256 / (d), 2) + 128)
#endif
