/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantizing to E4M3 with a scale per tile of 128 elements, or of 128 x 128: what the kernels of fp8.h share
 * with those that read weights in 4 bits. The code is C except for nvcc's keywords.
 */
#ifndef KERNEL_TRAIN_FP8_CUH
#define KERNEL_TRAIN_FP8_CUH
#include "kernel/step/device.cuh"
#include "kernel/train/fp8.h"

#define TILE TRAIN_FP8_TILE
#define LANES (TILE / 8)
#define LEAST 0x1p-100f
#define MOST 448.0f
#define FINITE_MOST 3.402823466e38f

/* The larger one of two magnitudes; NaN if either is. */
static __device__ __forceinline__ float larger_of(float x, float y)
{
	return y <= x || x != x ? x : y;
}

static __device__ __forceinline__ float most_of8(const float v[8], float most)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		most = larger_of(most, fabsf(v[j]));
	return most;
}

/* Of `lanes` neighbours. All lanes of the warp call it. */
static __device__ __forceinline__ float most_of_lanes(float most, unsigned lanes)
{
	for (unsigned offset = lanes / 2; offset; offset /= 2)
		most = larger_of(most, lane_f32(most, (threadIdx.x % 32) ^ offset));
	return most;
}

struct factor {
	float scale, inverse;
};

static __device__ __forceinline__ struct factor factor_of(float most)
{
	struct factor f = {1, 1};

	if (!(most <= FINITE_MOST)) {
		f.scale = f.inverse = __uint_as_float(0x7fc00000u);
	} else if (most > 0) {
		most = most < LEAST ? LEAST : most;
		f.scale = most / MOST;
		f.inverse = MOST / most;
	}
	return f;
}

static __device__ __forceinline__ void put_scale(float *to, float scale, uint32_t *overflows)
{
	*to = scale;
	if (scale != scale && overflows)
		atomicAdd(overflows, 1); /* of integers, so any order gives the same sum */
}

/* Two numbers to nearest even, the first one in the low byte. Larger ones become 448. */
static __device__ __forceinline__ uint32_t two_e4m3(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	uint16_t both;

	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
	return both;
#else
	return (low != low ? 0x7fu : to_e4m3(low)) | (high != high ? 0x7fu : to_e4m3(high)) << 8;
#endif
}

static __device__ __forceinline__ uint2 eight_e4m3(const float v[8])
{
	return make_uint2(two_e4m3(v[0], v[1]) | two_e4m3(v[2], v[3]) << 16,
			  two_e4m3(v[4], v[5]) | two_e4m3(v[6], v[7]) << 16);
}

#define PITCH TRAIN_FP8_PITCH

/* Eight elements at consecutive columns of a tile, as bytes of as many rows of the transposed tile. */
static __device__ __forceinline__ void turn8(uint8_t *turned, int column, int row, uint2 q)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		turned[(column + j) * PITCH + row] = (uint8_t)((j < 4 ? q.x : q.y) >> j % 4 * 8);
}

/* Writes `columns` rows of transposed elements, of which `left` columns and `rows` elements exist, 4 bytes at a
 * time. */
static __device__ __forceinline__ void put_turned(const uint8_t *turned, uint8_t *to, int64_t ld, unsigned columns,
						  int64_t left, int64_t rows)
{
	for (unsigned i = threadIdx.x; i < columns * (TILE / 4); i += blockDim.x) {
		const unsigned column = i / (TILE / 4), row = i % (TILE / 4) * 4;

		if (column < left && row < rows)
			*(uint32_t *)(to + column * ld + row) = *(const uint32_t *)(turned + column * PITCH + row);
	}
}

/* Rows of a tile that a block loads at once, and how often, if each row has `across` threads. */
#define ROWS_OF(across) (TRAIN_THREADS / (across))
#define TURNS_OF(across) (TILE / ROWS_OF(across))

/* A block's tile of a weight, and a thread's eight columns in it. */
struct weights_tile {
	uint32_t down, across;
	int64_t row0, col0, col, left; /* left: the columns from the thread's own on */
};

static __device__ __forceinline__ struct weights_tile weights_tile_of(const struct train_fp8_weights *q)
{
	const uint32_t per_row = (q->cols + TILE - 1) / TILE;
	struct weights_tile t;

	t.down = blockIdx.x / per_row;
	t.across = blockIdx.x - t.down * per_row;
	t.row0 = (int64_t)t.down * TILE;
	t.col0 = (int64_t)t.across * TILE;
	t.col = t.col0 + threadIdx.x % LANES * 8;
	t.left = q->cols - t.col;
	return t;
}

/* A thread's row in turn i. */
static __device__ __forceinline__ int64_t weights_row(const struct weights_tile *t, int i)
{
	return t->row0 + i * ROWS_OF(LANES) + threadIdx.x / LANES;
}

/* Quantizes a tile. kept: the thread's eight numbers of each turn in BF16, 0 where there are none. */
static __device__ __forceinline__ void put_weights(const struct train_fp8_weights *q, const struct weights_tile *t,
						   const uint4 kept[TURNS_OF(LANES)])
{
	float *warp_most = (float *)shared;
	uint8_t *turned = (uint8_t *)shared + TRAIN_FP8_TURNED_AT;
	struct factor f;
	float most = 0;

#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		float v[8];

		unpack8(v, kept[i]);
		most = most_of8(v, most);
	}
	most = most_of_lanes(most, 32);
	if (threadIdx.x % 32 == 0)
		warp_most[threadIdx.x / 32] = most;
	__syncthreads();
#pragma unroll
	for (int i = 0; i < TRAIN_THREADS / 32; i++)
		most = larger_of(most, warp_most[i]);
	f = factor_of(most);
	if (threadIdx.x == 0) {
		put_scale(q->scale + t->down * q->step + t->across, f.scale, q->overflows);
		if (q->transposed)
			q->scale_transposed[t->across * q->step_transposed + t->down] = f.scale;
	}
#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		const int64_t row = weights_row(t, i);
		float v[8];
		uint2 e;

		unpack8(v, kept[i]);
#pragma unroll
		for (int j = 0; j < 8; j++)
			v[j] *= f.inverse;
		e = eight_e4m3(v);
		if (row < q->rows && t->left > 0)
			*(uint2 *)(q->to + row * q->ld_to + t->col) = e;
		if (q->transposed)
			turn8(turned, threadIdx.x % LANES * 8, (int)(row - t->row0), e);
	}
	if (!q->transposed)
		return;
	__syncthreads();
	put_turned(turned, q->transposed + t->col0 * q->ld_transposed + t->row0, q->ld_transposed, TILE,
		   q->cols - t->col0, q->rows - t->row0);
}
#endif
