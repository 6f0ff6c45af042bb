/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dK and dV of 128 keys and, with HOW_ADD, this block's part of dQ. A consumer warpgroup has 64 keys. Its S
 * and dP have keys as rows, so P and dS are the left factors of dV and dK directly from registers. For dQ
 * both warpgroups write dS to shared memory. Each computes half of dQ: half of the columns (tiles of 64
 * queries) or half of the rows (tiles of 128).
 */
#ifndef KERNEL_ATTENTION_BACKWARD_SM90_KEYS_CUH
#define KERNEL_ATTENTION_BACKWARD_SM90_KEYS_CUH
#include "kernel/attention/backward/sm90_shared.cuh"

template <typename T_, int D_, unsigned HOW_> struct keys_shape {
	typedef T_ T;
	enum {
		D = D_,
		ADD = !!(HOW_ & HOW_ADD),
		BULK = !!(HOW_ & HOW_BULK),
		LATE = !!(HOW_ & HOW_LATE),
		AHEAD = !!(HOW_ & HOW_AHEAD),
		RANKS = HOW_ & HOW_SPLIT ? 2 : 1, /* blocks per unit */
		QUERIES = ATTENTION_BACKWARD_QUERIES(D_),
		CHUNKS = D_ / 64,
		KV_BYTES = KEYS * D_ * 2,
		Q_BYTES = QUERIES * D_ * 2,
		ROW_BYTES = QUERIES * 4,
		S_BYTES = KEYS * QUERIES * 2,
		OUT_BYTES = 64 * 64 * 4, /* a warpgroup's part of dQ */
		/* offsets in shared memory */
		K_AT = 0,
		V_AT = KV_BYTES,
		Q_AT = 2 * KV_BYTES,
		O_AT = Q_AT + SLOTS * Q_BYTES,
		S_AT = O_AT + SLOTS * Q_BYTES, /* two alternating buffers of dS */
		OUT_AT = S_AT + (ADD ? 2 * S_BYTES : 0),
		LSE_AT = OUT_AT + (BULK ? 2 * OUT_BYTES : 0),
		SUM_AT = LSE_AT + SLOTS * ROW_BYTES,
		BARRIERS_AT = SUM_AT + SLOTS * ROW_BYTES,
		FULL_KV = 0,
		FULL_Q = 1,
		EMPTY_Q = FULL_Q + SLOTS,
		FULL_O = EMPTY_Q + SLOTS,
		EMPTY_O = FULL_O + SLOTS,
		BARRIERS = EMPTY_O + SLOTS,
		SHARED_BYTES = BARRIERS_AT + 128 + 1024,
	};
};

/* The order in which a block processes tiles of queries: the last tile first, each in all heads. Under a
 * causal mask, blocks that began together stay together, so they find each other's data in the L2. The blocks
 * of a unit take tiles alternately. */
template <typename C> struct keys_walk {
	int heads, tile, from, head; /* head: number within the group of its key head */

	__device__ __forceinline__ keys_walk(const attention_backward_args &a, const backward_range &range)
		: heads(a.heads / a.kv_heads), tile(range.to - 1), from(range.from), head(0)
	{
		skip(blockIdx.x % C::RANKS);
	}

	__device__ __forceinline__ bool more() const { return tile >= from; }

	__device__ __forceinline__ void skip(int count)
	{
		for (head += count; head >= heads; head -= heads)
			tile--;
	}

	__device__ __forceinline__ void next() { skip(C::RANKS); }
};

template <typename C>
static __device__ void keys_produce(const attention_backward_sm90_args &x, const backward_place &p, uint32_t base, int first,
				    int kv_head, const backward_range &range)
{
	const attention_backward_args &a = x.a;
	const uint32_t barriers = base + C::BARRIERS_AT;
	unsigned n = 0;

	if (range.from == range.to)
		return;
	barrier_expect(barriers + 8 * C::FULL_KV, 2 * C::KV_BYTES);
	tile_ask<C::KV_BYTES, C::CHUNKS>(base + C::K_AT, &x.k_map, barriers + 8 * C::FULL_KV, p.kv_row + first, kv_head, p.batch);
	tile_ask<C::KV_BYTES, C::CHUNKS>(base + C::V_AT, &x.v_map, barriers + 8 * C::FULL_KV, p.kv_row + first, kv_head, p.batch);
	for (keys_walk<C> walk(a, range); walk.more(); walk.next(), n++) {
		const unsigned slot = n % SLOTS, parity = n / SLOTS % 2 ^ 1;
		const uint32_t full_q = barriers + 8 * (C::FULL_Q + slot), full_o = barriers + 8 * (C::FULL_O + slot);
		const int head = kv_head * walk.heads + walk.head, q_row = p.q_row + walk.tile * C::QUERIES;
		const int64_t row = (int64_t)head * a.rows + p.padded + walk.tile * C::QUERIES;

		barrier_wait(barriers + 8 * (C::EMPTY_Q + slot), parity);
		barrier_expect(full_q, C::Q_BYTES + C::ROW_BYTES);
		tile_ask<C::Q_BYTES, C::CHUNKS>(base + C::Q_AT + slot * C::Q_BYTES, &x.q_map, full_q, q_row, head, p.batch);
		bulk_load(base + C::LSE_AT + slot * C::ROW_BYTES, a.lse2 + row, C::ROW_BYTES, full_q);
		barrier_wait(barriers + 8 * (C::EMPTY_O + slot), parity);
		barrier_expect(full_o, C::Q_BYTES + C::ROW_BYTES);
		tile_ask<C::Q_BYTES, C::CHUNKS>(base + C::O_AT + slot * C::Q_BYTES, &x.d_o_map, full_o, q_row, head, p.batch);
		bulk_load(base + C::SUM_AT + slot * C::ROW_BYTES, a.sums + row, C::ROW_BYTES, full_o);
	}
}

template <typename C> struct keys_consumer {
	typedef typename C::T T;
	const attention_backward_args &a;
	uint32_t base;
	const unsigned char *shared; /* the same memory as `base` */
	unsigned group, warp, lane;
	int low[2], high[2]; /* first and last query that sees the thread's keys */

	__device__ __forceinline__ uint32_t barrier(unsigned number) const { return base + C::BARRIERS_AT + 8 * number; }

	__device__ __forceinline__ void release(unsigned number)
	{
		__syncwarp();
		if (lane == 0)
			barrier_arrive(barrier(number));
	}

	/* Replaces scores by probabilities. Rows of s are keys, columns are queries. */
	__device__ __forceinline__ void shares(float (&s)[C::QUERIES / 2], unsigned slot, float scale_log2)
	{
		const float *lse2 = (const float *)(shared + C::LSE_AT + slot * C::ROW_BYTES) + lane % 4 * 2;

#pragma unroll
		for (int i = 0; i < C::QUERIES / 8; i++) {
			const float2 l = *(const float2 *)(lse2 + 8 * i);

#pragma unroll
			for (int e = 0; e < 4; e++)
				s[4 * i + e] = exp2_unit(fmaf(s[4 * i + e], scale_log2, e % 2 ? -l.y : -l.x));
		}
	}

	/* Replaces d_p by dS. */
	__device__ __forceinline__ void slopes(float (&d_p)[C::QUERIES / 2], const float (&s)[C::QUERIES / 2], unsigned slot)
	{
		const float *sums = (const float *)(shared + C::SUM_AT + slot * C::ROW_BYTES) + lane % 4 * 2;

#pragma unroll
		for (int i = 0; i < C::QUERIES / 8; i++) {
			const float2 d = *(const float2 *)(sums + 8 * i);

#pragma unroll
			for (int e = 0; e < 4; e++)
				d_p[4 * i + e] = s[4 * i + e] * fmaf(d_p[4 * i + e], a.scale, e % 2 ? -d.y : -d.x);
		}
	}

	/* Writes dS of this warp's 16 keys, as rows of queries, for both consumer warpgroups. */
	__device__ __forceinline__ void slopes_share(const uint32_t (&d_s)[C::QUERIES / 4], uint32_t to)
	{
		const unsigned row = group * 64 + warp * 16 + lane % 16;

#pragma unroll
		for (int i = 0; i < C::QUERIES / 16; i++) {
			const unsigned piece = (i % 4 * 2 + lane / 16) ^ row % 8;
			const uint32_t four[4] = {d_s[4 * i], d_s[4 * i + 1], d_s[4 * i + 2], d_s[4 * i + 3]};

			matrix_store(to + i / 4 * KEYS * 128 + row * 128 + piece * 16, four);
		}
		proxy_fence();
	}

	/* Issues this warpgroup's 64 x 64 part of dS K: its own columns or rows (see end in portable.cu). */
	__device__ __forceinline__ void queries_issue(float (&d_q)[32], uint32_t d_s)
	{
		const uint64_t x = wgmma_tile(warp_uniform(d_s + (C::QUERIES == 128 ? group * KEYS * 128 : 0)));
		const uint64_t k = wgmma_tile(warp_uniform(base + C::K_AT + (C::QUERIES == 128 ? 0 : group * KEYS * 128)));

#pragma unroll
		for (int i = 0; i < KEYS / 16; i++)
			wgmma_ss_across(T(), d_q, wgmma_on(x, i * 2048), wgmma_on(k, i * 2048), i > 0);
		wgmma_commit();
	}

	__device__ __forceinline__ void queries_add(const float (&d_q)[32], float *to)
	{
		const unsigned thread = warp * 32 + lane;

		if (!C::BULK) {
#pragma unroll
			for (int i = 0; i < 8; i++)
				add4(to + (group * 8 + i) * 512 + thread * 4, d_q[4 * i], d_q[4 * i + 1], d_q[4 * i + 2],
				     d_q[4 * i + 3]);
		} else {
			float4 *out = (float4 *)(shared + C::OUT_AT + group * C::OUT_BYTES);

			if (thread == 0)
				tensor_store_wait_read();
			named_sync(5 + group, 128);
#pragma unroll
			for (int i = 0; i < 8; i++)
				out[i * 128 + thread] =
					float4{d_q[4 * i], d_q[4 * i + 1], d_q[4 * i + 2], d_q[4 * i + 3]};
			proxy_fence();
			named_sync(5 + group, 128);
			if (thread == 0)
				bulk_add(to + group * 4096, base + C::OUT_AT + group * C::OUT_BYTES, C::OUT_BYTES);
		}
	}

	/* Processes the n-th tile of queries. sum_q: the sum of the tile. */
	__device__ __forceinline__ void step(float (&d_k)[C::D / 2], float (&d_v)[C::D / 2], unsigned n, int tile, bool whole,
					     float *sum_q)
	{
		const unsigned slot = n % SLOTS, parity = n / SLOTS % 2;
		const uint32_t q = base + C::Q_AT + slot * C::Q_BYTES, o = base + C::O_AT + slot * C::Q_BYTES;
		const uint32_t shared_s = base + C::S_AT + n % 2 * C::S_BYTES;
		float s[C::QUERIES / 2], d_p[C::QUERIES / 2];
		uint32_t p[C::QUERIES / 4], d_s[C::QUERIES / 4];

		barrier_wait(barrier(C::FULL_Q + slot), parity);
		wgmma_fence();
		product_issue<T, C::D, KEYS, C::QUERIES>(s, base + C::K_AT + group * 64 * 128, q);
		barrier_wait(barrier(C::FULL_O + slot), parity);
		product_issue<T, C::D, KEYS, C::QUERIES>(d_p, base + C::V_AT + group * 64 * 128, o);
		wgmma_wait<1>();
		wgmma_hold(s);
		shares(s, slot, a.scale * 1.44269504089f);
		if (!whole)
			cut(s, low, high, tile * C::QUERIES + lane % 4 * 2);
		pack<T>(s, p);
		wgmma_fence();
		add_issue<T, C::D, C::QUERIES>(d_v, p, o);
		wgmma_wait<1>();
		wgmma_hold(d_p);
		slopes(d_p, s, slot);
		pack<T>(d_p, d_s);
		if (C::ADD) {
			float d_q[32];

			slopes_share(d_s, shared_s);
			named_sync(1, 256);
			wgmma_fence();
			queries_issue(d_q, shared_s);
			add_issue<T, C::D, C::QUERIES>(d_k, d_s, q);
			wgmma_wait<1>();
			wgmma_hold(d_q);
			wgmma_hold(d_v);
			wgmma_hold(p);
			release(C::EMPTY_O + slot);
			queries_add(d_q, sum_q);
		} else {
			wgmma_fence();
			add_issue<T, C::D, C::QUERIES>(d_k, d_s, q);
			wgmma_wait<1>();
			wgmma_hold(d_v);
			wgmma_hold(p);
			release(C::EMPTY_O + slot);
		}
		wgmma_wait<0>();
		wgmma_hold(d_k);
		wgmma_hold(d_s);
		release(C::EMPTY_Q + slot);
	}

	/* Both warpgroups' dS of buffer n % 2 is complete: each signals the other. Two barriers alternate, so
	 * no signal counts twice. */
	__device__ __forceinline__ void tell(unsigned n) { named_arrive(1 + n % 2 * 2 + group, 256); }
	__device__ __forceinline__ void hear(unsigned n) { named_sync(1 + n % 2 * 2 + (group ^ 1), 256); }

	/* As step, but the previous tile's dQ is issued after this tile's scores. No warpgroup waits for the
	 * other's dS, which was signalled half a tile earlier. So one warpgroup's exponentials overlap the
	 * other's GEMMs. */
	template <bool FIRST>
	__device__ __forceinline__ void step_late(float (&d_k)[C::D / 2], float (&d_v)[C::D / 2], unsigned n, int tile,
						  bool whole, float *before)
	{
		const unsigned slot = n % SLOTS, parity = n / SLOTS % 2;
		const uint32_t q = base + C::Q_AT + slot * C::Q_BYTES, o = base + C::O_AT + slot * C::Q_BYTES;
		float s[C::QUERIES / 2], d_p[C::QUERIES / 2];
		uint32_t p[C::QUERIES / 4], d_s[C::QUERIES / 4];

		barrier_wait(barrier(C::FULL_Q + slot), parity);
		if (FIRST) {
			wgmma_fence();
			product_issue<T, C::D, KEYS, C::QUERIES>(s, base + C::K_AT + group * 64 * 128, q);
			wgmma_wait<0>();
			wgmma_hold(s);
			shares(s, slot, a.scale * 1.44269504089f);
		} else {
			float d_q[32];

			hear(n - 1);
			wgmma_fence();
			product_issue<T, C::D, KEYS, C::QUERIES>(s, base + C::K_AT + group * 64 * 128, q);
			queries_issue(d_q, base + C::S_AT + (n - 1) % 2 * C::S_BYTES);
			wgmma_wait<1>();
			wgmma_hold(s);
			shares(s, slot, a.scale * 1.44269504089f);
			wgmma_wait<0>();
			wgmma_hold(d_q);
			queries_add(d_q, before);
		}
		if (!whole)
			cut(s, low, high, tile * C::QUERIES + lane % 4 * 2);
		pack<T>(s, p);
		barrier_wait(barrier(C::FULL_O + slot), parity);
		wgmma_fence();
		product_issue<T, C::D, KEYS, C::QUERIES>(d_p, base + C::V_AT + group * 64 * 128, o);
		add_issue<T, C::D, C::QUERIES>(d_v, p, o);
		wgmma_wait<1>();
		wgmma_hold(d_p);
		slopes(d_p, s, slot);
		pack<T>(d_p, d_s);
		slopes_share(d_s, base + C::S_AT + n % 2 * C::S_BYTES);
		tell(n);
		wgmma_fence();
		add_issue<T, C::D, C::QUERIES>(d_k, d_s, q);
		wgmma_wait<1>();
		wgmma_hold(d_v);
		wgmma_hold(p);
		release(C::EMPTY_O + slot);
		wgmma_wait<0>();
		wgmma_hold(d_k);
		wgmma_hold(d_s);
		release(C::EMPTY_Q + slot);
	}

	__device__ __forceinline__ void last_late(unsigned n, float *before)
	{
		float d_q[32];

		hear(n - 1);
		wgmma_fence();
		queries_issue(d_q, base + C::S_AT + (n - 1) % 2 * C::S_BYTES);
		wgmma_wait<0>();
		wgmma_hold(d_q);
		queries_add(d_q, before);
	}

	/* Processes tile n of `total`. On entry its scores s are issued, followed by the previous tile's d_q.
	 * On exit the next tile's scores are issued, followed by this tile's d_q. So the matrix unit never
	 * runs empty. */
	template <bool FIRST>
	__device__ __forceinline__ void step_ahead(float (&d_k)[C::D / 2], float (&d_v)[C::D / 2], float (&s)[C::QUERIES / 2],
						   float (&d_q)[32], unsigned n, unsigned total, int tile, bool whole, float *before)
	{
		const unsigned slot = n % SLOTS, parity = n / SLOTS % 2, next = (n + 1) % SLOTS;
		const uint32_t q = base + C::Q_AT + slot * C::Q_BYTES, o = base + C::O_AT + slot * C::Q_BYTES;
		float d_p[C::QUERIES / 2];
		uint32_t p[C::QUERIES / 4], d_s[C::QUERIES / 4];

		wgmma_wait<FIRST ? 0 : 1>();
		wgmma_hold(s);
		shares(s, slot, a.scale * 1.44269504089f);
		if (!FIRST) {
			wgmma_wait<0>();
			wgmma_hold(d_q);
			queries_add(d_q, before);
		}
		if (!whole)
			cut(s, low, high, tile * C::QUERIES + lane % 4 * 2);
		pack<T>(s, p);
		barrier_wait(barrier(C::FULL_O + slot), parity);
		wgmma_fence();
		product_issue<T, C::D, KEYS, C::QUERIES>(d_p, base + C::V_AT + group * 64 * 128, o);
		add_issue<T, C::D, C::QUERIES>(d_v, p, o);
		wgmma_wait<1>();
		wgmma_hold(d_p);
		slopes(d_p, s, slot);
		pack<T>(d_p, d_s);
		slopes_share(d_s, base + C::S_AT + n % 2 * C::S_BYTES);
		tell(n);
		if (n + 1 < total)
			barrier_wait(barrier(C::FULL_Q + next), (n + 1) / SLOTS % 2);
		wgmma_fence();
		add_issue<T, C::D, C::QUERIES>(d_k, d_s, q);
		/* After the last tile this multiplies the slot's old queries again; the result is not
		 * used. */
		product_issue<T, C::D, KEYS, C::QUERIES>(s, base + C::K_AT + group * 64 * 128, base + C::Q_AT + next * C::Q_BYTES);
		wgmma_wait<1>();
		wgmma_hold(d_k);
		wgmma_hold(d_v);
		wgmma_hold(p);
		wgmma_hold(d_s);
		release(C::EMPTY_O + slot);
		release(C::EMPTY_Q + slot);
		hear(n);
		wgmma_fence();
		queries_issue(d_q, base + C::S_AT + n % 2 * C::S_BYTES);
	}

	__device__ __forceinline__ void walk_ahead(float (&d_k)[C::D / 2], float (&d_v)[C::D / 2], const backward_place &p,
						   int kv_head, const backward_range &range)
	{
		const int heads = a.heads / a.kv_heads;
		const unsigned total = heads * (range.to - range.from);
		float *before, s[C::QUERIES / 2], d_q[32];
		int t = range.to - 1, head = 0;

		if (!total)
			return;
		barrier_wait(barrier(C::FULL_Q), 0);
		wgmma_fence();
		product_issue<T, C::D, KEYS, C::QUERIES>(s, base + C::K_AT + group * 64 * 128, base + C::Q_AT);
		step_ahead<true>(d_k, d_v, s, d_q, 0, total, t, backward_whole(range, t), nullptr);
		for (unsigned n = 1; n < total; n++) {
			before = a.sum_q + ((int64_t)(kv_head * heads + head) * a.rows + p.padded + t * C::QUERIES) * C::D;
			if (++head == heads) {
				head = 0;
				t--;
			}
			step_ahead<false>(d_k, d_v, s, d_q, n, total, t, backward_whole(range, t), before);
		}
		before = a.sum_q + ((int64_t)(kv_head * heads + head) * a.rows + p.padded + t * C::QUERIES) * C::D;
		wgmma_wait<0>();
		wgmma_hold(s);
		wgmma_hold(d_q);
		queries_add(d_q, before);
	}

	__device__ __forceinline__ void store(void *to, const attention_steps &step, const float (&c)[C::D / 2],
					      const backward_place &p, int kv_head, int row)
	{
		rows_store<T, C::D>((T *)to + backward_at(step, p.batch, kv_head, p.kv_row), step.row, c, row, p.kv_len, lane);
	}

	/* The two blocks of a unit exchange gradients through the memory of their keys and values. Each gives
	 * one gradient away and adds what it receives to the one that it keeps: dK or dV. sum: that gradient;
	 * may be one of the inputs. */
	__device__ __forceinline__ void exchange(float (&sum)[C::D / 2], const float (&d_k)[C::D / 2],
						 const float (&d_v)[C::D / 2], bool of_keys)
	{
		const uint32_t own = base + C::K_AT + (group * 128 + warp * 32 + lane) * 16;

		named_sync(7, 256); /* neither warpgroup reads keys or values any more */
#pragma unroll
		for (int i = 0; i < C::D / 2; i += 4) {
			float give[4];

#pragma unroll
			for (int e = 0; e < 4; e++)
				give[e] = of_keys ? d_v[i + e] : d_k[i + e];
			shared_store4(own + i * 1024, give);
		}
		cluster_sync();
#pragma unroll
		for (int i = 0; i < C::D / 2; i += 4) {
			float got[4];

			cluster_load4(got, own + i * 1024, blockIdx.x % 2 ^ 1);
#pragma unroll
			for (int e = 0; e < 4; e++)
				sum[i + e] = (of_keys ? d_k[i + e] : d_v[i + e]) + got[e];
		}
		cluster_sync(); /* the other block reads this block's memory until here */
	}

	__device__ __forceinline__ void run(const backward_place &p, int first, int kv_head, const backward_range &range)
	{
		const int row = first + group * 64 + warp * 16 + lane / 4;
		float d_k[C::D / 2], d_v[C::D / 2];
		float *before = nullptr;
		unsigned n = 0;

#pragma unroll
		for (int i = 0; i < C::D / 2; i++)
			d_k[i] = d_v[i] = 0;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			low[r] = row + 8 * r < p.kv_len ? row + 8 * r - p.shift - a.right : INT32_MAX;
			high[r] = row + 8 * r - p.shift + a.left;
		}
		if (range.from < range.to)
			barrier_wait(barrier(C::FULL_KV), 0);
		if (C::AHEAD)
			walk_ahead(d_k, d_v, p, kv_head, range);
		for (keys_walk<C> walk(a, range); walk.more() && !C::AHEAD; walk.next(), n++) {
			const int t = walk.tile, head = kv_head * walk.heads + walk.head;
			float *sum_q = C::ADD ? a.sum_q + ((int64_t)head * a.rows + p.padded + t * C::QUERIES) * C::D : nullptr;

			if (!C::LATE)
				step(d_k, d_v, n, t, backward_whole(range, t), sum_q);
			else if (n == 0)
				step_late<true>(d_k, d_v, n, t, backward_whole(range, t), before);
			else
				step_late<false>(d_k, d_v, n, t, backward_whole(range, t), before);
			before = sum_q;
		}
		if (C::LATE && n)
			last_late(n, before);
		if constexpr (C::RANKS == 2) {
			const bool of_keys = blockIdx.x % 2 == 0;

			exchange(d_k, d_k, d_v, of_keys);
			store(of_keys ? a.d_k : a.d_v, of_keys ? a.k_step : a.v_step, d_k, p, kv_head, row);
			return;
		}
		store(a.d_k, a.k_step, d_k, p, kv_head, row);
		store(a.d_v, a.v_step, d_v, p, kv_head, row);
		if (C::BULK && warp == 0 && lane == 0)
			tensor_store_wait();
	}
};

template <typename C> static __device__ __forceinline__ void keys_run(const attention_backward_sm90_args &x)
{
	const attention_backward_args &a = x.a;
	const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
	const uint32_t base = (shared_at(backward_shared) + 1023) / 1024 * 1024;
	const int longest = (a.kv_len + KEYS - 1) / KEYS;
	const backward_unit u = unit_find(a, blockIdx.x / C::RANKS, a.kv_heads, longest);
	const int kv_head = u.head;
	const backward_place p = backward_find(a, u.sequence);
	const int first = ((a.order ? (p.kv_len + KEYS - 1) / KEYS : longest) - 1 - u.unit) * KEYS;
	const backward_range range = queries_of(a, p, first, KEYS, C::QUERIES);

	if (first >= p.kv_len)
		return;
	if (threadIdx.x == 0)
		barriers_begin(base + C::BARRIERS_AT, 1, 2);
	__syncthreads();
	if (warp < 4) {
		registers_shrink<24>();
		if (warp == 0 && lane == 0)
			keys_produce<C>(x, p, base, first, kv_head, range);
	} else {
		registers_grow<240>();
		keys_consumer<C> consumer = {a,
					     base,
					     backward_shared + (base - shared_at(backward_shared)),
					     warp / 4 - 1,
					     warp % 4,
					     lane};

		consumer.run(p, first, kv_head, range);
	}
}
#endif
