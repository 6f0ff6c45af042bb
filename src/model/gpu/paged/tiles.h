/* SPDX-License-Identifier: Apache-2.0 */
/* Units of the attention of many rows (kernel/paged/tiles.h), and the blocks of keys that are copied for them
 * (kernel/paged/copy.h). Pure: no device. */
#ifndef MODEL_GPU_PAGED_TILES_H
#define MODEL_GPU_PAGED_TILES_H
#include "kernel/paged/copy.h"
#include "kernel/paged/tiles.h"
#include "model/gpu/paged/work.h"

/* The fewest rows of a sequence that may have tiles. Room is planned for these. */
enum { PAGED_TILES_LEAST = 64 };
/* Rows of a sequence from which on tiles are faster, the copy of its pages included
 * (docs/explanation/design/engine.md, "When the copy pays"). */
int32_t paged_tiles_rows_least(uint32_t head_dim);

/* All lists are the caller's. */
struct paged_tiles {
	uint32_t heads, head_dim;
	int32_t rows_least;	 /* of a sequence that has tiles; PAGED_TILES_LEAST or more */
	struct paged_tile *tile; /* [room] */
	int64_t room, count;
	struct paged_part *part; /* [part_room] */
	int64_t part_room, parts;
	int64_t copy_blocks;	   /* of the whole copy */
	struct paged_block *block; /* [block_room] of all parts */
	int64_t block_room, blocks;
};

/* The largest step, as far as tiles depend on it. */
struct paged_tiles_limits {
	uint32_t heads, head_dim;
	int64_t rows, sequences, positions; /* positions: of one sequence */
};

/* The most units, parts and blocks of all parts together. */
int64_t paged_tiles_most(uint32_t heads, uint32_t head_dim, int64_t rows);
int64_t paged_tiles_parts_most(int64_t rows);
int64_t paged_tiles_blocks_most(const struct paged_tiles_limits *most);
/* Blocks of the copy: those of the longest sequence, and twice as many as the rows of a step need. But no
 * more than can be used. */
int64_t paged_tiles_copy_blocks(const struct paged_tiles_limits *most);
/* Fills the units of the sequences with at least `rows_least` rows, and their blocks. Within a part, units
 * with the most keys are first. The page numbers of blocks are as in paged_work_fill. BUG: there is too
 * little room. */
enum status paged_tiles_fill(struct paged_tiles *t, const struct paged_work_rows *r, struct error *err);
#endif
