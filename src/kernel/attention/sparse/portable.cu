/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward over block lists for any GPU from sm_80 on: kernel/attention/forward/flash.cuh with steps
 * from a list. A thread block has half of a query block's rows. It processes the partial blocks, then the
 * full blocks, 64 keys per step.
 *
 *   blocks_TYPE_dD  TYPE fp16 or bf16, D 64 or 128; key blocks of any multiple of 64
 *
 * Reference: tests/gpu/ref_attention_sparse.c.
 */
#include "kernel/attention/forward/flash.cuh"
#include "kernel/attention/sparse/args.h"

/* A tile's list of key blocks. Partial blocks have numbers by which their bits are found. */
struct tile_list {
	const uint32_t *partial, *full;
	int partial_first, partial_count, steps;
	int parts; /* steps per key block */
};

static __device__ __forceinline__ tile_list list_of(const attention_block_lists &l, int q_block)
{
	const uint32_t row = ((blockIdx.z % l.batches) * l.heads + blockIdx.y % l.heads) * l.q_blocks + q_block;
	tile_list t;

	t.partial_first = l.partial_begin[row];
	t.partial_count = l.partial_begin[row + 1] - t.partial_first;
	t.partial = l.partial + t.partial_first;
	t.full = l.full + l.full_begin[row];
	t.parts = l.k_block / FLASH_KEYS;
	t.steps = (t.partial_count + l.full_begin[row + 1] - l.full_begin[row]) * t.parts;
	return t;
}

static __device__ __forceinline__ int first_key(const tile_list &t, int step)
{
	const int entry = step / t.parts;
	const int block = entry < t.partial_count ? t.partial[entry] : t.full[entry - t.partial_count];

	return (block * t.parts + step % t.parts) * FLASH_KEYS;
}

/* Masks scores whose bit is 0. With a negative scale the masked value is +inf. */
static __device__ __forceinline__ void cut(float (&s)[FLASH_KEYS / 8][4], const attention_sparse_flash_args &a,
					   const tile_list &t, int step, int row)
{
	const float out = a.dense.scale < 0 ? INFINITY : -INFINITY;
	const unsigned lane = threadIdx.x % 32;

#pragma unroll
	for (int r = 0; r < 2; r++) {
		const uint64_t line = (uint64_t)(t.partial_first + step / t.parts) * a.lists.q_block +
				      (row + 8 * r) % a.lists.q_block;
		const uint32_t *words = a.bits + (line * t.parts + step % t.parts) * (FLASH_KEYS / 32);

#pragma unroll
		for (int i = 0; i < FLASH_KEYS / 4; i++) {
			const unsigned j = i / 2 * 8 + lane % 4 * 2 + i % 2;

			if (!(words[j / 32] >> j % 32 & 1))
				s[i / 2][2 * r + i % 2] = out;
		}
	}
}

template <typename T, int D> static __device__ void flash_blocks(const attention_sparse_flash_args &x)
{
	extern __shared__ __align__(128) unsigned char flash_shared[];
	const attention_args &a = x.dense;
	const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t q_tile = (uint32_t)__cvta_generic_to_shared(flash_shared), k_tile = q_tile + FLASH_ROWS * D * 2;
	const uint32_t v_tile = k_tile + FLASH_KEYS * D * 2;
	const place p = find(a, blockIdx.z, blockIdx.y);
	const int first = blockIdx.x * FLASH_ROWS, row = first + warp * 16 + lane / 4, shift = p.kv_len - p.q_len;
	const tile_list t = list_of(x.lists, first / x.lists.q_block);
	const T *k = (const T *)a.k + p.k, *v = (const T *)a.v + p.v;
	flash_rows rows = {{-INFINITY, -INFINITY}, {0, 0}};
	float o[D / 8][4] = {};

	if (first >= p.q_len)
		return;
#pragma unroll
	for (int r = 0; r < 2; r++) { /* full blocks lie within these limits */
		rows.low[r] = row + 8 * r + shift - a.left;
		rows.high[r] = min(row + 8 * r + shift + a.right, p.kv_len - 1);
	}
	tile_load<T, D>(q_tile, (const T *)a.q + p.q, a.q_step.row, first, p.q_len);
	if (t.steps)
		tile_load<T, D>(k_tile, k, a.k_step.row, first_key(t, 0), p.kv_len);
	for (int i = 0; i < t.steps; i++) {
		const int key = first_key(t, i);
		float s[FLASH_KEYS / 8][4] = {}, factor[2];

		tile_wait<0>();
		tile_load<T, D>(v_tile, v, a.v_step.row, key, p.kv_len);
		flash_scores<T, D>(s, q_tile, k_tile);
		if (x.bits && i / t.parts < t.partial_count)
			cut(s, x, t, i, row);
		flash_softmax(s, rows, key + lane % 4 * 2, a.scale * 1.44269504089f, factor);
		tile_wait<0>(); /* the values have arrived, and no warp reads the keys any more */
		if (i + 1 < t.steps)
			tile_load<T, D>(k_tile, k, a.k_step.row, first_key(t, i + 1), p.kv_len);
		flash_values<T, D>(o, s, factor, v_tile);
	}
	flash_store<T, D>(a, p, o, rows, row, lane);
}

#define BLOCKS(NAME, T, D)                                                                                           \
	extern "C" __global__ void __launch_bounds__(ATTENTION_FLASH_THREADS)                                        \
		blocks_##NAME##_d##D(attention_sparse_flash_args a)                                                  \
	{                                                                                                            \
		flash_blocks<T, D>(a);                                                                               \
	}
BLOCKS(fp16, __half, 64)
BLOCKS(fp16, __half, 128)
BLOCKS(bf16, __nv_bfloat16, 64)
BLOCKS(bf16, __nv_bfloat16, 128)
