/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that make block lists on the device. A pattern or a map of blocks selects a row's blocks. Mask and
 * lengths then cut them, as kernel/attention/forward/args.h says. A block that they leave whole is a full
 * block; a block that they cut is a partial block. Entries of file attention_lists, in the order of their
 * launches:
 *
 *   lists_classify  turns a mask of elements into a map of blocks; omitted without a mask
 *   lists_count     counts
 *   lists_place     writes full_begin, partial_begin and order
 *   lists_write     writes full and partial
 *   lists_bits      writes the bits of partial blocks; omitted without a mask of elements
 */
#ifndef KERNEL_ATTENTION_SPARSE_MAKE_LISTS_H
#define KERNEL_ATTENTION_SPARSE_MAKE_LISTS_H
#include "kernel/attention/sparse/block_lists.h"

/* ALL: every block. STRIDED: blocks whose distance from the query block's own position is a multiple of
 * stride. RANDOM: see ATTENTION_BLOCK_STREAM. MAP: the blocks that the map keeps. */
enum lists_source { LISTS_ALL, LISTS_STRIDED, LISTS_RANDOM, LISTS_MAP };

/* Value of a map's byte for a block. PART: `bits` select its elements, so it is never full. */
enum lists_block { LISTS_DROPPED, LISTS_KEPT, LISTS_PART };

struct attention_lists_args {
	struct attention_block_lists lists; /* output; full and partial have room for every block */
	/* (batches, heads, q_blocks, k_blocks) of the lists */
	DEVICE_PTR(uint8_t) map;
	/* (batches, heads, q_len, kv_len) of the lists; 0 drops an element */
	DEVICE_PTR(const uint8_t) mask;
	DEVICE_PTR(uint32_t) bits;   /* for partial block i: q_block rows of k_block bits, lowest first */
	DEVICE_PTR(uint32_t) counts; /* (rows, 2): full, partial */
	DEVICE_PTR(uint32_t) order;  /* (batch * heads * q_blocks) units, longest first in each section */
	/* starts of sequences as in kernel/attention/forward/args.h, or 0 */
	DEVICE_PTR(const uint32_t) q_starts;
	DEVICE_PTR(const uint32_t) kv_starts;
	uint64_t seed, below; /* RANDOM: words below `below` keep their block */
	uint32_t source, stride;
	uint32_t batch, heads, q_len, kv_len; /* of the problem */
	int32_t left, right;
	uint32_t section; /* heads, counted over all batches, whose units are sorted together */
	uint32_t reserved;
};
static_assert(sizeof(struct attention_lists_args) == 168, "layout shared with nvcc");

/* Threads of a block. Grids: classify and bits (rows of the lists, k_blocks); count and write: LISTS_ROWS
 * rows per block; place: 1 + sections * ceil(section * q_blocks / LISTS_THREADS). */
enum { LISTS_THREADS = 256, LISTS_ROWS = LISTS_THREADS / 32 };
#endif
