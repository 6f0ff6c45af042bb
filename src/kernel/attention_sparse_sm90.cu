/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block-sparse attention forward on Hopper: the dense kernel's products and softmax, fed from lists. A unit is one query
 * block, two tiles of 64 rows that walk the same list, so both warpgroups always have equally many steps. Blocks take
 * units by a counter, in the order given (long ones first), and one producing thread looks a unit up while the one
 * before is being multiplied. A step is one slot of 128 keys: a block, or two of 64. Partial blocks come first.
 */
#include "kernel/attention_sm90.cuh"
#include "kernel/attention_sparse.h"

template <typename C, int K_BLOCK_> struct sparse_shape : C {
	enum {
		K_BLOCK = K_BLOCK_,
		PARTS = C::KEYS / K_BLOCK_,
		UNITS = 2,
		PLACES = 2 * C::SLOTS, /* a slot's are still read when its keys were given back */
		FULL_UNIT = C::BARRIERS,
		EMPTY_UNIT = FULL_UNIT + UNITS,
		PLACES_AT = C::BARRIERS_AT + (EMPTY_UNIT + UNITS) * 8,
		SHARED_BYTES = PLACES_AT + PLACES * PARTS * 4 + 1024,
	};
	static_assert(C::GROUPS == 2 && UNITS * C::UNIT_BYTES <= C::BARRIERS_AT - C::UNITS_AT, "room for units");
};

struct sparse_unit {
	attention_unit in;	      /* tile: -1 where there are no more */
	uint32_t partial, total;      /* blocks */
	uint32_t full_at, partial_at; /* in the lists */
	uint32_t reserved;
};
static_assert(sizeof(sparse_unit) == 64, "its place in shared memory");

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

	/* Key block of an entry of the unit's lists; one behind the last repeats it. */
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

	/* `cut`: not all of the step's pairs are kept. */
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

	/* The last block to find the counter at its end sets it back. */
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

/* -- consumer: as few registers as can be; what it knows of its unit stays in shared memory -- */

static __device__ __forceinline__ uint32_t shared_word(uint32_t at)
{
	uint32_t x;

	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
	return x;
}

/* By 32 and more: 0. */
static __device__ __forceinline__ uint32_t shift_left(uint32_t x, uint32_t by)
{
	uint32_t y;

	asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(by));
	return y;
}

#define UNIT_WORD(member) shared_word(unit_at() + offsetof(sparse_unit, member))

template <typename C> struct sparse_consumer : attention_walk<C, sparse_consumer<C>> {
	typedef attention_walk<C, sparse_consumer<C>> W;
	const attention_sparse_args &s;
	unsigned number; /* of the unit */

	__device__ __forceinline__ sparse_consumer(const W &walk, const attention_sparse_args &args) : W(walk), s(args), number(0)
	{
	}

	__device__ __forceinline__ uint32_t unit_at() const
	{
		return this->room.base + C::UNITS_AT + number % C::UNITS * C::UNIT_BYTES;
	}

	__device__ __forceinline__ uint32_t place_at(unsigned n) const
	{
		return this->room.base + C::PLACES_AT + n % C::PLACES * (C::PARTS * 4);
	}

	__device__ __forceinline__ bool whole(const typename W::walk_range &, unsigned n) const
	{
		return (int)shared_word(place_at(n)) >= 0;
	}

	/* Of a part of a step: the block's keys low .. high are kept by the thread's first row, one more by each row
	 * below; `bits`: its block's, or NULL. All of it in one pass, word by word: scores have no registers to spare. */
	template <int PART>
	__device__ __forceinline__ void cut(float (&x)[C::KEYS / 2], int low, int high, int end, const uint32_t *bits) const
	{
		enum { EACH = C::K_BLOCK / 2, WORDS = C::K_BLOCK / 32 };
		const int column = this->lane % 4 * 2;

#pragma unroll
		for (int r = 0; r < 2; r++)
#pragma unroll
			for (int w = 0; w < WORDS; w++) {
				const int from = low + 8 * r - w * 32, to = min(high + 8 * r, end) - w * 32;
				uint32_t word = shift_left(~0u, max(from, 0)) & ~shift_left(~0u, max(to + 1, 0));

				if (bits)
					word &= bits[r * 8 * WORDS + w];
				word >>= column;
#pragma unroll
				for (int i = 0; i < 16; i++)
					if (i / 2 % 2 == r && !(word >> (i / 4 * 8 + i % 2) & 1))
						x[PART * EACH + w * 16 + i] = -INFINITY;
			}
	}

	template <int PART> __device__ __forceinline__ void mask_part(float (&x)[C::KEYS / 2], unsigned n) const
	{
		enum { WORDS = C::K_BLOCK / 32, FAR = 1 << 29 };
		const uint32_t entry = (n - this->fill) * C::PARTS + PART;
		const int place = shared_word(place_at(n) + 4 * PART) & 0x7fffffff, row = this->group * 64 + this->warp * 16 + this->lane / 4;
		const int kv_len = UNIT_WORD(in.kv_len), first = place * C::K_BLOCK;
		const int own = (int)UNIT_WORD(in.tile) * C::ROWS + row + kv_len - (int)UNIT_WORD(in.q_len) - first;
		int low = own - s.dense.left, high = own + s.dense.right, end = kv_len - 1 - first;
		const uint32_t *bits = nullptr;

		if (entry >= UNIT_WORD(total))
			end = -1;
		else if (entry >= UNIT_WORD(partial))
			low = -FAR, high = end = FAR;
		else if (s.bits)
			bits = s.bits + ((uint64_t)(UNIT_WORD(partial_at) + entry) * ATTENTION_SPARSE_ROWS + row) * WORDS;
		cut<PART>(x, low, high, end, bits);
	}

	__device__ __forceinline__ void mask(float (&x)[C::KEYS / 2], unsigned n, int) const
	{
		mask_part<0>(x, n);
		if (C::PARTS > 1)
			mask_part<C::PARTS - 1>(x, n);
	}

	__device__ __forceinline__ void unit()
	{
		typename W::walk_range r = {};
		softmax_rows x = {{INFINITY, INFINITY}, {0, 0}};
		float o[C::D / 2];

		r.first = this->fill;
		r.end = this->fill + (UNIT_WORD(total) + C::PARTS - 1) / C::PARTS;
		r.last = true;
		this->queries_take();
		if (r.first < r.end) {
			if (C::AHEAD)
				this->walk_ahead(o, x, r);
			else
				this->walk(o, x, r);
		} else {
			if (!C::Q_REGISTERS)
				this->queries_done();
#pragma unroll
			for (int i = 0; i < C::D / 2; i++)
				o[i] = 0;
		}
		const int tile = UNIT_WORD(in.tile) + this->group;

		if (tile * C::ROWS < (int)UNIT_WORD(in.q_len))
			this->store(o, x, tile);
		this->fill = r.end;
	}

	__device__ __forceinline__ void run(unsigned char *shared)
	{
		if (C::TURNS && this->group == C::GROUPS - 1)
			named_arrive(1, 256);
		for (number = 0;; number++) {
			const unsigned slot = number % C::UNITS;

			barrier_wait(this->room.barrier(C::FULL_UNIT + slot), number / C::UNITS % 2);
			this->u = (const volatile attention_unit *)(shared + C::UNITS_AT + slot * C::UNIT_BYTES);
			if ((int)UNIT_WORD(in.tile) < 0)
				break;
			unit();
			__syncwarp();
			this->release(C::EMPTY_UNIT + slot);
		}
		if (this->lane == 0)
			tensor_store_wait();
	}
};

template <typename C> static __device__ __forceinline__ void sparse_run(const attention_sparse_args &s)
{
	extern __shared__ __align__(1024) unsigned char attention_shared[];
	const attention_room<C> room = {(shared_at(attention_shared) + 1023) / 1024 * 1024};
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
	unsigned char *shared = attention_shared + (room.base - shared_at(attention_shared));

	if (threadIdx.x == 0) {
		for (int i = 0; i < C::UNITS; i++) {
			barrier_init(room.barrier(C::FULL_UNIT + i), 1);
			barrier_init(room.barrier(C::EMPTY_UNIT + i), 4 * C::GROUPS);
		}
		barriers_begin(room);
	}
	__syncthreads();
	if (warp < 4) {
		registers_shrink<C::LOAD_REGISTERS>();
		if (threadIdx.x == 0) {
			sparse_producer<C> producer = {s, room, shared, 0, 0};

			producer.run();
		}
	} else {
		registers_grow<C::REGISTERS>();
		sparse_consumer<C> consumer({s.dense, room, nullptr, warp / 4 - 1, warp % 4, lane, 0, 0}, s);

		consumer.run(shared);
	}
}
#define ENTRY(NAME, T, D, SLOTS, HOW, K_BLOCK)                                                                          \
	static_assert(sparse_shape<attention_shape<T, D, 2, 128, SLOTS, HOW>, K_BLOCK>::SHARED_BYTES <=                 \
			      ATTENTION_SPARSE_SHARED(D),                                                              \
		      "the host asks for it");                                                                         \
	extern "C" __global__ void __launch_bounds__(ATTENTION_SPARSE_THREADS, 1)                                      \
		sparse_##NAME##_k##K_BLOCK(const __grid_constant__ attention_sparse_args a)                            \
	{                                                                                                              \
		sparse_run<sparse_shape<attention_shape<T, D, 2, 128, SLOTS, HOW>, K_BLOCK>>(a);                       \
	}

ENTRY(fp16_d64, __half, 64, 4, HOW_AHEAD | HOW_STALE, 64)
ENTRY(fp16_d64, __half, 64, 4, HOW_AHEAD | HOW_STALE, 128)
ENTRY(bf16_d64, __nv_bfloat16, 64, 4, HOW_AHEAD | HOW_STALE, 64)
ENTRY(bf16_d64, __nv_bfloat16, 64, 4, HOW_AHEAD | HOW_STALE, 128)
ENTRY(fp16_d128, __half, 128, 2, HOW_AHEAD | HOW_STALE, 64)
ENTRY(fp16_d128, __half, 128, 2, HOW_AHEAD | HOW_STALE, 128)
ENTRY(bf16_d128, __nv_bfloat16, 128, 2, HOW_AHEAD | HOW_STALE, 64)
ENTRY(bf16_d128, __nv_bfloat16, 128, 2, HOW_AHEAD | HOW_STALE, 128)
