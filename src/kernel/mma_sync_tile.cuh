/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM steps by mma.sync for 16-bit types, on tiles in shared memory. The attention kernels for sm_80 and
 * later use them.
 * A tile has 64 rows and is loaded by cp.async. Fragments are loaded by ldmatrix. One mma.sync computes 16 x
 * 8 x 16. A block has TILE_THREADS threads.
 * Each thread holds 4 values of a 16 x 8 result: two in row lane / 4 at columns 2 (lane % 4) and the next
 * one, and two in the same columns 8 rows below.
 */
#ifndef KERNEL_MMA_SYNC_TILE_CUH
#define KERNEL_MMA_SYNC_TILE_CUH
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "kernel/args.h"

enum { TILE_THREADS = 128 };

static __device__ __forceinline__ uint32_t pair(__half, float low, float high)
{
	__half2 v = __floats2half2_rn(low, high);

	return *(uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t pair(__nv_bfloat16, float low, float high)
{
	__nv_bfloat162 v = __floats2bfloat162_rn(low, high);

	return *(uint32_t *)&v;
}

#define STEP(NAME)                                                                                                  \
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." NAME "." NAME ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "   \
		     "{%8,%9}, {%0,%1,%2,%3};"                                                                      \
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                               \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

static __device__ __forceinline__ void step(__half, float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	STEP("f16");
}

static __device__ __forceinline__ void step(__nv_bfloat16, float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	STEP("bf16");
}

/* Shared-memory address of a tile's 16-byte piece. A row has D elements. Pieces of a row are stored in an
 * order that spreads 8 rows over all banks. */
template <int D> static __device__ __forceinline__ uint32_t tile_at(uint32_t tile, unsigned row, unsigned piece)
{
	return tile + row * D * 2 + (piece ^ row % 8) * 16;
}

template <bool ACROSS> static __device__ __forceinline__ void matrix(uint32_t (&r)[4], uint32_t at)
{
	if (ACROSS)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			     : "r"(at));
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			     : "r"(at));
}

/* Starts the copy of 64 rows, from row `first` on, into a tile. Rows at or after `count` become zeros. */
template <typename T, int D>
static __device__ __forceinline__ void tile_load(uint32_t tile, const T *from, int64_t step, int first, int count)
{
	for (unsigned i = threadIdx.x; i < 64 * D / 8; i += TILE_THREADS) {
		const unsigned row = i / (D / 8), piece = i % (D / 8);
		const bool there = first + (int)row < count;
		const T *at = from + (there ? (first + row) * step : 0) + piece * 8;

		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tile_at<D>(tile, row, piece)), "l"(at),
			     "r"(there ? 16 : 0)
			     : "memory");
	}
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until all copy groups but the LATEST newest ones have arrived, for every thread of the block. */
template <int LATEST> static __device__ __forceinline__ void tile_wait()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
	__syncthreads();
}
#endif
