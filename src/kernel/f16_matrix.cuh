/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a warp in FP16, and E4M3 as FP16. The code is C except for nvcc's keywords. tests/gpu/emulate_f16.h
 * has these functions for a CPU.
 */
#ifndef KERNEL_F16_MATRIX_CUH
#define KERNEL_F16_MATRIX_CUH
#include "kernel/args.h"

#ifndef EMULATED
/* c [16, 8] += a [16, 16] b [16, 8] in FP16. Of lane l, c has columns 2 (l % 4) and the next one of row l / 4, then of row l / 4 + 8.
 * a has columns 2 (l % 4) and the next one of these rows, then columns 8 further. b has the same numbers of rows of column l / 4. */
static __device__ __forceinline__ void matrix_step_f16(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
		     "{%0,%1,%2,%3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t pack_f16(float low, float high)
{
	uint32_t v;

	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
	return v;
}

static __device__ __forceinline__ void unpack_f16(uint32_t v, float *low, float *high)
{
	asm("{\n\t.reg .f16 l, h;\n\tmov.b32 {l, h}, %2;\n\tcvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, h;\n\t}" : "=f"(*low), "=f"(*high) : "r"(v));
}

/* The two E4M3 numbers in the low half become FP16, which has all of them. */
static __device__ __forceinline__ uint32_t widen_e4m3(uint32_t v)
{
	uint32_t w;

#if __CUDA_ARCH__ >= 890
	asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(w) : "h"((uint16_t)v));
#else
	/* Exponents move to their places; the product corrects the bias, also for subnormal numbers. A NaN becomes
	 * 480. */
	const uint32_t bytes = __byte_perm(v, 0, 0x1404);

	asm("fma.rn.f16x2 %0, %1, %2, %3;"
	    : "=r"(w)
	    : "r"((bytes & 0x80008000u) | (bytes & 0x7f007f00u) >> 1), "r"(0x5c005c00u), "r"(0x80008000u));
#endif
	return w;
}
#endif
#endif
