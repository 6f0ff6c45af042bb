/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NF4 and FP4 on a device (model/bnb4/bnb4.h says what the bits mean). The kernels give the host functions'
 * bits: each operation is rounded by itself, without multiply-add.
 *
 * rows * cols <= BNB4_ELEMENTS_MOST, and cols is a multiple of 8, so that a thread's 8 elements are in one
 * row and one block. BF16 matrices begin at a multiple of 16 bytes and have a ld that is a multiple of 8;
 * codes begin at a multiple of 4.
 */
#ifndef KERNEL_BNB4_BNB4_H
#define KERNEL_BNB4_BNB4_H
#include "kernel/args.h"
#include "kernel/bnb4/tables.h"

enum {
	BNB4_THREADS = 256,
	BNB4_VECTOR = 8,
	BNB4_TURNS = 4, /* vectors of a thread */
	BNB4_TILE = BNB4_THREADS * BNB4_VECTOR * BNB4_TURNS,
	BNB4_MATRICES_MOST = 16,	   /* matrices of one launch: two layers of seven, and two more */
	BNB4_TABLE_BYTES = BNB4_CODES * 4, /* shared memory of bnb4_dequantize and bnb4_dequantize_e4m3 */
	BNB4_NEST_BYTES = (BNB4_MAP + BNB4_GROUP / 32) * 4, /* of bnb4_nest */
};
#define BNB4_ELEMENTS_MOST (UINT32_MAX - BNB4_TILE) /* so that no index of the last tile wraps */

/* Tiles of a matrix: blocks of BNB4_THREADS threads that process it. */
static inline unsigned bnb4_tiles(uint64_t rows, uint64_t cols)
{
	return (unsigned)((rows * cols + BNB4_TILE - 1) / BNB4_TILE);
}

struct bnb4_matrix_args {
	DEVICE_PTR(const uint8_t) codes;
	DEVICE_PTR(const uint8_t) absmax_codes; /* 0: no double quantization */
	DEVICE_PTR(const float) absmax;		/* of blocks; with double quantization of groups */
	DEVICE_PTR(const float) offset;		/* (1) */
	DEVICE_PTR(const float) map;		/* (256) */
	DEVICE_PTR(void) to;			/* (rows, cols), ld: BF16; e4m3: bytes */
	DEVICE_PTR(const float) scale;		/* e4m3 only: (rows >> row_shift, scale_ld) */
	int64_t ld;
	uint32_t rows, cols;
	uint32_t first;				 /* the matrix's first block of the grid; ascending */
	uint32_t type;				 /* enum bnb4_type */
	uint32_t row_shift, col_shift, scale_ld; /* e4m3 only: an element's scale */
	uint32_t reserved;
};
static_assert(sizeof(struct bnb4_matrix_args) == 96, "layout shared with nvcc");

/* bnb4_dequantize: to = bf16(number of the code * absmax). bnb4_dequantize_e4m3: to = e4m3(number * absmax *
 * (1 / scale)), rounded to nearest even and at most 448 in magnitude. Grid: the sum of bnb4_tiles of all
 * matrices. A pass reads 0.516 bytes per element (0.563 without double quantization) and writes 2 or 1. */
struct bnb4_dequantize_args {
	struct bnb4_matrix_args matrix[BNB4_MATRICES_MOST];
	uint32_t count, reserved;
};
static_assert(sizeof(struct bnb4_dequantize_args) == 1544, "layout shared with nvcc");

/* bnb4_quantize: codes, and the absmax of blocks in F32. Grid: bnb4_tiles. */
struct bnb4_quantize_args {
	DEVICE_PTR(const uint16_t) from; /* (rows, cols), ld: BF16 */
	DEVICE_PTR(uint8_t) codes;
	DEVICE_PTR(float) absmax; /* one per block */
	int64_t ld;
	uint32_t rows, cols;
	uint32_t type, reserved;
};
static_assert(sizeof(struct bnb4_quantize_args) == 48, "layout shared with nvcc");

/* Double quantization in three launches. bnb4_group_sums: sums[g] = the sum of a group's absmax; grid:
 * bnb4_sum_blocks. bnb4_mean: offset = the sum of all sums / blocks; one thread. bnb4_nest: codes of absmax -
 * offset, the groups' absmax, and the map; grid: one block of BNB4_GROUP threads per group. */
struct bnb4_nest_args {
	DEVICE_PTR(const float) block_absmax; /* (blocks) */
	DEVICE_PTR(double) sums;	      /* (groups) */
	DEVICE_PTR(float) offset;	      /* (1) */
	DEVICE_PTR(uint8_t) absmax_codes;     /* (blocks) */
	DEVICE_PTR(float) absmax;	      /* (groups) */
	DEVICE_PTR(float) map;		      /* (256) */
	uint32_t blocks, groups;
};
static_assert(sizeof(struct bnb4_nest_args) == 56, "layout shared with nvcc");

static inline unsigned bnb4_sum_blocks(uint32_t groups)
{
	return (groups + BNB4_THREADS - 1) / BNB4_THREADS;
}
#endif
