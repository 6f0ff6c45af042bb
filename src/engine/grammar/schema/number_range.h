/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal texts within bounds. */
#ifndef ENGINE_GRAMMAR_SCHEMA_NUMBER_RANGE_H
#define ENGINE_GRAMMAR_SCHEMA_NUMBER_RANGE_H
#include "engine/grammar/automaton/expr.h"

enum { FRACTION_DIGITS = 25 };
#define INTEGER_MOST INT64_MAX /* 19 digits */

/* A bound. Its value is (-1 if negative) (whole + 0.fraction). */
struct decimal {
	bool negative, open; /* open: the bound itself is outside */
	uint64_t whole;	     /* at most INTEGER_MOST */
	char fraction[32];   /* digits without zeros at the end */
};

/* The bound that a number states. False: it has more digits behind the point than fit. Larger values become
 * +-INTEGER_MOST. */
bool decimal_from_double(struct decimal *out, double value);
struct decimal decimal_from_integer(int64_t value);

/* Integers from low to high, both within +-INTEGER_MOST, without leading zeros; NULL without an error of the
 * builder: there is none. */
struct expr *integer_range(struct builder *b, int64_t low, int64_t high);
/* Decimals without exponent from low to high; a NULL bound is none. */
struct expr *decimal_range(struct builder *b, const struct decimal *low, const struct decimal *high);
/* Multiples of `step` from low to high. If one of the bounds is +-INTEGER_MOST, there may be only those of at
 * most 18 digits. NULL: as above, or too many for an automaton (*too_many). */
struct expr *multiple_range(struct builder *b, int64_t step, int64_t low, int64_t high, bool *too_many);
#endif
