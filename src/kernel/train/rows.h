/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that process rows. Grid: train_blocks(rows, cols), or any, of TRAIN_THREADS, unless an entry states
 * otherwise. rows * ceil(cols / 8) < 2^32. */
#ifndef KERNEL_TRAIN_ROWS_H
#define KERNEL_TRAIN_ROWS_H
#include "kernel/train/common.h"

/* train_swiglu: h = bf16(silu(gate) * up), computed in F32. train_swiglu_bwd: h holds dh, and gate_up is
 * replaced by its gradient. If h_again is present, it receives the forward result h; it may be h itself. The
 * next GEMM's weight gradient needs it. */
struct train_swiglu_args {
	DEVICE_PTR(train_real) gate_up; /* (rows, 2 ffn), ld_gate_up: gate, then up */
	DEVICE_PTR(train_real) h;	/* (rows, ffn), ld_h */
	DEVICE_PTR(train_real) h_again; /* (rows, ffn), ld_h_again; bwd only; 0: absent */
	int64_t ld_gate_up, ld_h, ld_h_again;
	uint32_t rows, ffn;
};
static_assert(sizeof(struct train_swiglu_args) == 56, "layout shared with nvcc");

/* train_gather: to[i] = from[row[i] - first] (embedding: row = token, from = table), or 0 if `from` has not
 * that row. train_scatter_add: to[row[i]] = bf16(to[row[i]] + from[i]); no row may occur twice. rows and cols
 * are those of the list. */
struct train_gather_args {
	DEVICE_PTR(const train_real) from; /* ld_from */
	DEVICE_PTR(train_real) to;	   /* ld_to */
	DEVICE_PTR(const int32_t) row;	   /* (rows) */
	int64_t ld_from, ld_to;
	uint32_t rows, cols;
	int32_t first;	/* train_gather only */
	uint32_t count; /* rows of `from`; train_gather only */
};
static_assert(sizeof(struct train_gather_args) == 56, "layout shared with nvcc");

/* train_embed_bwd: dtable[token[t] - first] += dx[t], if dtable has that row. One block adds the rows of one
 * token in ascending order. A sum in BF16 is rounded after each 256 positions that have the token. Grid:
 * exactly rows. */
struct train_embed_bwd_args {
	DEVICE_PTR(const train_real) dx; /* (rows, cols), ld_dx */
	DEVICE_PTR(void) dtable;	 /* (count, cols), ld_dtable: F32, or BF16 if bf16 */
	DEVICE_PTR(const int32_t) token; /* (rows) */
	int64_t ld_dx, ld_dtable;
	uint32_t rows, cols;
	uint32_t bf16, count;
	int32_t first;
	uint32_t reserved;
};
static_assert(sizeof(struct train_embed_bwd_args) == 64, "layout shared with nvcc");

/* train_dropout: y = bf16((add ? y : 0) + (keep ? x * scale : 0)). Element (t, j) is kept if word j % 4 of
 * Philox with key seed and counter ((col_begin + j) / 4, row low, row high, site), row = row_begin + t, is >=
 * least. col_begin is a multiple of 4. y may be x. */
struct train_dropout_args {
	DEVICE_PTR(const train_real) x; /* (rows, cols), ld_x */
	DEVICE_PTR(train_real) y;	/* (rows, cols), ld_y */
	int64_t ld_x, ld_y;
	uint64_t seed, row_begin;
	uint32_t rows, cols;
	uint32_t site, least; /* least = (uint32_t)((double)p * 2^32) */
	float scale;	      /* 1 / (1 - p) */
	uint32_t add;
	uint32_t col_begin, reserved;
};
static_assert(sizeof(struct train_dropout_args) == 80, "layout shared with nvcc");

/* train_to_bf16 converts F32 to BF16, to nearest even. train_to_f32 converts BF16 to F32. train_add_bf16 adds
 * BF16 to BF16. */
struct train_convert_args {
	DEVICE_PTR(const void) from; /* (rows, cols), ld_from */
	DEVICE_PTR(void) to;	     /* (rows, cols), ld_to */
	int64_t ld_from, ld_to;
	uint32_t rows;
	uint32_t reserved;
	uint64_t cols;
};
static_assert(sizeof(struct train_convert_args) == 48, "layout shared with nvcc");

/* train_copy copies rows of bytes from one pitch to another (K-extension, KV caches). train_zero sets rows to
 * zero and does not read `from`. Grid: train_blocks(rows, bytes / 2), or any. */
struct train_copy_args {
	DEVICE_PTR(const void) from;  /* (rows, bytes), pitch_from */
	DEVICE_PTR(void) to;	      /* (rows, bytes), pitch_to */
	int64_t pitch_from, pitch_to; /* bytes from row to row */
	uint32_t rows;
	uint32_t reserved;
	uint64_t bytes; /* bytes of a row; rows * ceil(bytes / 16) < 2^32 */
};
static_assert(sizeof(struct train_copy_args) == 48, "layout shared with nvcc");

/* train_column_sums: sums[y][j] = the sum of x[t][j] over the rows of y. Rows are split into equal contiguous
 * parts for grid.y; train_sums_add with count = grid.y completes the sum. Grid: ((cols + 255) / 256, at most
 * TRAIN_SUMS_MAX), the same on every run that must be bit-equal. train_column_parts(rows) is a good grid.y.
 * Threads: TRAIN_THREADS. */
struct train_columns_args {
	DEVICE_PTR(const train_real) x; /* (rows, cols), ld_x */
	DEVICE_PTR(float) sums;		/* (grid.y, cols) */
	int64_t ld_x;
	uint32_t rows, cols;
};
static_assert(sizeof(struct train_columns_args) == 32, "layout shared with nvcc");
static inline unsigned train_column_parts(uint64_t rows)
{
	uint64_t parts = (rows + 63) / 64;

	return parts > 128 ? 128 : (unsigned)parts;
}

/* train_random_bf16, train_random_f32: element i = row * cols + column, counted from `first`, is centre +
 * width * u(i), where u(i) is element i of a stream of core/math/random.h. The results are bit-equal to
 * model/files/random_weights.h. */
struct train_random_args {
	DEVICE_PTR(void) to; /* (rows, cols), ld_to */
	int64_t ld_to;
	uint64_t seed, first;
	uint64_t cols;
	uint32_t rows, stream;
	float centre, width;
};
static_assert(sizeof(struct train_random_args) == 56, "layout shared with nvcc");
#endif
