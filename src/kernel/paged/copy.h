/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contiguous copy of pages in BF16, which the tiles of kernel/paged/tiles.h read. The copy has the
 * positions of a sequence one after the other. Each sequence begins at a multiple of PAGED_TILES_KEYS
 * positions, a block. The last block of a sequence ends with zeros.
 *
 * An element of a BF16 cache is copied as it is. One of an E4M3 cache becomes the nearest BF16 number to
 * element * scale in single precision.
 */
#ifndef KERNEL_PAGED_COPY_H
#define KERNEL_PAGED_COPY_H
#include "kernel/paged/scale.h"

enum {
	PAGED_COPY_THREADS = 256,
	PAGED_COPY_BLOCKS = 4,	  /* thread blocks that an SM runs at once */
	PAGED_COPY_ELEMENTS = 32, /* elements that a thread has in flight */
	PAGED_COPY_BYTES = 16	  /* bytes of the cache that a thread reads with one instruction, a piece */
};

/* A block of the copy. */
struct paged_block {
	uint32_t page; /* its page numbers begin at args.page[page] */
	uint32_t keys; /* positions that the sequence has; the others become zeros */
};
static_assert(sizeof(struct paged_block) == 8, "layout shared with nvcc");

/* Entries paged_copy_bf16 and paged_copy_e4m3, by the type of the cache. Any grid; paged_copy_grid is one
 * that copies in one round. Pieces are counted with 32 bits. */
struct paged_copy_args {
	DEVICE_PTR(const uint8_t) kv;	/* as in paged_attention_args */
	DEVICE_PTR(const float) scale;	/* as there */
	DEVICE_PTR(uint16_t) copy;	/* [blocks << block_bits, columns] */
	DEVICE_PTR(const int32_t) page; /* numbers of pages */
	DEVICE_PTR(const struct paged_block) block;
	uint64_t ld_kv, ld_scale, ld_copy; /* elements; those of kv and copy are multiples of 16 bytes */
	uint32_t blocks;
	uint32_t columns; /* 2 kv_heads << head_bits */
	uint32_t block_bits, page_bits, head_bits;
	uint32_t reserved;
};
static_assert(sizeof(struct paged_copy_args) == 88, "layout shared with nvcc");

static inline uint32_t paged_copy_grid(const struct paged_copy_args *a)
{
	const uint64_t elements = ((uint64_t)a->blocks << a->block_bits) * a->columns;
	const uint64_t each = PAGED_COPY_THREADS * PAGED_COPY_ELEMENTS;

	return (uint32_t)((elements + each - 1) / each);
}
#endif
