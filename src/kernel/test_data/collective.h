/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Inputs of collectives. Every element of the result is known, and exact in any order of summation. Formulas:
 * docs/explanation/methods/collectives.md, "Inputs with known answers". Types are those of
 * kernel/test_data/gemm.h. i numbers the elements of the *result*: if the result is scattered, rank r's block
 * begins at r * count.
 *
 *   word k of element i    word k of philox(counter = {i low, i high, COLLECTIVE_STREAM, 0}, key = seed)
 *   h(i, j)                mix(word 1 + j * 0x9e3779b9), where j is a slot or a rank
 *   SUM AVG                s = word 0 mod ranks. Rank (s + j) mod ranks, for j < slots, gives -m or m (bit 0
 *                          of h(i, j)), with m = (1 + (h >> 1) mod most) * unit. The other ranks give 0.
 *   MAX MIN                rank word 0 mod ranks gives most / 2 + 1 + h(i, rank) mod (most / 2), negative for
 *                          MIN. The others give h(i, rank) mod (2 (most / 2) + 1) - most / 2.
 *   MOVE                   rank `from` sends to rank `to` the low bits of word 0 (F64: words 0 and 1) of
 *                          philox({i low, i high, COLLECTIVE_MOVED + 1024 from + to, 0}). In floats the top
 *                          bit of the exponent is cleared, so none is NaN.
 */
/* clang-format on */
#ifndef KERNEL_TEST_DATA_COLLECTIVE_H
#define KERNEL_TEST_DATA_COLLECTIVE_H
#include "kernel/args.h"
#include "kernel/test_data/gemm.h" /* operand_type, operand_found */

enum collective_rule { COLLECTIVE_SUM, COLLECTIVE_MIN, COLLECTIVE_MAX, COLLECTIVE_AVG, COLLECTIVE_MOVE };
enum { COLLECTIVE_STREAM = 80, COLLECTIVE_MOVED = 0x100000, COLLECTIVE_RANKS = 1024, COLLECTIVE_LOOKED = 16 };

/* Entry collective_fill writes the input of rank `rank` for elements first .. first + count. With MOVE it is
 * the data for rank `to`. */
struct collective_fill_args {
	DEVICE_PTR(void) out;
	uint64_t count, first, seed;
	uint32_t type, rule, ranks, rank, to, slots, most, unit;
};
static_assert(sizeof(struct collective_fill_args) == 64, "layout shared with nvcc");

/*
 * Entry collective_check counts elements in `found` that differ from the result. For AVG the result is the
 * sum / ranks. `ulp` is the tolerance in units in the last place.
 * For SUM and AVG each thread examines up to COLLECTIVE_LOOKED wrong elements. suspect[r] counts those that
 * equal the result without rank r's share. suspect[ranks + r] counts those that hold rank r's share twice.
 * suspect[2 ranks] counts all that were examined.
 * The host sets found and suspect to zero, and found->first to all ones.
 */
struct collective_check_args {
	DEVICE_PTR(const void) data;
	DEVICE_PTR(struct operand_found) found;
	DEVICE_PTR(unsigned long long) suspect; /* 2 * ranks + 1 */
	uint64_t count, first, seed;
	uint32_t type, rule, ranks, from, to, slots, most, unit, ulp, reserved;
};
static_assert(sizeof(struct collective_check_args) == 88, "layout shared with nvcc");

/* Entry collective_busy keeps its blocks busy with memory traffic until *stop is not 0 or `ns` have passed.
 * Tests use it to slow a rank down on purpose. */
struct collective_busy_args {
	DEVICE_PTR(uint32_t) memory; /* (words) */
	DEVICE_PTR(const uint32_t) stop;
	uint64_t words, ns;
};
static_assert(sizeof(struct collective_busy_args) == 32, "layout shared with nvcc");
#endif
