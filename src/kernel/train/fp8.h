/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that quantize to E4M3 for training (docs/explanation/design/fp8.md). A tile has one scale: 128
 * elements of a row, or 128 x 128 elements of a weight. With m = the tile's largest magnitude, at least
 * 2^-100: scale = m / 448, element = e4m3(number * (448 / m)), rounded to nearest even. A tile of zeros has
 * the scale 1. If a number is not finite, the scale and all elements of the tile are NaN, and *overflows is
 * increased by 1. The last tile of a row or column may be shorter. E4M3 matrices have rows that begin at
 * multiples of 8 bytes, and a multiple of 8 columns. A null `overflows` means that nothing is counted.
 */
#ifndef KERNEL_TRAIN_FP8_H
#define KERNEL_TRAIN_FP8_H
#include "kernel/train/common.h"

enum {
	TRAIN_FP8_TILE = 128,
	TRAIN_FP8_PITCH = 132, /* bytes of a row of a transposed tile of a weight in shared memory */
	TRAIN_FP8_NORM_SHARED = 128,
	/* Bytes in shared memory before the transposed tile of a weight: largest magnitudes. */
	TRAIN_FP8_TURNED_AT = 128,
	TRAIN_FP8_TURN_SHARED = TRAIN_FP8_TURNED_AT + TRAIN_FP8_TILE * TRAIN_FP8_PITCH,
	/* Shared memory of kernels that quantize columns: largest magnitudes of each warp in BF16, factors,
	 * and the transposed tile. */
	TRAIN_FP8_INVERSE_AT = TRAIN_THREADS / 32 * TRAIN_FP8_TILE * 2,
	TRAIN_FP8_SQUARE_AT = TRAIN_FP8_INVERSE_AT + TRAIN_FP8_TILE * 4,
	TRAIN_FP8_SQUARE_SHARED = TRAIN_FP8_SQUARE_AT + TRAIN_FP8_TILE * TRAIN_FP8_TILE,
	/* Also two tiles in BF16. */
	TRAIN_FP8_SWIGLU_SHARED = TRAIN_FP8_SQUARE_SHARED + 2 * TRAIN_FP8_TILE * TRAIN_FP8_TILE * 2,
};

/* Rows quantized to E4M3: the scale of row t and tile i is scale[i * step + t]. */
struct train_fp8_rows {
	DEVICE_PTR(uint8_t) to;	 /* (rows, cols), ld */
	DEVICE_PTR(float) scale; /* (tiles, rows), step */
	DEVICE_PTR(uint32_t) overflows;
	int64_t ld, step;
};
static_assert(sizeof(struct train_fp8_rows) == 40, "layout shared with nvcc");

/* train_fp8_quantize: y of x. Grid: train_fp8_blocks(rows, cols), or any, of TRAIN_THREADS. */
struct train_fp8_quantize_args {
	DEVICE_PTR(const uint16_t) x; /* (rows, cols), ld_x */
	struct train_fp8_rows y;
	int64_t ld_x;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_fp8_quantize_args) == 64, "layout shared with nvcc");

/* train_fp8_rmsnorm: y and rstd have the bits of train_rmsnorm without `add`; q is y in E4M3. Grid: rows.
 * Threads: train_row_threads(cols). Shared: TRAIN_FP8_NORM_SHARED. cols <= TRAIN_ROW_COLS_MAX. */
struct train_fp8_norm_args {
	DEVICE_PTR(const uint16_t) x; /* (rows, cols), ld_x */
	DEVICE_PTR(const uint16_t) w; /* (cols) */
	DEVICE_PTR(uint16_t) y;	      /* (rows, cols), ld_y */
	DEVICE_PTR(float) rstd;	      /* (rows), ld_rstd */
	struct train_fp8_rows q;
	int64_t ld_x, ld_y, ld_rstd;
	uint32_t rows, cols;
	float eps;
	uint32_t reserved;
};
static_assert(sizeof(struct train_fp8_norm_args) == 112, "layout shared with nvcc");

/*
 * train_fp8_swiglu: h has the bits of train_swiglu, and q is h in E4M3, (rows, ffn). h 0: q alone.
 * train_fp8_swiglu_bwd: gate_up, h and h_again have the bits of train_swiglu_bwd, and q is the new gate_up in
 * E4M3, (rows, 2 ffn). ffn is a multiple of 128.
 * Grid: train_fp8_blocks(rows, ffn), or any, of TRAIN_THREADS.
 */
struct train_fp8_swiglu_args {
	DEVICE_PTR(uint16_t) gate_up; /* (rows, 2 ffn), ld_gate_up: gate, then up */
	DEVICE_PTR(uint16_t) h;	      /* (rows, ffn), ld_h */
	DEVICE_PTR(uint16_t) h_again; /* (rows, ffn), ld_h_again; bwd only; 0: absent */
	struct train_fp8_rows q;
	int64_t ld_gate_up, ld_h, ld_h_again;
	uint32_t rows, ffn;
};
static_assert(sizeof(struct train_fp8_swiglu_args) == 96, "layout shared with nvcc");

/* A weight of rows x cols in E4M3, and its transposed bytes, (cols, rows). The scale of tile (i, j) is
 * scale[i * step + j], and scale_transposed[j * step_transposed + i]. rows is a multiple of 4. */
struct train_fp8_weights {
	DEVICE_PTR(uint8_t) to;		/* (rows, cols), ld_to */
	DEVICE_PTR(uint8_t) transposed; /* (cols, rows), ld_transposed; 0: absent */
	DEVICE_PTR(float) scale;
	DEVICE_PTR(float) scale_transposed;
	DEVICE_PTR(uint32_t) overflows;
	int64_t ld_to, ld_transposed, step, step_transposed;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_fp8_weights) == 80, "layout shared with nvcc");

/* train_fp8_weights: q of w. Grid: tiles of cols * tiles of rows. Threads: TRAIN_THREADS. Shared:
 * TRAIN_FP8_TURN_SHARED. */
struct train_fp8_weights_args {
	DEVICE_PTR(const uint16_t) w; /* (rows, cols), ld_w */
	int64_t ld_w;
	struct train_fp8_weights q;
};
static_assert(sizeof(struct train_fp8_weights_args) == 96, "layout shared with nvcc");

/* train_fp8_transpose: the transposed bytes and scales of a weight in E4M3. `from` begins at a multiple of 16
 * bytes, and so do its rows; rows is a multiple of 4. Grid, threads and shared as for train_fp8_weights. */
struct train_fp8_transpose_args {
	DEVICE_PTR(const uint8_t) from; /* (rows, cols), ld_from */
	DEVICE_PTR(uint8_t) to;		/* (cols, rows), ld_to */
	DEVICE_PTR(const float) scale;	/* of tile (i, j): scale[i * step + j] */
	DEVICE_PTR(float) scale_to;	/* scale_to[j * step_to + i] */
	int64_t ld_from, ld_to, step, step_to;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_fp8_transpose_args) == 72, "layout shared with nvcc");

/* train_fp8_columns: y is the transposed x, (cols, rows), quantized along the rows of x. Column j and tile i
 * of 128 rows have the scale y.scale[i * y.step + j]. q is x with the bits of train_fp8_quantize, unless q.to
 * is 0. rows is a multiple of 4. Grid: tiles of cols * tiles of rows. Threads: TRAIN_THREADS. Shared:
 * TRAIN_FP8_SQUARE_SHARED. */
struct train_fp8_columns_args {
	DEVICE_PTR(const uint16_t) x; /* (rows, cols), ld_x */
	struct train_fp8_rows y, q;
	int64_t ld_x;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_fp8_columns_args) == 104, "layout shared with nvcc");

/*
 * train_fp8_swiglu_bwd_columns: the gradient of gate_up and h, in E4M3 alone. They have the bits that
 * train_fp8_swiglu_bwd would give with h_again, and that train_fp8_columns would make of its results: q is
 * the gradient, (rows, 2 ffn), y the transposed gradient, (2 ffn, rows), and again the transposed h, (ffn,
 * rows). rows is a multiple of 4, and ffn of 128. Grid: ffn / 128 * tiles of rows. Threads: TRAIN_THREADS.
 * Shared: TRAIN_FP8_SWIGLU_SHARED.
 */
struct train_fp8_swiglu_columns_args {
	DEVICE_PTR(const uint16_t) gate_up; /* (rows, 2 ffn), ld_gate_up: gate, then up */
	DEVICE_PTR(const uint16_t) dh;	    /* (rows, ffn), ld_dh */
	struct train_fp8_rows q, y, again;
	int64_t ld_gate_up, ld_dh;
	uint32_t rows, ffn;
};
static_assert(sizeof(struct train_fp8_swiglu_columns_args) == 160, "layout shared with nvcc");

/* train_fp8_add_bias: y = bf16(y + bias). Grid: train_fp8_blocks(rows, cols), or any, of TRAIN_THREADS. */
struct train_fp8_bias_args {
	DEVICE_PTR(uint16_t) y;		 /* (rows, cols), ld_y */
	DEVICE_PTR(const uint16_t) bias; /* (cols) */
	int64_t ld_y;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_fp8_bias_args) == 32, "layout shared with nvcc");

/* A group of 16 lanes processes one tile of a row, two in each turn. */
static inline unsigned train_fp8_blocks(uint64_t rows, uint64_t cols)
{
	const uint64_t tiles = rows * ((cols + TRAIN_FP8_TILE - 1) / TRAIN_FP8_TILE);
	const uint64_t blocks = (tiles + 2 * TRAIN_THREADS / 16 - 1) / (2 * TRAIN_THREADS / 16);

	return blocks > 1u << 30 ? 1u << 30 : (unsigned)blocks;
}
#endif
