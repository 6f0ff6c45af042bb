/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector that a linear layer multiplies, in shared memory, and partial sums of rows.
 *
 * The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_DECODE_VECTOR_CUH
#define KERNEL_DECODE_VECTOR_CUH
#include "kernel/decode/weight_ring.cuh"

#define STAGE_BATCH 5

struct room {
	float *notes;	/* 32 words for sums of warps, 32 free, 32 for attention; then the rows of each warp's ring */
	float *x;	/* the vector, with permuted chunks: see place_of */
	float *u; /* A x of the adapters */
};

/* Partial sums of each row in each unit. They follow the vector. */
static __device__ __forceinline__ float *sums_of(const struct room *s, const struct rows *r)
{
	return s->x + r->chunks * DECODE_CHUNK_FLOATS;
}

static __device__ __forceinline__ float bf16_low(uint32_t pair)
{
	return __uint_as_float(pair << 16);
}

static __device__ __forceinline__ float bf16_high(uint32_t pair)
{
	return __uint_as_float(pair & 0xffff0000u);
}

static __device__ __forceinline__ float bf16_at(const uint16_t *p, uint64_t i)
{
	return __uint_as_float((uint32_t)p[i] << 16);
}

/* Rounds to nearest, ties to even. */
static __device__ __forceinline__ uint16_t to_bf16(float f)
{
	uint32_t bits = __float_as_uint(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, offset);
	return v;
}

/* Position of four neighbours of the vector, in units of four. A lane's eight elements are split over two
 * halves of their chunk, so a warp reads 16 bytes per lane without bank conflicts. */
static __device__ __forceinline__ uint32_t place_of(uint32_t four)
{
	const uint32_t chunk = four / 64, lane = four % 64 / 2, half = four % 2;

	return chunk * 64 + half * 32 + lane;
}

/* Four elements of the vector: F32 written by other blocks or, if x is NULL, BF16 from `row`. Elements past
 * the end are zeros, and so are all if there is neither. */
static __device__ __forceinline__ float4 four_of(const float *x, const uint16_t *row, uint32_t in, uint32_t four)
{
	uint2 pairs;

	if (4 * four >= in || (!x && !row))
		return make_float4(0, 0, 0, 0);
	if (x)
		return __ldcg((const float4 *)x + four);
	pairs = ((const uint2 *)row)[four];
	return make_float4(bf16_low(pairs.x), bf16_high(pairs.x), bf16_low(pairs.y), bf16_high(pairs.y));
}

/* Loads pieces first, first + DECODE_THREADS .. of four elements, and of the norm's weights. */
static __device__ __forceinline__ void stage_load(float4 *v, uint2 *w, const float *x, const uint16_t *row, const uint16_t *norm,
						  uint32_t in, uint32_t first)
{
#pragma unroll
	for (uint32_t j = 0; j < STAGE_BATCH; j++) {
		const uint32_t i = first + j * DECODE_THREADS;

		v[j] = four_of(x, row, in, i);
		if (norm && 4 * i < in)
			w[j] = ((const uint2 *)norm)[i];
		else
			w[j].x = w[j].y = 0x3f803f80u; /* ones */
	}
}

static __device__ __forceinline__ float4 times_norm(float4 v, uint2 w)
{
	return make_float4(v.x * bf16_low(w.x), v.y * bf16_high(w.x), v.z * bf16_low(w.y), v.w * bf16_high(w.y));
}

static __device__ __forceinline__ void stage_end(const struct room *s, const uint16_t *norm, float squares)
{
	if (norm) {
		squares = warp_sum(squares);
		if (threadIdx.x % 32 == 0)
			s->notes[threadIdx.x / 32] = squares;
	}
	__syncthreads();
}

/* Stages the vector in shared memory, multiplied by norm if that is not NULL. The division by the root mean
 * square is applied to the results later: see rstd_of. Each thread has STAGE_BATCH loads in flight. */
static __device__ __forceinline__ void stage(const struct room *s, const float *x, const uint16_t *row, const uint16_t *norm, uint32_t in)
{
	float4 *to = (float4 *)s->x;
	float squares = 0;

	__syncthreads();
	for (uint32_t first = threadIdx.x; first < decode_padded(in) / 4; first += STAGE_BATCH * DECODE_THREADS) {
		float4 v[STAGE_BATCH];
		uint2 w[STAGE_BATCH];

		stage_load(v, w, x, row, norm, in, first);
#pragma unroll
		for (uint32_t j = 0; j < STAGE_BATCH; j++) {
			const uint32_t i = first + j * DECODE_THREADS;

			squares += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
			if (i < decode_padded(in) / 4)
				to[place_of(i)] = times_norm(v[j], w[j]);
		}
	}
	stage_end(s, norm, squares);
}

/* 1 / root mean square of the vector that was staged last, added in a fixed order. */
static __device__ __forceinline__ float rstd_of(const struct room *s, uint32_t in, float eps)
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < DECODE_WARPS; i++)
		sum += s->notes[i];
	return rsqrtf(sum / (float)in + eps);
}

static __device__ __forceinline__ void stage_u(const struct room *s, const float *u, uint32_t count)
{
	for (uint32_t i = threadIdx.x; i < count; i += DECODE_THREADS)
		s->u[i] = __ldcg(u + i);
	__syncthreads();
}

static __device__ __forceinline__ float eight(uint4 w, float4 low, float4 high, float sum)
{
	sum += bf16_low(w.x) * low.x;
	sum += bf16_high(w.x) * low.y;
	sum += bf16_low(w.y) * low.z;
	sum += bf16_high(w.y) * low.w;
	sum += bf16_low(w.z) * high.x;
	sum += bf16_high(w.z) * high.y;
	sum += bf16_low(w.w) * high.z;
	sum += bf16_high(w.w) * high.w;
	return sum;
}

/* Stores a unit's partial sum of a row. */
static __device__ __forceinline__ void put(float *sums, uint32_t unit, uint32_t row, float sum)
{
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		sums[unit + row] = sum;
}
#endif
