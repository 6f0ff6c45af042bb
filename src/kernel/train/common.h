/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the training kernels (src/kernel/train/). Activations and weights are BF16, or F32
 * in the kernels whose names end in _f32: NAME_f32.cu compiles the same source with TRAIN_F32. Statistics,
 * losses, parameter gradients, the master copy and the moments are F32. Matrices are row-major. `ld` is the
 * number of elements from row to row, so every operand may be a slice of columns. Any shape and alignment is
 * correct. An operand is read 16 bytes at a time if its address is a multiple of 16 bytes and its ld a
 * multiple of 8 elements (F32: 4), else element by element. rows = 0 needs no launch. A null address means
 * that the operand is absent.
 */
#ifndef KERNEL_TRAIN_COMMON_H
#define KERNEL_TRAIN_COMMON_H
#include "kernel/args.h"

/* An activation or a weight, and the name of an entry that processes them. */
#ifdef TRAIN_F32
typedef float train_real;
#define TRAIN_ENTRY(name) name##_f32
#else
typedef uint16_t train_real;
#define TRAIN_ENTRY(name) name
#endif

enum {
	TRAIN_THREADS = 256,	    /* threads per block, unless an entry states another number */
	TRAIN_VECTOR = 8,	    /* elements that a thread processes at once */
	TRAIN_ROW_COLS_MAX = 16384, /* limit of kernels that hold a row in registers (norms) */
	TRAIN_HEAD_DIM_MAX = 256,
	TRAIN_SUMS_MAX =
		384, /* rows of partial sums for train_sums_add: three blocks per SM of a Hopper GPU */
};

/* Threads of a block that processes one row at a time: two vectors per thread, whole warps. cols: 1 ..
 * TRAIN_ROW_COLS_MAX. */
static inline unsigned train_row_threads(uint64_t cols)
{
	return (unsigned)((cols + 16 * 32 - 1) / (16 * 32) * 32);
}

/* Blocks of TRAIN_THREADS threads for a kernel that processes rows x cols in vectors. Such kernels accept any
 * number of blocks. */
static inline unsigned train_blocks(uint64_t rows, uint64_t cols)
{
	uint64_t vectors = rows * ((cols + TRAIN_VECTOR - 1) / TRAIN_VECTOR);
	uint64_t blocks = (vectors + 2 * TRAIN_THREADS - 1) / (2 * TRAIN_THREADS);

	return blocks > 1u << 30 ? 1u << 30 : (unsigned)blocks;
}

/* out[j] += sum over i, ascending, of sums[i][j]. It completes train_column_sums and the norms' dw. Grid:
 * (cols + 31) / 32 blocks of TRAIN_THREADS. */
struct train_sums_args {
	DEVICE_PTR(const float) sums; /* (count, cols), contiguous */
	DEVICE_PTR(void) out;	      /* (cols): F32, or BF16 if bf16 */
	uint64_t count, cols;
	uint32_t bf16, reserved;
};
static_assert(sizeof(struct train_sums_args) == 40, "layout shared with nvcc");
#endif
