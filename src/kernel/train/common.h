/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the training kernels (train_*.cu) share. Activations and weights are BF16; statistics, losses, the
 * gradient of parameters, their master copy and moments are F32. Matrices are row-major; `ld` is elements
 * from row to row, so every operand may be a slice of columns. Any shape and alignment is right; an operand
 * is read 16 bytes at a time where its address is a multiple of 16 bytes and its ld of 8 elements (F32: 4),
 * else element by element. rows = 0 needs no launch. A null address stands for an operand that is absent.
 */
#ifndef KERNEL_TRAIN_COMMON_H
#define KERNEL_TRAIN_COMMON_H
#include "kernel/args.h"

enum {
	TRAIN_THREADS = 256,	    /* of a block, where an entry says nothing else */
	TRAIN_VECTOR = 8,	    /* elements that a thread takes at once */
	TRAIN_ROW_COLS_MAX = 16384, /* of what keeps a row in registers: norms */
	TRAIN_HEAD_DIM_MAX = 256,
	TRAIN_SUMS_MAX =
		384, /* rows of partial sums, which train_sums_add adds up: three blocks an SM of a Hopper */
};

/* Threads of a block that has one row at a time: two vectors a thread, whole warps. cols: 1 ..
 * TRAIN_ROW_COLS_MAX. */
static inline unsigned train_row_threads(uint64_t cols)
{
	return (unsigned)((cols + 16 * 32 - 1) / (16 * 32) * 32);
}

/* Blocks of what goes over rows x cols in vectors, TRAIN_THREADS each; the kernels take any number. */
static inline unsigned train_blocks(uint64_t rows, uint64_t cols)
{
	uint64_t vectors = rows * ((cols + TRAIN_VECTOR - 1) / TRAIN_VECTOR);
	uint64_t blocks = (vectors + 2 * TRAIN_THREADS - 1) / (2 * TRAIN_THREADS);

	return blocks > 1u << 30 ? 1u << 30 : (unsigned)blocks;
}

/* out[j] += sum over i, ascending, of sums[i][j]: ends column_sums and the norms' dw.
 * Grid (cols + 31) / 32 of TRAIN_THREADS. */
struct train_sums_args {
	DEVICE_PTR(const float) sums; /* (count, cols), without gaps */
	DEVICE_PTR(float) out;	      /* (cols) */
	uint64_t count, cols;
};
static_assert(sizeof(struct train_sums_args) == 32, "layout shared with nvcc");
#endif
