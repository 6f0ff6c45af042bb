/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma with 64 rows of weights and 8 to 256 rows of activations as its columns, in the shapes that
 * kernel/wgmma.cuh lacks. c += A B with rows of A and B along k. The length of c selects the shape: half the
 * number of columns.
 */
#ifndef KERNEL_MATMUL_SKINNY_MMA_CUH
#define KERNEL_MATMUL_SKINNY_MMA_CUH
#include "kernel/wgmma.cuh"

/* The accumulators, by their number; the macros below pass their names and not their expansions. */
#define L4(c) W4(c, 0)
#define L8(c) W4(c, 0), W4(c, 4)
#define L16(c) W16(c, 0)
#define L32(c) W32(c)
#define L64(c) W64(c)
#define L96(c) W64(c), W16(c, 64), W16(c, 80)
#define L128(c) W128(c)
#define N4 "%0,%1,%2,%3"
#define N8 N4 ",%4,%5,%6,%7"
#define N16 N8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define N96                                                                                                    \
	N64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                                \
	    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"

/* i0 .. i5: numbers of the asm operands after the accumulators. */
#define SKINNY_SS(ID, LENGTH, N, NAMES, LIST, i0, i1, i2)                                                      \
	static __device__ __forceinline__ void skinny_mma(ID, float(&c)[LENGTH], uint64_t a, uint64_t b)       \
	{                                                                                                      \
		const int add = 1;                                                                             \
		SKINNY_SS_##ID("m64n" #N, NAMES, LIST, i0, i1, i2);                                            \
	}
#define SKINNY_SS___nv_bfloat16(SHAPE, NAMES, LIST, i0, i1, i2)                                                \
	WGMMA_SS(SHAPE "k16.f32.bf16.bf16", NAMES, LIST(c), i0, i1, i2)
#define SKINNY_SS___nv_fp8_e4m3(SHAPE, NAMES, LIST, i0, i1, i2)                                                \
	WGMMA_FP8_SS(SHAPE "k32", NAMES, LIST(c), i0, i1, i2)
/* A in registers. */
#define SKINNY_RS(LENGTH, N, NAMES, LIST, i0, i1, i2, i3, i4, i5)                                              \
	static __device__ __forceinline__ void skinny_mma(__nv_bfloat16, float(&c)[LENGTH],                    \
							  const uint32_t(&a)[4], uint64_t b)                   \
	{                                                                                                      \
		const int add = 1;                                                                             \
		WGMMA_RS("m64n" #N "k16.f32.bf16.bf16", NAMES, LIST(c), i0, i1, i2, i3, i4, i5, "0");             \
	}
#define SKINNY_SHAPE(LENGTH, N, NAMES, LIST, i0, i1, i2, i3, i4, i5)                                           \
	SKINNY_SS(__nv_bfloat16, LENGTH, N, NAMES, LIST, i0, i1, i2)                                           \
	SKINNY_SS(__nv_fp8_e4m3, LENGTH, N, NAMES, LIST, i0, i1, i2)                                           \
	SKINNY_RS(LENGTH, N, NAMES, LIST, i0, i1, i2, i3, i4, i5)
SKINNY_SHAPE(4, 8, N4, L4, 4, 5, 6, 7, 8, 9)
SKINNY_SHAPE(8, 16, N8, L8, 8, 9, 10, 11, 12, 13)
SKINNY_SHAPE(16, 32, N16, L16, 16, 17, 18, 19, 20, 21)
SKINNY_SHAPE(32, 64, N32, L32, 32, 33, 34, 35, 36, 37)
SKINNY_SHAPE(64, 128, N64, L64, 64, 65, 66, 67, 68, 69)
SKINNY_SHAPE(96, 192, N96, L96, 96, 97, 98, 99, 100, 101)
SKINNY_SHAPE(128, 256, N128, L128, 128, 129, 130, 131, 132, 133)

static __device__ __forceinline__ uint32_t multiply_bf16x2(uint32_t x, uint32_t y)
{
	uint32_t v;

	asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(x), "r"(y));
	return v;
}
#endif
