/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows with LoRA adapters (skinny.h): y[t] = x[t] W' + u[t] B' (+ bias + residual[t]), with
 * u = x A'. Or y is SwiGLU of these sums. A and B are BF16. Both have up to three parts, such as q, k and v.
 * A part has `width` rows of A, which are `width` columns of u. It has B's rows for its own rows of W, and
 * those have `width` columns. Several adapters divide the width: columns i rank .. (i + 1) rank - 1 belong to
 * adapter i. u is 0 where a column does not belong to the row's adapter.
 *
 * Entries of file skinny_adapters (sm_90a): skinny_adapters_KIND_nROWS, with KIND bf16 or e4m3. The
 * kernel's first `shrink_units` units are tiles of A. The blocks of a cluster compute them in
 * parts along k, and write u to global memory. A block counts itself in state[0] when its rows of u are
 * there. The other units are those of skinny. After their steps along k they have tail_steps steps along the
 * columns of u, whose loads wait for that count. Tiles of A come first, so u is there before most units need
 * it. The last block that leaves sets both counts to 0 again.
 *
 * All blocks of the grid must fit on the device at once, because they wait for each other.
 */
#ifndef KERNEL_MATMUL_SKINNY_ADAPTERS_H
#define KERNEL_MATMUL_SKINNY_ADAPTERS_H
#include "kernel/matmul/skinny.h"

enum {
	SKINNY_PARTS_MOST = 3,
	SKINNY_TAIL = 64,     /* columns of u in a step */
	SKINNY_RANK_UNIT = 8, /* ranks are multiples of it */
};

struct skinny_adapters_args {
	struct skinny_args base; /* without w_scale and x_scale; units: without those of A */
	/* Boxes of 128 bytes: of A and B 64 rows; of u, and of x in BF16, as many rows as the entry has. */
	struct tensor_map a_map, b_map, u_map, x_map;
	DEVICE_PTR(void) u;		     /* BF16 [rows, a_rows] */
	DEVICE_PTR(const int32_t) adapter;   /* [rows]; -1: none */
	DEVICE_PTR(const float) w_scale;     /* [rows of W], if W is E4M3 */
	DEVICE_PTR(const float) x_scale;     /* [rows], if x is E4M3 */
	DEVICE_PTR(uint32_t) state;	     /* [2]; 0 before and after */
	int64_t row_u;			     /* elements from one row to the next */
	uint32_t a_rows, width, rank, parts; /* a_rows: parts * width */
	uint32_t shrink_units, shrink_steps; /* shrink_steps: boxes along k of A that each block computes */
	uint32_t tail_steps;		     /* with `apart` twice the boxes along the width */
	uint32_t apart;			     /* the two halves of a tile take turns: their parts may differ */
	uint32_t begin[SKINNY_PARTS_MOST], count[SKINNY_PARTS_MOST]; /* rows of W that a part belongs to */
	uint32_t reserved[6];
};
static_assert(sizeof(struct skinny_adapters_args) == 1024, "layout shared with nvcc");
#endif
