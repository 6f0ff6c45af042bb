/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages in E4M3 become BF16, so that the tiles of kernel/paged/tiles.h can read them. The copy has the
 * positions of a sequence one after the other. Each sequence begins at a multiple of PAGED_TILES_KEYS
 * positions, a block. So to the tiles a block of the copy is a page.
 *
 * An element is the nearest BF16 number to element * scale in single precision.
 */
#ifndef KERNEL_PAGED_WIDEN_H
#define KERNEL_PAGED_WIDEN_H
#include "kernel/paged/scale.h"

enum { PAGED_WIDEN_THREADS = 256, PAGED_WIDEN_PIECE = 16 /* elements that a thread converts at once */ };

/* A block of the copy. */
struct paged_wide {
	uint32_t page; /* its page numbers begin at args.page[page] */
	uint32_t keys; /* positions that the sequence has; the others keep what they had */
};
static_assert(sizeof(struct paged_wide) == 8, "layout shared with nvcc");

/* Entry paged_widen. Any grid. */
struct paged_widen_args {
	DEVICE_PTR(const uint8_t) kv;	/* as in paged_attention_args */
	DEVICE_PTR(const float) scale;	/* as there */
	DEVICE_PTR(uint16_t) wide;	/* [blocks << block_bits, columns] */
	DEVICE_PTR(const int32_t) page; /* numbers of pages */
	DEVICE_PTR(const struct paged_wide) block;
	uint64_t ld_kv, ld_scale, ld_wide; /* elements; those of kv and wide are multiples of 16 bytes */
	uint32_t blocks;
	uint32_t columns; /* 2 kv_heads << head_bits */
	uint32_t block_bits, page_bits, head_bits;
	uint32_t reserved;
};
static_assert(sizeof(struct paged_widen_args) == 88, "layout shared with nvcc");
#endif
