/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward for any GPU from sm_80 on. These are the first two versions of
 * docs/explanation/design/attention_kernels.md.
 *
 *   naive_TYPE     one warp per query row, one key at a time, FP32; the other kernels must agree with it
 *   flash_TYPE_dD  mma.sync on tiles of 64 queries x 64 keys; scores never leave the SM; keys and values are
 *                  loaded by cp.async, and the next keys arrive during the GEMM with this block's values
 *
 * Reference: tests/gpu/ref_attention.c.
 */
#include "kernel/attention/forward/flash.cuh"

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

		tile_wait<0>();
		tile_load<T, D>(v_tile, v, a.v_step.row, j * FLASH_KEYS, p.kv_len);
		flash_scores<T, D>(s, q_tile, k_tile);
		flash_softmax(s, x, j * FLASH_KEYS + lane % 4 * 2, scale_log2, factor);
		tile_wait<0>(); /* the values have arrived, and no warp reads the keys any more */
		if (j + 1 < to)
			tile_load<T, D>(k_tile, k, a.k_step.row, (j + 1) * FLASH_KEYS, p.kv_len);
		flash_values<T, D>(o, s, factor, v_tile);
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
