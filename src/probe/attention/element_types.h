/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of elements of attention's types on the host. */
#ifndef PROBE_ATTENTION_ELEMENT_TYPES_H
#define PROBE_ATTENTION_ELEMENT_TYPES_H
#include "gpu/attention/problem.h"

/* Convert `count` elements to and from an array of the type: to nearest, ties to even. Subnormals are kept,
 * values beyond the largest saturate, and NaN stays NaN. */
void attention_store(enum attention_type type, void *to, const float *from, size_t count);
void attention_load(enum attention_type type, float *to, const void *from, size_t count);
/* Rounds in place, with the result of a store and a load. */
void attention_round(enum attention_type type, float *x, size_t count);
/* Largest rounding error as a share of the value; and largest absolute error of a value too small to be
 * normal. */
double attention_roundoff(enum attention_type type);
double attention_underflow(enum attention_type type);
/* Largest absolute error of rounding x to the type. */
double attention_rounding(enum attention_type type, double x);
#endif
