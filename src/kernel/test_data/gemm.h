/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of matrix products, and checks of their results. Type numbers are gpu/matmul/matmul.h's enum
 * matmul_type.
 */
#ifndef KERNEL_TEST_DATA_GEMM_H
#define KERNEL_TEST_DATA_GEMM_H
#include "kernel/args.h"

enum operand_type {
	OPERAND_F64,
	OPERAND_F32,
	OPERAND_F16,
	OPERAND_BF16,
	OPERAND_E4M3,
	OPERAND_E5M2,
	OPERAND_S8,
	OPERAND_S32
};

/*
 * RANDOM: word i of the stream, uniform in (-1, 1) (S8, S32: its top byte, signed).
 * SPARSE: nibble i % 8 of word i / 8: 0 gives 1, 1 gives -1, all else 0.
 * DENSE: byte i % 4 of word i / 4, signed, shifted right to `bits` bits: integers in [-2^(bits-1),
 * 2^(bits-1)).
 */
enum operand_data { OPERAND_RANDOM, OPERAND_SPARSE, OPERAND_DENSE, OPERAND_ZEROS };

/* entry operand_fill: element i of out becomes element i of (seed, stream), rounded to nearest even. */
struct operand_fill_args {
	DEVICE_PTR(void) out;
	uint64_t count, seed;
	uint32_t stream, type, data, bits;
};
static_assert(sizeof(struct operand_fill_args) == 40, "layout shared with nvcc");

/*
 * entry operand_sums: C (rows x columns, row_step elements from row to row) seen through two weights,
 * w0(p) = 1 + p and w1(p) = 1 + ((p * 2654435761 mod 2^32) >> 20); adds to sums that the host has zeroed:
 * cw[which * rows + i] += sum over j of C[i][j] w(j); wc[which * columns + j] += sum over i of w(i) C[i][j].
 * An element that is no integer of magnitude `limit` at most enters no sum and is counted in odd_row[i],
 * odd_column[j].
 */
struct operand_sums_args {
	DEVICE_PTR(const void) c;
	DEVICE_PTR(unsigned long long) cw;
	DEVICE_PTR(unsigned long long) wc;
	DEVICE_PTR(unsigned) odd_row;
	DEVICE_PTR(unsigned) odd_column;
	uint64_t rows, columns, row_step;
	uint32_t type, limit;
};
static_assert(sizeof(struct operand_sums_args) == 72, "layout shared with nvcc");
enum { OPERAND_SUMS_ROWS = 64, OPERAND_SUMS_COLUMNS = 1024, OPERAND_SUMS_THREADS = 256 }; /* of a block */

/* What a comparison found; the host zeroes it and sets `first` to all ones. */
struct operand_found {
	unsigned long long wrong, nan, first; /* first: lowest wrong index */
};
static_assert(sizeof(struct operand_found) == 24, "layout shared with nvcc");

/* entry operand_compare: element by element, |a - b| <= tolerance or a == b; a NaN on either side is wrong.
 */
struct operand_compare_args {
	DEVICE_PTR(const void) a;
	DEVICE_PTR(const void) b;
	DEVICE_PTR(struct operand_found) found;
	uint64_t count;
	double tolerance;
	uint32_t type, reserved;
};
static_assert(sizeof(struct operand_compare_args) == 48, "layout shared with nvcc");

/* entry operand_judge: sums against what they must be; `odd` counts as NaN and wrong. Clears sums and odd
 * behind it. */
struct operand_judge_args {
	DEVICE_PTR(unsigned long long) sums;	       /* two weights of `count` each */
	DEVICE_PTR(const unsigned long long) expected; /* likewise */
	DEVICE_PTR(unsigned) odd;
	DEVICE_PTR(struct operand_found) found;
	uint64_t count;
};
static_assert(sizeof(struct operand_judge_args) == 40, "layout shared with nvcc");

/*
 * entry operand_memory: one pass over device memory. Word i must hold pattern(i, pass) and then holds
 * pattern(i, pass + 1); pass 0 writes alone. pattern(i, p) = i * 0x9e3779b97f4a7c15 + p * 0xc2b2ae3d27d4eb4f,
 * inverted where p is odd: both address and value change in every bit over the passes.
 */
struct operand_memory_args {
	DEVICE_PTR(unsigned long long) words;
	DEVICE_PTR(struct operand_found) found;
	DEVICE_PTR(unsigned long long)
	pass; /* device counter: a captured launch goes on from where it stands */
	uint64_t count;
};
static_assert(sizeof(struct operand_memory_args) == 32, "layout shared with nvcc");
#endif
