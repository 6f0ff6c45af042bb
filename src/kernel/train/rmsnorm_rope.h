/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TRAIN_RMSNORM_ROPE_H
#define KERNEL_TRAIN_RMSNORM_ROPE_H
#include "kernel/train/common.h"

/*
 * train_rmsnorm: if `add` is present, first x = bf16(x + add). Then rstd = 1 / sqrt(mean(x^2) + eps) and y =
 * bf16(w * bf16(x * rstd)), with the same casts as transformers. y may be x if `add` is absent.
 * Grid: rows, or fewer. Threads: train_row_threads(cols). cols <= TRAIN_ROW_COLS_MAX.
 */
struct train_norm_args {
	DEVICE_PTR(train_real) x;	  /* (rows, cols), ld_x; written only if `add` is present */
	DEVICE_PTR(const train_real) add; /* (rows, cols), ld_add; 0: absent */
	DEVICE_PTR(const train_real) w;	  /* (cols) */
	DEVICE_PTR(train_real) y;	  /* (rows, cols), ld_y */
	DEVICE_PTR(float) rstd;		  /* (rows), ld_rstd */
	int64_t ld_x, ld_add, ld_y, ld_rstd;
	uint32_t rows, cols;
	float eps;
	uint32_t reserved;
};
static_assert(sizeof(struct train_norm_args) == 88, "layout shared with nvcc");

/*
 * train_rmsnorm_bwd: dx = bf16(dx + rstd * (g - xhat * mean(g * xhat))), with g = dy * w and xhat = x * rstd.
 * If `sums` is present, sums[block][j] = the sum of dy * bf16(xhat) over the block's rows; train_sums_add
 * with count = grid completes it.
 * Grid: rows, or fewer. With `sums` at most TRAIN_SUMS_MAX, and the same number on every run that must be
 * bit-equal. Threads and cols as for train_rmsnorm.
 */
struct train_norm_bwd_args {
	DEVICE_PTR(const train_real) dy; /* (rows, cols), ld_dy */
	DEVICE_PTR(const train_real) x;	 /* (rows, cols), ld_x */
	DEVICE_PTR(const train_real) w;	 /* (cols) */
	DEVICE_PTR(const float) rstd;	 /* (rows), ld_rstd */
	DEVICE_PTR(train_real) dx;	 /* (rows, cols), ld_dx: the gradient is added to it */
	DEVICE_PTR(float) sums;		 /* (grid, cols); 0: no gradient of w */
	int64_t ld_dy, ld_x, ld_rstd, ld_dx;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_norm_bwd_args) == 88, "layout shared with nvcc");

/*
 * Both entries work in place on x (rows, heads * dim), a slice of q's or k's columns of the fused qkv. dim is
 * a multiple of 8, at most TRAIN_HEAD_DIM_MAX.
 * train_head_rope: if w is present, raw = x, rstd is computed for each head, and x = w * bf16(x * rstd).
 * Then, with c, s from cos_sin[position], (a, b) = (a c - b s, b c + a s) for each element a of the first
 * half and b of the second half. The result is rounded to BF16 once, at the end.
 * train_head_rope_bwd: x holds dx. It is rotated back. If w is present it then passes back through the norm,
 * which reads raw and rstd. `sums` (grid, dim) receives each block's share of dw, as in train_rmsnorm_bwd.
 * Grid: train_blocks(rows, heads * dim), or any; with `sums` at most TRAIN_SUMS_MAX. Threads: TRAIN_THREADS.
 */
struct train_head_args {
	DEVICE_PTR(train_real) x;	    /* (rows, heads * dim), ld_x */
	DEVICE_PTR(const train_real) w;	    /* (dim); 0: no norm, and raw and rstd are not touched */
	DEVICE_PTR(const int32_t) position; /* (rows) */
	DEVICE_PTR(const float) cos_sin;    /* (positions, dim), ld_cos_sin: dim / 2 cosines, dim / 2 sines */
	DEVICE_PTR(train_real) raw;	    /* (rows, heads * dim), ld_raw */
	DEVICE_PTR(float) rstd;		    /* (rows, heads), ld_rstd */
	DEVICE_PTR(float) sums;		    /* (grid, dim); bwd only; 0: no gradient of w */
	int64_t ld_x, ld_cos_sin, ld_raw, ld_rstd;
	uint32_t rows, heads, dim;
	float eps;
};
static_assert(sizeof(struct train_head_args) == 104, "layout shared with nvcc");
#endif
