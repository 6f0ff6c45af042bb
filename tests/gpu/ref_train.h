/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of the training kernels share: numbers of BF16, computed with in double. */
#ifndef TESTS_GPU_REF_TRAIN_H
#define TESTS_GPU_REF_TRAIN_H
#include "model/tensor/tensor.h"
#include "ref.h"
#include <math.h>

#define AT(type, address) ((type *)(uintptr_t)(address))

static inline double ref_bf16(uint64_t p, int64_t i)
{
	return (double)bf16_to_f32(AT(const uint16_t, p)[i]);
}

static inline void ref_put_bf16(uint64_t p, int64_t i, double v)
{
	AT(uint16_t, p)[i] = bf16_of_f32((float)v);
}

static inline double ref_round(double v)
{
	return (double)bf16_to_f32(bf16_of_f32((float)v));
}
#endif
