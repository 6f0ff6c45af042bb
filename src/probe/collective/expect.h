/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of collectives whose results are known and exact, whatever the order in which a library adds; the
 * host's side. Formulas: kernel/test_data/collective.h. Why they are exact:
 * docs/explanation/methods/collectives.md, "Inputs with known answers". Pure.
 */
#ifndef PROBE_COLLECTIVE_EXPECT_H
#define PROBE_COLLECTIVE_EXPECT_H
#include <stdbool.h>
#include "kernel/test_data/collective.h"

/* Parameters of one case on which kernels and host must agree. */
struct collective_inputs {
	uint64_t seed;
	enum operand_type type;
	enum collective_rule rule;
	uint32_t ranks;
	uint32_t slots; /* number of ranks that contribute to one element of a sum */
	uint32_t most;	/* SUM, AVG: largest |value| / unit; MIN, MAX: largest |value| */
	/* all values are multiples of it: the number of ranks for averages of integers, else 1 */
	uint32_t unit;
	uint32_t ulp; /* allowed error of a result, in units in the last place; 0: none */
};

struct collective_inputs collective_inputs(enum operand_type type, enum collective_rule rule, unsigned ranks,
					   uint64_t seed);
/* Contribution of rank `rank` to element i of the result, and element i of the result; for SUM, AVG, MIN,
 * MAX. */
double collective_given(const struct collective_inputs *in, unsigned rank, uint64_t i);
double collective_answer(const struct collective_inputs *in, uint64_t i);
/* MOVE: bits of element i of the data that `from` sends to `to`. */
uint64_t collective_moved(const struct collective_inputs *in, unsigned from, unsigned to, uint64_t i);
unsigned collective_type_bytes(enum operand_type type);
/* The element as a number. The NaN of an 8-bit float gives NaN. */
double collective_number(enum operand_type type, const void *element);

/* Finds the rank whose share explains the wrong elements, from the counts of collective_check. Returns false
 * if no rank explains 99 % of the examined elements, or if two ranks do. */
bool collective_suspect(const unsigned long long *suspect, unsigned ranks, unsigned *rank, bool *twice);
#endif
