/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention with a causal mask, for heads of eight blocks that exactly fill the slots, block j in slot j.
 * Each warpgroup has twelve blocks of a head. It takes its longest tile first, and within a tile the cut
 * block first and then the others down to block 0.
 * So every tile ends with block 0, the compiler knows the places of whole blocks, and only the first tile of
 * a head waits for loads. A block is released as soon as no shorter tile needs it. So the next head's last
 * keys, which are needed first, arrive while this head's first keys are still being read.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_DOWN_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_DOWN_CUH
#include "kernel/attention/forward/sm90_head.cuh"

template <typename C> struct attention_down : attention_heads<C, true> {
	static_assert(C::DOWN && C::Q_REGISTERS && C::GROUPS == 3 && C::SLOTS == 8, "shares of tile_down");
	typedef attention_heads<C, true> base;
	using base::a;
	using base::group;
	using base::lane;
	using base::q;
	using base::release;
	using base::room;
	using base::x;

	struct place {
		int round, pair; /* pair below 0: none is left */
		int pass, tile;
		int shorter; /* the warpgroup's next tile of the head; below 0: none */
	};

	__device__ __forceinline__ place at(int round, int pair, int pass) const
	{
		const int share = (group + round) % 3, shorter = tile_down(share, pass + 1);

		return place{round, pair, pass, tile_down(share, pass), shorter < C::SLOTS ? shorter : -1};
	}

	__device__ __forceinline__ place after(const place &p) const
	{
		return p.shorter < 0 ? at(p.round + 1, down_pair(a, p.round + 1), 0) : at(p.round, p.pair, p.pass + 1);
	}

	__device__ __forceinline__ void come(unsigned full, int block, const place &p)
	{
		if (p.pass == 0)
			barrier_wait(room.barrier(full + block), p.round % 2);
	}

	/* Computes the scores of block j and the GEMM with the values of block j + 1. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&before)[C::PAIRS],
					     uint32_t (&p)[C::PAIRS], int j, const place &here)
	{
		float factor[2];
		bool grown;

		come(C::FULL_K, j, here);
		come(C::FULL_V, j + 1, here);
		wgmma_fence();
		base::scores_issue(s, q, 0, j);
		base::values_issue(o, before, j + 1, here.tile > j + 1);
		wgmma_wait<1>();
		wgmma_hold(s);
		if (here.shorter < j)
			release(C::EMPTY_K + j);
		grown = base::softmax(s, false, false, p, factor);
		wgmma_wait<0>();
		wgmma_hold(o);
		wgmma_hold(before);
		if (here.shorter < j + 1)
			release(C::EMPTY_V + j + 1);
		if (grown)
			accumulator_scale(o, factor);
	}

	__device__ __forceinline__ void cut(float (&s)[C::KEYS / 2], uint32_t (&p)[C::PAIRS])
	{
		scores_take_cut<C>(s, x, a.scale_log2, base::warp, lane, p);
	}

	/* Moves the pairs of a tile's cut block to the register set that its parity requires. */
	__device__ __forceinline__ void settle(uint32_t (&p0)[C::PAIRS], const uint32_t (&p1)[C::PAIRS], const place &p)
	{
		if (p.tile % 2 == 0)
#pragma unroll
			for (int i = 0; i < C::PAIRS; i++)
				p0[i] = p1[i];
	}

	/* Computes the scores of the next tile's cut block and the GEMM with this tile's last values. */
	__device__ __forceinline__ void turn(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], uint32_t (&p0)[C::PAIRS],
					     uint32_t (&p1)[C::PAIRS], const place &here, const place &then)
	{
		const softmax_rows x_before = x;

		base::queries_take();
		come(C::FULL_K, then.tile, then);
		come(C::FULL_V, 0, here);
		wgmma_fence();
		base::scores_issue(s, q, 0, then.tile);
		base::values_issue(o, p0, 0, here.tile > 0);
		wgmma_wait<1>();
		wgmma_hold(s);
		base::queries_done();
		release(C::EMPTY_K + then.tile);
		cut(s, p1);
		wgmma_wait<0>();
		wgmma_hold(o);
		wgmma_hold(p0);
		if (here.shorter < 0)
			release(C::EMPTY_V);
		base::template store<0>(o, x_before, here.pair, here.tile);
		settle(p0, p1, then);
	}

	__device__ __forceinline__ void begin(float (&s)[C::KEYS / 2], uint32_t (&p0)[C::PAIRS], uint32_t (&p1)[C::PAIRS],
					      const place &here)
	{
		base::tiles = 0;
		base::queries_take();
		come(C::FULL_K, here.tile, here);
		wgmma_fence();
		base::scores_issue(s, q, 0, here.tile);
		wgmma_wait<0>();
		wgmma_hold(s);
		base::queries_done();
		release(C::EMPTY_K + here.tile);
		cut(s, p1);
		settle(p0, p1, here);
	}

	__device__ __forceinline__ void end(float (&o)[C::D / 2], const uint32_t (&p0)[C::PAIRS], const place &here)
	{
		come(C::FULL_V, 0, here);
		wgmma_fence();
		base::values_issue(o, p0, 0, here.tile > 0);
		wgmma_wait<0>();
		wgmma_hold(o);
		base::template store<0>(o, x, here.pair, here.tile);
		if (lane == 0)
			tensor_store_wait();
	}

	__device__ __forceinline__ void run()
	{
		float s[C::KEYS / 2], o[C::D / 2];
		uint32_t p0[C::PAIRS], p1[C::PAIRS];
		place here = at(0, down_pair(a, 0), 0);

		begin(s, p0, p1, here);
		for (;;) {
#pragma unroll
			for (int j = C::SLOTS - 2; j >= 0; j--)
				if (here.tile > j) {
					if (j % 2)
						step(s, o, p0, p1, j, here);
					else
						step(s, o, p1, p0, j, here);
				}
			const place then = after(here);

			if (then.pair < 0)
				break;
			turn(s, o, p0, p1, here, then);
			here = then;
		}
		end(o, p0, here);
	}
};
#endif
