/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels of a step share: the wait for the kernel before, numbers of 16 and 8 bits, eight of them at
 * a time, and sums over a block. The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it
 * on a CPU.
 */
#ifndef KERNEL_STEP_DEVICE_CUH
#define KERNEL_STEP_DEVICE_CUH
#include <stdint.h>

#ifndef EMULATED
#define ENTRY extern "C" __global__
extern __shared__ float4 shared[];
#endif

/* A kernel that is launched early may run beside the end of the kernel before it. It calls this before it
 * reads what earlier kernels wrote, and before it writes. Lists and weights may be read before: step_embed, the
 * first kernel of a step, is not launched early. */
static __device__ __forceinline__ void wait_for_earlier(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/* The next kernel may begin as soon as every block has called this or has ended. */
static __device__ __forceinline__ void let_next_begin(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

static __device__ __forceinline__ float bf16_low(uint32_t pair)
{
	return __uint_as_float(pair << 16);
}

static __device__ __forceinline__ float bf16_high(uint32_t pair)
{
	return __uint_as_float(pair & 0xffff0000u);
}

/* Rounds to nearest, ties to even. */
static __device__ __forceinline__ uint32_t to_bf16(float f)
{
#if defined(__CUDA_ARCH__)
	uint16_t h;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
#else
	uint32_t bits = __float_as_uint(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return bits >> 16 | 0x40u;
	return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
#endif
}

static __device__ __forceinline__ float rounded(float f)
{
	return __uint_as_float(to_bf16(f) << 16);
}

static __device__ __forceinline__ uint32_t bf16_pair(float low, float high)
{
	return to_bf16(high) << 16 | to_bf16(low);
}

/* E4M3, to nearest, ties to even. Larger numbers become 448; NaN stays NaN. */
static __device__ __forceinline__ uint32_t to_e4m3(float f)
{
	uint32_t bits = __float_as_uint(f), sign = bits >> 31 << 7;

	bits &= 0x7fffffffu;
	if (bits > 0x7f800000u)
		return sign | 0x7fu;
	if (bits >= 0x43e00000u) /* 448 */
		return sign | 0x7eu;
	if (bits < 0x3c800000u) /* 2^-6: below it, multiples of 2^-9 */
		return sign | (__float_as_uint(__uint_as_float(bits) + 16384.0f) & 15u);
	bits += 0x7ffffu + (bits >> 20 & 1u);
	return sign | ((bits >> 20) - (120u << 3));
}

/* Two numbers, the first one in the low byte. The sign of a NaN may differ from to_e4m3's. */
static __device__ __forceinline__ uint32_t to_e4m3_pair(float low, float high)
{
#if !defined(EMULATED) && __CUDA_ARCH__ >= 890
	uint16_t v;

	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(high), "f"(low));
	return v;
#else
	return to_e4m3(low) | to_e4m3(high) << 8;
#endif
}

/* Eight numbers of BF16 from p on, of which `left` exist; the others are 0. */
static __device__ __forceinline__ uint4 load8(const uint16_t *p, int64_t left, int wide)
{
	uint32_t w[4] = {0, 0, 0, 0};

	if (wide && left >= 8)
		return *(const uint4 *)p;
#pragma unroll
	for (int i = 0; i < 8; i++)
		if (i < left)
			w[i / 2] |= (uint32_t)p[i] << i % 2 * 16;
	return make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ __forceinline__ void store8(uint16_t *p, uint4 q, int64_t left, int wide)
{
	const uint32_t w[4] = {q.x, q.y, q.z, q.w};

	if (wide && left >= 8) {
		*(uint4 *)p = q;
		return;
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		if (i < left)
			p[i] = (uint16_t)(w[i / 2] >> i % 2 * 16);
}

static __device__ __forceinline__ void unpack8(float v[8], uint4 q)
{
	v[0] = bf16_low(q.x);
	v[1] = bf16_high(q.x);
	v[2] = bf16_low(q.y);
	v[3] = bf16_high(q.y);
	v[4] = bf16_low(q.z);
	v[5] = bf16_high(q.z);
	v[6] = bf16_low(q.w);
	v[7] = bf16_high(q.w);
}

static __device__ __forceinline__ uint4 pack8(const float v[8])
{
	return make_uint4(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]), bf16_pair(v[4], v[5]), bf16_pair(v[6], v[7]));
}

/* Whether rows with this address and distance can be read 16 bytes at a time. */
static __device__ __forceinline__ int wide16(const void *p, int64_t ld_bytes)
{
	return ((uint64_t)p | (uint64_t)ld_bytes) % 16 == 0;
}

static __device__ __forceinline__ uint32_t lane_u32(uint32_t v, unsigned lane)
{
#ifndef EMULATED
	return __shfl_sync(0xffffffffu, v, (int)lane);
#else
	return (uint32_t)emulate_shuffle(v, lane);
#endif
}

static __device__ __forceinline__ uint64_t lane_u64(uint64_t v, unsigned lane)
{
#ifndef EMULATED
	return __shfl_sync(0xffffffffu, v, (int)lane);
#else
	return emulate_shuffle(v, lane);
#endif
}

static __device__ __forceinline__ float lane_f32(float v, unsigned lane)
{
	return __uint_as_float(lane_u32(__float_as_uint(v), lane));
}

static __device__ __forceinline__ double lane_f64(double v, unsigned lane)
{
#ifndef EMULATED
	return __shfl_sync(0xffffffffu, v, (int)lane);
#else
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	bits = emulate_shuffle(bits, lane);
	memcpy(&v, &bits, sizeof(bits));
	return v;
#endif
}

/* The sum over `lanes` neighbours, a power of two, in a fixed order. Every lane of the warp calls it. */
static __device__ __forceinline__ float group_sum(float v, unsigned lanes)
{
	for (unsigned offset = lanes / 2; offset; offset /= 2)
		v += lane_f32(v, (threadIdx.x % 32) ^ offset);
	return v;
}

/* The sum over the block in every thread, in a fixed order. `room`: 32 numbers, free again after the next
 * barrier. */
static __device__ __forceinline__ float block_sum_f32(float v, float *room)
{
	const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;

	v = group_sum(v, 32);
	if (warps == 1)
		return v;
	if (lane == 0)
		room[threadIdx.x / 32] = v;
	__syncthreads();
	return group_sum(lane < warps ? room[lane] : 0.0f, 32);
}

static __device__ __forceinline__ float warp_largest(float v)
{
	for (unsigned offset = 16; offset; offset /= 2)
		v = fmaxf(v, lane_f32(v, (threadIdx.x % 32) ^ offset));
	return v;
}

/* The largest of the block's numbers, which are not negative, in every thread. room: see block_sum_f32. */
static __device__ __forceinline__ float block_largest(float v, float *room)
{
	const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;

	v = warp_largest(v);
	if (warps == 1)
		return v;
	if (lane == 0)
		room[threadIdx.x / 32] = v;
	__syncthreads();
	return warp_largest(lane < warps ? room[lane] : 0.0f);
}
#endif
