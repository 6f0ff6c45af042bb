/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a warp for the paged attention kernels: asynchronous copies, 8 x 8 matrices of 16-bit
 * elements in shared memory, and matrix products. Addresses in shared memory are those of shared_address.
 * The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_PAGED_WARP_MATRIX_CUH
#define KERNEL_PAGED_WARP_MATRIX_CUH
#include "kernel/args.h"
#include "kernel/f16_matrix.cuh"

#ifndef EMULATED
#define ENTRY extern "C" __global__
extern __shared__ __align__(1024) float4 shared[];
#endif

static __device__ __forceinline__ uint8_t *shared_bytes(uint32_t at)
{
	return (uint8_t *)shared + at;
}

#ifndef EMULATED
/* The 32-bit address of byte `at` of shared memory; it has as many trailing zeros as `at`, up to ten. */
static __device__ __forceinline__ uint32_t shared_address(uint32_t at)
{
	return (uint32_t)__cvta_generic_to_shared(shared) + at;
}

/* Copies 16 bytes, bypassing the L1 and the registers, or writes zeros and reads nothing. wide: the 256 bytes
 * around them are needed too. */
static __device__ __forceinline__ void copy16(uint32_t to, const uint8_t *from, bool there, const bool wide)
{
	if (wide)
		asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
			     "r"(there ? 16 : 0)
			     : "memory");
	else
		asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
			     "r"(there ? 16 : 0)
			     : "memory");
}

/* Copies the first `bytes` of 16 bytes, and writes zeros for the rest. */
static __device__ __forceinline__ void copy_some(uint32_t to, const float *from, uint32_t bytes)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void copy_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

#define COPY_WAIT(N)                                                                                         \
	case N:                                                                                              \
		asm volatile("cp.async.wait_group " #N ";" ::: "memory");                                    \
		break
/* Waits until at most `later` of this thread's copy groups are in flight. Rings of two and three slots need no jump table. */
static __device__ __forceinline__ void copy_wait(uint32_t later)
{
	if (later == 2) {
		asm volatile("cp.async.wait_group 2;" ::: "memory");
		return;
	}
	if (later == 1) {
		asm volatile("cp.async.wait_group 1;" ::: "memory");
		return;
	}
	switch (later) {
		COPY_WAIT(3);
		COPY_WAIT(4);
		COPY_WAIT(5);
		COPY_WAIT(6);
		COPY_WAIT(7);
		COPY_WAIT(8);
		COPY_WAIT(9);
		COPY_WAIT(10);
		COPY_WAIT(11);
	default:
		asm volatile("cp.async.wait_group 0;" ::: "memory");
	}
}

/* A barrier of 8 bytes in shared memory: a phase ends when `arrivals` threads have arrived. */
static __device__ __forceinline__ void phase_init(uint32_t at, uint32_t arrivals)
{
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

/* Who waits for the phase sees what this thread wrote before. */
static __device__ __forceinline__ void phase_arrive(uint32_t at)
{
	asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(at) : "memory");
}

/* Waits for the end of the present phase if its number has this parity, and else not at all. */
static __device__ __forceinline__ void phase_wait(uint32_t at, uint32_t parity)
{
	uint32_t done = 0;

	while (!done)
#if __CUDA_ARCH__ >= 900
		asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
			     : "=r"(done)
			     : "r"(at), "r"(parity)
			     : "memory");
#else
		asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
			     : "=r"(done)
			     : "r"(at), "r"(parity)
			     : "memory");
#endif
}

/* Four 8 x 8 matrices. Lane l gives the address of row l % 8 of matrix l / 8, and gets from each the elements
 * 2 (l % 4) and the next one of row l / 4. */
static __device__ __forceinline__ void matrix4(uint32_t *r, uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

/* As matrix4, with each matrix transposed. */
static __device__ __forceinline__ void matrix4_turned(uint32_t *r, uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

/* Transposes an 8 x 8 matrix in registers. */
static __device__ __forceinline__ uint32_t matrix_turn(uint32_t r)
{
	uint32_t t;

	asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(r));
	return t;
}

/* c [16, 8] += a [16, 16] b [16, 8] in BF16. */
static __device__ __forceinline__ void matrix_step(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
		     "{%0,%1,%2,%3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
	uint32_t v;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
	return v;
}

static __device__ __forceinline__ uint32_t pick_bytes(uint32_t v, uint32_t which)
{
	return __byte_perm(v, 0, which);
}

/* If this grid was launched before the one ahead of it had ended: waits for that end. */
static __device__ __forceinline__ void grid_wait(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next grid begin, if it is one that waits for this one by itself. */
static __device__ __forceinline__ void grid_release(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ float exp2_fast(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

static __device__ __forceinline__ float log2_fast(float x)
{
	float y;

	asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

static __device__ __forceinline__ float reciprocal_fast(float x)
{
	float y;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* NaN if one of the numbers is NaN. */
static __device__ __forceinline__ float larger_or_nan(float x, float y)
{
	float z;

	asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
	return z;
}

static __device__ __forceinline__ int32_t lane_value(int32_t v, uint32_t lane)
{
	return __shfl_sync(~0u, v, (int)lane);
}

static __device__ __forceinline__ bool warp_any(bool v)
{
	return __any_sync(~0u, v);
}
#endif
#endif
