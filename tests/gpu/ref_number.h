/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 and 8 bits as they are stored, one at a time. */
#ifndef TESTS_GPU_REF_NUMBER_H
#define TESTS_GPU_REF_NUMBER_H
#include <stdint.h>
#include "gpu/attention/problem.h"

/* Nearest, ties to even; beyond the largest finite number, that one. */
void ref_number_store(enum attention_type type, void *to, uint64_t index, double value);
double ref_number_load(enum attention_type type, const void *from, uint64_t index);
#endif
