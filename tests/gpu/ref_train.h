/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of the training kernels share: activations and weights in BF16, or with TRAIN_F32 in
 * F32, computed with in double. NAME_f32.c compiles the same source for F32. */
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

/* A number of the kernel's own type. */
#ifdef TRAIN_F32
#define REF_TRAIN_ROWS(name) name##_f32
#define REF_TRAIN_ENTRY(entry) entry "_f32"

static inline double ref_number(uint64_t p, int64_t i)
{
	return (double)AT(const float, p)[i];
}

static inline void ref_put_number(uint64_t p, int64_t i, double v)
{
	AT(float, p)[i] = (float)v;
}

static inline double ref_round(double v)
{
	return (double)(float)v;
}
#else
#define REF_TRAIN_ROWS(name) name
#define REF_TRAIN_ENTRY(entry) entry

static inline double ref_number(uint64_t p, int64_t i)
{
	return ref_bf16(p, i);
}

static inline void ref_put_number(uint64_t p, int64_t i, double v)
{
	ref_put_bf16(p, i, v);
}

static inline double ref_round(double v)
{
	return (double)bf16_to_f32(bf16_of_f32((float)v));
}
#endif
#endif
