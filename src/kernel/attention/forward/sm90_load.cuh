/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward on Hopper: the producer warpgroup. Warp 0 loads keys and values, warp 1 loads queries.
 * With FP8, two more warps transpose the values. */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_LOAD_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_LOAD_CUH
#include "kernel/attention/forward/sm90_shape.cuh"

template <typename C>
static __device__ __forceinline__ void prefetch_keys_values(const attention_sm90_args &a, const attention_unit &u, int block)
{
#pragma unroll
	for (int c = 0; c < C::CHUNKS; c++) {
		const int column = c * C::CHUNK / C::BYTES, row = u.kv_row + block * C::KEYS;

		tensor_prefetch(&a.k_map, column, row, u.kv_head, u.batch);
		tensor_prefetch(&a.v_map, column, row, u.kv_head, u.batch);
	}
}

template <typename C>
static __device__ void load_keys_values(const typename C::ARGS &a, const attention_room<C> &room)
{
	const unsigned came = C::FP8 ? C::RAW_V : C::FULL_V;
	unsigned fill = 0;

	for (int round = 0; round < unit_rounds(a); round++) {
		const int number = unit_of_round(a, round);
		attention_unit u, then;
		bool ahead = false;

		if (number < 0 || !unit_find<C>(a, number, u))
			continue;
		if (C::PREFETCH)
			ahead = unit_of_round(a, round + 1) >= 0 && unit_find<C>(a, unit_of_round(a, round + 1), then);
#pragma unroll 1
		for (int j = u.from; j < u.to; j++, fill++) {
			const unsigned slot = fill % C::SLOTS, parity = fill / C::SLOTS % 2 ^ 1;

			barrier_wait(room.barrier(C::EMPTY_K + slot), parity);
			barrier_expect(room.barrier(C::FULL_K + slot), C::KV_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.k(slot) + c * C::KEYS * C::CHUNK, &a.k_map,
					    room.barrier(C::FULL_K + slot), c * C::CHUNK / C::BYTES, u.kv_row + j * C::KEYS, u.kv_head, u.batch);
			barrier_wait(room.barrier(C::EMPTY_V + slot), parity);
			barrier_expect(room.barrier(came + slot), C::KV_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.v(slot) + c * C::KEYS * C::CHUNK, &a.v_map, room.barrier(came + slot),
					    c * C::CHUNK / C::BYTES, u.kv_row + j * C::KEYS, u.kv_head, u.batch);
			if (C::PREFETCH && ahead)
				prefetch_keys_values<C>(a, then, j);
		}
	}
}

template <typename C> static __device__ void load_queries(const typename C::ARGS &a, const attention_room<C> &room)
{
	unsigned fill[C::GROUPS] = {};
	int turn = 0;

	for (int round = 0; round < unit_rounds(a); round++) {
		const int number = unit_of_round(a, round);
		attention_unit u;

		if (number < 0 || !unit_find<C>(a, number, u))
			continue;
		for (int pass = 0; pass < (int)a.passes; pass++) {
#pragma unroll
			for (int g = 0; g < C::GROUPS; g++) {
				const int tile = C::STREAM ? g : tile_dealt<C>(u.tiles, turn, pass, g);
				const int row = (u.tile + tile) * C::ROWS;
				const unsigned slot = fill[g] % C::Q_SLOTS, at = g * C::Q_SLOTS + slot;

				if (tile >= u.tiles && !C::STREAM) /* tiles past the end are loaded as zeros */
					continue;
				barrier_wait(room.barrier(C::EMPTY_Q + at), fill[g] / C::Q_SLOTS % 2 ^ 1);
				barrier_expect(room.barrier(C::FULL_Q + at), C::Q_BYTES);
#pragma unroll
				for (int i = 0; i < C::ROWS / 64 * C::CHUNKS; i++)
					tensor_load(room.q(g, slot) + i * 64 * C::CHUNK, &a.q_map,
						    room.barrier(C::FULL_Q + at), i % C::CHUNKS * C::CHUNK / C::BYTES,
						    u.q_row + row + i / C::CHUNKS * 64, u.head, u.batch);
				fill[g]++;
			}
		}
		turn = (turn + u.tiles) % C::GROUPS;
	}
}

/* Loads causal heads from their last keys on, block j into slot j. */
template <typename C> static __device__ void load_down(const attention_sm90_args &a, const attention_room<C> &room)
{
	for (int round = 0; round < down_rounds(a); round++) {
		const int pair = down_pair(a, round);
		attention_unit u;

		if (pair < 0 || !unit_find<C>(a, pair, u))
			continue;
#pragma unroll 1
		for (int j = C::SLOTS - 1; j >= 0; j--) {
			barrier_wait(room.barrier(C::EMPTY_K + j), round % 2 ^ 1);
			barrier_expect(room.barrier(C::FULL_K + j), C::KV_BYTES);
			tensor_load(room.k(j), &a.k_map, room.barrier(C::FULL_K + j), 0, j * C::KEYS, u.kv_head, u.batch);
			barrier_wait(room.barrier(C::EMPTY_V + j), round % 2 ^ 1);
			barrier_expect(room.barrier(C::FULL_V + j), C::KV_BYTES);
			tensor_load(room.v(j), &a.v_map, room.barrier(C::FULL_V + j), 0, j * C::KEYS, u.kv_head, u.batch);
		}
	}
}

template <typename C> static __device__ void load_queries_down(const attention_sm90_args &a, const attention_room<C> &room)
{
	unsigned fill[C::GROUPS] = {};

	for (int round = 0; round < down_rounds(a); round++) {
		const int pair = down_pair(a, round);
		attention_unit u;

		if (pair < 0 || !unit_find<C>(a, pair, u))
			continue;
		for (int i = 0; i < DOWN_PASSES; i++) {
#pragma unroll
			for (int g = 0; g < C::GROUPS; g++) {
				const int tile = tile_down((g + round) % 3, i);
				const unsigned slot = fill[g] % C::Q_SLOTS, at = g * C::Q_SLOTS + slot;

				if (tile >= C::SLOTS)
					continue;
				barrier_wait(room.barrier(C::EMPTY_Q + at), fill[g] / C::Q_SLOTS % 2 ^ 1);
				barrier_expect(room.barrier(C::FULL_Q + at), C::Q_BYTES);
				tensor_load(room.q(g, slot), &a.q_map, room.barrier(C::FULL_Q + at), 0, tile * C::ROWS, u.head,
					    u.batch);
				fill[g]++;
			}
		}
	}
}

/*
 * The FP8 GEMM with V needs neighbouring keys to be contiguous. So two warps transpose a slot's values in
 * place: a tile of D keys x D columns, in blocks of 32 x 32 bytes. The order of 16 keys is the order in which
 * a thread holds its scores: the four at 4 t are keys 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t.
 */
template <typename C> struct turned_block {
	uint32_t r[8];

	/* The block at row 32 i and column 32 j of the tile. */
	__device__ __forceinline__ void load(uint32_t tile, unsigned i, unsigned j)
	{
		const unsigned row = 32 * i + threadIdx.x % 32;

#pragma unroll
		for (int h = 0; h < 2; h++) {
			uint32_t x[4];

			matrix_load_turned(x, tile + row * C::CHUNK + swizzled<C::CHUNK>(row, 2 * j + h));
#pragma unroll
			for (int k = 0; k < 4; k++) /* even columns, odd columns; 16 keys, 16 more */
				r[4 * h + k] = __byte_perm(x[k / 2 * 2], x[k / 2 * 2 + 1], k % 2 ? 0x7531 : 0x6420);
		}
	}

	__device__ __forceinline__ void store(uint32_t tile, unsigned i, unsigned j) const
	{
		const unsigned lane = threadIdx.x % 32, matrix = lane / 8;

#pragma unroll
		for (int h = 0; h < 2; h++) {
			const unsigned row = 32 * i + 16 * h + lane % 8 * 2 + matrix % 2;
			const uint32_t four[4] = {r[4 * h], r[4 * h + 1], r[4 * h + 2], r[4 * h + 3]};

			matrix_store(tile + row * C::CHUNK + swizzled<C::CHUNK>(row, 2 * j + matrix / 2), four);
		}
	}
};

template <typename C> static __device__ __forceinline__ void turn_tile(uint32_t tile, unsigned which)
{
#pragma unroll 1
	for (unsigned i = 0; i < C::D / 32; i++) {
		if ((i + 1) / 2 % 2 != which) /* rows of blocks get shorter: 0 and 3, 1 and 2 */
			continue;
#pragma unroll 1
		for (unsigned j = i; j < C::D / 32; j++) {
			turned_block<C> upper, lower;

			upper.load(tile, i, j);
			lower.load(tile, j, i);
			__syncwarp();
			upper.store(tile, j, i);
			if (j > i)
				lower.store(tile, i, j);
		}
	}
}

template <typename C>
static __device__ void turn_values(const attention_sm90_args &a, const attention_room<C> &room, unsigned which)
{
	unsigned fill = 0;

	static_assert(C::KEYS % C::D == 0 && C::CHUNKS == 1, "tiles that can be turned in their place");
	for (int round = 0; round < unit_rounds(a); round++) {
		const int number = unit_of_round(a, round);
		attention_unit u;

		if (number < 0 || !unit_find<C>(a, number, u))
			continue;
		for (int j = u.from; j < u.to; j++, fill++) {
			const unsigned slot = fill % C::SLOTS;

			barrier_wait(room.barrier(C::RAW_V + slot), fill / C::SLOTS % 2);
#pragma unroll 1
			for (int i = 0; i < C::KEYS / C::D; i++)
				turn_tile<C>(room.v(slot) + i * C::D * C::CHUNK, which);
			proxy_fence();
			__syncwarp();
			if (threadIdx.x % 32 == 0)
				barrier_arrive(room.barrier(C::FULL_V + slot));
		}
	}
}
#endif
