/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of 128 x 128 numbers in BF16 that a block reads once, and quantizes by rows and by columns. A thread
 * has eight columns of eight rows: two groups of four adjacent rows, whose bytes it transposes in registers.
 * The code is C except for nvcc's keywords.
 */
#ifndef KERNEL_TRAIN_FP8_SQUARE_CUH
#define KERNEL_TRAIN_FP8_SQUARE_CUH
#include "kernel/train/fp8.cuh"

/* col: the thread's first column; left: the matrix's columns from it on. */
struct square {
	int64_t row0, col0, col, left, rows, cols;
};

static __device__ __forceinline__ struct square square_of(uint32_t rows, uint32_t cols)
{
	const uint32_t per_row = (cols + TILE - 1) / TILE, down = blockIdx.x / per_row;
	struct square t;

	t.row0 = (int64_t)down * TILE;
	t.col0 = (int64_t)(blockIdx.x - down * per_row) * TILE;
	t.col = t.col0 + threadIdx.x % LANES * 8;
	t.left = cols - t.col;
	t.rows = rows;
	t.cols = cols;
	return t;
}

/* A thread's row of the tile in turn i. */
static __device__ __forceinline__ int square_row(int i)
{
	return i / 4 * (TILE / 2) + (int)threadIdx.x / LANES * 4 + i % 4;
}

/* The larger magnitudes of two pairs in BF16. What is not finite is larger than all finite numbers, as factor_of
 * needs it. */
static __device__ __forceinline__ uint32_t larger_pair(uint32_t most, uint32_t pair)
{
	const uint32_t x = pair & 0x7fff7fffu;

#if defined(__CUDA_ARCH__)
	return __vmaxu2(most, x);
#else
	const uint32_t low = (most & 0xffffu) > (x & 0xffffu) ? most : x, high = most > x ? most : x;

	return (high & 0xffff0000u) | (low & 0xffffu);
#endif
}

/* Bytes of x and y in the order of `selector`'s digits, the lowest first: 0 to 3 are of x, 4 to 7 of y. */
static __device__ __forceinline__ uint32_t pick_bytes(uint32_t x, uint32_t y, uint32_t selector)
{
#if defined(__CUDA_ARCH__)
	return __byte_perm(x, y, selector);
#else
	const uint64_t both = (uint64_t)y << 32 | x;
	uint32_t picked = 0;

	for (int i = 0; i < 4; i++)
		picked |= (uint32_t)(both >> (selector >> i * 4 & 7u) * 8 & 0xffu) << i * 8;
	return picked;
#endif
}

/* Four rows of four bytes become four columns. */
static __device__ __forceinline__ void turn4(uint32_t w[4])
{
	const uint32_t low_01 = pick_bytes(w[0], w[1], 0x5140), low_23 = pick_bytes(w[2], w[3], 0x5140);
	const uint32_t high_01 = pick_bytes(w[0], w[1], 0x7362), high_23 = pick_bytes(w[2], w[3], 0x7362);

	w[0] = pick_bytes(low_01, low_23, 0x5410);
	w[1] = pick_bytes(low_01, low_23, 0x7632);
	w[2] = pick_bytes(high_01, high_23, 0x5410);
	w[3] = pick_bytes(high_01, high_23, 0x7632);
}

/* Quantizes eight numbers of a row in turn i. All lanes of the warp call it. */
static __device__ __forceinline__ void put_square_row(const struct train_fp8_rows *q, const struct square *t, int i,
						      uint4 numbers)
{
	const int64_t row = t->row0 + square_row(i);
	const uint32_t pair = larger_pair(larger_pair(larger_pair(numbers.x & 0x7fff7fffu, numbers.y), numbers.z),
					  numbers.w);
	const float most = __uint_as_float((pair >> 16 > (pair & 0xffffu) ? pair >> 16 : pair & 0xffffu) << 16);
	const struct factor f = factor_of(most_of_lanes(most, LANES));
	float v[8];

	if (row >= t->rows)
		return;
	if (threadIdx.x % LANES == 0)
		put_scale(q->scale + t->col0 / TILE * q->step + row, f.scale, q->overflows);
	if (t->left <= 0)
		return;
	unpack8(v, numbers);
#pragma unroll
	for (int j = 0; j < 8; j++)
		v[j] *= f.inverse;
	*(uint2 *)(q->to + row * q->ld + t->col) = eight_e4m3(v);
}

/* Place of the word of four rows in the transposed tile, so that neither writes nor reads of a warp collide. */
static __device__ __forceinline__ int square_word(int column, int word)
{
	return column * (TILE / 4) + (word ^ column / 8 * 2);
}

/* The inverse factors of the thread's columns. All threads call it. */
static __device__ __forceinline__ void square_factors(const struct train_fp8_rows *y, const struct square *t,
						      const uint4 kept[TURNS_OF(LANES)], float mine[8])
{
	uint32_t *part = (uint32_t *)shared, most[4] = {0, 0, 0, 0};
	float *inverse = (float *)((uint8_t *)shared + TRAIN_FP8_INVERSE_AT);
	const int lane = threadIdx.x % LANES, column = threadIdx.x;

#pragma unroll
	for (int i = 0; i < TURNS_OF(LANES); i++) {
		most[0] = larger_pair(most[0], kept[i].x);
		most[1] = larger_pair(most[1], kept[i].y);
		most[2] = larger_pair(most[2], kept[i].z);
		most[3] = larger_pair(most[3], kept[i].w);
	}
#pragma unroll
	for (int j = 0; j < 4; j++)
		most[j] = larger_pair(most[j], lane_u32(most[j], (threadIdx.x % 32) ^ LANES));
	if (threadIdx.x % 32 < LANES)
		*(uint4 *)(part + threadIdx.x / 32 * (TILE / 2) + lane * 4) =
			make_uint4(most[0], most[1], most[2], most[3]);
	__syncthreads();
	if (column < TILE) {
		uint32_t all = 0;
		struct factor f;

#pragma unroll
		for (int i = 0; i < TRAIN_THREADS / 32; i++)
			all = larger_pair(all, part[i * (TILE / 2) + column / 2]);
		f = factor_of(__uint_as_float(column % 2 ? all & 0xffff0000u : all << 16));
		inverse[column] = f.inverse;
		if (t->col0 + column < t->cols)
			put_scale(y->scale + t->row0 / TILE * y->step + t->col0 + column, f.scale, y->overflows);
	}
	__syncthreads();
#pragma unroll
	for (int j = 0; j < 8; j++)
		mine[j] = inverse[lane * 8 + j];
}

/* Quantizes a tile by columns. kept: the thread's eight numbers of each turn in BF16, 0 where there are none. All
 * threads call it, also several times without a barrier in between. */
static __device__ __forceinline__ void put_square_columns(const struct train_fp8_rows *y, const struct square *t,
							  const uint4 kept[TURNS_OF(LANES)])
{
	uint32_t *turned = (uint32_t *)((uint8_t *)shared + TRAIN_FP8_SQUARE_AT);
	const int lane = threadIdx.x % LANES;
	float inverse[8];

	square_factors(y, t, kept, inverse);
#pragma unroll
	for (int group = 0; group < TURNS_OF(LANES) / 4; group++) {
		uint32_t low[4], high[4];

#pragma unroll
		for (int i = 0; i < 4; i++) {
			float v[8];
			uint2 e;

			unpack8(v, kept[group * 4 + i]);
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[j] *= inverse[j];
			e = eight_e4m3(v);
			low[i] = e.x;
			high[i] = e.y;
		}
		turn4(low);
		turn4(high);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			const int word = square_row(group * 4) / 4;

			turned[square_word(lane * 8 + j, word)] = low[j];
			turned[square_word(lane * 8 + 4 + j, word)] = high[j];
		}
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < TILE * (TILE / 4) / TRAIN_THREADS; i++) {
		const int at = i * TRAIN_THREADS + (int)threadIdx.x, column = at / (TILE / 4), word = at % (TILE / 4);

		if (t->col0 + column < t->cols && t->row0 + word * 4 < t->rows)
			*(uint32_t *)(y->to + (t->col0 + column) * y->ld + t->row0 + word * 4) =
				turned[square_word(column, word)];
	}
}
#endif
