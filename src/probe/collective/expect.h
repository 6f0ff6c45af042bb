/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of collectives whose answers are known and exact, whatever the order in which a library adds: the
 * host's side. Formulas: kernel/test_data/collective.h; why they are exact: docs/explanation/methods,
 * "Collectives". Pure.
 */
#ifndef PROBE_COLLECTIVE_EXPECT_H
#define PROBE_COLLECTIVE_EXPECT_H
#include <stdbool.h>
#include "kernel/test_data/collective.h"

/* Of one case: everything that the kernels and the host need to agree on. */
struct collective_inputs {
	uint64_t seed;
	enum operand_type type;
	enum collective_rule rule;
	uint32_t ranks;
	uint32_t slots; /* ranks that give to one element of a sum */
	uint32_t most;	/* SUM, AVG: of |value| / unit; MIN, MAX: of |value| */
	uint32_t unit;	/* values are multiples of it: ranks for averages of integers, else 1 */
	uint32_t ulp;	/* what the answer may be off, in units in the last place; 0: nothing */
};

struct collective_inputs collective_inputs(enum operand_type type, enum collective_rule rule, unsigned ranks,
					   uint64_t seed);
/* What rank `rank` gives to element i of the result; SUM, AVG, MIN, MAX. */
double collective_given(const struct collective_inputs *in, unsigned rank, uint64_t i);
double collective_answer(const struct collective_inputs *in, uint64_t i);
/* MOVE: the bits of element i of what `from` sends to `to`. */
uint64_t collective_moved(const struct collective_inputs *in, unsigned from, unsigned to, uint64_t i);
unsigned collective_type_bytes(enum operand_type type);
/* The element as a number; an 8-bit float's NaN is NaN. */
double collective_number(enum operand_type type, const void *element);

/* Which rank's share explains wrong elements: counts as collective_check leaves them. False: none at 99 % of
 * those that were looked at, or two alike. */
bool collective_suspect(const unsigned long long *suspect, unsigned ranks, unsigned *rank, bool *twice);
#endif
