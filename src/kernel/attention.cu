/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward for any GPU from sm_80 on; the first two rungs of the ladder (docs/design/attention_kernels.md).
 *
 *   naive_TYPE     a warp a query row, one key after the other, all in FP32: what the others must agree with
 *   flash_TYPE_dD  mma.sync on tiles of 64 queries x 64 keys that never leave the SM; keys and values come by
 *                  cp.async, the next keys while this block's values are multiplied
 *
 * Reference: tests/gpu/ref_attention.c.
 */
#include "kernel/attention.h"
#include "kernel/mma_tile.cuh"

enum { FLASH_ROWS = ATTENTION_FLASH_ROWS, FLASH_KEYS = ATTENTION_FLASH_KEYS };
static_assert((int)ATTENTION_FLASH_THREADS == (int)TILE_THREADS, "tiles are loaded by whole blocks");

/* Where a block's sequence stands. */
struct place {
	int q_len, kv_len;
	int64_t q, k, v, o; /* first element of its head */
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

/* -- naive -- */

template <typename T> static __device__ void naive(const attention_args &a)
{
	enum { PER_LANE = 8 };
	const unsigned lane = threadIdx.x % 32, head = blockIdx.y, sequence = blockIdx.z;
	const int row = blockIdx.x * (ATTENTION_NAIVE_THREADS / 32) + threadIdx.x / 32;
	const place p = find(a, sequence, head);
	const int at = row + p.kv_len - p.q_len;
	float q[PER_LANE], o[PER_LANE] = {}, top = -INFINITY, sum = 0;

	if (row >= p.q_len)
		return;
#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		const unsigned d = i * 32 + lane;

		q[i] = d < a.head_dim ? (float)((const T *)a.q)[p.q + row * a.q_step.row + d] : 0.f;
	}
	for (int j = max(at - a.left, 0); j <= min(at + a.right, p.kv_len - 1); j++) {
		float s = 0, e, factor;

#pragma unroll
		for (int i = 0; i < PER_LANE; i++)
			if (i * 32 + lane < a.head_dim)
				s += q[i] * (float)((const T *)a.k)[p.k + j * a.k_step.row + i * 32 + lane];
#pragma unroll
		for (int d = 16; d; d /= 2)
			s += __shfl_xor_sync(~0u, s, d);
		s *= a.scale;
		factor = s > top ? expf(top - s) : 1.f;
		top = fmaxf(top, s);
		e = expf(s - top);
		sum = sum * factor + e;
#pragma unroll
		for (int i = 0; i < PER_LANE; i++)
			if (i * 32 + lane < a.head_dim)
				o[i] = o[i] * factor +
				       e * (float)((const T *)a.v)[p.v + j * a.v_step.row + i * 32 + lane];
	}
#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		if (i * 32 + lane < a.head_dim)
			((T *)a.o)[p.o + row * a.o_step.row + i * 32 + lane] = (T)(sum == 0 ? 0.f : o[i] / sum);
	if (a.lse && lane == 0)
		*lse_of(a, sequence, head, row) = sum == 0 ? -INFINITY : top + logf(sum);
}

/* -- flash -- */

/* What a warp has of its 16 rows. Of a group of 8 columns a thread has 2 of row lane / 4 and 2 of 8 rows below. */
struct flash_rows {
	float top[2], sum[2];
	int low[2], high[2]; /* first and last key seen */
};

/* Scores become exponentials; the factor for what was summed before. */
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

template <typename T, int D> static __device__ void flash(const attention_args &a)
{
	extern __shared__ __align__(128) unsigned char flash_shared[];
	const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(flash_shared), k_tile = q_tile + FLASH_ROWS * D * 2;
	const uint32_t v_tile = k_tile + FLASH_KEYS * D * 2;
	const place p = find(a, blockIdx.z, blockIdx.y);
	const int first = (gridDim.x - 1 - blockIdx.x) * FLASH_ROWS, row = first + warp * 16 + lane / 4;
	const int shift = p.kv_len - p.q_len, last = min(first + FLASH_ROWS, p.q_len) - 1;
	const int from = max(first + shift - a.left, 0) / FLASH_KEYS;
	const int seen = min(last + shift + a.right, p.kv_len - 1);
	const int to = seen < max(first + shift - a.left, 0) ? from : seen / FLASH_KEYS + 1;
	const T *k = (const T *)a.k + p.k, *v = (const T *)a.v + p.v;
	const float scale_log2 = a.scale * 1.44269504089f;
	flash_rows x = {{-INFINITY, -INFINITY}, {0, 0}};
	float o[D / 8][4] = {};

	if (first >= p.q_len)
		return;
#pragma unroll
	for (int r = 0; r < 2; r++) {
		x.low[r] = row + 8 * r + shift - a.left;
		x.high[r] = min(row + 8 * r + shift + a.right, p.kv_len - 1);
	}
	tile_load<T, D>(q_tile, (const T *)a.q + p.q, a.q_step.row, first, p.q_len);
	if (from < to)
		tile_load<T, D>(k_tile, k, a.k_step.row, from * FLASH_KEYS, p.kv_len);
	for (int j = from; j < to; j++) {
		float s[FLASH_KEYS / 8][4] = {}, factor[2];
		uint32_t qa[4], b[4];

		tile_wait<0>();
		tile_load<T, D>(v_tile, v, a.v_step.row, j * FLASH_KEYS, p.kv_len);
#pragma unroll
		for (int i = 0; i < D / 16; i++) {
			matrix<false>(qa, tile_at<D>(q_tile, warp * 16 + lane % 16, 2 * i + lane / 16));
#pragma unroll
			for (int n = 0; n < FLASH_KEYS / 16; n++) {
				matrix<false>(b, tile_at<D>(k_tile, n * 16 + lane / 16 * 8 + lane % 8,
							    2 * i + lane / 8 % 2));
				step(T(), s[2 * n], qa, b[0], b[1]);
				step(T(), s[2 * n + 1], qa, b[2], b[3]);
			}
		}
		flash_softmax(s, x, j * FLASH_KEYS + lane % 4 * 2, scale_log2, factor);
#pragma unroll
		for (int i = 0; i < D / 8; i++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				o[i][e] *= factor[e / 2];
		tile_wait<0>(); /* the values have come, and no warp reads the keys any more */
		if (j + 1 < to)
			tile_load<T, D>(k_tile, k, a.k_step.row, (j + 1) * FLASH_KEYS, p.kv_len);
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
	flash_store<T, D>(a, p, o, x, row, lane);
}

#define NAIVE(NAME, T)                                                                                               \
	extern "C" __global__ void __launch_bounds__(ATTENTION_NAIVE_THREADS) naive_##NAME(attention_args a)         \
	{                                                                                                            \
		naive<T>(a);                                                                                         \
	}
#define FLASH(NAME, T, D)                                                                                            \
	extern "C" __global__ void __launch_bounds__(ATTENTION_FLASH_THREADS) flash_##NAME##_d##D(attention_args a)  \
	{                                                                                                            \
		flash<T, D>(a);                                                                                      \
	}
NAIVE(fp16, __half)
NAIVE(bf16, __nv_bfloat16)
FLASH(fp16, __half, 64)
FLASH(fp16, __half, 128)
FLASH(fp16, __half, 256)
FLASH(bf16, __nv_bfloat16, 64)
FLASH(bf16, __nv_bfloat16, 128)
FLASH(bf16, __nv_bfloat16, 256)
