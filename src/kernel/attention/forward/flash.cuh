/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward by mma.sync, for any GPU from sm_80 on: tiles, GEMM steps and softmax for a block of 4
 * warps. */
#ifndef KERNEL_ATTENTION_FORWARD_FLASH_CUH
#define KERNEL_ATTENTION_FORWARD_FLASH_CUH
#include "kernel/attention/forward/args.h"
#include "kernel/mma_sync_tile.cuh"

enum { FLASH_ROWS = ATTENTION_FLASH_ROWS, FLASH_KEYS = ATTENTION_FLASH_KEYS };
static_assert((int)ATTENTION_FLASH_THREADS == (int)TILE_THREADS, "tiles are loaded by whole blocks");

/* Position of a block's sequence in the tensors. */
struct place {
	int q_len, kv_len;
	int64_t q, k, v, o; /* first element of the head of this block */
};

static __device__ __forceinline__ place find(const attention_args &a, unsigned sequence, unsigned head)
{
	const unsigned kv_head = head / (a.heads / a.kv_heads);
	int64_t q_row = 0, kv_row = 0, batch = sequence;
	place p = {(int)a.q_len, (int)a.kv_len};

	if (a.q_starts) {
		q_row = a.q_starts[sequence];
		kv_row = a.kv_starts[sequence];
		p.q_len = (int)(a.q_starts[sequence + 1] - q_row);
		p.kv_len = (int)(a.kv_starts[sequence + 1] - kv_row);
		batch = 0;
	}
	p.q = batch * a.q_step.batch + head * a.q_step.head + q_row * a.q_step.row;
	p.k = batch * a.k_step.batch + kv_head * a.k_step.head + kv_row * a.k_step.row;
	p.v = batch * a.v_step.batch + kv_head * a.v_step.head + kv_row * a.v_step.row;
	p.o = batch * a.o_step.batch + head * a.o_step.head + q_row * a.o_step.row;
	return p;
}

static __device__ __forceinline__ float *lse_of(const attention_args &a, unsigned sequence, unsigned head, int row)
{
	return a.lse + ((int64_t)sequence * a.heads + head) * a.q_len + row;
}

/* State of a warp's 16 rows. In a group of 8 columns a thread has 2 values of row lane / 4 and 2 values of
 * the row 8 below. */
struct flash_rows {
	float top[2], sum[2];
	int low[2], high[2]; /* first and last key seen */
};

/* Replaces scores by exponentials. `factor` receives the factor for the earlier sums. */
template <int N>
static __device__ __forceinline__ void flash_softmax(float (&s)[N][4], flash_rows &x, int column, float scale_log2,
						     float (&factor)[2])
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float top = x.top[r], sum = 0, base;

#pragma unroll
		for (int i = 0; i < 2 * N; i++) {
			const int j = column + i / 2 * 8 + i % 2;
			float &v = s[i / 2][2 * r + i % 2];

			v = j < x.low[r] || j > x.high[r] ? -INFINITY : v * scale_log2;
			top = fmaxf(top, v);
		}
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
		base = top == -INFINITY ? 0.f : top;
		factor[r] = exp2f(x.top[r] - base);
#pragma unroll
		for (int i = 0; i < 2 * N; i++) {
			float &v = s[i / 2][2 * r + i % 2];

			v = exp2f(v - base);
			sum += v;
		}
		x.top[r] = top;
		x.sum[r] = x.sum[r] * factor[r] + sum;
	}
}

template <typename T, int D>
static __device__ __forceinline__ void flash_store(const attention_args &a, const place &p, float (&o)[D / 8][4],
						   flash_rows &x, int row, unsigned lane)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float sum = x.sum[r], inverse;

		sum += __shfl_xor_sync(~0u, sum, 1);
		sum += __shfl_xor_sync(~0u, sum, 2);
		inverse = sum == 0 ? 0.f : 1.f / sum;
		if (row + 8 * r >= p.q_len)
			continue;
		T *to = (T *)a.o + p.o + (row + 8 * r) * a.o_step.row + lane % 4 * 2;

#pragma unroll
		for (int i = 0; i < D / 8; i++)
			*(uint32_t *)(to + i * 8) =
				pair(T(), o[i][2 * r] * inverse, o[i][2 * r + 1] * inverse);
		if (a.lse && lane % 4 == 0)
			*lse_of(a, blockIdx.z, blockIdx.y, row + 8 * r) =
				sum == 0 ? -INFINITY : (x.top[r] + log2f(sum)) * 0.69314718056f;
	}
}

/* s += scores of the block's rows with a tile of keys. */
template <typename T, int D>
static __device__ __forceinline__ void flash_scores(float (&s)[FLASH_KEYS / 8][4], uint32_t q_tile, uint32_t k_tile)
{
	const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	uint32_t qa[4], b[4];

#pragma unroll
	for (int i = 0; i < D / 16; i++) {
		matrix<false>(qa, tile_at<D>(q_tile, warp * 16 + lane % 16, 2 * i + lane / 16));
#pragma unroll
		for (int n = 0; n < FLASH_KEYS / 16; n++) {
			matrix<false>(b, tile_at<D>(k_tile, n * 16 + lane / 16 * 8 + lane % 8, 2 * i + lane / 8 % 2));
			step(T(), s[2 * n], qa, b[0], b[1]);
			step(T(), s[2 * n + 1], qa, b[2], b[3]);
		}
	}
}

/* o = factor * o + P V, where P are the exponentials in s and V is a tile of values. */
template <typename T, int D>
static __device__ __forceinline__ void flash_values(float (&o)[D / 8][4], const float (&s)[FLASH_KEYS / 8][4],
						    const float (&factor)[2], uint32_t v_tile)
{
	const unsigned lane = threadIdx.x % 32;
	uint32_t b[4];

#pragma unroll
	for (int i = 0; i < D / 8; i++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			o[i][e] *= factor[e / 2];
#pragma unroll
	for (int n = 0; n < FLASH_KEYS / 16; n++) {
		const uint32_t pa[4] = {pair(T(), s[2 * n][0], s[2 * n][1]), pair(T(), s[2 * n][2], s[2 * n][3]),
					pair(T(), s[2 * n + 1][0], s[2 * n + 1][1]),
					pair(T(), s[2 * n + 1][2], s[2 * n + 1][3])};

#pragma unroll
		for (int i = 0; i < D / 16; i++) {
			matrix<true>(b, tile_at<D>(v_tile, n * 16 + lane % 16, 2 * i + lane / 16));
			step(T(), o[2 * i], pa, b[0], b[1]);
			step(T(), o[2 * i + 1], pa, b[2], b[3]);
		}
	}
}

#endif
