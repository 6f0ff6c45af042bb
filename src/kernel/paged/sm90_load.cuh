/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of many rows to pages, on Hopper: units of work, and the producer warps that load pages by tensor
 * copies. */
#ifndef KERNEL_PAGED_SM90_LOAD_CUH
#define KERNEL_PAGED_SM90_LOAD_CUH
#include "kernel/attention/forward/sm90_any_range.cuh"
#include "kernel/paged/tiles.h"

/* paged_tiles_args with the dense kernel's arguments as its base, because the consumers use their names. */
struct paged_view : attention_sm90_args {
	const int32_t *page;
	const paged_tile *tile;
	const uint32_t *count;
	uint32_t page_bits, reserved_more[9];
};
static_assert(sizeof(paged_view) == sizeof(paged_tiles_args), "the host fills paged_tiles_args");

template <int D_, unsigned HOW_>
struct paged_shape : attention_shape<__nv_bfloat16, D_, PAGED_TILES_GROUPS(D_), PAGED_TILES_KEYS(D_), PAGED_TILES_SLOTS(D_), HOW_> {
	typedef attention_shape<__nv_bfloat16, D_, PAGED_TILES_GROUPS(D_), PAGED_TILES_KEYS(D_), PAGED_TILES_SLOTS(D_), HOW_> base;
	typedef paged_view ARGS;
	enum {
		PAGE_V = base::BARRIERS, /* the values of a block of which the sequence has not all have arrived */
		ROOM = base::SHARED_BYTES + 8,
	};
};

/* -- what the consumers ask for -- */

static __device__ __forceinline__ int unit_rounds(const paged_view &a)
{
	return (int)((*a.count + gridDim.x - 1) / gridDim.x);
}

static __device__ __forceinline__ int unit_of_round(const paged_view &a, int round)
{
	const unsigned place = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x, number = round * gridDim.x + place;

	return number < *a.count ? (int)number : -1;
}

/* kv_row is the place of the sequence's first page number. */
template <typename C> static __device__ __forceinline__ bool unit_find(const paged_view &a, int number, attention_unit &u)
{
	const paged_tile t = a.tile[number];

	u.batch = 0;
	u.sequence = 0;
	u.head = t.head;
	u.kv_head = t.head / (a.heads / a.kv_heads);
	u.q_row = t.row;
	u.kv_row = (int)t.page;
	u.q_len = t.rows;
	u.kv_len = t.keys;
	u.tile = t.first;
	u.tiles = min((int)C::GROUPS, (t.rows + C::ROWS - 1) / C::ROWS - t.first);
	u.from = 0;
	u.to = t.blocks;
	return true;
}

/* -- keys and values: one warp -- */

/* Numbers of 32 pages, one per lane. */
struct page_numbers {
	const int32_t *list;
	int first, pages, number;

	__device__ __forceinline__ void fetch(int from)
	{
		const int lane = threadIdx.x % 32;

		first = from;
		number = from + lane < pages ? list[from + lane] : 0;
	}

	/* All lanes get the number of page i; pages are asked for in ascending order. */
	__device__ __forceinline__ int of(int i)
	{
		if (i >= first + 32)
			fetch(i);
		return __shfl_sync(~0u, number, i - first);
	}
};

/* Requests the pages of a block of keys or values that the sequence has. */
template <typename C>
static __device__ __forceinline__ void pages_load(const paged_view &a, const void *map, uint32_t tile, uint32_t barrier, page_numbers &list,
						  int block, int keys, int kv_head)
{
	const int size = 1 << a.page_bits, first = block * C::KEYS, held = min((keys - first + size - 1) >> a.page_bits, (int)C::KEYS >> a.page_bits);

	if (threadIdx.x % 32 == 0)
		barrier_expect(barrier, held * size * C::D * 2);
	__syncwarp();
	for (int i = 0; i < held; i++) {
		const int row = list.of((first >> a.page_bits) + i) << a.page_bits;

		if (threadIdx.x % 32 == 0)
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(tile + c * C::KEYS * C::CHUNK + i * size * C::CHUNK, map, barrier, c * C::CHUNK / C::BYTES, row, kv_head,
					    0);
	}
}

/* Writes zeros over the values of the block that the sequence does not have: pages may hold NaN there, and a
 * probability of 0 would not hide it. */
template <typename C> static __device__ __forceinline__ void values_clear(uint32_t tile, int held)
{
	const int bytes = (C::KEYS - held) * C::CHUNK;

#pragma unroll
	for (int c = 0; c < C::CHUNKS; c++)
		for (int at = threadIdx.x % 32 * 16; at < bytes; at += 512)
			shared_store4(tile + (c * C::KEYS + held) * C::CHUNK + at, {0, 0, 0, 0});
	proxy_fence();
	__syncwarp();
}

template <typename C> static __device__ void load_pages(const paged_view &a, const attention_room<C> &room)
{
	const int rounds = unit_rounds(a);
	unsigned fill = 0, cleared = 0;

	for (int round = 0; round < rounds; round++) {
		const int number = unit_of_round(a, round);
		attention_unit u;
		page_numbers keys, values;

		if (number < 0)
			continue;
		unit_find<C>(a, number, u);
		keys.list = values.list = a.page + u.kv_row;
		keys.pages = values.pages = (u.kv_len + (1 << a.page_bits) - 1) >> a.page_bits;
		keys.fetch(0);
		values = keys;
#pragma unroll 1
		for (int j = 0; j < u.to; j++, fill++) {
			const unsigned slot = fill % C::SLOTS, parity = fill / C::SLOTS % 2 ^ 1;
			const int held = u.kv_len - j * C::KEYS;

			barrier_wait(room.barrier(C::EMPTY_K + slot), parity);
			pages_load<C>(a, &a.k_map, room.k(slot), room.barrier(C::FULL_K + slot), keys, j, u.kv_len, u.kv_head);
			barrier_wait(room.barrier(C::EMPTY_V + slot), parity);
			if (held >= C::KEYS) {
				pages_load<C>(a, &a.v_map, room.v(slot), room.barrier(C::FULL_V + slot), values, j, u.kv_len, u.kv_head);
				continue;
			}
			pages_load<C>(a, &a.v_map, room.v(slot), room.barrier(C::PAGE_V), values, j, u.kv_len, u.kv_head);
			barrier_wait(room.barrier(C::PAGE_V), cleared++ % 2);
			values_clear<C>(room.v(slot), held);
			if (threadIdx.x % 32 == 0)
				barrier_arrive(room.barrier(C::FULL_V + slot));
		}
	}
}

/* -- queries: one thread -- */

template <typename C> static __device__ void load_rows(const paged_view &a, const attention_room<C> &room)
{
	const int rounds = unit_rounds(a);
	unsigned fill[C::GROUPS] = {};
	int turn = 0;

	for (int round = 0; round < rounds; round++) {
		const int number = unit_of_round(a, round);
		attention_unit u;

		if (number < 0)
			continue;
		unit_find<C>(a, number, u);
#pragma unroll
		for (int g = 0; g < C::GROUPS; g++) {
			const int tile = tile_dealt<C>(u.tiles, turn, 0, g);
			const unsigned slot = fill[g] % C::Q_SLOTS, at = g * C::Q_SLOTS + slot;

			if (tile >= u.tiles)
				continue;
			barrier_wait(room.barrier(C::EMPTY_Q + at), fill[g] / C::Q_SLOTS % 2 ^ 1);
			barrier_expect(room.barrier(C::FULL_Q + at), C::Q_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.q(g, slot) + c * 64 * C::CHUNK, &a.q_map, room.barrier(C::FULL_Q + at), c * C::CHUNK / C::BYTES,
					    u.q_row + (u.tile + tile) * C::ROWS, u.head, 0);
			fill[g]++;
		}
		turn = (turn + u.tiles) % C::GROUPS;
	}
}
#endif
