/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Inputs of collectives, such that every element of the answer is known and exact whatever the order of
 * summation; formulas: docs/explanation/methods, "Collectives". Types are kernel/test_data/gemm.h's. i numbers the elements of
 * the *result*: rank r's block of a scattered one begins at r * count.
 *
 *   word k of element i    word k of philox(counter = {i low, i high, COLLECTIVE_STREAM, 0}, key = seed)
 *   h(i, j)                mix(word 1 + j * 0x9e3779b9), j a slot or a rank
 *   SUM AVG                s = word 0 mod ranks; rank s + j mod ranks, j < slots, gives -m or m (bit 0 of
 *                          h(i, j)), m = (1 + (h >> 1) mod most) * unit; the other ranks give 0
 *   MAX MIN                rank word 0 mod ranks gives most / 2 + 1 + h(i, rank) mod (most / 2), negative for
 *                          MIN; the others h(i, rank) mod (2 (most / 2) + 1) - most / 2
 *   MOVE                   what rank `from` sends to rank `to`: the low bits of word 0 (F64: and 1) of
 *                          philox({i low, i high, COLLECTIVE_MOVED + 1024 from + to, 0}); floats without the
 *                          top bit of their exponent, so that none is NaN
 */
/* clang-format on */
#ifndef KERNEL_TEST_DATA_COLLECTIVE_H
#define KERNEL_TEST_DATA_COLLECTIVE_H
#include "kernel/args.h"
#include "kernel/test_data/gemm.h" /* operand_type, operand_found */

enum collective_rule { COLLECTIVE_SUM, COLLECTIVE_MIN, COLLECTIVE_MAX, COLLECTIVE_AVG, COLLECTIVE_MOVE };
enum { COLLECTIVE_STREAM = 80, COLLECTIVE_MOVED = 0x100000, COLLECTIVE_RANKS = 1024, COLLECTIVE_LOOKED = 16 };

/* entry collective_fill: what rank `rank` gives to elements first .. first + count; MOVE: to rank `to`. */
struct collective_fill_args {
	DEVICE_PTR(void) out;
	uint64_t count, first, seed;
	uint32_t type, rule, ranks, rank, to, slots, most, unit;
};
static_assert(sizeof(struct collective_fill_args) == 64, "layout shared with nvcc");

/*
 * entry collective_check: counts in `found` what is not the answer, SUM: the sum, AVG: the sum / ranks. SUM
 * and AVG: of wrong elements, COLLECTIVE_LOOKED a thread, suspect[r] counts those that are the answer without
 * the share of rank r, suspect[ranks + r] those that hold it twice, suspect[2 ranks] all that were looked at.
 * ulp: tolerance in units in the last place. The host zeroes found and suspect, and sets found->first to all
 * ones.
 */
struct collective_check_args {
	DEVICE_PTR(const void) data;
	DEVICE_PTR(struct operand_found) found;
	DEVICE_PTR(unsigned long long) suspect; /* 2 * ranks + 1 */
	uint64_t count, first, seed;
	uint32_t type, rule, ranks, from, to, slots, most, unit, ulp, reserved;
};
static_assert(sizeof(struct collective_check_args) == 88, "layout shared with nvcc");

/* entry collective_busy: keeps its blocks at memory traffic until *stop is not 0 or `ns` have passed: a rank
 * that is slow by plan. */
struct collective_busy_args {
	DEVICE_PTR(uint32_t) memory; /* (words) */
	DEVICE_PTR(const uint32_t) stop;
	uint64_t words, ns;
};
static_assert(sizeof(struct collective_busy_args) == 32, "layout shared with nvcc");
#endif
