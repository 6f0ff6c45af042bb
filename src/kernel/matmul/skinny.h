/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows, for inference: y[t] = x[t] W' (+ bias + residual[t]), or h[t] = silu(gate) * up with
 * gate and up from the two halves of W's rows. W [n, k] is BF16, or E4M3 with one factor per row. x [rows, k]
 * is BF16, or E4M3 with one factor per row. y is BF16. Sums are FP32 and rounded once.
 *
 * Entries of file skinny (sm_90a): skinny_KIND_nROWS, with KIND bf16, mixed (W E4M3, x BF16) or e4m3, and
 * ROWS the least of SKINNY_SIZES that holds all rows; and skinny_quantize.
 *
 * A tile is 128 rows of W, 64 for each of two warpgroups, and all rows of x. Blocks form clusters of
 * `cluster` blocks, which process units one after the other. The first `wide_units` units are `cluster`
 * tiles: each block computes one, and loads of x go to all blocks at once. A unit after those is `together`
 * tiles: cluster / together blocks compute parts along k of each, which are then added in a fixed order
 * through shared memory. So a row's result depends on neither its place nor the number of rows, as long as
 * cluster, wide_units and together are the same.
 */
#ifndef KERNEL_MATMUL_SKINNY_H
#define KERNEL_MATMUL_SKINNY_H
#include "kernel/tensor_map.h"

/* Most rows of an entry. Kind mixed needs more registers and ends at 128. */
#define SKINNY_MIXED_SIZES(X, ...)                                                                           \
	X(8, __VA_ARGS__)                                                                                    \
	X(16, __VA_ARGS__)                                                                                   \
	X(32, __VA_ARGS__)                                                                                   \
	X(64, __VA_ARGS__)                                                                                   \
	X(128, __VA_ARGS__)
#define SKINNY_SIZES(X, ...)                                                                                 \
	SKINNY_MIXED_SIZES(X, __VA_ARGS__)                                                                   \
	X(192, __VA_ARGS__)                                                                                  \
	X(256, __VA_ARGS__)

enum {
	SKINNY_ROWS_MOST = 256,
	SKINNY_MIXED_ROWS_MOST = 128,
	SKINNY_TILE = 128,	/* rows of W */
	SKINNY_GROUP = 64,	/* rows of W of a warpgroup */
	SKINNY_THREADS = 288,	/* two warpgroups that compute, one warp that loads */
	SKINNY_BOX_BYTES = 128, /* of a row, in a box of the copy engine */
	SKINNY_CLUSTER_MOST = 8,
	SKINNY_STAGES_MOST = 24,
	/* Floats of a row of the buffer in which results are turned: 4 more than a tile's rows, against bank
	 * conflicts. */
	SKINNY_TURN = SKINNY_TILE + 4,
	SKINNY_TURN_ROWS = 32,
};

struct skinny_args {
	/* Boxes of 128 bytes: of W 64 rows; of x as many rows as the entry has. */
	struct tensor_map w_map, x_map;
	DEVICE_PTR(void) y;		 /* BF16 [rows, outputs] */
	DEVICE_PTR(const void) residual; /* BF16 [rows, outputs]; 0: none */
	DEVICE_PTR(const void) bias;	 /* BF16 [outputs]; 0: none. Not with swiglu */
	DEVICE_PTR(const float) w_scale; /* [rows of W], if W is E4M3 */
	DEVICE_PTR(const float) x_scale; /* [rows], if x is E4M3 */
	int64_t row_y, row_residual;	 /* elements from one row to the next */
	uint32_t rows, outputs;		 /* outputs: a multiple of 8 */
	uint32_t steps;			 /* boxes along k of W */
	uint32_t wide_units, units;	 /* units: including the wide ones */
	uint32_t together;		 /* divides the cluster */
	uint32_t second; /* rows of W from the first warpgroup's to the second's: 64; with swiglu outputs */
	uint32_t tile_steps; /* rows of W from one tile to the next: 128; with swiglu 64 */
	uint32_t stages;
	uint32_t swiglu;
	uint64_t w_priority; /* of weights in the L2 */
};
static_assert(sizeof(struct skinny_args) == 384, "layout shared with nvcc");

/* Priorities in the L2, as the copy engine encodes them. */
#define SKINNY_EVICT_FIRST 0x12f0000000000000u
#define SKINNY_KEEP 0x1000000000000000u

/* Bytes of a stage of the ring: a box of W per warpgroup, and x. x has two boxes if its elements have twice
 * the bytes of W's. */
#define SKINNY_STAGE(size, boxes) (SKINNY_BOX_BYTES * (SKINNY_TILE + (boxes) * (size)))
/* Dynamic shared memory: the ring, two barriers per stage, the buffer for turning, and the loss by alignment
 * to 1024. */
#define SKINNY_TURN_BYTES(size) (4 * SKINNY_TURN * ((size) < SKINNY_TURN_ROWS ? (size) : SKINNY_TURN_ROWS))
#define SKINNY_SHARED(size, boxes, stages)                                                                   \
	((stages)*SKINNY_STAGE(size, boxes) + 16 * SKINNY_STAGES_MOST + SKINNY_TURN_BYTES(size) + 1024)

/* to[r] = E4M3 of from[r] / scale[r] with scale[r] = largest magnitude of the row / 448; 1 for a row of
 * zeros. One block per row. */
struct skinny_quantize_args {
	DEVICE_PTR(const void) from; /* BF16 */
	DEVICE_PTR(void) to;
	DEVICE_PTR(float) scale;
	int64_t row_from, row_to; /* elements from one row to the next, multiples of 8 */
	uint32_t rows, cols;	  /* cols: a multiple of 8 */
};
static_assert(sizeof(struct skinny_quantize_args) == 48, "layout shared with nvcc");
enum { SKINNY_QUANTIZE_THREADS = 256 };
#endif
