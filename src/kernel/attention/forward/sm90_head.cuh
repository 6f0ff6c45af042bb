/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention where the slots hold exactly a head's keys and values: block j of every head is in slot j. There
 * is no mask, or a causal mask with as many keys as queries. As in sm90_flow.cuh, the next tile's first
 * scores are issued before this tile's last values. Without a mask the compiler knows all places and tile
 * ends, and only a warpgroup's first tile of a head waits for loads.
 * HOW_STREAM: keys stream through the slots in whole rounds of twice the slots, and each warpgroup has one
 * tile at a time; there is no mask.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_HEAD_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_HEAD_CUH
#include "kernel/attention/forward/sm90_plain.cuh"

template <typename C, bool CAUSAL> struct attention_heads : attention_plain<C> {
	static_assert(C::STALE && C::WHOLE && !C::PAIR && C::SLOTS % 2 == 0, "");
	static_assert(!CAUSAL || (C::KEYS == C::ROWS && !C::STREAM), "a tile's last block is cut, others are whole");
	typedef attention_plain<C> base;
	using base::a;
	using base::group;
	using base::lane;
	using base::release;
	using base::room;
	using base::warp;
	enum { BLOCKS = C::SLOTS * (C::STREAM ? 2 : 1) };

	/* A tile: its head, and its number among the warpgroup's tiles. */
	struct place {
		int round, pair; /* pair below 0: none is left */
		int pass, tile, turn;
		bool last; /* the warpgroup's last tile of the head */
	};

	unsigned tiles; /* number of tiles whose queries were taken */
	uint32_t q[C::Q_REGISTERS ? C::QUERIES : 1];
	softmax_rows x;

	__device__ __forceinline__ int head_tiles() const { return (a.q_len + C::ROWS - 1) / C::ROWS; }

	/* With streaming keys, a unit is one tile for each warpgroup, all of one head, in the order of
	 * unit_find. */
	__device__ __forceinline__ place find_unit(int round) const
	{
		const int number = unit_of_round(a, round), pair = number < 0 ? number : number / (int)a.head_units;
		const int across = number - pair * (int)a.head_units;

		return place{round, pair, 0, ((int)a.head_units - 1 - across) * C::GROUPS + (int)group, 0, true};
	}

	__device__ __forceinline__ place find(int round, int pass, int turn) const
	{
		place p;

		if (C::STREAM)
			return find_unit(round);
		p.round = round;
		p.pair = unit_of_round(a, round);
		p.pass = pass;
		p.turn = turn;
		p.tile = tile_dealt<C>(head_tiles(), turn, pass, group);
		p.last = tile_dealt<C>(head_tiles(), turn, pass + 1, group) >= head_tiles();
		return p;
	}

	__device__ __forceinline__ place after(const place &p) const
	{
		return p.last ? find(p.round + 1, 0, (p.turn + head_tiles()) % C::GROUPS) : find(p.round, p.pass + 1, p.turn);
	}

	/* Waits for a block to arrive. Without a mask a head's first tile sees all blocks, so later tiles do
	 * not wait. */
	__device__ __forceinline__ void come(unsigned full, int block, const place &p)
	{
		if (CAUSAL || C::STREAM || p.pass == 0)
			barrier_wait(room.barrier(full + block % C::SLOTS), C::STREAM ? block / C::SLOTS % 2 : p.round % 2);
	}

	__device__ __forceinline__ unsigned q_slot() const { return (tiles - 1) % C::Q_SLOTS; }

	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + group * C::Q_SLOTS + q_slot());
	}

	__device__ __forceinline__ void queries_take()
	{
		barrier_wait(room.barrier(C::FULL_Q + group * C::Q_SLOTS + tiles % C::Q_SLOTS), tiles / C::Q_SLOTS % 2);
		tiles++;
		if (C::Q_REGISTERS)
			queries_load<C>(room.q(group, q_slot()), warp, lane, q);
	}

	/* Called after the scores have arrived. Only the GEMMs that read the queries wait for their load into
	 * registers. So the slot is released after the tile's first scores if queries are in registers, else
	 * after its last. */
	__device__ __forceinline__ void queries_done_by(bool fresh, bool end)
	{
		if (C::Q_REGISTERS ? fresh : end)
			queries_done();
	}

	__device__ __forceinline__ bool softmax(float (&s)[C::KEYS / 2], bool first, bool cut, uint32_t (&p)[C::PAIRS],
						float (&factor)[2])
	{
		const float scale = C::FP8 ? base::scale_log2 : a.scale_log2;

		if (CAUSAL && cut) {
			const int row = warp * 16 + lane / 4, low[2] = {0, 0}, high[2] = {row, row + 8};

			scores_mask(s, low, high, lane % 4 * 2);
		}
		if (first)
			x = softmax_rows{{INFINITY, INFINITY}, {0, 0}};
		return scores_take<C>(s, x, scale, !first, p, factor);
	}

	/* Computes the scores of block `next` (of this tile or, if `fresh`, of the next one) and the GEMM
	 * with the values of block j. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&before)[C::PAIRS],
					     uint32_t (&p)[C::PAIRS], int j, int next, bool fresh, bool end, const place &here,
					     const place &of, bool add)
	{
		const softmax_rows x_before = x;
		float factor[2];
		bool grown;

		if (fresh)
			queries_take();
		come(C::FULL_K, next, of);
		come(C::FULL_V, j, here);
		wgmma_fence();
		base::scores_issue(s, q, q_slot(), next);
		base::values_issue(o, before, j, add);
		wgmma_wait<1>();
		wgmma_hold(s);
		if (of.last)
			release(C::EMPTY_K + next % C::SLOTS);
		queries_done_by(fresh, end);
		grown = softmax(s, fresh, end, p, factor);
		wgmma_wait<0>();
		wgmma_hold(o);
		wgmma_hold(before);
		if (here.last)
			release(C::EMPTY_V + j % C::SLOTS);
		if (fresh)
			base::template store<0>(o, x_before, here.pair, here.tile);
		else if (grown)
			accumulator_scale(o, factor);
	}

	/* Releases blocks that none of the warpgroup's tiles sees, after they arrive. Otherwise two arrivals
	 * could count in one phase. */
	__device__ __forceinline__ void skip(int from, const place &p)
	{
		for (; from < BLOCKS; from++) {
			barrier_wait(room.barrier(C::FULL_K + from), p.round % 2);
			release(C::EMPTY_K + from);
			barrier_wait(room.barrier(C::FULL_V + from), p.round % 2);
			release(C::EMPTY_V + from);
		}
	}

	/* Completes a tile whose first scores are already pairs, and starts the next tile `then`. Returns
	 * whether there is a next tile. */
	__device__ __forceinline__ bool tile_whole(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&p0)[C::PAIRS],
						   uint32_t (&p1)[C::PAIRS], const place &here, const place &then)
	{
		int rounds = C::STREAM ? (int)a.kv_len / (C::KEYS * BLOCKS) : 1;
		bool add = false;

		for (;;) {
#pragma unroll
			for (int j = 0; j + 1 < BLOCKS; j++) {
				const bool last = j + 2 == BLOCKS && rounds == 1;

				if (j % 2)
					step(s, o, p1, p0, j, j + 1, false, last, here, here, true);
				else
					step(s, o, p0, p1, j, j + 1, false, last, here, here, add || j > 0);
			}
			if (!C::STREAM || --rounds == 0)
				break;
			step(s, o, p1, p0, BLOCKS - 1, 0, false, false, here, here, true);
			add = true;
		}
		if (then.pair < 0)
			return false;
		step(s, o, p1, p0, BLOCKS - 1, 0, true, BLOCKS == 1, here, then, BLOCKS > 1);
		return true;
	}

	/* Goes on from block j of a tile, or to the next tile if there is one. The last block is cut, so a
	 * tile can end in any slot. */
	__device__ __forceinline__ bool go_on(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&before)[C::PAIRS],
					      uint32_t (&p)[C::PAIRS], place &here, int &j)
	{
		if (j < here.tile) {
			step(s, o, before, p, j, j + 1, false, j + 1 == here.tile, here, here, j > 0);
			j++;
			return true;
		}
		const place then = after(here);

		if (here.last)
			skip(j + 1, here);
		if (then.pair < 0)
			return false;
		step(s, o, before, p, j, 0, true, then.tile == 0, here, then, j > 0);
		here = then;
		j = 0;
		return true;
	}

	__device__ __forceinline__ void end(float (&o)[C::D / 2], const uint32_t (&p)[C::PAIRS], const place &here, int j)
	{
		come(C::FULL_V, j, here);
		wgmma_fence();
		base::values_issue(o, p, j, j > 0);
		wgmma_wait<0>();
		wgmma_hold(o);
		base::template store<0>(o, x, here.pair, here.tile);
		if (lane == 0)
			tensor_store_wait();
	}

	__device__ __forceinline__ void run_whole(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&p0)[C::PAIRS],
						  uint32_t (&p1)[C::PAIRS], place &here)
	{
		for (;;) {
			const place then = after(here);

			if (!tile_whole(s, o, p0, p1, here, then))
				break;
			here = then;
		}
		end(o, p1, here, BLOCKS - 1);
	}

	__device__ __forceinline__ void run_cut(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&p0)[C::PAIRS],
						uint32_t (&p1)[C::PAIRS], place &here)
	{
		int j = 0;

		for (;;) {
			if (!go_on(s, o, p0, p1, here, j)) {
				end(o, p0, here, j);
				return;
			}
			if (!go_on(s, o, p1, p0, here, j)) {
				end(o, p1, here, j);
				return;
			}
		}
	}

	__device__ __forceinline__ void run()
	{
		float s[C::KEYS / 2], o[C::D / 2], factor[2];
		uint32_t p0[C::PAIRS], p1[C::PAIRS];
		place here = find(0, 0, 0);

		tiles = 0;
		queries_take();
		come(C::FULL_K, 0, here);
		wgmma_fence();
		base::scores_issue(s, q, 0, 0);
		wgmma_wait<0>();
		wgmma_hold(s);
		if (here.last)
			release(C::EMPTY_K);
		queries_done_by(true, CAUSAL && here.tile == 0);
		softmax(s, true, here.tile == 0, p0, factor);
		if constexpr (CAUSAL)
			run_cut(s, o, p0, p1, here);
		else
			run_whole(s, o, p0, p1, here);
	}
};

template <typename C> struct attention_head : attention_heads<C, false> {};
template <typename C> struct attention_head_causal : attention_heads<C, true> {};
#endif
