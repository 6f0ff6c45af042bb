/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention without a mask, with streaming keys: sm90_flow.cuh with tile ends known to the compiler. A tile
 * has an even number of blocks, so probabilities alternate between two sets of registers.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_LEAN_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_LEAN_CUH
#include "kernel/attention/forward/sm90_plain.cuh"

template <typename C> struct attention_lean : attention_plain<C> {
	static_assert(C::STALE && !C::PAIR && !C::Q_REGISTERS && !C::FP8, "");
	typedef attention_plain<C> base;
	using base::a;
	using base::group;
	using base::release;
	using base::room;
	using base::wait;

	softmax_rows x;
	unsigned n;	/* the block whose values are multiplied next */
	unsigned tiles; /* number of tiles whose queries were taken */

	__device__ __forceinline__ int units() const { return base::pairs() * (int)a.head_units; }

	__device__ __forceinline__ unsigned q_slot() const { return (tiles - 1) % C::Q_SLOTS; }

	__device__ __forceinline__ void queries_take()
	{
		barrier_wait(room.barrier(C::FULL_Q + group * C::Q_SLOTS + tiles % C::Q_SLOTS), tiles / C::Q_SLOTS % 2);
		tiles++;
	}

	__device__ __forceinline__ void queries_done()
	{
		__syncwarp();
		release(C::EMPTY_Q + group * C::Q_SLOTS + q_slot());
	}

	__device__ __forceinline__ void store(const float (&o)[C::D / 2], const softmax_rows &rows, int unit)
	{
		const int pair = unit / (int)a.head_units, across = unit - pair * (int)a.head_units;
		const int tile = ((int)a.head_units - 1 - across) * C::GROUPS + (int)group;

		base::template store<0>(o, rows, pair, tile);
	}

	/* Computes the scores of the block after n and the GEMM with the values of block n. fresh: the block
	 * after n is the next tile's first; all: these are the tile's last scores. */
	__device__ __forceinline__ void step(float (&s)[C::KEYS / 2], float (&o)[C::D / 2], const uint32_t (&before)[C::PAIRS],
					     uint32_t (&p)[C::PAIRS], bool add, bool fresh, bool all, int unit)
	{
		const softmax_rows x_before = x;
		float factor[2];
		bool grown;

		wait(C::FULL_K, n + 1);
		wait(C::FULL_V, n);
		if (fresh)
			queries_take();
		wgmma_fence();
		base::scores_issue(s, nullptr, q_slot(), n + 1);
		base::values_issue(o, before, n, add);
		wgmma_wait<1>();
		wgmma_hold(s);
		release(C::EMPTY_K + (n + 1) % C::SLOTS);
		if (all)
			queries_done();
		if (fresh)
			x = softmax_rows{{INFINITY, INFINITY}, {0, 0}};
		grown = scores_take<C>(s, x, a.scale_log2, !fresh, p, factor);
		wgmma_wait<0>();
		wgmma_hold(o);
		wgmma_hold((uint32_t(&)[C::PAIRS])before);
		release(C::EMPTY_V + n % C::SLOTS);
		if (fresh)
			store(o, x_before, unit);
		else if (grown)
			accumulator_scale(o, factor);
		n++;
	}

	__device__ __forceinline__ void run()
	{
		float s[C::KEYS / 2], o[C::D / 2], factor[2];
		uint32_t p0[C::PAIRS], p1[C::PAIRS];
		const unsigned count = base::blocks();
		int unit = blockIdx.x;

		if (unit >= units())
			return;
		tiles = n = 0;
		queries_take();
		base::scores_first(s);
		release(C::EMPTY_K);
		x = softmax_rows{{INFINITY, INFINITY}, {0, 0}};
		scores_take<C>(s, x, a.scale_log2, false, p0, factor);
		for (;; unit += gridDim.x) {
			const bool more = unit + (int)gridDim.x < units();

			for (unsigned j = 1; j + 1 < count; j += 2) {
				step(s, o, p0, p1, j > 1, false, false, unit);
				step(s, o, p1, p0, true, false, false, unit);
			}
			step(s, o, p0, p1, count > 2, false, true, unit);
			if (!more)
				break;
			step(s, o, p1, p0, true, true, false, unit);
		}
		wait(C::FULL_V, n);
		wgmma_fence();
		base::values_issue(o, p1, n, true);
		wgmma_wait<0>();
		wgmma_hold(o);
		store(o, x, unit);
		if (base::lane == 0)
			tensor_store_wait();
	}
};
#endif
