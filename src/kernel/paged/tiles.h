/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of many rows of a sequence to a contiguous copy of its pages (kernel/paged/copy.h), on Hopper:
 * the tiles of kernel/attention/forward. A unit is one query head and PAGED_TILES_GROUPS tiles of 64 rows.
 * Units are sorted, those with the most keys first, and block b of W takes units b, 2 W - 1 - b, 2 W + b and
 * so on.
 */
#ifndef KERNEL_PAGED_TILES_H
#define KERNEL_PAGED_TILES_H
#include "kernel/attention/forward/args.h"

#define PAGED_TILES_GROUPS(head_dim) ((head_dim) == 64 ? 3 : 2)
#define PAGED_TILES_ROWS(head_dim) (64 * PAGED_TILES_GROUPS(head_dim))
#define PAGED_TILES_KEYS(head_dim) ((head_dim) == 64 ? 64 : 128) /* keys of a block */
#define PAGED_TILES_SLOTS(head_dim) ((head_dim) == 64 ? 8 : 2)
#define PAGED_TILES_THREADS(head_dim) (128 * (PAGED_TILES_GROUPS(head_dim) + 1))

struct paged_tile {
	int32_t row;	 /* number of the sequence's first row in the step */
	int32_t rows;	 /* of the sequence */
	int32_t keys;	 /* position of its last row, plus 1 */
	uint32_t key;	 /* row of the copy that has the sequence's first key */
	int32_t first;	 /* number of the unit's first tile of 64 rows in the sequence */
	uint32_t head;	 /* query head */
	uint32_t blocks; /* of keys */
	uint32_t reserved;
};
static_assert(sizeof(struct paged_tile) == 32, "layout shared with nvcc");

/* Tiles of one launch, and the blocks that are copied before. If the pages of a step exceed the copy, the
 * step has several parts. */
struct paged_part {
	uint32_t tile, tiles; /* first one, and how many */
	uint32_t block, blocks;
};
static_assert(sizeof(struct paged_part) == 16, "layout shared with nvcc");

/* Entries tiles_bf16_dD of file paged_attention_sm90, D = 64 or 128. Arguments are those of the dense kernel,
 * with left ATTENTION_OPEN, right 0, passes 1, and any address but 0 as q_starts. Units are numbered by the
 * list. */
struct paged_tiles_args {
	struct attention_sm90_args dense;
	DEVICE_PTR(const struct paged_tile) tile;
	uint32_t count; /* of tiles */
	uint32_t reserved[13];
};
static_assert(sizeof(struct paged_tiles_args) == 768, "layout shared with nvcc");

/* Bytes of shared memory. */
#define PAGED_TILES_SHARED(head_dim)                                                                         \
	ATTENTION_SM90_SHARED(head_dim, PAGED_TILES_GROUPS(head_dim), PAGED_TILES_KEYS(head_dim),            \
			      PAGED_TILES_SLOTS(head_dim), (head_dim) == 64 ? 1 : 2)
#endif
