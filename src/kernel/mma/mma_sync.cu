/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiply-add loops by mma.sync, from sm_80 on. FP32 uses fused multiply-adds. 16 warps with 8 independent
 * tiles each hide the latency of a step. Both signs of B stay in registers. Host reference: mma_expect() in
 * src/probe/shared/mma.c.
 */
#include "kernel/mma/sm_record.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* One struct per type: the 32-bit (FP64: 64-bit) units of an operand, and one step. Tiles are ROWS x 8 x
 * K. */
struct type_fp16 {
	typedef float acc;
	enum { PER_UNIT = 2, A = 4, B = 2, C = 4 };
	static __device__ uint32_t pack(const int *v)
	{
		__half2 h = __floats2half2_rn((float)v[0], (float)v[1]);

		return *(uint32_t *)&h;
	}
	static __device__ __forceinline__ void step(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
	{
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
			     "{%0,%1,%2,%3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
};

struct type_bf16 {
	typedef float acc;
	enum { PER_UNIT = 2, A = 4, B = 2, C = 4 };
	static __device__ uint32_t pack(const int *v)
	{
		__nv_bfloat162 h = __floats2bfloat162_rn((float)v[0], (float)v[1]);

		return *(uint32_t *)&h;
	}
	static __device__ __forceinline__ void step(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
	{
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
			     "{%8,%9}, {%0,%1,%2,%3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
};

struct type_tf32 {
	typedef float acc;
	enum { PER_UNIT = 1, A = 4, B = 2, C = 4 };
	static __device__ uint32_t pack(const int *v)
	{
		return __float_as_uint((float)v[0]);
	}
	static __device__ __forceinline__ void step(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
	{
		asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
			     "{%0,%1,%2,%3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
};

struct type_int8 {
	typedef int acc;
	enum { PER_UNIT = 4, A = 4, B = 2, C = 4 };
	static __device__ uint32_t pack(const int *v)
	{
		return (v[0] & 255) | (v[1] & 255) << 8 | (v[2] & 255) << 16 | (uint32_t)(v[3] & 255) << 24;
	}
	static __device__ __forceinline__ void step(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
	{
		asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
			     "{%0,%1,%2,%3};"
			     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
};

/*
 * Tiles have 16 rows x 8 columns. Tile t covers columns from 8 t on of a warp's 64. Warp w covers rows from
 * 16 w on.
 * A 32-bit unit holds PER_UNIT neighbours along k. A's register r is unit 4 (r / 2) + lane % 4 of row lane /
 * 4 + 8 (r % 2). B's register r is unit 4 r + lane % 4 of column lane / 4 (PTX ISA, "Matrix fragments for
 * mma").
 */
template <typename T> static __device__ void run(const mma_args &a)
{
	const unsigned lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16 + lane / 4;
	typename T::acc c[MMA_TILES][T::C] = {};
	uint32_t ra[T::A], plus[MMA_TILES][T::B], minus[MMA_TILES][T::B];
	mma_clock from, to;
	long long sum = 0;
	int v[4], w[4];

	if (a.only_sm >= 0 && sm_number() != (unsigned)a.only_sm)
		return;
	for (unsigned r = 0; r < T::A; r++) {
		for (unsigned i = 0; i < T::PER_UNIT; i++)
			v[i] = MMA_A(row0 + 8 * (r % 2), (r / 2 * 4 + lane % 4) * T::PER_UNIT + i);
		ra[r] = T::pack(v);
	}
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
#pragma unroll
		for (unsigned r = 0; r < T::B; r++) {
			for (unsigned i = 0; i < T::PER_UNIT; i++) {
				v[i] = MMA_B((r * 4 + lane % 4) * T::PER_UNIT + i, t * 8 + lane / 4);
				w[i] = -v[i];
			}
			plus[t][r] = T::pack(v);
			minus[t][r] = T::pack(w);
		}
	from = clock_now();
	for (uint32_t s = 0; s + 2 < a.steps; s += 2) {
#pragma unroll
		for (unsigned t = 0; t < MMA_TILES; t++)
			T::step(c[t], ra, plus[t]);
#pragma unroll
		for (unsigned t = 0; t < MMA_TILES; t++)
			T::step(c[t], ra, minus[t]);
	}
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
		T::step(c[t], ra, plus[t]);
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
		T::step(c[t], ra, plus[t]);
	to = clock_now();
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
#pragma unroll
		for (unsigned r = 0; r < T::C; r++)
			sum += (long long)(2 * (t * T::C + r) + 1) * (long long)c[t][r];
	record(a, from, to, sum);
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_fp16(mma_args a)
{
	run<type_fp16>(a);
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_bf16(mma_args a)
{
	run<type_bf16>(a);
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_tf32(mma_args a)
{
	run<type_tf32>(a);
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_int8(mma_args a)
{
	run<type_int8>(a);
}

/* Tiles are 8 x 8 x 4. A: row lane / 4, k lane % 4. B: k lane % 4, column lane / 4. C: row lane / 4, columns
 * from 2 (lane % 4) on. */
static __device__ __forceinline__ void step_fp64(double (&c)[2], double a, double b)
{
	asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
		     : "+d"(c[0]), "+d"(c[1])
		     : "d"(a), "d"(b));
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_fp64(mma_args a)
{
	const unsigned lane = threadIdx.x % 32;
	const double ra = MMA_A(threadIdx.x / 32 * 8 + lane / 4, lane % 4);
	double c[MMA_TILES][2] = {}, b[MMA_TILES];
	mma_clock from, to;
	long long sum = 0;

	if (a.only_sm >= 0 && sm_number() != (unsigned)a.only_sm)
		return;
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
		b[t] = MMA_B(lane % 4, t * 8 + lane / 4);
	from = clock_now();
	for (uint32_t s = 0; s + 2 < a.steps; s += 2) {
#pragma unroll
		for (unsigned t = 0; t < MMA_TILES; t++)
			step_fp64(c[t], ra, b[t]);
#pragma unroll
		for (unsigned t = 0; t < MMA_TILES; t++)
			step_fp64(c[t], ra, -b[t]);
	}
#pragma unroll
	for (unsigned t = 0; t < 2 * MMA_TILES; t++)
		step_fp64(c[t % MMA_TILES], ra, b[t % MMA_TILES]);
	to = clock_now();
#pragma unroll
	for (unsigned t = 0; t < MMA_TILES; t++)
		sum += (4 * t + 1) * (long long)c[t][0] + (4 * t + 3) * (long long)c[t][1];
	record(a, from, to, sum);
}

/* Chain r of thread t has row t, k 0 and column r / 4. Every chain takes one step with each sign of B. */
static __device__ __forceinline__ void fp32_pair(float (&c)[MMA_CHAINS], float ra, const float (&plus)[MMA_CHAINS / 4],
						 const float (&minus)[MMA_CHAINS / 4])
{
#pragma unroll
	for (unsigned r = 0; r < MMA_CHAINS; r++)
		asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c[r]) : "f"(ra), "f"(plus[r / 4]));
#pragma unroll
	for (unsigned r = 0; r < MMA_CHAINS; r++)
		asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c[r]) : "f"(ra), "f"(minus[r / 4]));
}

extern "C" __global__ void __launch_bounds__(MMA_THREADS, 1) mma_fp32(mma_args a)
{
	const float ra = MMA_A(threadIdx.x, 0u);
	float c[MMA_CHAINS] = {}, plus[MMA_CHAINS / 4], minus[MMA_CHAINS / 4];
	mma_clock from, to;
	long long sum = 0;

	if (a.only_sm >= 0 && sm_number() != (unsigned)a.only_sm)
		return;
#pragma unroll
	for (unsigned r = 0; r < MMA_CHAINS / 4; r++) {
		plus[r] = MMA_B(0u, r);
		minus[r] = -plus[r];
	}
	from = clock_now();
	/* An iteration takes a whole group, so counting takes 3 of 515 issue slots. A test for each pair took
	 * 3 of 67. */
	for (uint32_t g = a.steps / MMA_STEPS_GROUP; g > 1; g--)
#pragma unroll
		for (unsigned p = 0; p < MMA_STEPS_GROUP / 2; p++)
			fp32_pair(c, ra, plus, minus);
#pragma unroll 1
	for (unsigned p = 0; p < MMA_STEPS_GROUP / 2 - 1; p++)
		fp32_pair(c, ra, plus, minus);
#pragma unroll
	for (unsigned r = 0; r < 2 * MMA_CHAINS; r++)
		asm volatile("fma.rn.f32 %0, %1, %2, %0;"
			     : "+f"(c[r % MMA_CHAINS])
			     : "f"(ra), "f"(plus[r % MMA_CHAINS / 4]));
	to = clock_now();
#pragma unroll
	for (unsigned r = 0; r < MMA_CHAINS; r++)
		sum += (2 * r + 1) * (long long)c[r];
	record(a, from, to, sum);
}
