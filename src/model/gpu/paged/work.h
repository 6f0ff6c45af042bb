/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Division of paged attention's work among the blocks of a grid (kernel/paged/attention.h). Pure: no device.
 *
 * Normally all blocks get about the same work: the keys of the sequences, one after the other, are cut where
 * a block has enough. So a block has at most two ranges of columns that it shares with others. Nothing is cut
 * if the longest block then takes less time than joining the parts. In
 * batch-invariant mode keys are joined in splits of PAGED_SPLIT keys, whoever computes them. So a row's
 * result depends only on its position.
 */
#ifndef MODEL_GPU_PAGED_WORK_H
#define MODEL_GPU_PAGED_WORK_H
#include <stdbool.h>
#include "core/error.h"
#include "kernel/paged/attention.h"

/* Sequences of a step (model/backend/paged.h). */
struct paged_work_rows {
	const int32_t *begin; /* [sequences + 1] */
	const int32_t *keys;  /* [sequences] */
	int64_t sequences;
	uint32_t page_tokens;
};
struct paged_work {
	uint32_t heads, kv_heads;
	uint32_t blocks; /* blocks of the grid, at most PAGED_BLOCKS */
	bool invariant;
	int32_t rows_less;	  /* above 0: sequences with this many rows or more are left out */
	struct paged_unit *unit;  /* [room], the caller's */
	uint32_t *block;	  /* [blocks + 1], the caller's */
	struct paged_unit *first; /* [blocks], the caller's: each block's first unit */
	int64_t room, count;	  /* units; block numbers count from the first */
};

/* Partial results that a grid needs, apart from one per block. */
static inline uint32_t paged_work_places(uint32_t blocks)
{
	return 2 * blocks;
}
/* The most units of steps with at most these rows and sequences. */
int64_t paged_work_most(uint32_t heads, uint32_t kv_heads, int64_t rows, int64_t sequences, uint32_t blocks);
/* Fills units and blocks. Page numbers of all sequences follow each other, as many as each has pages with
 * keys. BUG: there is too little room, or a sequence has fewer keys than rows. */
enum status paged_work_fill(struct paged_work *w, const struct paged_work_rows *r, struct error *err);
/* Moves a filled division: its first unit is number `unit` of the kernel's list, and its page numbers begin
 * at number `page`. */
void paged_work_place(struct paged_work *w, uint32_t unit, uint32_t page);
#endif
