/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TRAIN_RMSNORM_ROPE_H
#define KERNEL_TRAIN_RMSNORM_ROPE_H
#include "kernel/train/common.h"

/*
 * train_rmsnorm: where `add` is there x = bf16(x + add) first; rstd = 1 / sqrt(mean(x^2) + eps);
 * y = bf16(w * bf16(x * rstd)), as transformers casts. y may be x where `add` is absent.
 * Grid: rows, or fewer; train_row_threads(cols) threads; cols <= TRAIN_ROW_COLS_MAX.
 */
struct train_norm_args {
	DEVICE_PTR(uint16_t) x;		/* (rows, cols), ld_x; written only where `add` is there */
	DEVICE_PTR(const uint16_t) add; /* (rows, cols), ld_add; 0: absent */
	DEVICE_PTR(const uint16_t) w;	/* (cols) */
	DEVICE_PTR(uint16_t) y;		/* (rows, cols), ld_y */
	DEVICE_PTR(float) rstd;		/* (rows), ld_rstd */
	int64_t ld_x, ld_add, ld_y, ld_rstd;
	uint32_t rows, cols;
	float eps;
	uint32_t reserved;
};
static_assert(sizeof(struct train_norm_args) == 88, "layout shared with nvcc");

/*
 * train_rmsnorm_bwd: dx = bf16(dx + rstd * (g - xhat * mean(g * xhat))), g = dy * w, xhat = x * rstd; and,
 * where `sums` is there, sums[block][j] = the block's rows' sum of dy * bf16(xhat), to be ended by
 * train_sums_add with count = grid. Grid: rows, or fewer; with `sums` at most TRAIN_SUMS_MAX and the same on
 * every run that should be bit-equal. Threads and cols as above.
 */
struct train_norm_bwd_args {
	DEVICE_PTR(const uint16_t) dy; /* (rows, cols), ld_dy */
	DEVICE_PTR(const uint16_t) x;  /* (rows, cols), ld_x */
	DEVICE_PTR(const uint16_t) w;  /* (cols) */
	DEVICE_PTR(const float) rstd;  /* (rows), ld_rstd */
	DEVICE_PTR(uint16_t) dx;       /* (rows, cols), ld_dx: added to */
	DEVICE_PTR(float) sums;	       /* (grid, cols); 0: no gradient of w wanted */
	int64_t ld_dy, ld_x, ld_rstd, ld_dx;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_norm_bwd_args) == 88, "layout shared with nvcc");

/*
 * In place on x (rows, heads * dim), a slice of q's or k's columns of fused qkv. dim: multiple of 8, at most
 * TRAIN_HEAD_DIM_MAX.
 * train_head_rope: where w is there raw = x, rstd by head, x = w * bf16(x * rstd); then with c, s from
 * cos_sin[position]: (a, b) = (a c - b s, b c + a s) for each i of the first half a, second half b. Rounded
 * to BF16 once, at the end. train_head_rope_bwd: x holds dx; rotated back, then through the norm where w is
 * there (reads raw and rstd); `sums` (grid, dim): each block's share of dw, as above. Grid:
 * train_blocks(rows, heads * dim), or any; with `sums` at most TRAIN_SUMS_MAX. TRAIN_THREADS threads.
 */
struct train_head_args {
	DEVICE_PTR(uint16_t) x;		    /* (rows, heads * dim), ld_x */
	DEVICE_PTR(const uint16_t) w;	    /* (dim); 0: no norm, then raw and rstd are not touched */
	DEVICE_PTR(const int32_t) position; /* (rows) */
	DEVICE_PTR(const float) cos_sin;    /* (positions, dim), ld_cos_sin: dim / 2 cosines, dim / 2 sines */
	DEVICE_PTR(uint16_t) raw;	    /* (rows, heads * dim), ld_raw */
	DEVICE_PTR(float) rstd;		    /* (rows, heads), ld_rstd */
	DEVICE_PTR(float) sums;		    /* (grid, dim); bwd alone; 0: no gradient of w wanted */
	int64_t ld_x, ld_cos_sin, ld_raw, ld_rstd;
	uint32_t rows, heads, dim;
	float eps;
};
static_assert(sizeof(struct train_head_args) == 104, "layout shared with nvcc");
#endif
