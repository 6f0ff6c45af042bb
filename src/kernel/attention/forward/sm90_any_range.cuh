/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward on Hopper for any range of keys: the consumer warpgroups, with tiles of 64 query rows.
 *
 * A unit is one head and GROUPS x passes tiles. With one pass, keys stream through the slots. With several
 * passes, all keys of the head stay in the slots while every warpgroup processes its tiles. During the last
 * pass each slot is released and filled with the next head's keys. So a head is loaded once, and only the
 * first load is waited for.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_ANY_RANGE_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_ANY_RANGE_CUH
#include "kernel/attention/forward/sm90_load.cuh"
#include "kernel/attention/forward/sm90_softmax.cuh"

/* The work of a warpgroup on one tile. Blocks of keys are identified by fill number, the running count of
 * slot fills. */
struct attention_item {
	unsigned first, end;		 /* blocks that the tile sees; equal if none */
	unsigned whole_first, whole_end; /* those of them that all rows see as a whole */
	unsigned skip_from, skip_end;	 /* the unit's blocks; the unseen ones are released after its last tile */
	int tile;			 /* -1: none, only blocks to release */
	int unit;			 /* index of the unit's copy in shared memory */
	bool last;			 /* release blocks after use */
};

template <typename C> struct attention_consumer {
	const typename C::ARGS &a;
	attention_room<C> room;
	volatile attention_unit *units; /* C::UNITS copies in shared memory, for this warp only */
	unsigned group, warp, lane;
	unsigned fill = 0;   /* fill number of the current unit's first block of keys */
	unsigned q_fill = 0; /* fill number of the warpgroup's queries */
	int round = -1, pass = 0, turn = 0, unit = 1;
	uint32_t q[C::Q_REGISTERS && !C::PAIR ? C::QUERIES : 1];
	float scale_log2; /* FP8: scale for the stored elements */

	__device__ __forceinline__ void release(unsigned number)
	{
		if (lane == 0)
			barrier_arrive(room.barrier(number));
	}

	__device__ __forceinline__ void wait(unsigned full, unsigned n)
	{
		barrier_wait(room.barrier(full + n % C::SLOTS), n / C::SLOTS % 2);
	}

	/* Releases blocks that this pass does not need, unread. */
	__device__ __forceinline__ void skip(unsigned n, unsigned end)
	{
		for (; n < end; n++) {
			wait(C::FULL_K, n);
			release(C::EMPTY_K + n % C::SLOTS);
			wait(C::FULL_V, n);
			release(C::EMPTY_V + n % C::SLOTS);
		}
	}

	__device__ __forceinline__ void queries_wait()
	{
		const unsigned at = group * C::Q_SLOTS + q_fill % C::Q_SLOTS;

		barrier_wait(room.barrier(C::FULL_Q + at), q_fill / C::Q_SLOTS % 2);
	}

	__device__ __forceinline__ void queries_take()
	{
		queries_wait();
		if (C::Q_REGISTERS)
			queries_load<C>(room.q(group, q_fill % C::Q_SLOTS), warp, lane, q);
	}

	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + group * C::Q_SLOTS + q_fill % C::Q_SLOTS);
		q_fill++;
	}

	/* from: the queries, if they are register operands */
	__device__ __forceinline__ void scores_issue(float (&s)[C::KEYS / 2], const uint32_t *from, unsigned n)
	{
		const uint64_t k = wgmma_tile_of<C::CHUNK>(warp_uniform(room.k(n % C::SLOTS)));
		const uint64_t t =
			C::Q_REGISTERS ? 0 : wgmma_tile_of<C::CHUNK>(warp_uniform(room.q(group, q_fill % C::Q_SLOTS)));

#pragma unroll
		for (int i = 0; i < C::QUERIES / 4; i++) {
			const uint64_t kb = wgmma_on(k, i / C::STEP * C::KEYS * C::CHUNK + i % C::STEP * 32);

			if (C::Q_REGISTERS)
				wgmma_rs(typename C::T(), s, from + (C::Q_REGISTERS ? 4 * i : 0), kb, i > 0);
			else
				wgmma_ss(typename C::T(), s, wgmma_on(t, i / C::STEP * 64 * C::CHUNK + i % C::STEP * 32), kb,
					 i > 0);
		}
		wgmma_commit();
	}

	__device__ __forceinline__ void values_issue(float (&o)[C::D / 2], const uint32_t (&p)[C::PAIRS], unsigned n,
						     bool add)
	{
		if constexpr (C::FP8) {
			const uint64_t v = wgmma_tile_of<C::CHUNK>(warp_uniform(room.v(n % C::SLOTS)));

#pragma unroll
			for (int i = 0; i < C::PAIRS / 4; i++)
				wgmma_rs(typename C::T(), o, p + 4 * i, wgmma_on(v, i / C::STEP * C::D * C::CHUNK + i % C::STEP * 32), i > 0 || add);
		} else {
			const uint64_t v = wgmma_tile(warp_uniform(room.v(n % C::SLOTS)), C::KEYS * 128);

#pragma unroll
			for (int i = 0; i < C::PAIRS / 4; i++)
				wgmma_rs_across(typename C::T(), o, p + 4 * i, wgmma_on(v, i * 2048), i > 0 || add);
		}
		wgmma_commit();
	}

	__device__ __forceinline__ void mask(float (&s)[C::KEYS / 2], const attention_item &r, unsigned n, int half = 0)
	{
		const volatile attention_unit &u = units[r.unit];
		const int kv_len = u.kv_len;
		const int row = r.tile * C::ROWS + half * 64 + warp * 16 + lane / 4 + kv_len - u.q_len;
		const int low[2] = {row - a.left, row + 8 - a.left};
		const int high[2] = {min(row + a.right, kv_len - 1), min(row + 8 + a.right, kv_len - 1)};

		scores_mask(s, low, high, (u.from + (int)(n - r.skip_from)) * C::KEYS + lane % 4 * 2);
	}

	/* Softmax of a block's scores into fresh pairs. */
	__device__ __forceinline__ bool block(float (&s)[C::KEYS / 2], softmax_rows &x, const attention_item &r, unsigned n,
					      bool &ready, uint32_t (&p)[C::PAIRS], float (&factor)[2], int half = 0)
	{
		const bool whole = n >= r.whole_first && n < r.whole_end;
		bool grown;

		if (!whole)
			mask(s, r, n, half);
		grown = scores_take<C>(s, x, C::FP8 ? scale_log2 : a.scale_log2, ready && whole, p, factor);
		if (C::STALE)
			ready = ready || whole;
		return grown;
	}

	/* Issues the scores of an item's first block. */
	__device__ __forceinline__ void start(float (&s)[C::KEYS / 2], const attention_item &r)
	{
		queries_take();
		wait(C::FULL_K, r.first);
		wgmma_fence();
		scores_issue(s, q, r.first);
	}

	__device__ __forceinline__ void started_wait(float (&s)[C::KEYS / 2], const attention_item &r)
	{
		wgmma_wait<0>();
		wgmma_hold(s);
		if (r.last)
			release(C::EMPTY_K + r.first % C::SLOTS);
		/* only the GEMMs that read the queries wait for their load into registers */
		if (C::Q_REGISTERS || (!C::O_IN_Q && r.first + 1 == r.end))
			queries_done();
	}

	/* Issues block n's scores before the values of block n - 1. The GEMM with the values then overlaps
	 * the softmax of block n. */
	__device__ __forceinline__ void issue(float (&s)[C::KEYS / 2], float (&o)[C::D / 2],
					      const uint32_t (&before)[C::PAIRS], const attention_item &r, unsigned n)
	{
		wait(C::FULL_K, n);
		wait(C::FULL_V, n - 1);
		wgmma_fence();
		scores_issue(s, q, n);
		values_issue(o, before, n - 1, n > r.first + 1);
		wgmma_wait<1>();
		wgmma_hold(s);
		if (r.last)
			release(C::EMPTY_K + n % C::SLOTS);
		if (!C::Q_REGISTERS && !C::O_IN_Q && n + 1 == r.end)
			queries_done();
	}

	__device__ __forceinline__ void values_done(float (&o)[C::D / 2], const attention_item &r, unsigned n)
	{
		wgmma_wait<0>();
		wgmma_hold(o);
		if (r.last)
			release(C::EMPTY_V + n % C::SLOTS);
	}

	/* Scores are kept until the new pairs are known to be valid. So pairs alternate between two sets of
	 * registers. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], softmax_rows &x,
					     const attention_item &r, unsigned n, bool &ready,
					     uint32_t (&before)[C::PAIRS], uint32_t (&p)[C::PAIRS])
	{
		float factor[2];
		bool grown;

		issue(s, o, before, r, n);
		grown = block(s, x, r, n, ready, p, factor);
		values_done(o, r, n - 1);
		wgmma_hold(before);
		if (grown)
			accumulator_scale(o, factor);
	}

	__device__ __forceinline__ void step_in_place(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], softmax_rows &x,
						      const attention_item &r, unsigned n, uint32_t (&p)[C::PAIRS])
	{
		float factor[2], sum[2];

		issue(s, o, p, r, n);
		if (n < r.whole_first || n >= r.whole_end)
			mask(s, r, n);
		scores_top(s, x, a.scale_log2, factor);
		const float shift[2] = {x.shift[0] == INFINITY ? 0.f : x.shift[0],
					x.shift[1] == INFINITY ? 0.f : x.shift[1]};
		scores_exp_in_place(s, shift, a.scale_log2, sum);
		x.sum[0] = x.sum[0] * factor[0] + sum[0];
		x.sum[1] = x.sum[1] * factor[1] + sum[1];
		values_done(o, r, n - 1);
		wgmma_hold(p);
		scores_pack<typename C::T>(s, p);
		if (__any_sync(~0u, factor[0] != 1.f || factor[1] != 1.f))
			accumulator_scale(o, factor);
	}

	/* Issues the last values and stores O. If no block must be released first, the next item's first
	 * scores are issued after the values; then the function returns true. */
	__device__ __forceinline__ bool finish(float (&s)[C::KEYS / 2], float (&o)[C::D / 2],
					       const uint32_t (&p)[C::PAIRS], const softmax_rows &x, const attention_item &r,
					       attention_item &then, bool &more)
	{
		more = next(then);
		wait(C::FULL_V, r.end - 1);
		if (!C::O_IN_Q && more && then.tile >= 0 && then.first < then.end && (!r.last || r.end == r.skip_end) &&
		    (!then.last || then.first == then.skip_from)) {
			queries_take();
			wait(C::FULL_K, then.first);
			wgmma_fence();
			values_issue(o, p, r.end - 1, r.end - r.first > 1);
			scores_issue(s, q, then.first);
			wgmma_wait<1>();
			wgmma_hold(o);
			if (r.last)
				release(C::EMPTY_V + (r.end - 1) % C::SLOTS);
			store(o, x, r.unit, r.tile);
			started_wait(s, then);
			return true;
		}
		wgmma_fence();
		values_issue(o, p, r.end - 1, r.end - r.first > 1);
		values_done(o, r, r.end - 1);
		store(o, x, r.unit, r.tile);
		return false;
	}

	/* Processes one tile from its first scores to O. */
	__device__ __forceinline__ bool walk(float (&s)[C::KEYS / 2], const attention_item &r, attention_item &then,
					     bool &more)
	{
		uint32_t p0[C::PAIRS];
		softmax_rows x = {{INFINITY, INFINITY}, {0, 0}};
		float o[C::D / 2], factor[2];
		unsigned n = r.first + 1;
		bool ready = false;

		block(s, x, r, r.first, ready, p0, factor);
		if constexpr (!C::STALE) {
			for (; n < r.end; n++)
				step_in_place(s, o, x, r, n, p0);
		} else {
			uint32_t p1[C::PAIRS];

			for (; n < r.end; n++) {
				step(s, o, x, r, n, ready, p0, p1);
				if (++n >= r.end)
					return finish(s, o, p1, x, r, then, more);
				step(s, o, x, r, n, ready, p1, p0);
			}
		}
		return finish(s, o, p0, x, r, then, more);
	}

	/* Stores O through shared memory; each warp stores its own 16 rows. */
	__device__ __forceinline__ void store(const float (&o)[C::D / 2], const softmax_rows &x, int which, int tile,
					      int half = 0)
	{
		const volatile attention_unit &u = units[which];
		const int first = tile * C::ROWS + half * 64 + warp * 16, q_len = u.q_len;
		const uint32_t at = room.o(group) + (half * C::O_CHUNKS * 64 + warp * 16) * 128;
		float inverse[2];

#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int row = first + lane / 4 + 8 * r;
			float sum = x.sum[r];

			sum += __shfl_xor_sync(~0u, sum, 1);
			sum += __shfl_xor_sync(~0u, sum, 2);
			inverse[r] = sum == 0 ? 0.f : __fdividef(C::FP8 ? *a.descale_v : 1.f, sum);
			if (a.lse && lane % 4 == 0 && row < q_len)
				a.lse[((int64_t)u.sequence * a.heads + u.head) * a.q_len + row] =
					sum == 0 ? -INFINITY : (__log2f(sum) - x.shift[r]) * 0.69314718056f;
		}
		if (C::O_IN_Q) /* wait until no warp's GEMM reads the queries' slot */
			named_sync(1 + group, 128);
		if (lane == 0)
			tensor_store_wait_read<(C::PAIR ? C::O_CHUNKS : 0)>(); /* the other half's stores may
									        * be in flight */
		__syncwarp();
#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const unsigned row = lane % 16, piece = (i % 4 * 2 + lane / 16) ^ row % 8;
			uint32_t four[4];

#pragma unroll
			for (int e = 0; e < 4; e++)
				four[e] = pack2(typename C::OUT(), o[8 * i + 2 * e] * inverse[e % 2],
						o[8 * i + 2 * e + 1] * inverse[e % 2]);
			matrix_store(at + i / 4 * 64 * 128 + row * 128 + piece * 16, four);
		}
		proxy_fence();
		__syncwarp();
		if (!a.q_starts || first + 16 <= q_len) {
#pragma unroll
			for (int c = 0; c < C::O_CHUNKS; c++)
				if (lane == 0)
					tensor_store(&a.o_map, at + c * 64 * 128, c * 64, u.q_row + first, u.head,
						     u.batch);
		} else {
			store_rows(u, first, at);
#pragma unroll
			for (int c = 0; c < C::O_CHUNKS; c++) /* as many groups as the tensor stores commit */
				tensor_store_commit();
		}
		if (C::O_IN_Q) {
			if (lane == 0)
				tensor_store_wait_read();
			queries_done();
		}
	}

	/* Stores the end of a packed sequence without touching the next sequence's rows. */
	__device__ void store_rows(const volatile attention_unit &u, int first, uint32_t at)
	{
		for (unsigned i = lane; i < 16 * C::D / 8; i += 32) {
			const unsigned row = i / (C::D / 8), piece = i % (C::D / 8);
			uint4 v;

			if (first + (int)row >= u.q_len)
				break;
			asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
				     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
				     : "r"(at + piece / 8 * 64 * 128 + row * 128 + (piece % 8 ^ row % 8) * 16));
			*(uint4 *)((typename C::OUT *)a.o + (int64_t)(u.q_row + first + row) * a.o_step.row +
				   u.head * a.o_step.head + piece * 8) = v;
		}
		__syncwarp();
	}

	/* Finds the blocks that the tile sees, and those that all its rows see as a whole. */
	__device__ __forceinline__ void item_find(attention_item &r, int dealt)
	{
		const volatile attention_unit &u = units[unit];
		const int from = u.from, kv_len = u.kv_len, shift = kv_len - u.q_len, tile = u.tile + dealt;
		const int row = tile * C::ROWS + shift, row_last = row + C::ROWS - 1;
		const int seen_first = max(row_last - a.left, 0), seen_end = min(row + a.right, kv_len - 1) + 1;
		const attention_range t = tile_range<C>(a, kv_len, u.q_len, tile);

		r.unit = unit;
		r.skip_from = fill;
		r.skip_end = fill + u.to - from;
		r.tile = tile;
		r.first = fill + t.from - from;
		r.end = fill + t.to - from;
		r.whole_first = fill + (seen_first + C::KEYS - 1) / C::KEYS - from;
		r.whole_end = fill + max(seen_end, 0) / C::KEYS - from;
		if (dealt >= u.tiles) {
			r.tile = -1;
			r.end = r.first;
		}
		if (r.first >= r.end)
			r.first = r.end = r.skip_end;
	}

	/* Finds the warpgroup's next item; returns false if there is none. */
	__device__ __forceinline__ bool next(attention_item &r)
	{
		int dealt = round < 0 ? 0 : tile_dealt<C>(units[unit].tiles, turn, ++pass, group);

		if (round < 0 || dealt >= units[unit].tiles) {
			if (!unit_next())
				return false;
			dealt = tile_dealt<C>(units[unit].tiles, turn, 0, group);
		}
		item_find(r, dealt);
		r.last = tile_dealt<C>(units[unit].tiles, turn, pass + 1, group) >= units[unit].tiles;
		return true;
	}

	__device__ __forceinline__ bool unit_next()
	{
		attention_unit found;

		if (round >= 0) {
			fill += units[unit].to - units[unit].from;
			turn = (turn + units[unit].tiles) % C::GROUPS;
		}
		for (round++; round < unit_rounds(a); round++) {
			const int number = unit_of_round(a, round);

			if (number < 0 || !unit_find<C>(a, number, found))
				continue;
			unit = unit + 1 == C::UNITS ? 0 : unit + 1;
			pass = 0;
			__syncwarp();
			if (lane == 0)
				*(attention_unit *)(units + unit) = found;
			__syncwarp();
			return true;
		}
		return false;
	}

	/* Handles an item that sees no key, or that has no tile. */
	__device__ __forceinline__ void empty(const attention_item &r)
	{
		const softmax_rows x = {{0, 0}, {0, 0}};
		float o[C::D / 2];

		if (r.tile < 0)
			return;
		queries_wait();
		if (!C::O_IN_Q)
			queries_done();
#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			o[i] = 0;
#pragma unroll
		for (int half = 0; half < C::ROWS / 64; half++)
			store(o, x, r.unit, r.tile, half);
	}

	__device__ __forceinline__ void run()
	{
		float s[C::KEYS / 2];
		attention_item item, then;
		bool started = false, more = next(item);

		while (more) {
			if (!started && item.last)
				skip(item.skip_from, item.first);
			if (item.first < item.end) {
				if (!started) {
					start(s, item);
					started_wait(s, item);
				}
				started = walk(s, item, then, more);
				if (!started && item.last)
					skip(item.end, item.skip_end);
			} else {
				empty(item);
				more = next(then);
				started = false;
			}
			item = then;
		}
		if (lane == 0)
			tensor_store_wait();
	}
};
#endif
