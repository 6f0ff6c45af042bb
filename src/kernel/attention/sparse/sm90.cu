/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block-sparse attention forward on Hopper. A unit is one query block: two tiles of 64 rows that process the
 * same list, so both warpgroups always have the same number of steps. Blocks take units from a counter, in
 * the given order (longest first). One producer thread looks up the next unit while the current one is
 * multiplied (kernel/attention/sparse/sm90_shape.cuh). A step is one slot of 128 keys: one block of 128, or
 * two of 64. Partial blocks come first. See docs/explanation/design/attention_kernels.md, "Block lists and
 * block-sparse attention".
 */
#include "kernel/attention/forward/sm90_run.cuh"
#include "kernel/attention/sparse/sm90_shape.cuh"

/* The consumers keep the data of their unit in shared memory, because scores leave no registers. */
static __device__ __forceinline__ uint32_t shared_word(uint32_t at)
{
	uint32_t x;

	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
	return x;
}

/* A shift by 32 or more gives 0. */
static __device__ __forceinline__ uint32_t shift_left(uint32_t x, uint32_t by)
{
	uint32_t y;

	asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(by));
	return y;
}

#define UNIT_WORD(member) shared_word(unit_at() + offsetof(sparse_unit, member))

template <typename C> struct sparse_consumer {
	const attention_sparse_args &s;
	attention_room<C> room;
	unsigned group, warp, lane;
	unsigned number;      /* number of the unit; its queries have the same number */
	unsigned first, end;  /* the unit's steps, as fill numbers */
	uint32_t q[C::Q_REGISTERS ? C::D / 4 : 1];

	__device__ __forceinline__ uint32_t unit_at() const
	{
		return room.base + C::UNITS_AT + number % C::UNITS * C::UNIT_BYTES;
	}

	__device__ __forceinline__ uint32_t place_at(unsigned n) const
	{
		return room.base + C::PLACES_AT + n % C::PLACES * (C::PARTS * 4);
	}

	/* -- slots -- */

	__device__ __forceinline__ void release(unsigned barrier)
	{
		if (lane == 0)
			barrier_arrive(room.barrier(barrier));
	}

	__device__ __forceinline__ void wait(unsigned full, unsigned n)
	{
		barrier_wait(room.barrier(full + n % C::SLOTS), n / C::SLOTS % 2);
	}

	__device__ __forceinline__ void turn_wait()
	{
		if (C::TURNS)
			named_sync(1 + group, 256);
	}

	__device__ __forceinline__ void turn_pass()
	{
		if (C::TURNS)
			named_arrive(1 + (group + 1) % C::GROUPS, 256);
	}

	__device__ __forceinline__ unsigned queries_slot() const
	{
		return group * C::Q_SLOTS + number % C::Q_SLOTS;
	}

	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + queries_slot());
	}

	__device__ __forceinline__ void queries_wait()
	{
		barrier_wait(room.barrier(C::FULL_Q + queries_slot()), number / C::Q_SLOTS % 2);
	}

	__device__ __forceinline__ void queries_take()
	{
		const unsigned row = warp * 16 + lane % 16;

		queries_wait();
		if (C::Q_REGISTERS) {
#pragma unroll
			for (int i = 0; i < C::D / 16; i++) {
				const uint32_t at = room.q(group, number % C::Q_SLOTS) + i / 4 * 64 * 128 + row * 128;
				uint32_t four[4];

				matrix_load(four, at + ((i % 4 * 2 + lane / 16) ^ row % 8) * 16);
#pragma unroll
				for (int e = 0; e < 4; e++)
					q[C::Q_REGISTERS ? 4 * i + e : 0] = four[e];
			}
		}
	}

	/* -- masks -- */

	__device__ __forceinline__ bool whole(unsigned n) const
	{
		return (int)shared_word(place_at(n)) >= 0;
	}

	/* Masks one part of a step. The thread's first row keeps the block's keys low .. high. Each row below
	 * keeps those one further, none past `limit`. `bits`: the block's element bits, or NULL. Everything
	 * is done in one pass, word by word, because scores leave no registers. */
	template <int PART>
	__device__ __forceinline__ void cut(float (&x)[C::KEYS / 2], int low, int high, int limit, const uint32_t *bits) const
	{
		enum { EACH = C::K_BLOCK / 2, WORDS = C::K_BLOCK / 32 };
		const int column = lane % 4 * 2;

#pragma unroll
		for (int r = 0; r < 2; r++)
#pragma unroll
			for (int w = 0; w < WORDS; w++) {
				const int from = low + 8 * r - w * 32, to = min(high + 8 * r, limit) - w * 32;
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
		const uint32_t entry = (n - first) * C::PARTS + PART;
		const int place = shared_word(place_at(n) + 4 * PART) & 0x7fffffff, row = group * 64 + warp * 16 + lane / 4;
		const int kv_len = UNIT_WORD(in.kv_len), key = place * C::K_BLOCK;
		const int own = (int)UNIT_WORD(in.tile) * C::ROWS + row + kv_len - (int)UNIT_WORD(in.q_len) - key;
		int low = own - s.dense.left, high = own + s.dense.right, limit = kv_len - 1 - key;
		const uint32_t *bits = nullptr;

		if (entry >= UNIT_WORD(total))
			limit = -1;
		else if (entry >= UNIT_WORD(partial))
			low = -FAR, high = limit = FAR;
		else if (s.bits)
			bits = s.bits + ((uint64_t)(UNIT_WORD(partial_at) + entry) * ATTENTION_SPARSE_ROWS + row) * WORDS;
		cut<PART>(x, low, high, limit, bits);
	}

	__device__ __forceinline__ void mask(float (&x)[C::KEYS / 2], unsigned n) const
	{
		mask_part<0>(x, n);
		if (C::PARTS > 1)
			mask_part<C::PARTS - 1>(x, n);
	}

	/* -- GEMMs: scores of step n, values of step n -- */

	__device__ __forceinline__ void scores_issue(float (&x)[C::KEYS / 2], unsigned n)
	{
		const uint64_t k = wgmma_tile(room.k(n % C::SLOTS));
		const uint64_t t = wgmma_tile(room.q(group, number % C::Q_SLOTS));

#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const uint64_t kb = k + ((i / 4 * C::KEYS * 128 + i % 4 * 32) >> 4);

			if (C::Q_REGISTERS)
				wgmma_rs(typename C::T(), x, q + (C::Q_REGISTERS ? 4 * i : 0), kb, i > 0);
			else
				wgmma_ss(typename C::T(), x, t + ((i / 4 * 64 * 128 + i % 4 * 32) >> 4), kb, i > 0);
		}
		wgmma_commit();
	}

	__device__ __forceinline__ void values_issue(float (&o)[C::D / 2], const uint32_t (&p)[C::KEYS / 4], unsigned n)
	{
		const uint64_t v = wgmma_tile(room.v(n % C::SLOTS), C::KEYS * 128);

#pragma unroll
		for (int i = 0; i < C::KEYS / 16; i++)
			wgmma_rs_across(typename C::T(), o, p + 4 * i, v + (i * 2048 >> 4), i > 0 || n > first);
		wgmma_commit();
	}

	__device__ __forceinline__ void scores_done(float (&x)[C::KEYS / 2], unsigned n)
	{
		wgmma_hold(x);
		release(C::EMPTY_K + n % C::SLOTS);
		/* only the GEMMs that read the queries wait for their load into registers */
		if (C::Q_REGISTERS ? n == first : n + 1 == end)
			queries_done();
	}

	__device__ __forceinline__ void values_done(float (&o)[C::D / 2], unsigned n)
	{
		wgmma_wait<0>();
		wgmma_hold(o);
		release(C::EMPTY_V + n % C::SLOTS);
	}

	/* -- steps -- */

	__device__ __forceinline__ bool softmax(float (&x)[C::KEYS / 2], softmax_rows &rows, unsigned n, bool &ready,
						uint32_t (&p)[C::KEYS / 4], float (&factor)[2])
	{
		const bool all = whole(n);
		bool grown;

		if (!all)
			mask(x, n);
		grown = scores_take<C>(x, rows, s.dense.scale_log2, ready && all, p, factor);
		ready = ready || all;
		return grown;
	}

	__device__ __forceinline__ void step_first(softmax_rows &rows, bool &ready, uint32_t (&p)[C::KEYS / 4])
	{
		float x[C::KEYS / 2], factor[2];

		wait(C::FULL_K, first);
		turn_wait();
		wgmma_fence();
		scores_issue(x, first);
		turn_pass();
		wgmma_wait<0>();
		scores_done(x, first);
		softmax(x, rows, first, ready, p, factor);
	}

	/* Issues step n's scores before the values of step n - 1. The GEMM with the values then overlaps the
	 * softmax of step n. Scores are kept until the new pairs are known to be valid, so there are two sets
	 * of pairs. */
	__device__ __forceinline__ void step(float (&o)[C::D / 2], softmax_rows &rows, unsigned n, bool &ready,
					     uint32_t (&before)[C::KEYS / 4], uint32_t (&p)[C::KEYS / 4])
	{
		float x[C::KEYS / 2], factor[2];
		bool grown;

		wait(C::FULL_K, n);
		wait(C::FULL_V, n - 1);
		turn_wait();
		wgmma_fence();
		scores_issue(x, n);
		values_issue(o, before, n - 1);
		turn_pass();
		wgmma_wait<1>();
		scores_done(x, n);
		grown = softmax(x, rows, n, ready, p, factor);
		values_done(o, n - 1);
		wgmma_hold(before);
		if (grown)
			accumulator_scale(o, factor);
	}

	__device__ __forceinline__ void step_last(float (&o)[C::D / 2], const uint32_t (&p)[C::KEYS / 4])
	{
		wait(C::FULL_V, end - 1);
		wgmma_fence();
		values_issue(o, p, end - 1);
		values_done(o, end - 1);
	}

	__device__ __forceinline__ void walk(float (&o)[C::D / 2], softmax_rows &rows)
	{
		uint32_t p0[C::KEYS / 4], p1[C::KEYS / 4];
		bool ready = false;

		step_first(rows, ready, p0);
		for (unsigned n = first + 1; n < end; n++) {
			step(o, rows, n, ready, p0, p1);
			if (++n >= end) {
				step_last(o, p1);
				return;
			}
			step(o, rows, n, ready, p1, p0);
		}
		step_last(o, p0);
	}

	/* -- store of O through shared memory; each warp stores its own 16 rows -- */

	__device__ __forceinline__ void store_sums(const softmax_rows &rows, int row, float (&inverse)[2])
	{
		const attention_sm90_args &a = s.dense;

#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int64_t line = ((int64_t)UNIT_WORD(in.sequence) * a.heads + UNIT_WORD(in.head)) * a.q_len;
			const int own = row + lane / 4 + 8 * r;
			float sum = rows.sum[r];

			sum += __shfl_xor_sync(~0u, sum, 1);
			sum += __shfl_xor_sync(~0u, sum, 2);
			inverse[r] = sum == 0 ? 0.f : 1.f / sum;
			if (a.lse && lane % 4 == 0 && own < (int)UNIT_WORD(in.q_len))
				a.lse[line + own] = sum == 0 ? -INFINITY : (log2f(sum) - rows.shift[r]) * 0.69314718056f;
		}
	}

	/* Stores the end of a packed sequence without touching the next sequence's rows. */
	__device__ void store_rows(int row, uint32_t at)
	{
		const attention_sm90_args &a = s.dense;
		const int64_t first_row = UNIT_WORD(in.q_row) + row, head = UNIT_WORD(in.head);

		for (unsigned i = lane; i < 16 * C::D / 8; i += 32) {
			const unsigned line = i / (C::D / 8), piece = i % (C::D / 8);
			uint4 v;

			if (row + (int)line >= (int)UNIT_WORD(in.q_len))
				break;
			asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
				     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
				     : "r"(at + piece / 8 * 64 * 128 + line * 128 + (piece % 8 ^ line % 8) * 16));
			*(uint4 *)((typename C::T *)a.o + (first_row + line) * a.o_step.row + head * a.o_step.head +
				   piece * 8) = v;
		}
		__syncwarp();
	}

	__device__ __forceinline__ void store(const float (&o)[C::D / 2], const softmax_rows &rows, int row)
	{
		const uint32_t at = room.o(group) + warp * 16 * 128;
		float inverse[2];

		store_sums(rows, row, inverse);
		if (lane == 0)
			tensor_store_wait_read();
		__syncwarp();
#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const unsigned line = lane % 16, piece = (i % 4 * 2 + lane / 16) ^ line % 8;
			uint32_t four[4];

#pragma unroll
			for (int e = 0; e < 4; e++)
				four[e] = pack2(typename C::T(), o[8 * i + 2 * e] * inverse[e % 2],
						o[8 * i + 2 * e + 1] * inverse[e % 2]);
			matrix_store(at + i / 4 * 64 * 128 + line * 128 + piece * 16, four);
		}
		proxy_fence();
		__syncwarp();
		if (s.dense.q_starts && row + 16 > (int)UNIT_WORD(in.q_len)) {
			store_rows(row, at);
		} else if (lane == 0) {
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_store(&s.dense.o_map, at + c * 64 * 128, c * 64, UNIT_WORD(in.q_row) + row,
					     UNIT_WORD(in.head), UNIT_WORD(in.batch));
		}
		__syncwarp();
	}

	/* -- units -- */

	__device__ __forceinline__ void unit()
	{
		const int row = ((int)UNIT_WORD(in.tile) + (int)group) * C::ROWS + warp * 16;
		softmax_rows rows = {{INFINITY, INFINITY}, {0, 0}};
		float o[C::D / 2];

		end = first + (UNIT_WORD(total) + C::PARTS - 1) / C::PARTS;
		if (first < end) {
			queries_take();
			walk(o, rows);
		} else {
			queries_wait(); /* wait for the queries without reading them */
			queries_done();
#pragma unroll
			for (int i = 0; i < C::D / 2; i++)
				o[i] = 0;
		}
		if (row < (int)UNIT_WORD(in.q_len))
			store(o, rows, row);
		first = end;
	}

	__device__ __forceinline__ void run()
	{
		if (C::TURNS && group == C::GROUPS - 1)
			named_arrive(1, 256);
		for (;; number++) {
			const unsigned slot = number % C::UNITS;

			barrier_wait(room.barrier(C::FULL_UNIT + slot), number / C::UNITS % 2);
			if ((int)UNIT_WORD(in.tile) < 0)
				break;
			unit();
			release(C::EMPTY_UNIT + slot);
		}
		if (lane == 0)
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
		sparse_consumer<C> consumer = {s, room, warp / 4 - 1, warp % 4, lane, 0, 0, 0};

		consumer.run();
	}
}
#define SHAPE(T, D, HOW, TURNS, K_BLOCK) sparse_shape<attention_shape<T, D, 2, 128, 256 / D, HOW>, K_BLOCK, TURNS>
#define ENTRY(NAME, T, D, HOW, TURNS, K_BLOCK)                                                                          \
	static_assert(SHAPE(T, D, HOW, TURNS, K_BLOCK)::SHARED_BYTES <= ATTENTION_SPARSE_SHARED(D),                    \
		      "the host asks for it");                                                                         \
	extern "C" __global__ void __launch_bounds__(ATTENTION_SPARSE_THREADS, 1)                                      \
		sparse_##NAME##_k##K_BLOCK(const __grid_constant__ attention_sparse_args a)                            \
	{                                                                                                              \
		sparse_run<SHAPE(T, D, HOW, TURNS, K_BLOCK)>(a);                                                       \
	}
/* At D 128 the GEMMs are the limit, and alternating warpgroups keep the matrix unit busy. At D 64 the
 * exponentials are the limit. */
#define ENTRIES(TYPE, T, K_BLOCK)                                                                                      \
	ENTRY(TYPE##_d64, T, 64, HOW_STALE | HOW_Q_REGISTERS, false, K_BLOCK)                                          \
	ENTRY(TYPE##_d128, T, 128, HOW_STALE, true, K_BLOCK)
ENTRIES(fp16, __half, 64)
ENTRIES(fp16, __half, 128)
ENTRIES(bf16, __nv_bfloat16, 64)
ENTRIES(bf16, __nv_bfloat16, 128)
