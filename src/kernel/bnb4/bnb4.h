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
#include "kernel/train/fp8.h"

enum {
	BNB4_THREADS = 256,
	BNB4_VECTOR = 8,
	BNB4_TURNS = 4, /* vectors of a thread */
	BNB4_TILE = BNB4_THREADS * BNB4_VECTOR * BNB4_TURNS,
	BNB4_MATRICES_MOST = 16,	   /* matrices of one launch: two layers of seven, and two more */
	BNB4_TABLE_BYTES = BNB4_CODES * 4, /* shared memory of bnb4_dequantize */
	BNB4_PARTS_MOST = 3,		   /* tensors of a linear layer: q, k, v */
	/* Shared memory of bnb4_to_fp8: a table for each type behind that of quantizing. */
	BNB4_FP8_TABLE_AT = TRAIN_FP8_TURN_SHARED,
	BNB4_FP8_SHARED = TRAIN_FP8_TURN_SHARED + 2 * BNB4_TABLE_BYTES,
	BNB4_NEST_BYTES = (BNB4_MAP + BNB4_GROUP / 32) * 4, /* of bnb4_nest */
};
#define BNB4_ELEMENTS_MOST (UINT32_MAX - BNB4_TILE) /* so that no index of the last tile wraps */

/* Tiles of a matrix: blocks of BNB4_THREADS threads that process it. */
static inline unsigned bnb4_tiles(uint64_t rows, uint64_t cols)
{
	return (unsigned)((rows * cols + BNB4_TILE - 1) / BNB4_TILE);
}

struct bnb4_codes {
	DEVICE_PTR(const uint8_t) codes;
	DEVICE_PTR(const uint8_t) absmax_codes; /* 0: no double quantization */
	DEVICE_PTR(const float) absmax;		/* of blocks; with double quantization of groups */
	DEVICE_PTR(const float) offset;		/* (1) */
	DEVICE_PTR(const float) map;		/* (256) */
};
static_assert(sizeof(struct bnb4_codes) == 40, "layout shared with nvcc");

struct bnb4_matrix_args {
	struct bnb4_codes from;
	DEVICE_PTR(uint16_t) to; /* (rows, cols), ld: BF16 */
	int64_t ld;
	uint32_t rows, cols;
	uint32_t first; /* the matrix's first block of the grid; ascending */
	uint32_t type;	/* enum bnb4_type */
};
static_assert(sizeof(struct bnb4_matrix_args) == 72, "layout shared with nvcc");

/* bnb4_dequantize: to = bf16(number of the code * absmax). Grid: the sum of bnb4_tiles of all matrices. A
 * pass reads 0.516 bytes per element (0.563 without double quantization) and writes 2. */
struct bnb4_dequantize_args {
	struct bnb4_matrix_args matrix[BNB4_MATRICES_MOST];
	uint32_t count, reserved;
};
static_assert(sizeof(struct bnb4_dequantize_args) == 1160, "layout shared with nvcc");

/* bnb4_to_fp8: a linear layer whose rows are those of `parts` matrices, one after the other.
 * train_fp8_weights would make the same q of the numbers of bnb4_dequantize. Grid: tiles of q's cols * tiles
 * of its rows. Threads: TRAIN_THREADS. Shared: BNB4_FP8_SHARED. A pass reads half a byte per element and
 * writes 2. */
struct bnb4_fp8_part {
	struct bnb4_codes from;
	uint32_t begin; /* its first row; 0 for the first part */
	uint32_t type;	/* enum bnb4_type */
};
static_assert(sizeof(struct bnb4_fp8_part) == 48, "layout shared with nvcc");
struct bnb4_fp8_args {
	struct bnb4_fp8_part part[BNB4_PARTS_MOST];
	struct train_fp8_weights q;
	uint32_t parts, reserved;
};
static_assert(sizeof(struct bnb4_fp8_args) == 232, "layout shared with nvcc");

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
