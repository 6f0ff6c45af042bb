/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block lists made on the device. A row's blocks are told by a pattern or by a map of blocks, and cut by mask
 * and lengths as kernel/attention/forward/args.h says: what they leave whole is a full block, what they cut a
 * partial one. Entries of file attention_lists, one after the other on a stream:
 *
 *   lists_classify  a mask of elements becomes a map of blocks; left out where there is none
 *   lists_count     counts
 *   lists_place     full_begin, partial_begin and order
 *   lists_write     full and partial
 *   lists_bits      the bits of partial blocks; left out without a mask of elements
 */
#ifndef KERNEL_ATTENTION_SPARSE_MAKE_LISTS_H
#define KERNEL_ATTENTION_SPARSE_MAKE_LISTS_H
#include "kernel/attention/sparse/block_lists.h"

/* ALL: every block. STRIDED: those a multiple of stride away from the query block's own. RANDOM: as
 * ATTENTION_BLOCK_STREAM says. MAP: those that the map keeps. */
enum lists_source { LISTS_ALL, LISTS_STRIDED, LISTS_RANDOM, LISTS_MAP };

/* What a map has of a block: a byte. PART: `bits` tell which of its elements, so it is never full. */
enum lists_block { LISTS_DROPPED, LISTS_KEPT, LISTS_PART };

struct attention_lists_args {
	struct attention_block_lists lists; /* to be filled; full and partial have room for every block */
	DEVICE_PTR(uint8_t) map;	    /* (batches, heads, q_blocks, k_blocks) of the lists */
	DEVICE_PTR(const uint8_t) mask; /* (batches, heads, q_len, kv_len) of the lists: 0 drops an element */
	DEVICE_PTR(uint32_t) bits;	/* of partial block i: q_block rows of k_block bits, lowest first */
	DEVICE_PTR(uint32_t) counts;	/* (rows, 2): full, partial */
	DEVICE_PTR(uint32_t) order; /* (batch * heads * q_blocks) units, long ones first in each section */
	DEVICE_PTR(const uint32_t)
	q_starts; /* lengths of sequences as in kernel/attention/forward/args.h, or 0 */
	DEVICE_PTR(const uint32_t) kv_starts;
	uint64_t seed, below; /* RANDOM: words below it keep their block */
	uint32_t source, stride;
	uint32_t batch, heads, q_len, kv_len; /* of the problem */
	int32_t left, right;
	uint32_t section; /* heads, all batches counted on, whose units are ordered together */
	uint32_t reserved;
};
static_assert(sizeof(struct attention_lists_args) == 168, "layout shared with nvcc");

/* Threads of a block. Grids: classify and bits (rows of lists, k_blocks); count and write LISTS_ROWS rows a
 * block; place 1 + sections * ceil(section * q_blocks / LISTS_THREADS). */
enum { LISTS_THREADS = 256, LISTS_ROWS = LISTS_THREADS / 32 };
#endif
