/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of GEMMs and checks of their results. Type numbers are those of enum matmul_type in
 * gpu/matmul/matmul.h. */
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
 * RANDOM: word i of the stream, uniform in (-1, 1). For S8 and S32 it is the word's top byte, signed.
 * SPARSE: nibble i % 8 of word i / 8. Nibble 0 gives 1, nibble 1 gives -1, all others give 0.
 * DENSE: byte i % 4 of word i / 4, signed, shifted right to `bits` bits. The integers are in [-2^(bits-1),
 * 2^(bits-1)).
 */
enum operand_data { OPERAND_RANDOM, OPERAND_SPARSE, OPERAND_DENSE, OPERAND_ZEROS };

/* Entry operand_fill: element i of out becomes element i of stream (seed, stream), rounded to nearest
 * even. */
struct operand_fill_args {
	DEVICE_PTR(void) out;
	uint64_t count, seed;
	uint32_t stream, type, data, bits;
};
static_assert(sizeof(struct operand_fill_args) == 40, "layout shared with nvcc");

/*
 * Entry operand_sums reduces C (rows x columns, row_step elements from row to row) with the two weights w0(p)
 * = 1 + p and w1(p) = 1 + ((p * 2654435761 mod 2^32) >> 20). It adds to sums that the host has set to zero:
 *   cw[which * rows + i]     += sum over j of C[i][j] w(j)
 *   wc[which * columns + j]  += sum over i of w(i) C[i][j]
 * An element that is not an integer, or whose magnitude exceeds `limit`, enters no sum. It is counted in
 * odd_row[i] and odd_column[j].
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
enum { OPERAND_SUMS_ROWS = 64, OPERAND_SUMS_COLUMNS = 1024, OPERAND_SUMS_THREADS = 256 }; /* of one block */

/* Result of a comparison. The host sets it to zero, and `first` to all ones. */
struct operand_found {
	unsigned long long wrong, nan, first; /* first: lowest wrong index */
};
static_assert(sizeof(struct operand_found) == 24, "layout shared with nvcc");

/* Entry operand_compare: each element must satisfy |a - b| <= tolerance or a == b. A NaN on either side is
 * wrong. */
struct operand_compare_args {
	DEVICE_PTR(const void) a;
	DEVICE_PTR(const void) b;
	DEVICE_PTR(struct operand_found) found;
	uint64_t count;
	double tolerance;
	uint32_t type, reserved;
};
static_assert(sizeof(struct operand_compare_args) == 48, "layout shared with nvcc");

/* Entry operand_judge compares sums with their expected values. An element with a nonzero `odd` counts as
 * wrong and as NaN. The entry clears sums and odd afterwards. */
struct operand_judge_args {
	DEVICE_PTR(unsigned long long) sums;	       /* `count` sums for each of the two weights */
	DEVICE_PTR(const unsigned long long) expected; /* the same layout */
	DEVICE_PTR(unsigned) odd;
	DEVICE_PTR(struct operand_found) found;
	uint64_t count;
};
static_assert(sizeof(struct operand_judge_args) == 40, "layout shared with nvcc");

/*
 * Entry operand_memory makes one pass over device memory. Word i must hold pattern(i, pass) and then receives
 * pattern(i, pass + 1). Pass 0 only writes. pattern(i, p) = i * 0x9e3779b97f4a7c15 + p * 0xc2b2ae3d27d4eb4f,
 * inverted if p is odd. So every bit of the value changes over the passes, and with the address.
 */
struct operand_memory_args {
	DEVICE_PTR(unsigned long long) words;
	DEVICE_PTR(struct operand_found) found;
	/* device counter, so a captured launch continues from its value */
	DEVICE_PTR(unsigned long long) pass;
	uint64_t count;
};
static_assert(sizeof(struct operand_memory_args) == 32, "layout shared with nvcc");
#endif
