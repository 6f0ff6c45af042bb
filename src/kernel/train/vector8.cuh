/* SPDX-License-Identifier: Apache-2.0 */
/* Access to eight numbers at a time (16 bytes of BF16, 32 bytes of F32), and sums over a block. */
#ifndef KERNEL_TRAIN_VECTOR8_CUH
#define KERNEL_TRAIN_VECTOR8_CUH
#include <cuda_bf16.h>
#include "kernel/train/common.h"

struct eight {
	float v[8];
};

/* Whether rows with this address and distance can be read 16 bytes at a time. */
static __device__ bool wide_bf16(const void *p, int64_t ld)
{
	return ((uint64_t)p | (uint64_t)ld * 2) % 16 == 0;
}

static __device__ bool wide_f32(const void *p, int64_t ld)
{
	return ((uint64_t)p | (uint64_t)ld * 4) % 16 == 0;
}

static __device__ float bf16_f32(uint32_t bits)
{
	return __uint_as_float(bits << 16);
}

static __device__ uint16_t f32_bf16(float f)
{
	return __bfloat16_as_ushort(__float2bfloat16_rn(f));
}

static __device__ uint32_t pair(float low, float high)
{
	return (uint32_t)f32_bf16(high) << 16 | f32_bf16(low);
}

static __device__ eight eight_of(uint4 q)
{
	eight e;
	const uint32_t w[4] = {q.x, q.y, q.z, q.w};

#pragma unroll
	for (int i = 0; i < 4; i++) {
		e.v[2 * i] = bf16_f32(w[i]);
		e.v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
	}
	return e;
}

static __device__ uint4 four_words(const eight &e)
{
	return make_uint4(pair(e.v[0], e.v[1]), pair(e.v[2], e.v[3]), pair(e.v[4], e.v[5]), pair(e.v[6], e.v[7]));
}

/* The words of up to `left` elements at p, followed by zeros. */
static __device__ uint4 raw8(const uint16_t *p, int64_t left, bool wide)
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

static __device__ eight load8(const uint16_t *p, int64_t left, bool wide)
{
	return eight_of(raw8(p, left, wide));
}

static __device__ void put8(uint16_t *p, uint4 q, int64_t left, bool wide)
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

static __device__ void store8(uint16_t *p, const eight &e, int64_t left, bool wide)
{
	put8(p, four_words(e), left, wide);
}

static __device__ eight load8(const float *p, int64_t left, bool wide)
{
	eight e;

	if (wide && left >= 8) {
		float4 a = ((const float4 *)p)[0], b = ((const float4 *)p)[1];

		return eight{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		e.v[i] = i < left ? p[i] : 0;
	return e;
}

static __device__ void store8(float *p, const eight &e, int64_t left, bool wide)
{
	if (wide && left >= 8) {
		((float4 *)p)[0] = make_float4(e.v[0], e.v[1], e.v[2], e.v[3]);
		((float4 *)p)[1] = make_float4(e.v[4], e.v[5], e.v[6], e.v[7]);
		return;
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
		if (i < left)
			p[i] = e.v[i];
}

/* Eight activations or weights as they are stored. Names are the same for both types. */
#ifdef TRAIN_F32
typedef eight raw;

static __device__ raw zeros(void)
{
	return eight{};
}

static __device__ eight raw8(const float *p, int64_t left, bool wide)
{
	return load8(p, left, wide);
}

static __device__ void put8(float *p, const eight &e, int64_t left, bool wide)
{
	store8(p, e, left, wide);
}

static __device__ eight eight_of(const eight &e)
{
	return e;
}

static __device__ raw raw_of(const eight &e)
{
	return e;
}

static __device__ bool wide_number(const void *p, int64_t ld)
{
	return wide_f32(p, ld);
}

static __device__ float number_f32(float x)
{
	return x;
}

static __device__ float f32_number(float x)
{
	return x;
}
#else
typedef uint4 raw;

static __device__ raw zeros(void)
{
	return make_uint4(0, 0, 0, 0);
}

static __device__ raw raw_of(const eight &e)
{
	return four_words(e);
}

static __device__ bool wide_number(const void *p, int64_t ld)
{
	return wide_bf16(p, ld);
}

static __device__ float number_f32(uint32_t bits)
{
	return bf16_f32(bits);
}

static __device__ uint16_t f32_number(float x)
{
	return f32_bf16(x);
}
#endif

/* x as it would be stored. */
static __device__ float rounded(float x)
{
#ifdef TRAIN_F32
	return x;
#else
	return bf16_f32(f32_bf16(x));
#endif
}

/* Returns the block's sum of `value` in every thread, added in a fixed order. Every thread must call it, and
 * the block has whole warps. `room` has 33 floats and may be reused after the next barrier. */
static __device__ float sum_to_all(float value, float *room)
{
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, offset);
	if (warps == 1)
		return value;
	if (lane == 0)
		room[warp] = value;
	__syncthreads();
	value = lane < warps ? room[lane] : 0;
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, offset);
	return value;
}

/* A vector of a matrix: eight columns from `col` on, of which `left` exist. A `left` above 8 means that the
 * row continues. */
struct place {
	uint32_t row;
	int64_t col, left;
};

/* Splits the vectors of a rows x cols matrix among the threads of the grid, two per thread and iteration.
 * Both are loaded before the first is stored; the compiler cannot do this itself if operands may overlap. The
 * limit on rows * vectors keeps vector numbers in 32 bits. A matrix of one row may have more. */
template <typename loader, typename storer>
static __device__ void for_vectors(uint32_t rows, uint64_t cols, loader load, storer store)
{
	const uint64_t vectors = (cols + 7) / 8, all = rows * vectors;
	const uint64_t step = (uint64_t)gridDim.x * blockDim.x * 2;

	for (uint64_t first = (uint64_t)blockIdx.x * blockDim.x * 2 + threadIdx.x; first < all; first += step) {
		decltype(load(place{})) loaded[2];
		place at[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			const uint64_t vector = first + i * blockDim.x;

			at[i].row = rows == 1 ? 0 : (uint32_t)vector / (uint32_t)vectors;
			at[i].col = (int64_t)((vector - at[i].row * vectors) * 8);
			at[i].left = vector < all ? (int64_t)cols - at[i].col : 0;
			if (at[i].left > 0)
				loaded[i] = load(at[i]);
		}
#pragma unroll
		for (int i = 0; i < 2; i++)
			if (at[i].left > 0)
				store(at[i], loaded[i]);
	}
}

static __device__ eight added(eight x, const eight &y)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		x.v[j] += y.v[j];
	return x;
}
#endif
