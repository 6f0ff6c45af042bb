/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward on Hopper. One persistent block an SM: a producing warpgroup (warp 0 loads keys and values, warp 1
 * queries, by tensor copies into slots) and GROUPS consuming ones, each with tiles of 64 query rows of its own.
 *
 * A unit is one head and GROUPS x passes tiles. With one pass keys stream by; with several all keys of the head stand in
 * the slots while every warpgroup walks its tiles over them, and a slot is given back, and filled with the next head's
 * keys, during the last pass. So a head is loaded once and no load is waited for but the first.
 */
#ifndef KERNEL_ATTENTION_SM90_CUH
#define KERNEL_ATTENTION_SM90_CUH
#include "kernel/attention.h"
#include "kernel/hopper.cuh"
#include "kernel/wgmma.cuh"

enum how {
	HOW_Q_REGISTERS = 1, /* queries as register operands: their slot is free at once */
	HOW_STALE = 2,	     /* exponents by the first block's maximum as long as sums stay small */
};

template <typename T_, int D_, int GROUPS_, int KEYS_, int SLOTS_, unsigned HOW_> struct attention_shape {
	typedef T_ T;
	enum {
		D = D_,
		GROUPS = GROUPS_,
		KEYS = KEYS_,
		SLOTS = SLOTS_,
		HOW = HOW_,
		Q_REGISTERS = !!(HOW_ & HOW_Q_REGISTERS),
		STALE = !!(HOW_ & HOW_STALE),
		THREADS = 128 * (GROUPS_ + 1),
		REGISTERS = GROUPS_ == 2 ? 240 : (GROUPS_ == 3 ? 160 : 112), /* of a consuming thread */
		LOAD_REGISTERS = GROUPS_ == 2 ? 24 : 32,
		ROWS = ATTENTION_SM90_ROWS,
		CHUNKS = D_ / 64,
		KV_BYTES = KEYS_ * D_ * 2,
		Q_BYTES = 64 * D_ * 2,
		Q_SLOTS = HOW_ & HOW_Q_REGISTERS ? 1 : 2,
		UNIT_BYTES = 64, /* two a consuming warp */
		/* places in shared memory */
		K_AT = 0,
		V_AT = SLOTS_ * KV_BYTES,
		Q_AT = 2 * SLOTS_ * KV_BYTES,
		O_AT = Q_AT + GROUPS_ * Q_SLOTS * Q_BYTES,
		UNITS_AT = O_AT + GROUPS_ * Q_BYTES, /* copies for each consuming warp: registers are scarce */
		BARRIERS_AT = UNITS_AT + GROUPS_ * 4 * 2 * UNIT_BYTES,
		FULL_K = 0,
		EMPTY_K = FULL_K + SLOTS_,
		FULL_V = EMPTY_K + SLOTS_,
		EMPTY_V = FULL_V + SLOTS_,
		FULL_Q = EMPTY_V + SLOTS_,
		EMPTY_Q = FULL_Q + GROUPS_ * Q_SLOTS,
		BARRIERS = EMPTY_Q + GROUPS_ * Q_SLOTS,
		SHARED_BYTES = BARRIERS_AT + BARRIERS * 8 + 1024, /* 1024: to align */
	};
};

/* Addresses in shared memory. */
template <typename C> struct attention_room {
	uint32_t base;

	__device__ uint32_t k(unsigned slot) const { return base + C::K_AT + slot * C::KV_BYTES; }
	__device__ uint32_t v(unsigned slot) const { return base + C::V_AT + slot * C::KV_BYTES; }
	__device__ uint32_t q(unsigned group, unsigned slot) const
	{
		return base + C::Q_AT + (group * C::Q_SLOTS + slot) * C::Q_BYTES;
	}
	__device__ uint32_t o(unsigned group) const { return base + C::O_AT + group * C::Q_BYTES; }
	__device__ unsigned units() const { return C::UNITS_AT + (threadIdx.x / 32 - 4) * 2 * C::UNIT_BYTES; }
	__device__ uint32_t barrier(unsigned number) const { return base + C::BARRIERS_AT + number * 8; }
};

/* -- units: which there are, which keys they see -- */

struct attention_unit {
	int batch, head, kv_head; /* coordinates of the maps, batch 0 where sequences are packed */
	int sequence;		  /* batch element */
	int q_row, kv_row;	  /* first row of the sequence in the maps */
	int q_len, kv_len;
	int tile, tiles; /* first, and how many */
	int from, to; /* blocks of keys that any tile of it sees */
};

struct attention_range {
	int from, to;
};

template <typename C>
static __device__ __forceinline__ attention_range tile_range(const attention_sm90_args &a, int kv_len, int q_len,
							     int tile)
{
	const int shift = kv_len - q_len, last = min(tile * C::ROWS + C::ROWS, q_len) - 1;
	const int low = max(tile * C::ROWS + shift - a.left, 0), high = min(last + shift + a.right, kv_len - 1);
	attention_range r;

	r.from = low / C::KEYS;
	r.to = high < low ? r.from : high / C::KEYS + 1;
	return r;
}

/* False: its rows are behind the end of a shorter sequence. */
template <typename C>
static __device__ __forceinline__ bool unit_find(const attention_sm90_args &a, int number, attention_unit &u)
{
	const int all = a.batch * a.heads, per = a.section * a.head_units, section = number / per;
	const int rest = number - section * per, wide = min((int)a.section, all - section * (int)a.section);
	const int across = rest / wide, pair = section * a.section + rest - across * wide;
	const int most = C::GROUPS * a.passes;

	u.sequence = pair / (int)a.heads;
	u.head = pair - u.sequence * a.heads;
	u.kv_head = u.head / (int)(a.heads / a.kv_heads);
	u.batch = a.q_starts ? 0 : u.sequence;
	u.q_row = a.q_starts ? (int)a.q_starts[u.sequence] : 0;
	u.kv_row = a.q_starts ? (int)a.kv_starts[u.sequence] : 0;
	u.q_len = a.q_starts ? (int)a.q_starts[u.sequence + 1] - u.q_row : (int)a.q_len;
	u.kv_len = a.q_starts ? (int)a.kv_starts[u.sequence + 1] - u.kv_row : (int)a.kv_len;
	u.tile = (a.head_units - 1 - across) * most;
	if (u.tile * C::ROWS >= u.q_len)
		return false;
	u.tiles = min(most, (u.q_len + C::ROWS - 1) / C::ROWS - u.tile);
	u.from = tile_range<C>(a, u.kv_len, u.q_len, u.tile).from;
	u.to = max(tile_range<C>(a, u.kv_len, u.q_len, u.tile + u.tiles - 1).to, u.from);
	return true;
}

/* Unit of round i, or -1. */
static __device__ __forceinline__ int unit_of_round(const attention_sm90_args &a, int round)
{
	const int units = a.batch * a.heads * a.head_units;
	const int place = a.zigzag && round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
	const int number = round * gridDim.x + place;

	return number < units ? number : -1;
}

static __device__ __forceinline__ int unit_rounds(const attention_sm90_args &a)
{
	return (a.batch * a.heads * a.head_units + gridDim.x - 1) / gridDim.x;
}

/*
 * A warpgroup's tile of a unit in its i-th pass; tiles or more: it has none. Where warpgroups have equally many they are
 * dealt back and forth, so that a mask's short and long ones add up alike, the longest last. Else they are dealt on and
 * on: `turn`, the tiles of the units before, says whose turn it is.
 */
template <typename C> static __device__ __forceinline__ int tile_dealt(int tiles, int turn, int i, int group)
{
	if (tiles % C::GROUPS == 0)
		return i * C::GROUPS + (i % 2 ? C::GROUPS - 1 - group : group);
	return i * C::GROUPS + (group + C::GROUPS - turn) % C::GROUPS;
}

/* -- producer -- */

template <typename C>
static __device__ void load_keys_values(const attention_sm90_args &a, const attention_room<C> &room)
{
	unsigned fill = 0;

	for (int round = 0; round < unit_rounds(a); round++) {
		const int number = unit_of_round(a, round);
		attention_unit u;

		if (number < 0 || !unit_find<C>(a, number, u))
			continue;
		for (int j = u.from; j < u.to; j++, fill++) {
			const unsigned slot = fill % C::SLOTS, parity = fill / C::SLOTS % 2 ^ 1;

			barrier_wait(room.barrier(C::EMPTY_K + slot), parity);
			barrier_expect(room.barrier(C::FULL_K + slot), C::KV_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.k(slot) + c * C::KEYS * 128, &a.k_map, room.barrier(C::FULL_K + slot),
					    c * 64, u.kv_row + j * C::KEYS, u.kv_head, u.batch);
			barrier_wait(room.barrier(C::EMPTY_V + slot), parity);
			barrier_expect(room.barrier(C::FULL_V + slot), C::KV_BYTES);
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				tensor_load(room.v(slot) + c * C::KEYS * 128, &a.v_map, room.barrier(C::FULL_V + slot),
					    c * 64, u.kv_row + j * C::KEYS, u.kv_head, u.batch);
		}
	}
}

template <typename C> static __device__ void load_queries(const attention_sm90_args &a, const attention_room<C> &room)
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
				const int tile = tile_dealt<C>(u.tiles, turn, pass, g), row = (u.tile + tile) * C::ROWS;
				const unsigned slot = fill[g] % C::Q_SLOTS, at = g * C::Q_SLOTS + slot;

				if (tile >= u.tiles)
					continue;
				barrier_wait(room.barrier(C::EMPTY_Q + at), fill[g] / C::Q_SLOTS % 2 ^ 1);
				barrier_expect(room.barrier(C::FULL_Q + at), C::Q_BYTES);
#pragma unroll
				for (int c = 0; c < C::CHUNKS; c++)
					tensor_load(room.q(g, slot) + c * 64 * 128, &a.q_map,
						    room.barrier(C::FULL_Q + at), c * 64, u.q_row + row, u.head,
						    u.batch);
				fill[g]++;
			}
		}
		turn = (turn + u.tiles) % C::GROUPS;
	}
}

/* -- softmax of a warpgroup's tile; a thread has two rows, lane / 4 and 8 more -- */

static __device__ __forceinline__ float exp2_unit(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

struct softmax_rows {
	float shift[2]; /* less the maximum that exponents are taken by, times scale_log2; +inf before any key */
	float sum[2];	/* of this thread's columns */
};

/* Sums above it might hide a value that FP16 cannot hold. */
#define STALE_LIMIT 32768.f

/* Only keys low[r] .. high[r] are seen; column: of the thread's first score. */
template <int N>
static __device__ __forceinline__ void scores_mask(float (&s)[N], const int (&low)[2], const int (&high)[2], int column)
{
#pragma unroll
	for (int i = 0; i < N; i++) {
		const int c = column + i / 4 * 8 + i % 2, r = i / 2 % 2;

		if (c < low[r] || c > high[r])
			s[i] = -INFINITY;
	}
}

/* Exponentials of scores into pairs; their sums by row. */
template <typename T, int N>
static __device__ __forceinline__ void scores_exp(const float (&s)[N], const float (&shift)[2], float scale_log2,
						  uint32_t (&p)[N / 2], float (&sum)[2])
{
	sum[0] = sum[1] = 0;
#pragma unroll
	for (int i = 0; i < N / 2; i++) {
		const int r = i % 2;
		const float e0 = exp2_unit(fmaf(s[2 * i], scale_log2, shift[r]));
		const float e1 = exp2_unit(fmaf(s[2 * i + 1], scale_log2, shift[r]));

		sum[r] += e0;
		sum[r] += e1;
		p[i] = pack2(T(), e0, e1);
	}
}

/* The same in place, for where the pairs' registers are still being read. */
template <int N>
static __device__ __forceinline__ void scores_exp_in_place(float (&s)[N], const float (&shift)[2], float scale_log2,
							   float (&sum)[2])
{
	sum[0] = sum[1] = 0;
#pragma unroll
	for (int i = 0; i < N; i++) {
		s[i] = exp2_unit(fmaf(s[i], scale_log2, shift[i / 2 % 2]));
		sum[i / 2 % 2] += s[i];
	}
}

template <typename T, int N>
static __device__ __forceinline__ void scores_pack(const float (&s)[N], uint32_t (&p)[N / 2])
{
#pragma unroll
	for (int i = 0; i < N / 2; i++)
		p[i] = pack2(T(), s[2 * i], s[2 * i + 1]);
}

/* Takes the new maximum; what was summed by the old one is to be multiplied by factor. */
template <int N>
static __device__ __forceinline__ void scores_top(const float (&s)[N], softmax_rows &x, float scale_log2,
						  float (&factor)[2])
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float top = -INFINITY;

#pragma unroll
		for (int i = 2 * r; i < N; i += 4)
			top = fmaxf(top, fmaxf(s[i], s[i + 1]));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
		const float shift = fminf(x.shift[r], -top * scale_log2);

		factor[r] = shift == x.shift[r] ? 1.f : exp2_unit(shift - x.shift[r]);
		x.shift[r] = shift;
	}
}

/* One block of scores: p and the rows' sums. True: what was accumulated is to be multiplied by factor. `ready`: every
 * row of the warp has a maximum. */
template <typename C, int N>
static __device__ __forceinline__ bool scores_take(const float (&s)[N], softmax_rows &x, float scale_log2, bool ready,
						   uint32_t (&p)[N / 2], float (&factor)[2])
{
	float sum[2];

	if (C::STALE && ready) {
		scores_exp<typename C::T>(s, x.shift, scale_log2, p, sum);
		if (__all_sync(~0u, sum[0] < STALE_LIMIT && sum[1] < STALE_LIMIT)) {
			x.sum[0] += sum[0];
			x.sum[1] += sum[1];
			return false;
		}
	}
	scores_top(s, x, scale_log2, factor);
	const float shift[2] = {x.shift[0] == INFINITY ? 0.f : x.shift[0], x.shift[1] == INFINITY ? 0.f : x.shift[1]};
	scores_exp<typename C::T>(s, shift, scale_log2, p, sum);
	x.sum[0] = x.sum[0] * factor[0] + sum[0];
	x.sum[1] = x.sum[1] * factor[1] + sum[1];
	return __any_sync(~0u, factor[0] != 1.f || factor[1] != 1.f);
}

template <int N> static __device__ __forceinline__ void accumulator_scale(float (&o)[N], const float (&factor)[2])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		o[i] *= factor[i / 2 % 2];
}

/* -- consumer -- */

/* What a warpgroup does with one tile. Blocks of keys are known by the number of their fill. */
struct attention_item {
	unsigned first, end;		 /* blocks seen; none: the same */
	unsigned whole_first, whole_end; /* of these, what all rows see whole */
	unsigned skip_from, skip_end;	 /* the unit's, if it is the last tile: the other blocks are given back unread */
	int tile;			 /* -1: none; skipping is all there is to do */
	int unit;			 /* which of the two copies in shared memory */
	bool last;			 /* blocks are given back after use */
};

template <typename C> struct attention_consumer {
	const attention_sm90_args &a;
	attention_room<C> room;
	volatile attention_unit *units; /* two, in shared memory, the warp's own */
	unsigned group, warp, lane;
	unsigned fill;	 /* of the current unit's first block of keys */
	unsigned q_fill; /* of the warpgroup's queries */
	int round, pass, turn, unit;
	uint32_t q[C::Q_REGISTERS ? C::D / 4 : 1];

	__device__ __forceinline__ void release(unsigned number)
	{
		if (lane == 0)
			barrier_arrive(room.barrier(number));
	}

	__device__ __forceinline__ void wait(unsigned full, unsigned n)
	{
		barrier_wait(room.barrier(full + n % C::SLOTS), n / C::SLOTS % 2);
	}

	/* Blocks that this pass does not need are given back untouched. */
	__device__ __forceinline__ void skip(unsigned n, unsigned end)
	{
		for (; n < end; n++) {
			wait(C::FULL_K, n);
			release(C::EMPTY_K + n % C::SLOTS);
			wait(C::FULL_V, n);
			release(C::EMPTY_V + n % C::SLOTS);
		}
	}

	__device__ __forceinline__ void queries_take()
	{
		const unsigned slot = q_fill % C::Q_SLOTS, at = group * C::Q_SLOTS + slot;

		barrier_wait(room.barrier(C::FULL_Q + at), q_fill / C::Q_SLOTS % 2);
		if (C::Q_REGISTERS) {
			const unsigned row = warp * 16 + lane % 16;

#pragma unroll
			for (int i = 0; i < C::D / 16; i++) {
				const unsigned piece = (i % 4 * 2 + lane / 16) ^ row % 8;
				uint32_t four[4];

				matrix_load(four, room.q(group, slot) + i / 4 * 64 * 128 + row * 128 + piece * 16);
#pragma unroll
				for (int e = 0; e < 4; e++)
					q[C::Q_REGISTERS ? 4 * i + e : 0] = four[e];
			}
			queries_done();
		}
	}

	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + group * C::Q_SLOTS + q_fill % C::Q_SLOTS);
		q_fill++;
	}

	__device__ __forceinline__ void scores_issue(float (&s)[C::KEYS / 2], unsigned n)
	{
		const uint64_t k = wgmma_tile(warp_uniform(room.k(n % C::SLOTS)));
		const uint64_t t = C::Q_REGISTERS ? 0 : wgmma_tile(warp_uniform(room.q(group, q_fill % C::Q_SLOTS)));

#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const uint64_t kb = wgmma_on(k, i / 4 * C::KEYS * 128 + i % 4 * 32);

			if (C::Q_REGISTERS)
				wgmma_rs(typename C::T(), s, q + (C::Q_REGISTERS ? 4 * i : 0), kb, i > 0);
			else
				wgmma_ss(typename C::T(), s, wgmma_on(t, i / 4 * 64 * 128 + i % 4 * 32), kb, i > 0);
		}
		wgmma_commit();
	}

	__device__ __forceinline__ void values_issue(float (&o)[C::D / 2], const uint32_t (&p)[C::KEYS / 4], unsigned n,
						     bool add)
	{
		const uint64_t v = wgmma_tile(warp_uniform(room.v(n % C::SLOTS)), C::KEYS * 128);

#pragma unroll
		for (int i = 0; i < C::KEYS / 16; i++)
			wgmma_rs_across(typename C::T(), o, p + 4 * i, wgmma_on(v, i * 2048), i > 0 || add);
		wgmma_commit();
	}

	__device__ __forceinline__ void mask(float (&s)[C::KEYS / 2], const attention_item &r, unsigned n)
	{
		const volatile attention_unit &u = units[r.unit];
		const int kv_len = u.kv_len, row = r.tile * C::ROWS + warp * 16 + lane / 4 + kv_len - u.q_len;
		const int low[2] = {row - a.left, row + 8 - a.left};
		const int high[2] = {min(row + a.right, kv_len - 1), min(row + 8 + a.right, kv_len - 1)};

		scores_mask(s, low, high, (u.from + (int)(n - r.skip_from)) * C::KEYS + lane % 4 * 2);
	}

	/* Softmax of a block's scores into fresh pairs. */
	__device__ __forceinline__ bool block(float (&s)[C::KEYS / 2], softmax_rows &x, const attention_item &r, unsigned n,
					      bool &ready, uint32_t (&p)[C::KEYS / 4], float (&factor)[2])
	{
		const bool whole = n >= r.whole_first && n < r.whole_end;
		bool grown;

		if (!whole)
			mask(s, r, n);
		grown = scores_take<C>(s, x, a.scale_log2, ready && whole, p, factor);
		if (C::STALE)
			ready = ready || whole;
		return grown;
	}

	/* The scores of an item's first block are asked for. */
	__device__ __forceinline__ void start(float (&s)[C::KEYS / 2], const attention_item &r)
	{
		queries_take();
		wait(C::FULL_K, r.first);
		wgmma_fence();
		scores_issue(s, r.first);
	}

	__device__ __forceinline__ void started_wait(float (&s)[C::KEYS / 2], const attention_item &r)
	{
		wgmma_wait<0>();
		wgmma_hold(s);
		if (r.last)
			release(C::EMPTY_K + r.first % C::SLOTS);
		if (!C::Q_REGISTERS && r.first + 1 == r.end)
			queries_done();
	}

	/* Block n's scores go to the matrix unit before the values of the one before, whose product runs on below the
	 * softmax of block n. */
	__device__ __forceinline__ void issue(float (&s)[C::KEYS / 2], float (&o)[C::D / 2],
					      const uint32_t (&before)[C::KEYS / 4], const attention_item &r, unsigned n)
	{
		wait(C::FULL_K, n);
		wait(C::FULL_V, n - 1);
		wgmma_fence();
		scores_issue(s, n);
		values_issue(o, before, n - 1, n > r.first + 1);
		wgmma_wait<1>();
		wgmma_hold(s);
		if (r.last)
			release(C::EMPTY_K + n % C::SLOTS);
		if (!C::Q_REGISTERS && n + 1 == r.end)
			queries_done();
	}

	__device__ __forceinline__ void values_done(float (&o)[C::D / 2], const attention_item &r, unsigned n)
	{
		wgmma_wait<0>();
		wgmma_hold(o);
		if (r.last)
			release(C::EMPTY_V + n % C::SLOTS);
	}

	/* Scores stay until the new pairs are known to be good, so pairs take turns in two sets of registers. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], softmax_rows &x,
					     const attention_item &r, unsigned n, bool &ready,
					     uint32_t (&before)[C::KEYS / 4], uint32_t (&p)[C::KEYS / 4])
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
						      const attention_item &r, unsigned n, uint32_t (&p)[C::KEYS / 4])
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

	/* The last values and O; behind the values, where nothing has to be given back first, the next item's first scores:
	 * true where these are there. */
	__device__ __forceinline__ bool finish(float (&s)[C::KEYS / 2], float (&o)[C::D / 2],
					       const uint32_t (&p)[C::KEYS / 4], const softmax_rows &x, const attention_item &r,
					       attention_item &then, bool &more)
	{
		more = next(then);
		wait(C::FULL_V, r.end - 1);
		if (more && then.tile >= 0 && then.first < then.end && (!r.last || r.end == r.skip_end) &&
		    (!then.last || then.first == then.skip_from)) {
			queries_take();
			wait(C::FULL_K, then.first);
			wgmma_fence();
			values_issue(o, p, r.end - 1, r.end - r.first > 1);
			scores_issue(s, then.first);
			wgmma_wait<1>();
			wgmma_hold(o);
			if (r.last)
				release(C::EMPTY_V + (r.end - 1) % C::SLOTS);
			store(o, x, r);
			started_wait(s, then);
			return true;
		}
		wgmma_fence();
		values_issue(o, p, r.end - 1, r.end - r.first > 1);
		values_done(o, r, r.end - 1);
		store(o, x, r);
		return false;
	}

	/* One tile from its first scores to O. */
	__device__ __forceinline__ bool walk(float (&s)[C::KEYS / 2], const attention_item &r, attention_item &then,
					     bool &more)
	{
		uint32_t p0[C::KEYS / 4];
		softmax_rows x = {{INFINITY, INFINITY}, {0, 0}};
		float o[C::D / 2], factor[2];
		unsigned n = r.first + 1;
		bool ready = false;

		block(s, x, r, r.first, ready, p0, factor);
		if (!C::STALE) {
			for (; n < r.end; n++)
				step_in_place(s, o, x, r, n, p0);
		} else {
			uint32_t p1[C::KEYS / 4];

			for (; n < r.end; n++) {
				step(s, o, x, r, n, ready, p0, p1);
				if (++n >= r.end)
					return finish(s, o, p1, x, r, then, more);
				step(s, o, x, r, n, ready, p1, p0);
			}
		}
		return finish(s, o, p0, x, r, then, more);
	}

	/* O through shared memory to its rows, each warp its own 16. */
	__device__ __forceinline__ void store(const float (&o)[C::D / 2], const softmax_rows &x, const attention_item &item)
	{
		const volatile attention_unit &u = units[item.unit];
		const int first = item.tile * C::ROWS + warp * 16, q_len = u.q_len;
		const uint32_t at = room.o(group) + warp * 16 * 128;
		float inverse[2];

#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int row = first + lane / 4 + 8 * r;
			float sum = x.sum[r];

			sum += __shfl_xor_sync(~0u, sum, 1);
			sum += __shfl_xor_sync(~0u, sum, 2);
			inverse[r] = sum == 0 ? 0.f : 1.f / sum;
			if (a.lse && lane % 4 == 0 && row < q_len)
				a.lse[((int64_t)u.sequence * a.heads + u.head) * a.q_len + row] =
					sum == 0 ? -INFINITY : (log2f(sum) - x.shift[r]) * 0.69314718056f;
		}
		if (lane == 0)
			tensor_store_wait_read();
		__syncwarp();
#pragma unroll
		for (int i = 0; i < C::D / 16; i++) {
			const unsigned row = lane % 16, piece = (i % 4 * 2 + lane / 16) ^ row % 8;
			uint32_t four[4];

#pragma unroll
			for (int e = 0; e < 4; e++)
				four[e] = pack2(typename C::T(), o[8 * i + 2 * e] * inverse[e % 2],
						o[8 * i + 2 * e + 1] * inverse[e % 2]);
			matrix_store(at + i / 4 * 64 * 128 + row * 128 + piece * 16, four);
		}
		proxy_fence();
		__syncwarp();
		if (!a.q_starts || first + 16 <= q_len) {
#pragma unroll
			for (int c = 0; c < C::CHUNKS; c++)
				if (lane == 0)
					tensor_store(&a.o_map, at + c * 64 * 128, c * 64, u.q_row + first, u.head,
						     u.batch);
		} else {
			store_rows(u, first, at);
		}
	}

	/* The end of a packed sequence: the next one's rows are not touched. */
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
			*(uint4 *)((typename C::T *)a.o + (int64_t)(u.q_row + first + row) * a.o_step.row +
				   u.head * a.o_step.head + piece * 8) = v;
		}
		__syncwarp();
	}

	/* Which blocks the tile sees, and which of them all its rows see whole. */
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

	/* The warpgroup's next item; false: there is none. */
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
			unit ^= 1;
			pass = 0;
			__syncwarp();
			if (lane == 0)
				*(attention_unit *)(units + unit) = found;
			__syncwarp();
			return true;
		}
		return false;
	}

	/* A tile that sees no key, or none at all. */
	__device__ __forceinline__ void empty(const attention_item &r)
	{
		const softmax_rows x = {{0, 0}, {0, 0}};
		float o[C::D / 2];

		if (r.tile < 0)
			return;
		queries_take();
		if (!C::Q_REGISTERS)
			queries_done();
#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			o[i] = 0;
		store(o, x, r);
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

template <typename C> static __device__ __forceinline__ void barriers_begin(const attention_room<C> &room)
{
	for (int i = 0; i < C::SLOTS; i++) {
		barrier_init(room.barrier(C::FULL_K + i), 1);
		barrier_init(room.barrier(C::FULL_V + i), 1);
		barrier_init(room.barrier(C::EMPTY_K + i), 4 * C::GROUPS);
		barrier_init(room.barrier(C::EMPTY_V + i), 4 * C::GROUPS);
	}
	for (int i = 0; i < C::GROUPS * C::Q_SLOTS; i++) {
		barrier_init(room.barrier(C::FULL_Q + i), 1);
		barrier_init(room.barrier(C::EMPTY_Q + i), 4);
	}
	barrier_init_fence();
}

template <typename C> static __device__ __forceinline__ void attention_run(const attention_sm90_args &a)
{
	extern __shared__ __align__(1024) unsigned char attention_shared[];
	const attention_room<C> room = {(shared_at(attention_shared) + 1023) / 1024 * 1024};
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;

	if (threadIdx.x == 0)
		barriers_begin(room);
	__syncthreads();
	if (warp < 4) {
		registers_shrink<C::LOAD_REGISTERS>();
		if (warp == 0 && lane == 0)
			load_keys_values(a, room);
		if (warp == 1 && lane == 0)
			load_queries(a, room);
	} else {
		registers_grow<C::REGISTERS>();
		unsigned char *aligned = attention_shared + (room.base - shared_at(attention_shared));
		attention_consumer<C> consumer = {a, room, (attention_unit *)(aligned + room.units()), warp / 4 - 1, warp % 4, lane,
						  0, 0, -1, 0, 0, 1};

		consumer.run();
	}
}
#endif
