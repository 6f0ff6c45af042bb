/* SPDX-License-Identifier: Apache-2.0 */
/* Attention backward on Hopper: units of work, GEMMs of tiles and barriers. */
#ifndef KERNEL_ATTENTION_BACKWARD_SM90_SHARED_CUH
#define KERNEL_ATTENTION_BACKWARD_SM90_SHARED_CUH
#include "kernel/attention/backward/place.cuh"
#include "kernel/hopper.cuh"
#include "kernel/wgmma.cuh"

enum { KEYS = ATTENTION_BACKWARD_KEYS, THREADS = 384, SLOTS = 2 };

enum how {
	HOW_ADD = 1,  /* dQ in the same pass, added to its sum */
	HOW_BULK = 2, /* added by bulk copies from shared memory, not from registers */
	HOW_LATE = 4, /* a tile's dQ is computed together with the next tile's scores */
	HOW_AHEAD = 8, /* the next tile's scores are issued before this tile's GEMMs are done */
	HOW_SPLIT = 16, /* two blocks of a cluster take a unit's tiles alternately and add up their gradients */
};

/* -- units: blocks of 128 rows of a head, by section of heads; units with the most work come first -- */

struct backward_unit {
	int sequence, head;
	int unit; /* grows with the work under a causal mask: a block of queries, or of keys counted from the end */
};

/* Unit `number`, for `heads` heads per sequence. blocks: number of blocks of the longest sequence. */
static __device__ __forceinline__ backward_unit unit_find(const attention_backward_args &a, int number, int heads,
							  int blocks)
{
	const int all = a.order ? heads : heads * a.batch, across = a.order ? a.order_count : blocks;
	const int per = a.section * across, which = number / per, rest = number - which * per;
	const int wide = min((int)a.section, all - which * (int)a.section), place = rest / wide;
	const int pair = which * a.section + rest - place * wide;
	backward_unit u = {pair / heads, pair % heads, blocks - 1 - place};

	if (a.order) {
		u.sequence = ATTENTION_ORDER_SEQUENCE(a.order[place]);
		u.unit = ATTENTION_ORDER_UNIT(a.order[place]);
	}
	return u;
}

static __device__ __forceinline__ float exp2_unit(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

template <typename T, int N>
static __device__ __forceinline__ void pack(const float (&s)[N], uint32_t (&p)[N / 2])
{
#pragma unroll
	for (int i = 0; i < N / 2; i++)
		p[i] = pack2(T(), s[2 * i], s[2 * i + 1]);
}

/* Sets columns before low[r] and after high[r] to zero. column: the column of the thread's first value. */
template <int N>
static __device__ __forceinline__ void cut(float (&s)[N], const int (&low)[2], const int (&high)[2], int column)
{
#pragma unroll
	for (int i = 0; i < N; i++) {
		const int c = column + i / 4 * 8 + i % 2, r = i / 2 % 2;

		if (c < low[r] || c > high[r])
			s[i] = 0;
	}
}

/* s = x y^T as one group; rows of both run along D. x is 64 rows of a tile of X_ROWS, y a whole tile of
 * Y_ROWS. */
template <typename T, int D, int X_ROWS, int Y_ROWS>
static __device__ __forceinline__ void product_issue(float (&s)[Y_ROWS / 2], uint32_t x, uint32_t y)
{
	const uint64_t a = wgmma_tile(warp_uniform(x)), b = wgmma_tile(warp_uniform(y));

#pragma unroll
	for (int i = 0; i < D / 16; i++)
		wgmma_ss(T(), s, wgmma_on(a, i / 4 * X_ROWS * 128 + i % 4 * 32),
			 wgmma_on(b, i / 4 * Y_ROWS * 128 + i % 4 * 32), i > 0);
	wgmma_commit();
}

/* c += p y as one group. p is 64 x ROWS, in registers. */
template <typename T, int D, int ROWS>
static __device__ __forceinline__ void add_issue(float (&c)[D / 2], const uint32_t (&p)[ROWS / 4], uint32_t y)
{
	const uint64_t b = wgmma_tile(warp_uniform(y), ROWS * 128);

#pragma unroll
	for (int i = 0; i < ROWS / 16; i++)
		wgmma_rs_across(T(), c, p + 4 * i, wgmma_on(b, i * 2048), 1);
	wgmma_commit();
}

/* Stores this thread's two rows of a gradient, as far as they are below `count`. */
template <typename T, int D>
static __device__ __forceinline__ void rows_store(T *to, int64_t step, const float (&c)[D / 2], int row, int count,
						  unsigned lane)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		if (row + 8 * r >= count)
			continue;
#pragma unroll
		for (int i = 0; i < D / 8; i++)
			*(uint32_t *)(to + (row + 8 * r) * step + i * 8 + lane % 4 * 2) =
				pack2(T(), c[4 * i + 2 * r], c[4 * i + 2 * r + 1]);
	}
}

template <int BYTES, int CHUNKS>
static __device__ __forceinline__ void tile_ask(uint32_t to, const tensor_map *map, uint32_t barrier, int row, int head,
						int batch)
{
#pragma unroll
	for (int c = 0; c < CHUNKS; c++)
		tensor_load(to + c * (BYTES / CHUNKS), map, barrier, c * 64, row, head, batch);
}

/* The copying thread arrives at `full` barriers. One lane of each consumer warp arrives at the `empty`
 * barriers after them. */
static __device__ __forceinline__ void barriers_begin(uint32_t at, int single, int pairs)
{
	for (int i = 0; i < single; i++)
		barrier_init(at + 8 * i, 1);
	for (int i = 0; i < pairs * SLOTS; i++) {
		const uint32_t full = at + 8 * (single + i / SLOTS * 2 * SLOTS + i % SLOTS);

		barrier_init(full, 1);
		barrier_init(full + 8 * SLOTS, 8);
	}
	barrier_init_fence();
}

extern __shared__ __align__(1024) unsigned char backward_shared[];
#endif
