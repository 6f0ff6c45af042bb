/* SPDX-License-Identifier: Apache-2.0 */
/* dQ of 128 queries in a separate pass. A consumer warpgroup has 64 queries and processes the keys that they
 * see. */
#ifndef KERNEL_ATTENTION_BACKWARD_SM90_QUERIES_CUH
#define KERNEL_ATTENTION_BACKWARD_SM90_QUERIES_CUH
#include "kernel/attention/backward/sm90_shared.cuh"

template <typename T_, int D_> struct queries_shape {
	typedef T_ T;
	enum {
		D = D_,
		CHUNKS = D_ / 64,
		BYTES = 128 * D_ * 2, /* bytes of a tile */
		Q_AT = 0,
		O_AT = BYTES,
		K_AT = 2 * BYTES,
		V_AT = K_AT + SLOTS * BYTES,
		BARRIERS_AT = V_AT + SLOTS * BYTES,
		FULL_QO = 0,
		FULL_K = 1,
		EMPTY_K = FULL_K + SLOTS,
		FULL_V = EMPTY_K + SLOTS,
		EMPTY_V = FULL_V + SLOTS,
		SHARED_BYTES = BARRIERS_AT + 128 + 1024,
	};
};

template <typename C>
static __device__ void queries_produce(const attention_backward_sm90_args &x, const backward_place &p, uint32_t base,
				       int first, int head, const backward_range &range)
{
	const int kv_head = head / (int)(x.a.heads / x.a.kv_heads);
	const uint32_t barriers = base + C::BARRIERS_AT;

	if (range.from == range.to)
		return;
	barrier_expect(barriers + 8 * C::FULL_QO, 2 * C::BYTES);
	tile_ask<C::BYTES, C::CHUNKS>(base + C::Q_AT, &x.q_map, barriers + 8 * C::FULL_QO, p.q_row + first, head, p.batch);
	tile_ask<C::BYTES, C::CHUNKS>(base + C::O_AT, &x.d_o_map, barriers + 8 * C::FULL_QO, p.q_row + first, head, p.batch);
	for (int t = range.from; t < range.to; t++) {
		const unsigned n = t - range.from, slot = n % SLOTS, parity = n / SLOTS % 2 ^ 1;
		const uint32_t full_k = barriers + 8 * (C::FULL_K + slot), full_v = barriers + 8 * (C::FULL_V + slot);

		barrier_wait(barriers + 8 * (C::EMPTY_K + slot), parity);
		barrier_expect(full_k, C::BYTES);
		tile_ask<C::BYTES, C::CHUNKS>(base + C::K_AT + slot * C::BYTES, &x.k_map, full_k, p.kv_row + t * KEYS, kv_head,
					      p.batch);
		barrier_wait(barriers + 8 * (C::EMPTY_V + slot), parity);
		barrier_expect(full_v, C::BYTES);
		tile_ask<C::BYTES, C::CHUNKS>(base + C::V_AT + slot * C::BYTES, &x.v_map, full_v, p.kv_row + t * KEYS, kv_head,
					      p.batch);
	}
}

template <typename C> struct queries_consumer {
	typedef typename C::T T;
	const attention_backward_args &a;
	uint32_t base;
	unsigned group, warp, lane;
	float lse2[2], sum[2];
	int low[2], high[2]; /* first and last key that the thread's queries see */

	__device__ __forceinline__ uint32_t barrier(unsigned number) const { return base + C::BARRIERS_AT + 8 * number; }

	__device__ __forceinline__ void release(unsigned number)
	{
		__syncwarp();
		if (lane == 0)
			barrier_arrive(barrier(number));
	}

	__device__ __forceinline__ void step(float (&d_q)[C::D / 2], unsigned n, int tile, bool whole)
	{
		const unsigned slot = n % SLOTS, parity = n / SLOTS % 2;
		const uint32_t k = base + C::K_AT + slot * C::BYTES;
		const float scale_log2 = a.scale * 1.44269504089f;
		float s[KEYS / 2], d_p[KEYS / 2];
		uint32_t d_s[KEYS / 4];

		barrier_wait(barrier(C::FULL_K + slot), parity);
		wgmma_fence();
		product_issue<T, C::D, 128, KEYS>(s, base + C::Q_AT + group * 64 * 128, k);
		barrier_wait(barrier(C::FULL_V + slot), parity);
		product_issue<T, C::D, 128, KEYS>(d_p, base + C::O_AT + group * 64 * 128, base + C::V_AT + slot * C::BYTES);
		wgmma_wait<1>();
		wgmma_hold(s);
#pragma unroll
		for (int i = 0; i < KEYS / 2; i++)
			s[i] = exp2_unit(fmaf(s[i], scale_log2, -lse2[i / 2 % 2]));
		if (!whole)
			cut(s, low, high, tile * KEYS + lane % 4 * 2);
		wgmma_wait<0>();
		wgmma_hold(d_p);
		release(C::EMPTY_V + slot);
#pragma unroll
		for (int i = 0; i < KEYS / 2; i++)
			d_p[i] = s[i] * fmaf(d_p[i], a.scale, -sum[i / 2 % 2]);
		pack<T>(d_p, d_s);
		wgmma_fence();
		add_issue<T, C::D, KEYS>(d_q, d_s, k);
		wgmma_wait<0>();
		wgmma_hold(d_q);
		wgmma_hold(d_s);
		release(C::EMPTY_K + slot);
	}

	__device__ __forceinline__ void run(const backward_place &p, int first, int head, const backward_range &range)
	{
		const int row = first + group * 64 + warp * 16 + lane / 4;
		const int64_t numbers = (int64_t)head * a.rows + p.padded + row;
		float d_q[C::D / 2];

#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			d_q[i] = 0;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			lse2[r] = a.lse2[numbers + 8 * r];
			sum[r] = a.sums[numbers + 8 * r];
			low[r] = row + 8 * r + p.shift - a.left;
			high[r] = min(row + 8 * r + p.shift + a.right, p.kv_len - 1);
		}
		if (range.from < range.to)
			barrier_wait(barrier(C::FULL_QO), 0);
		for (int t = range.from; t < range.to; t++)
			step(d_q, t - range.from, t, backward_whole(range, t));
		rows_store<T, C::D>((T *)a.d_q + backward_at(a.q_step, p.batch, head, p.q_row), a.q_step.row, d_q, row, p.q_len, lane);
	}
};

template <typename C> static __device__ __forceinline__ void queries_run(const attention_backward_sm90_args &x)
{
	const attention_backward_args &a = x.a;
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
	const uint32_t base = (shared_at(backward_shared) + 1023) / 1024 * 1024;
	const backward_unit u = unit_find(a, blockIdx.x, a.heads, (a.q_len + 127) / 128);
	const int head = u.head, first = u.unit * 128;
	const backward_place p = backward_find(a, u.sequence);
	const backward_range range = keys_of(a, p, first, 128, KEYS);

	if (first >= p.q_len)
		return;
	if (threadIdx.x == 0)
		barriers_begin(base + C::BARRIERS_AT, 1, 2);
	__syncthreads();
	if (warp < 4) {
		registers_shrink<24>();
		if (warp == 0 && lane == 0)
			queries_produce<C>(x, p, base, first, head, range);
	} else {
		registers_grow<240>();
		queries_consumer<C> consumer = {a, base, warp / 4 - 1, warp % 4, lane};

		consumer.run(p, first, head, range);
	}
}
#endif
