/* SPDX-License-Identifier: Apache-2.0 */
/* Units of the attention of many rows (kernel/paged/tiles.h). Pure: no device. */
#ifndef MODEL_GPU_PAGED_TILES_H
#define MODEL_GPU_PAGED_TILES_H
#include "kernel/paged/tiles.h"
#include "model/gpu/paged/work.h"

enum { PAGED_TILES_LEAST = 64 }; /* rows of a sequence from which on tiles are faster */

struct paged_tiles {
	uint32_t heads, head_dim;
	struct paged_tile *tile; /* [room], the caller's */
	int64_t room, count;
};

/* The most units of steps with at most these rows. */
int64_t paged_tiles_most(uint32_t heads, uint32_t head_dim, int64_t rows);
/* Fills the units of the sequences with at least PAGED_TILES_LEAST rows, those with the most keys first. Page
 * numbers are as in paged_work_fill. BUG: there is too little room. */
enum status paged_tiles_fill(struct paged_tiles *t, const struct paged_work_rows *r, struct error *err);
#endif
