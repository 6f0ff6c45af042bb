/* SPDX-License-Identifier: Apache-2.0 */
/* Block-sparse attention on Hopper: shared-memory layout, units, and the thread that loads them. */
#ifndef KERNEL_ATTENTION_SPARSE_SM90_SHAPE_CUH
#define KERNEL_ATTENTION_SPARSE_SM90_SHAPE_CUH
#include "kernel/attention/forward/sm90_any_range.cuh"
#include "kernel/attention/sparse/args.h"

/* C gives the shape, offsets and slots of the dense kernel. TURNS: warpgroups alternate in issuing GEMMs. */
template <typename C, int K_BLOCK_, bool TURNS_> struct sparse_shape : C {
	enum {
		TURNS = TURNS_,
		REGISTERS = 232, /* of a consumer thread; the producer needs registers for its look-ups */
		LOAD_REGISTERS = 40,
		K_BLOCK = K_BLOCK_,
		PARTS = C::KEYS / K_BLOCK_,
		UNITS = 2,
		UNIT_BYTES = 64,
		PLACES = 2 * C::SLOTS, /* a slot's places are read after its keys are released */
		FULL_UNIT = C::BARRIERS,
		EMPTY_UNIT = FULL_UNIT + UNITS,
		PLACES_AT = C::BARRIERS_AT + (EMPTY_UNIT + UNITS) * 8,
		SHARED_BYTES = PLACES_AT + PLACES * PARTS * 4 + 1024,
	};
	static_assert(C::GROUPS == 2 && UNITS * UNIT_BYTES <= C::BARRIERS_AT - C::UNITS_AT, "room for units");
};

struct sparse_unit {
	attention_unit in;	      /* tile -1: no units are left */
	uint32_t partial, total;      /* number of blocks */
	uint32_t full_at, partial_at; /* positions in the lists */
};
static_assert(sizeof(sparse_unit) <= 64, "its place in shared memory");

/* -- producer -- */

template <typename C> struct sparse_producer {
	const attention_sparse_args &s;
	attention_room<C> room;
	unsigned char *shared;
	unsigned fill, q_fill;

	__device__ __forceinline__ sparse_unit find(uint32_t number) const
	{
		const attention_sm90_args &a = s.dense;
		const attention_block_lists &l = s.lists;
		sparse_unit u;

		u.in.tile = -1;
		if (number >= a.batch * a.heads * l.q_blocks)
			return u;
		const uint32_t unit = s.order[number], pair = unit / l.q_blocks, q = unit - pair * l.q_blocks;
		u.in.sequence = pair / a.heads;
		u.in.head = pair - u.in.sequence * a.heads;
		const uint32_t row = ((u.in.sequence % l.batches) * l.heads + u.in.head % l.heads) * l.q_blocks + q;
		u.partial_at = l.partial_begin[row];
		u.partial = l.partial_begin[row + 1] - u.partial_at;
		u.full_at = l.full_begin[row];
		u.total = u.partial + l.full_begin[row + 1] - u.full_at;
		u.in.kv_head = u.in.head / (int)(a.heads / a.kv_heads);
		u.in.batch = a.q_starts ? 0 : u.in.sequence;
		u.in.q_row = a.q_starts ? (int)a.q_starts[u.in.sequence] : 0;
		u.in.kv_row = a.q_starts ? (int)a.kv_starts[u.in.sequence] : 0;
		u.in.q_len = a.q_starts ? (int)a.q_starts[u.in.sequence + 1] - u.in.q_row : (int)a.q_len;
		u.in.kv_len = a.q_starts ? (int)a.kv_starts[u.in.sequence + 1] - u.in.kv_row : (int)a.kv_len;
		u.in.tile = q * (ATTENTION_SPARSE_ROWS / C::ROWS);
		u.in.from = u.in.to = 0;
		return u;
	}

	/* Key block of an entry of the unit's lists. An entry past the end repeats the last one. */
	__device__ __forceinline__ int place(const sparse_unit &u, uint32_t entry) const
	{
		entry = min(entry, u.total - 1);
		return entry < u.partial ? s.lists.partial[u.partial_at + entry] : s.lists.full[u.full_at + entry - u.partial];
	}

	__device__ __forceinline__ void load(uint32_t to, unsigned full, const tensor_map *map, const sparse_unit &u,
					     const int (&places)[C::PARTS])
	{
		barrier_expect(room.barrier(full), C::KV_BYTES);
#pragma unroll
		for (int p = 0; p < C::PARTS; p++)
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(to + (c * C::KEYS + p * C::K_BLOCK) * 128, map, room.barrier(full), c * 64,
					    u.in.kv_row + places[p] * C::K_BLOCK, u.in.kv_head, u.in.batch);
	}

	/* `cut`: some pairs of the step are masked. */
	__device__ __forceinline__ void step(const sparse_unit &u, const int (&places)[C::PARTS], bool cut)
	{
		const unsigned slot = fill % C::SLOTS, parity = fill / C::SLOTS % 2 ^ 1;
		volatile int *told = (volatile int *)(shared + C::PLACES_AT) + fill % C::PLACES * C::PARTS;

		barrier_wait(room.barrier(C::EMPTY_K + slot), parity);
#pragma unroll
		for (int p = 0; p < C::PARTS; p++)
			told[p] = places[p] | (cut ? 1 << 31 : 0);
		load(room.k(slot), C::FULL_K + slot, &s.dense.k_map, u, places);
		barrier_wait(room.barrier(C::EMPTY_V + slot), parity);
		load(room.v(slot), C::FULL_V + slot, &s.dense.v_map, u, places);
		fill++;
	}

	__device__ __forceinline__ void queries(const sparse_unit &u)
	{
#pragma unroll
		for (int g = 0; g < C::GROUPS; g++) {
			const unsigned slot = q_fill % C::Q_SLOTS, at = g * C::Q_SLOTS + slot;

			barrier_wait(room.barrier(C::EMPTY_Q + at), q_fill / C::Q_SLOTS % 2 ^ 1);
			barrier_expect(room.barrier(C::FULL_Q + at), C::Q_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.q(g, slot) + c * 64 * 128, &s.dense.q_map, room.barrier(C::FULL_Q + at), c * 64,
					    u.in.q_row + (u.in.tile + g) * C::ROWS, u.in.head, u.in.batch);
		}
		q_fill++;
	}

	__device__ __forceinline__ void announce(const sparse_unit &u, unsigned number)
	{
		barrier_wait(room.barrier(C::EMPTY_UNIT + number % C::UNITS), number / C::UNITS % 2 ^ 1);
		*(sparse_unit *)(shared + C::UNITS_AT + number % C::UNITS * C::UNIT_BYTES) = u;
		barrier_arrive(room.barrier(C::FULL_UNIT + number % C::UNITS));
	}

	/* The last block to exit resets the counter. */
	__device__ __forceinline__ void leave()
	{
		if (atomicAdd(s.turn + 1, 1u) == gridDim.x - 1) {
			s.turn[0] = 0;
			s.turn[1] = 0;
		}
	}

	__device__ __forceinline__ void run()
	{
		sparse_unit u = find(blockIdx.x);

		for (unsigned number = 0;; number++) {
			const uint32_t steps = (u.total + C::PARTS - 1) / C::PARTS;
			int places[C::PARTS], coming[C::PARTS];
			sparse_unit next;

			announce(u, number);
			if (u.in.tile < 0)
				break;
			const uint32_t turn = gridDim.x + atomicAdd(s.turn, 1u);
			queries(u);
			if (steps)
#pragma unroll
				for (int p = 0; p < C::PARTS; p++)
					coming[p] = place(u, p);
			for (uint32_t i = 0; i < max(steps, 1u); i++) {
				if (i < steps) {
#pragma unroll
					for (int p = 0; p < C::PARTS; p++) {
						places[p] = coming[p];
						coming[p] = place(u, (i + 1) * C::PARTS + p);
					}
					step(u, places, i * C::PARTS < u.partial || (i + 1) * C::PARTS > u.total);
				}
				if (i == (steps > 1))
					next = find(turn);
			}
			u = next;
		}
		leave();
	}
};
#endif
