/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention without a mask, or with a causal mask with as many keys as queries. A consumer warpgroup's blocks
 * continue from tile to tile, whether a head's keys stay in the slots or stream through. The next tile's
 * first scores are issued before this tile's last values, and their softmax overlaps that GEMM, as within a
 * tile. Only the store of O remains between tiles.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_FLOW_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_FLOW_CUH
#include "kernel/attention/forward/sm90_plain.cuh"

template <typename C> struct attention_flow : attention_plain<C> {
	static_assert(C::STALE && !C::PAIR && !C::Q_REGISTERS, "");
	typedef attention_plain<C> base;
	using base::a;
	using base::blocks;
	using base::group;
	using base::lane;
	using base::release;
	using base::room;
	using base::wait;
	using base::warp;

	/* A tile of a unit. pass: the pass over its keys; fill: fill number of the unit's first block. */
	struct place {
		int unit, pass;
		unsigned fill;
	};

	place at;	  /* the tile of the newest block of scores */
	unsigned n, j;	  /* number of that block: in total, and within its tile */
	unsigned count;	  /* blocks that the tile sees */
	unsigned tiles;	  /* number of tiles whose queries were taken */
	softmax_rows x;

	__device__ __forceinline__ int units() const { return base::pairs() * (int)a.head_units; }

	__device__ __forceinline__ bool causal() const { return a.right == 0; }

	__device__ __forceinline__ bool last_pass(const place &p) const { return p.pass + 1 == (int)a.passes; }

	__device__ __forceinline__ place after(const place &p) const
	{
		return last_pass(p) ? place{p.unit + (int)gridDim.x, 0, p.fill + blocks()} : place{p.unit, p.pass + 1, p.fill};
	}

	__device__ __forceinline__ int pair_of(const place &p) const { return p.unit / (int)a.head_units; }

	/* The tile that unit_find and tile_dealt assign. */
	__device__ __forceinline__ int tile_of(const place &p) const
	{
		const int across = p.unit - pair_of(p) * (int)a.head_units, own = p.pass % 2 ? C::GROUPS - 1 - group : group;

		return (((int)a.head_units - 1 - across) * (int)a.passes + p.pass) * C::GROUPS + own;
	}

	__device__ __forceinline__ unsigned seen(const place &p) const
	{
		return causal() ? warp_uniform(tile_of(p) * C::ROWS / C::KEYS + 1) : blocks();
	}

	__device__ __forceinline__ unsigned q_slot() const { return (tiles - 1) % C::Q_SLOTS; }

	__device__ __forceinline__ void queries_take()
	{
		barrier_wait(room.barrier(C::FULL_Q + group * C::Q_SLOTS + tiles % C::Q_SLOTS), tiles / C::Q_SLOTS % 2);
		tiles++;
	}

	/* Called when the scores of block n have arrived. */
	__device__ __forceinline__ void scores_done()
	{
		if (last_pass(at))
			release(C::EMPTY_K + n % C::SLOTS);
		if (j + 1 == count) {
			__syncwarp();
			release(C::EMPTY_Q + group * C::Q_SLOTS + q_slot());
		}
	}

	__device__ __forceinline__ bool softmax(float (&s)[C::KEYS / 2], uint32_t (&p)[C::PAIRS], float (&factor)[2])
	{
		if (causal() && j + 1 == count) {
			const int row = tile_of(at) * C::ROWS % C::KEYS + (int)(warp * 16 + lane / 4);
			const int low[2] = {0, 0}, high[2] = {row, row + 8};

			scores_mask(s, low, high, lane % 4 * 2);
		}
		if (j == 0)
			x = softmax_rows{{INFINITY, INFINITY}, {0, 0}};
		return scores_take<C>(s, x, C::FP8 ? base::scale_log2 : a.scale_log2, j > 0, p, factor);
	}

	/* Releases blocks that the unit's last tile does not see. All of them can be loaded by now. */
	__device__ __forceinline__ void skip(unsigned from, unsigned end)
	{
		for (; from < end; from++) {
			wait(C::FULL_K, from);
			release(C::EMPTY_K + from % C::SLOTS);
			wait(C::FULL_V, from);
			release(C::EMPTY_V + from % C::SLOTS);
		}
	}

	/* Computes the scores of the next block and the GEMM with this block's values. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], const uint32_t (&before)[C::PAIRS],
					     uint32_t (&p)[C::PAIRS])
	{
		const softmax_rows x_before = x;
		const place here = at;
		const unsigned n_before = n;
		const bool fresh = j + 1 == count, add = j > 0;
		float factor[2];
		bool grown;

		if (fresh) {
			if (last_pass(at))
				skip(n + 1, at.fill + blocks());
			at = after(at);
			count = seen(at);
			n = at.fill;
			j = 0;
			queries_take();
		} else {
			n++;
			j++;
		}
		wait(C::FULL_K, n);
		wait(C::FULL_V, n_before);
		wgmma_fence();
		base::scores_issue(s, nullptr, q_slot(), n);
		base::values_issue(o, before, n_before, add);
		wgmma_wait<1>();
		wgmma_hold(s);
		scores_done();
		grown = softmax(s, p, factor);
		wgmma_wait<0>();
		wgmma_hold(o);
		wgmma_hold((uint32_t(&)[C::PAIRS])before);
		if (last_pass(here))
			release(C::EMPTY_V + n_before % C::SLOTS);
		if (fresh)
			base::template store<0>(o, x_before, pair_of(here), tile_of(here));
		else if (grown)
			accumulator_scale(o, factor);
	}

	/* Whether no block comes after this one. */
	__device__ __forceinline__ bool ends() const { return j + 1 == count && after(at).unit >= units(); }

	__device__ __forceinline__ void end(float (&o)[C::D / 2], const uint32_t (&p)[C::PAIRS])
	{
		wait(C::FULL_V, n);
		wgmma_fence();
		base::values_issue(o, p, n, j > 0);
		wgmma_wait<0>();
		wgmma_hold(o);
		base::template store<0>(o, x, pair_of(at), tile_of(at));
		if (lane == 0)
			tensor_store_wait();
	}

	__device__ __forceinline__ void run()
	{
		float s[C::KEYS / 2], o[C::D / 2], factor[2];
		uint32_t p0[C::PAIRS], p1[C::PAIRS];

		at = place{(int)blockIdx.x, 0, 0};
		if (at.unit >= units())
			return;
		tiles = n = j = 0;
		count = seen(at);
		queries_take();
		base::scores_first(s);
		scores_done();
		softmax(s, p0, factor);
		for (;;) {
			if (ends()) {
				end(o, p0);
				return;
			}
			step(s, o, p0, p1);
			if (ends()) {
				end(o, p1);
				return;
			}
			step(s, o, p1, p0);
		}
	}
};
#endif
