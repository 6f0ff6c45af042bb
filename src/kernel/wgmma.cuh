/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma for attention, for 16-bit types and E4M3. A warpgroup computes M 64, N 64, 128 or 256, and 32 bytes
 * along k, with FP32 accumulators. A is in shared memory or registers, B is in shared memory. In shared
 * memory rows have 128 bytes and a 128-byte swizzle, as a tensor map with that swizzle writes them.
 * For each group of 8 columns a thread's accumulator array holds 4 values: two of row lane / 4 and two of row
 * lane / 4 + 8, at columns from 2 (lane % 4) on.
 */
#ifndef KERNEL_WGMMA_CUH
#define KERNEL_WGMMA_CUH
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include "kernel/args.h"

static __device__ __forceinline__ void wgmma_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> static __device__ __forceinline__ void wgmma_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* Keeps the compiler from moving accesses to the matrix unit's operands over the wait. */
template <int N> static __device__ __forceinline__ void wgmma_hold(float (&c)[N])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+f"(c[i])::"memory");
}

template <int N> static __device__ __forceinline__ void wgmma_hold(uint32_t (&c)[N])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+r"(c[i])::"memory");
}

/*
 * Descriptor of a tile with swizzled rows of 128 bytes; groups of 8 rows are 1024 bytes apart. If the columns
 * run along N (a transposed B), `chunk_bytes` is the distance to the next 64 columns. Along k it is not used.
 */
static __device__ __forceinline__ uint64_t wgmma_tile(uint32_t at, uint32_t chunk_bytes = 16)
{
	return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(chunk_bytes >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
	       (uint64_t)1 << 62;
}

/* As wgmma_tile, for rows of ROW bytes (128 or 64) with a swizzle of ROW bytes. */
template <int ROW> static __device__ __forceinline__ uint64_t wgmma_tile_of(uint32_t at)
{
	return ROW == 128 ? wgmma_tile(at)
			  : ((uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(512 >> 4) << 32 | (uint64_t)2 << 62);
}

/* Byte offset of a row's 16-byte piece in a swizzled row of ROW bytes. */
template <int ROW> static __device__ __forceinline__ uint32_t swizzled(unsigned row, unsigned piece)
{
	return (ROW == 128 ? piece ^ row % 8 : piece ^ row / 2 % 4) * 16;
}

/* Returns v, which all threads of a warp share although the compiler cannot know it. The result is in a
 * uniform register, which descriptors need and in which their arithmetic is done. */
static __device__ __forceinline__ uint32_t warp_uniform(uint32_t v)
{
	return __reduce_or_sync(~0u, v);
}

/* The descriptor `bytes` further on. */
static __device__ __forceinline__ uint64_t wgmma_on(uint64_t tile, uint32_t bytes)
{
	return (tile & 0xffffffff00000000) | ((uint32_t)tile + (bytes >> 4));
}

#define W4(c, o) "+f"(c[o]), "+f"(c[o + 1]), "+f"(c[o + 2]), "+f"(c[o + 3])
#define W16(c, o) W4(c, o), W4(c, o + 4), W4(c, o + 8), W4(c, o + 12)
#define W32(c) W16(c, 0), W16(c, 16)
#define W64(c) W32(c), W16(c, 32), W16(c, 48)
#define W128(c) W64(c), W16(c, 64), W16(c, 80), W16(c, 96), W16(c, 112)
#define N32                                                                                                            \
	"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                       \
	"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define N64                                                                                                            \
	N32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                        \
	    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define N128                                                                                                           \
	N64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                                        \
	    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"                                         \
	    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"                             \
	    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

/* i0 .. i5: numbers of the asm operands after the accumulators. */
#define WGMMA_SS(SHAPE, NAMES, LIST, i0, i1, i2)                                                                       \
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\n"                                                 \
		     "wgmma.mma_async.sync.aligned." SHAPE " {" NAMES "}, %" #i0 ", %" #i1 ", p, 1, 1, 0, 0;\n}"       \
		     : LIST                                                                                            \
		     : "l"(a), "l"(b), "r"(add))
#define WGMMA_RS(SHAPE, NAMES, LIST, i0, i1, i2, i3, i4, i5, TRANSPOSED)                                               \
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\n"                                                 \
		     "wgmma.mma_async.sync.aligned." SHAPE " {" NAMES "}, {%" #i0 ",%" #i1 ",%" #i2 ",%" #i3 "}, %" #i4 \
		     ", p, 1, 1, " TRANSPOSED ";\n}"                                                                   \
		     : LIST                                                                                            \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))

/*
 * c = A B, or c += A B with `add`. In wgmma_ss and wgmma_rs, rows of B run along k (attention's K). In
 * wgmma_rs_across, rows of B run along N (attention's V).
 */
#define WGMMA_TYPE(T, NAME)                                                                                            \
	static __device__ __forceinline__ void wgmma_ss(T, float(&c)[32], uint64_t a, uint64_t b, int add)             \
	{                                                                                                              \
		WGMMA_SS("m64n64k16.f32." NAME "." NAME, N32, W32(c), 32, 33, 34);                                     \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_ss(T, float(&c)[64], uint64_t a, uint64_t b, int add)             \
	{                                                                                                              \
		WGMMA_SS("m64n128k16.f32." NAME "." NAME, N64, W64(c), 64, 65, 66);                                    \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_rs(T, float(&c)[32], const uint32_t *a, uint64_t b, int add)      \
	{                                                                                                              \
		WGMMA_RS("m64n64k16.f32." NAME "." NAME, N32, W32(c), 32, 33, 34, 35, 36, 37, "0");                    \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_rs(T, float(&c)[64], const uint32_t *a, uint64_t b, int add)      \
	{                                                                                                              \
		WGMMA_RS("m64n128k16.f32." NAME "." NAME, N64, W64(c), 64, 65, 66, 67, 68, 69, "0");                   \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_rs_across(T, float(&c)[32], const uint32_t *a, uint64_t b,        \
							       int add)                                                \
	{                                                                                                              \
		WGMMA_RS("m64n64k16.f32." NAME "." NAME, N32, W32(c), 32, 33, 34, 35, 36, 37, "1");                    \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_rs_across(T, float(&c)[64], const uint32_t *a, uint64_t b,        \
							       int add)                                                \
	{                                                                                                              \
		WGMMA_RS("m64n128k16.f32." NAME "." NAME, N64, W64(c), 64, 65, 66, 67, 68, 69, "1");                   \
	}                                                                                                              \
	static __device__ __forceinline__ void wgmma_rs_across(T, float(&c)[128], const uint32_t *a, uint64_t b,       \
							       int add)                                                \
	{                                                                                                              \
		WGMMA_RS("m64n256k16.f32." NAME "." NAME, N128, W128(c), 128, 129, 130, 131, 132, 133, "1");           \
	}
WGMMA_TYPE(__half, "f16")
WGMMA_TYPE(__nv_bfloat16, "bf16")

/* c = A B or c += A B, with both in shared memory. A's rows run along M and B's rows along N. */
#define WGMMA_ACROSS(T, NAME)                                                                                          \
	static __device__ __forceinline__ void wgmma_ss_across(T, float(&c)[32], uint64_t a, uint64_t b, int add)      \
	{                                                                                                              \
		asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                              \
			     "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME " {" N32                       \
			     "}, %32, %33, p, 1, 1, 1, 1;\n}"                                                           \
			     : W32(c)                                                                                  \
			     : "l"(a), "l"(b), "r"(add));                                                              \
	}
WGMMA_ACROSS(__half, "f16")
WGMMA_ACROSS(__nv_bfloat16, "bf16")

/* E4M3: rows of both operands run along k. */
#define WGMMA_FP8_SS(SHAPE, NAMES, LIST, i0, i1, i2)                                                                   \
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\n"                                                 \
		     "wgmma.mma_async.sync.aligned." SHAPE ".f32.e4m3.e4m3 {" NAMES "}, %" #i0 ", %" #i1              \
		     ", p, 1, 1;\n}"                                                                                  \
		     : LIST                                                                                            \
		     : "l"(a), "l"(b), "r"(add))
#define WGMMA_FP8_RS(SHAPE, NAMES, LIST, i0, i1, i2, i3, i4, i5)                                                       \
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\n"                                                 \
		     "wgmma.mma_async.sync.aligned." SHAPE ".f32.e4m3.e4m3 {" NAMES "}, {%" #i0 ",%" #i1 ",%" #i2      \
		     ",%" #i3 "}, %" #i4 ", p, 1, 1;\n}"                                                              \
		     : LIST                                                                                            \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))

static __device__ __forceinline__ void wgmma_ss(__nv_fp8_e4m3, float (&c)[32], uint64_t a, uint64_t b, int add)
{
	WGMMA_FP8_SS("m64n64k32", N32, W32(c), 32, 33, 34);
}

static __device__ __forceinline__ void wgmma_ss(__nv_fp8_e4m3, float (&c)[64], uint64_t a, uint64_t b, int add)
{
	WGMMA_FP8_SS("m64n128k32", N64, W64(c), 64, 65, 66);
}

static __device__ __forceinline__ void wgmma_rs(__nv_fp8_e4m3, float (&c)[32], const uint32_t *a, uint64_t b, int add)
{
	WGMMA_FP8_RS("m64n64k32", N32, W32(c), 32, 33, 34, 35, 36, 37);
}

static __device__ __forceinline__ void wgmma_rs(__nv_fp8_e4m3, float (&c)[64], const uint32_t *a, uint64_t b, int add)
{
	WGMMA_FP8_RS("m64n128k32", N64, W64(c), 64, 65, 66, 67, 68, 69);
}

/* Packs four values, the first in the lowest byte. Values that are too large become the largest finite
 * number. */
static __device__ __forceinline__ uint32_t pack4_e4m3(float x0, float x1, float x2, float x3)
{
	uint32_t v;

	asm("{\n.reg .b16 low, high;\n"
	    "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
	    "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
	    "mov.b32 %0, {low, high};\n}"
	    : "=r"(v)
	    : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
	return v;
}

static __device__ __forceinline__ uint32_t pack2(__half, float low, float high)
{
	__half2 v = __floats2half2_rn(low, high);

	return *(uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t pack2(__nv_bfloat16, float low, float high)
{
	__nv_bfloat162 v = __floats2bfloat162_rn(low, high);

	return *(uint32_t *)&v;
}
#endif
