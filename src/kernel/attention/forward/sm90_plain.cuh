/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base of the consumer warpgroups that need no units in shared memory and no range of keys. All sequences
 * have the same length, and blocks of keys are seen as a whole. Every thread of a block counts the same
 * blocks. So descriptors are in uniform registers, and fewer registers are spilled. Spilled values go to the
 * L2, because shared memory leaves too little L1.
 */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_PLAIN_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_PLAIN_CUH
#include "kernel/attention/forward/sm90_any_range.cuh"

template <typename C> struct attention_plain {
	const attention_sm90_args &a;
	attention_room<C> room;
	attention_unit *units; /* not used */
	unsigned group, warp, lane;
	float scale_log2; /* FP8: scale for the stored elements */

	__device__ __forceinline__ int pairs() const { return a.batch * a.heads; }

	__device__ __forceinline__ unsigned blocks() const { return a.kv_len / C::KEYS; }

	__device__ __forceinline__ void release(unsigned number)
	{
		if (lane == 0)
			barrier_arrive(room.barrier(number));
	}

	__device__ __forceinline__ void wait(unsigned full, unsigned n)
	{
		barrier_wait(room.barrier(full + n % C::SLOTS), n / C::SLOTS % 2);
	}

	/* Issues the first scores and waits for them. The queries must have arrived. */
	__device__ __forceinline__ void scores_first(float (&s)[C::KEYS / 2])
	{
		wait(C::FULL_K, 0);
		wgmma_fence();
		scores_issue(s, nullptr, 0, 0);
		wgmma_wait<0>();
		wgmma_hold(s);
	}

	/* q: the queries, if they are register operands. */
	__device__ __forceinline__ void scores_issue(float (&s)[C::KEYS / 2], const uint32_t *q, unsigned q_slot, unsigned n)
	{
		const uint64_t k = wgmma_tile_of<C::CHUNK>(room.k(n % C::SLOTS));

		const uint64_t t = C::Q_REGISTERS ? 0 : wgmma_tile_of<C::CHUNK>(warp_uniform(room.q(group, q_slot)));

#pragma unroll
		for (int i = 0; i < C::QUERIES / 4; i++) {
			const uint64_t kb = wgmma_on(k, i / C::STEP * C::KEYS * C::CHUNK + i % C::STEP * 32);

			if (C::Q_REGISTERS)
				wgmma_rs(typename C::T(), s, q + 4 * i, kb, i > 0);
			else
				wgmma_ss(typename C::T(), s, wgmma_on(t, i / C::STEP * 64 * C::CHUNK + i % C::STEP * 32),
					 kb, i > 0);
		}
		wgmma_commit();
	}

	__device__ __forceinline__ void values_issue(float (&o)[C::D / 2], const uint32_t (&p)[C::PAIRS], unsigned n, bool add)
	{
#pragma unroll
		for (int i = 0; i < C::PAIRS / 4; i++)
			if constexpr (C::FP8)
				wgmma_rs(typename C::T(), o, p + 4 * i,
					 wgmma_on(wgmma_tile_of<C::CHUNK>(room.v(n % C::SLOTS)),
						  i / C::STEP * C::D * C::CHUNK + i % C::STEP * 32), i > 0 || add);
			else
				wgmma_rs_across(typename C::T(), o, p + 4 * i,
						wgmma_on(wgmma_tile(room.v(n % C::SLOTS), C::KEYS * 128), i * 2048),
						i > 0 || add);
		wgmma_commit();
	}

	template <int HALF> __device__ __forceinline__ void store(const float (&o)[C::D / 2], const softmax_rows &x, int pair, int tile)
	{
		const int first = tile * C::ROWS + HALF * 64 + warp * 16, sequence = pair / (int)a.heads;
		const uint32_t at = room.o(group) + (HALF * C::O_CHUNKS * 64 + warp * 16) * 128;
		float inverse[2];

#pragma unroll
		for (int r = 0; r < 2; r++) {
			const int row = first + lane / 4 + 8 * r;
			float sum = x.sum[r];

			sum += __shfl_xor_sync(~0u, sum, 1);
			sum += __shfl_xor_sync(~0u, sum, 2);
			inverse[r] = __fdividef(C::FP8 ? *a.descale_v : 1.f, sum); /* not 0: a row sees its own key */
			if (a.lse && lane % 4 == 0 && row < (int)a.q_len)
				a.lse[(int64_t)pair * a.q_len + row] = (__log2f(sum) - x.shift[r]) * 0.69314718056f;
		}
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
#pragma unroll
		for (int c = 0; c < C::O_CHUNKS; c++)
			if (lane == 0)
				tensor_store(&a.o_map, at + c * 64 * 128, c * 64, first, pair - sequence * (int)a.heads,
					     sequence);
	}
};
#endif
