/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention for heads whose keys are all in the slots, without a mask or with a causal mask with as many keys
 * as queries. A consumer warpgroup has two tiles of 64 query rows that alternate over the same keys. While
 * one tile's scores become exponentials, the matrix unit runs the other tile's GEMMs. So one warpgroup alone
 * keeps both units busy. The sequence of blocks continues over tiles and heads: a tile's O is stored while
 * the matrix unit processes the other half's last values.
 *
 * While a half computes the softmax of block n, its own GEMMs are done and the other half's run: scores of
 * its next block and values of its last block. Each turn begins by waiting for all GEMMs and ends by issuing
 * its own. So nothing is in flight at the end of the loop body, which the compiler requires to keep GEMMs
 * asynchronous. GEMMs are never issued in a branch; results that nobody needs are computed too. The registers
 * just suffice.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_PAIR_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_PAIR_CUH
#include "kernel/attention/forward/sm90_plain.cuh"

template <typename C> struct attention_half {
	float s[C::KEYS / 2], o[C::D / 2];
	uint32_t p[C::PAIRS], q[C::QUERIES];
	softmax_rows x;
};

template <typename C> struct attention_pair : attention_plain<C> {
	static_assert(C::PAIR && C::Q_REGISTERS && C::STALE, "");
	typedef attention_half<C> half;
	typedef attention_plain<C> base;
	using base::a;
	using base::blocks;
	using base::group;
	using base::lane;
	using base::pairs;
	using base::release;
	using base::room;
	using base::wait;
	using base::warp;

	/* Position of a warpgroup: its own tiles of one head after the other. */
	struct place {
		int pair, pass, tile; /* pair: number of (sequence, head); the number of pairs means none */
		unsigned fill;	      /* fill number of the head's first block */
	};

	__device__ __forceinline__ bool causal() const { return a.right == 0; }

	__device__ __forceinline__ place tile_of(int pair, int pass, unsigned fill) const
	{
		const int own = pass % 2 ? C::GROUPS - 1 - group : group; /* as tile_dealt assigns */

		return place{pair, pass, pass * C::GROUPS + own, fill};
	}

	__device__ __forceinline__ bool last_pass(const place &p) const { return p.pass + 1 == (int)a.passes; }

	__device__ __forceinline__ place after(const place &p) const
	{
		return last_pass(p) ? tile_of(p.pair + gridDim.x, 0, p.fill + blocks()) : tile_of(p.pair, p.pass + 1, p.fill);
	}

	/* Blocks that the second half sees. With a causal mask the first half sees one less. */
	__device__ __forceinline__ unsigned seen(const place &p) const
	{
		return causal() ? warp_uniform(min((p.tile + 1) * 2, (int)blocks())) : blocks();
	}

	template <int HALF> __device__ __forceinline__ void queries(half &h, unsigned tiles)
	{
		if (HALF == 0)
			barrier_wait(room.barrier(C::FULL_Q + group), tiles % 2);
		queries_load<C>(room.q(group, 0) + HALF * C::CHUNKS * 64 * C::CHUNK, warp, lane, h.q);
	}

	/* Only the GEMMs that read the queries wait for their load into registers. The second half's queries
	 * come last. */
	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + group);
	}

	/* Issues the scores of block `following` and the GEMM with the values of block n. */
	__device__ __forceinline__ void ask(half &h, unsigned following, unsigned n, bool add)
	{
		wgmma_fence();
		base::scores_issue(h.s, h.q, 0, following);
		base::values_issue(h.o, h.p, n, add);
	}

	/* Waits for all issued GEMMs; they belong to h. */
	__device__ __forceinline__ void products_wait(half &h)
	{
		wgmma_wait<0>();
		wgmma_hold(h.s);
		wgmma_hold(h.o);
		wgmma_hold(h.p);
	}

	/* The first block of a tile sets the rows' reference maximum. diagonal: keys after the row's own are
	 * masked. */
	__device__ __forceinline__ void softmax(half &h, bool first, bool diagonal)
	{
		const float scale = C::FP8 ? base::scale_log2 : a.scale_log2;
		float factor[2];

		if (diagonal) {
			const int row = warp * 16 + lane / 4, low[2] = {0, 0}, high[2] = {row, row + 8};

			scores_mask(h.s, low, high, lane % 4 * 2);
		}
		if (first)
			h.x = softmax_rows{{INFINITY, INFINITY}, {0, 0}};
		if (scores_take<C>(h.s, h.x, scale, !first, h.p, factor) && !first)
			accumulator_scale(h.o, factor);
	}

	/* Releases blocks that the last tile of a head does not see. */
	__device__ __forceinline__ void skip(unsigned n, unsigned end)
	{
		for (; n < end; n++) {
			wait(C::FULL_K, n);
			release(C::EMPTY_K + n % C::SLOTS);
			wait(C::FULL_V, n);
			release(C::EMPTY_V + n % C::SLOTS);
		}
	}

	__device__ __forceinline__ void run()
	{
		half one, two;
		place p = tile_of(blockIdx.x, 0, 0);
		int pair_before = -1, tile_before = 0; /* tile whose O is not yet stored */
		unsigned tiles = 0, n_before = 0;      /* n_before: the block of the second half's last values */
		bool add = false, give = false;	       /* give: release that block then */

		if (p.pair >= pairs())
			return;
		queries<0>(one, 0);
		queries<1>(two, 0);
		wait(C::FULL_K, 0);
		wgmma_fence();
		base::scores_issue(one.s, one.q, 0, 0);
#pragma unroll
		for (int i = 0; i < C::PAIRS; i++)
			two.p[i] = 0;
		wgmma_wait<0>();
		wgmma_hold(one.s);
		while (p.pair < pairs()) {
			const place then = after(p);
			const unsigned count = seen(p);
			const bool last = last_pass(p), more = then.pair < pairs();
			const unsigned diagonal = causal() ? count - 2 : ~0u; /* for the first half; one more
									       * for the second */

			tiles++;
			for (unsigned j = 0; j < count; j++) {
				const unsigned n = p.fill + j;
				const bool end = j + 1 == count;
				const unsigned following = end ? (more ? then.fill : n) : n + 1;

				ask(two, n, n_before, add);
				if (j == 0 && pair_before >= 0)
					base::template store<0>(one.o, one.x, pair_before, tile_before);
				if (j <= diagonal || diagonal == ~0u)
					softmax(one, j == 0, j == diagonal);
				else
#pragma unroll
					for (int i = 0; i < C::PAIRS; i++)
						one.p[i] = 0;
				products_wait(two);
				if (j == 0)
					queries_done();
				if (give)
					release(C::EMPTY_V + n_before % C::SLOTS);
				if (last)
					release(C::EMPTY_K + n % C::SLOTS);
				if (end && last)
					skip(n + 1, p.fill + blocks());
				if (end && more)
					queries<0>(one, tiles);
				wait(C::FULL_K, following);
				wait(C::FULL_V, n);

				ask(one, following, n, j > 0);
				if (j == 0 && pair_before >= 0)
					base::template store<1>(two.o, two.x, pair_before, tile_before);
				softmax(two, j == 0, causal() && j == diagonal + 1);
				if (end && more)
					queries<1>(two, tiles);
				products_wait(one);
				n_before = n;
				add = j > 0;
				give = last;
			}
			pair_before = p.pair;
			tile_before = p.tile;
			p = then;
		}
		wgmma_fence();
		base::values_issue(two.o, two.p, n_before, add);
		wgmma_wait<0>();
		wgmma_hold(two.o);
		base::template store<0>(one.o, one.x, pair_before, tile_before);
		base::template store<1>(two.o, two.x, pair_before, tile_before);
		if (lane == 0)
			tensor_store_wait();
	}
};
#endif
