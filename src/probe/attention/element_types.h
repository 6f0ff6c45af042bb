/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an attention's types on the host. */
#ifndef PROBE_ATTENTION_ELEMENT_TYPES_H
#define PROBE_ATTENTION_ELEMENT_TYPES_H
#include "gpu/attention/problem.h"

/* `count` elements to and from an array of the type: nearest, ties to even, subnormals kept; beyond the
 * largest value it saturates. NaN stays NaN. */
void attention_store(enum attention_type type, void *to, const float *from, size_t count);
void attention_load(enum attention_type type, float *to, const void *from, size_t count);
/* In place: what storing and loading would give. */
void attention_round(enum attention_type type, float *x, size_t count);
/* Largest error of rounding, share of the value; and of a value too small to be normal. */
double attention_roundoff(enum attention_type type);
double attention_underflow(enum attention_type type);
#endif
