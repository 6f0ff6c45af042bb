/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows with LoRA adapters (skinny_adapters.h), made of skinny_device.cuh. Ordinary stores write u,
 * and the copy engines of other blocks read it. So there are two fences between them. A thread that wrote has one
 * before its block counts itself. A loading thread has one after it has seen the count.
 */
#include "kernel/matmul/skinny_adapters.h"
#include "kernel/matmul/skinny_device.cuh"

/* The part that has row `row` of W, or -1. */
static __device__ __forceinline__ int part_with(const skinny_adapters_args &a, uint32_t row)
{
	int found = -1;

#pragma unroll
	for (int i = 0; i < SKINNY_PARTS_MOST; i++)
		if (i < (int)a.parts && row >= a.begin[i] && row - a.begin[i] < a.count[i])
			found = i;
	return found;
}

/* First row of W of a warpgroup in a tile. */
static __device__ __forceinline__ uint32_t row_of_group(const skinny_adapters_args &a, const struct part &p,
							uint32_t group)
{
	return p.tile * a.base.tile_steps + group * a.base.second;
}

/* The part that a warpgroup multiplies with in a step of the tail, or -1. */
static __device__ __forceinline__ int part_in_step(const skinny_adapters_args &a, const struct part &p,
						   uint32_t group, uint32_t step)
{
	return a.apart && step % 2 != group ? -1 : part_with(a, row_of_group(a, p, group));
}

static __device__ __forceinline__ uint32_t column_of_step(const skinny_adapters_args &a, uint32_t step)
{
	return (a.apart ? step / 2 : step) * SKINNY_TAIL;
}

/* Number of the first row of B that belongs to row `row` of W. */
static __device__ __forceinline__ int row_of_b(const skinny_adapters_args &a, int part, uint32_t row)
{
	uint32_t before = 0;

#pragma unroll
	for (int i = 0; i < SKINNY_PARTS_MOST; i++)
		before += i < part ? a.count[i] : 0;
	return (int)(before + row - a.begin[part]);
}

/* This block's part of a tile of A. Every block has the same number of steps, so that the blocks' places in
 * their rings stay equal; steps behind the end of k load zeros. */
static __device__ __forceinline__ struct part shrink_part(const skinny_adapters_args &a, const struct cluster &k,
							  uint32_t unit)
{
	struct part p;

	p.tile = unit;
	p.peers = 1;
	p.first = p.split = k.rank;
	p.splits = k.size;
	p.begin = k.rank * a.shrink_steps;
	p.end = p.begin + a.shrink_steps;
	return p;
}

/* -- the loading warp: these functions run in one thread -- */

template <int SIZE> static __device__ __forceinline__ uint32_t stage_at(const struct memory &m, const struct place &at)
{
	return m.ring + at.slot * SKINNY_STAGE(SIZE, 1);
}

template <int SIZE>
static __device__ __forceinline__ void load_a(const skinny_adapters_args &a, const struct memory &m,
					      const struct part &p, const struct place &at, uint32_t step)
{
	const uint32_t to = stage_at<SIZE>(m, at), full = m.full + 8 * at.slot;
	const int column = (int)(step * SKINNY_TAIL), row = (int)(p.tile * SKINNY_TILE);

	barrier_wait(m.empty + 8 * at.slot, at.parity ^ 1);
	barrier_expect(full, SKINNY_STAGE(SIZE, 1));
	tensor_load_kept(to, &a.a_map, full, a.base.w_priority, column, row);
	tensor_load_kept(to + SKINNY_GROUP * SKINNY_BOX_BYTES, &a.a_map, full, a.base.w_priority, column,
			 row + SKINNY_GROUP);
}

template <int SIZE>
static __device__ __forceinline__ void load_shrink(const skinny_adapters_args &a, const struct memory &m,
						   const struct part &p, struct place &at, bool first)
{
	struct place ahead = at;
	uint32_t step = p.begin;

	if (first) {
		for (; step < p.end && step - p.begin < a.base.stages; step++) {
			load_a<SIZE>(a, m, p, ahead, step);
			advance(ahead, a.base.stages);
		}
		grid_wait();
	}
	for (uint32_t s = p.begin; s < p.end; s++) {
		if (s >= step)
			load_a<SIZE>(a, m, p, at, s);
		tensor_load_kept(stage_at<SIZE>(m, at) + SKINNY_TILE * SKINNY_BOX_BYTES, &a.x_map, m.full + 8 * at.slot,
				 L2_EVICT_LAST, (int)(s * SKINNY_TAIL), 0);
		advance(at, a.base.stages);
	}
}

/* Waits until all rows of u are there. */
static __device__ __forceinline__ void wait_for_u(const skinny_adapters_args &a, uint32_t blocks)
{
	while (load_acquire(a.state) < a.shrink_units * blocks)
		;
	proxy_fence_all();
}

/* Returns whether u is known to be there. */
template <int SIZE>
static __device__ __forceinline__ bool load_tail(const skinny_adapters_args &a, const struct memory &m,
						 const struct part &p, uint32_t blocks, struct place &at, bool has_u)
{
	for (uint32_t step = 0; step < a.tail_steps; step++) {
		const uint32_t to = stage_at<SIZE>(m, at), full = m.full + 8 * at.slot;
		const int column = (int)column_of_step(a, step);
		int part[2], any;

		part[0] = part_in_step(a, p, 0, step);
		part[1] = part_in_step(a, p, 1, step);
		any = part[0] >= 0 ? part[0] : part[1];
		barrier_wait(m.empty + 8 * at.slot, at.parity ^ 1);
		barrier_expect(full, (any < 0 ? 0 : SIZE * SKINNY_BOX_BYTES) +
					     ((part[0] >= 0) + (part[1] >= 0)) * SKINNY_GROUP * SKINNY_BOX_BYTES);
		for (uint32_t g = 0; g < 2; g++)
			if (part[g] >= 0)
				tensor_load_kept(to + g * SKINNY_GROUP * SKINNY_BOX_BYTES, &a.b_map, full,
						 a.base.w_priority, column,
						 row_of_b(a, part[g], row_of_group(a, p, g)));
		if (any >= 0) {
			if (!has_u)
				wait_for_u(a, blocks);
			has_u = true;
			tensor_load_kept(to + SKINNY_TILE * SKINNY_BOX_BYTES, &a.u_map, full, L2_EVICT_LAST,
					 any * (int)a.width + column, 0);
		}
		advance(at, a.base.stages);
	}
	return has_u;
}

/* The block will not read the count again. */
static __device__ __forceinline__ void leave(const skinny_adapters_args &a)
{
	if (atomicAdd(a.state + 1, 1u) != gridDim.x - 1)
		return;
	atomicExch(a.state, 0u);
	atomicExch(a.state + 1, 0u);
}

/* Other blocks may still arrive at this one's barriers, so the loading warp stays until they have. */
static __device__ __forceinline__ void stay(const struct memory &m, struct place &at, uint32_t stages)
{
	for (uint32_t i = 0; i < stages && threadIdx.x % 32 == 0; i++) {
		barrier_wait(m.empty + 8 * at.slot, at.parity ^ 1);
		advance(at, stages);
	}
}
template <int SIZE, typename KIND>
static __device__ __forceinline__ void provide(const skinny_adapters_args &a, const struct memory &m,
					       const struct cluster &k)
{
	const uint32_t units = a.shrink_units + a.base.units;
	struct place at = {0, 0};
	bool has_u = false;

	for (uint32_t unit = k.number; unit < units; unit += k.count) {
		const bool shrinks = unit < a.shrink_units;
		const struct part p =
			shrinks ? shrink_part(a, k, unit) : part_of(a.base, k, unit - a.shrink_units);

		if (threadIdx.x % 32 == 0) {
			if (shrinks)
				load_shrink<SIZE>(a, m, p, at, unit == k.number);
			else
				load<SIZE, KIND>(a.base, m, p, k.rank, at, unit == k.number);
			if (!shrinks && p.split == p.splits - 1)
				has_u = load_tail<SIZE>(a, m, p, k.size, at, has_u);
		}
		__syncwarp();
		if (p.splits > 1) { /* see finish_parts */
			cluster_sync();
			cluster_meet();
		}
	}
	if (threadIdx.x % 32 == 0)
		leave(a);
	stay(m, at, a.base.stages);
}

/* -- the warpgroups that multiply -- */

/* Sums of E4M3 numbers to their values, so that products in BF16 can be added. */
template <int SIZE, int LENGTH>
static __device__ __forceinline__ void scale_sums(const skinny_adapters_args &a, const struct part &p,
						  float (&c)[LENGTH])
{
	const uint32_t lane = threadIdx.x % 32, group = threadIdx.x / 128;
	const uint32_t row = row_of_group(a, p, group) + threadIdx.x % 128 / 32 * 16 + lane / 4;
	const uint32_t rows = a.base.swiglu ? 2 * a.base.outputs : a.base.outputs;
	const float low = row < rows ? a.w_scale[row] : 0, high = row + 8 < rows ? a.w_scale[row + 8] : 0;

#pragma unroll
	for (int j = 0; j < SIZE / 8; j++)
#pragma unroll
		for (int e = 0; e < 2; e++) {
			const uint32_t column = 8 * j + lane % 4 * 2 + e;
			const float by = column < a.base.rows ? a.x_scale[column] : 0;

			c[4 * j + e] *= low * by;
			c[4 * j + 2 + e] *= high * by;
		}
}

template <int SIZE, int LENGTH>
static __device__ __forceinline__ void multiply_tail(const skinny_adapters_args &a, const struct memory &m,
						     const struct part &p, uint32_t cluster, struct place &at,
						     float (&c)[LENGTH])
{
	const uint32_t group = warp_uniform(threadIdx.x / 128);

	for (uint32_t step = 0; step < a.tail_steps; step++) {
		const uint32_t w = stage_at<SIZE>(m, at);

		barrier_wait(m.full + 8 * at.slot, at.parity);
		__syncwarp(); /* without a product, a lane could release the slot before others have seen it full */
		if (part_in_step(a, p, group, step) >= 0) {
			multiply(kind_bf16(), c, w + group * SKINNY_GROUP * SKINNY_BOX_BYTES,
				 w + SKINNY_TILE * SKINNY_BOX_BYTES);
			wgmma_wait<0>();
			wgmma_hold(c);
		}
		release(m, p, at.slot, cluster);
		advance(at, a.base.stages);
	}
}

/* Four columns of a row of u, from the buffer's row at `from`. */
static __device__ __forceinline__ void put_u(const skinny_adapters_args &a, const struct part &p, uint32_t rank,
					     uint32_t row, uint32_t from)
{
	const uint32_t lane = threadIdx.x % 32, at = p.tile * SKINNY_TILE + 4 * lane;
	const bool own = (int)(at % a.width / a.rank) == a.adapter[row];
	float v[4];
	uint2 bits;

	if (at >= a.a_rows)
		return;
	gather(v, from + 16 * lane, p, rank);
	bits.x = own ? pack2(__nv_bfloat16(), v[0], v[1]) : 0;
	bits.y = own ? pack2(__nv_bfloat16(), v[2], v[3]) : 0;
	*(uint2 *)((__nv_bfloat16 *)a.u + row * a.row_u + at) = bits;
}

/* The cluster's sums to this block's rows of u. With several blocks the ring is free, because the
 * loading warp waits. */
template <int SIZE, int LENGTH>
static __device__ __forceinline__ void finish_shrink(const skinny_adapters_args &a, const struct memory &m,
						     const struct part &p, uint32_t rank, float (&c)[LENGTH])
{
	enum { ROWS = SIZE < SKINNY_TURN_ROWS ? SIZE : SKINNY_TURN_ROWS };
	const uint32_t warp = threadIdx.x / 32;

	if (p.splits > 1) {
		named_sync(1, 32 * WARPS);
		turn<SIZE / 8>(c, 0, m.ring);
		cluster_sync();
		for (uint32_t r = p.split + p.splits * warp; r < a.base.rows; r += p.splits * WARPS)
			put_u(a, p, rank, r, m.ring + 4 * SKINNY_TURN * r);
		proxy_fence();
		cluster_meet(); /* every block has read the sums */
	} else {
#pragma unroll
		for (int begin = 0; begin < SIZE; begin += ROWS) {
			named_sync(1, 32 * WARPS);
			turn<ROWS / 8>(c, begin / 8, m.turn);
			named_sync(1, 32 * WARPS);
			for (uint32_t r = begin + warp; r < begin + ROWS && r < a.base.rows; r += WARPS)
				put_u(a, p, rank, r, m.turn + 4 * SKINNY_TURN * (r - begin));
		}
	}
	proxy_fence_all();
	named_sync(1, 32 * WARPS);
	if (threadIdx.x == 0) {
		__threadfence();
		atomicAdd(a.state, 1u);
	}
}

template <int SIZE, typename KIND>
static __device__ __forceinline__ void compute(const skinny_adapters_args &a, const struct memory &m,
					       const struct cluster &k)
{
	const uint32_t units = a.shrink_units + a.base.units;
	struct place at = {0, 0};
	bool waited = false;

	for (uint32_t unit = k.number; unit < units; unit += k.count) {
		const bool shrinks = unit < a.shrink_units;
		const struct part p =
			shrinks ? shrink_part(a, k, unit) : part_of(a.base, k, unit - a.shrink_units);
		float c[SIZE / 2];

#pragma unroll
		for (int i = 0; i < SIZE / 2; i++)
			c[i] = 0;
		if (shrinks)
			multiply_all<SIZE, kind_bf16>(a.base, m, p, k.size, at, c);
		else
			multiply_all<SIZE, KIND>(a.base, m, p, k.size, at, c);
		if (!waited)
			grid_wait(); /* the factors, the residual, u and y belong to earlier kernels until they end */
		waited = true;
		if (shrinks) {
			finish_shrink<SIZE>(a, m, p, k.rank, c);
			continue;
		}
		if (a.w_scale)
			scale_sums<SIZE>(a, p, c);
		if (p.split == p.splits - 1)
			multiply_tail<SIZE>(a, m, p, k.size, at, c);
		if (p.splits == 1)
			finish_whole<SIZE>(a.base, m, p, k.rank, c);
		else
			finish_parts<SIZE>(a.base, m, p, k.rank, c);
	}
}

/* -- the block -- */

template <int SIZE, typename KIND>
static __device__ __forceinline__ struct memory set_up(void *shared, uint32_t stages, const struct cluster &k)
{
	struct memory m;

	m.ring = (shared_at(shared) + 1023) / 1024 * 1024;
	m.full = m.ring + stages * SKINNY_STAGE(SIZE, KIND::BOXES);
	m.empty = m.full + 8 * SKINNY_STAGES_MOST;
	m.turn = m.empty + 8 * SKINNY_STAGES_MOST;
	if (threadIdx.x == 32 * LOADER) {
		for (uint32_t i = 0; i < stages; i++) {
			barrier_init(m.full + 8 * i, 1);
			barrier_init(m.empty + 8 * i, WARPS * k.size);
		}
		barrier_init_fence();
	}
	return m;
}

template <int SIZE, typename KIND> static __device__ __forceinline__ void run(const skinny_adapters_args &a)
{
	extern __shared__ unsigned char shared[];
	const struct cluster k = cluster_of_block();
	const struct memory m = set_up<SIZE, KIND>(shared, a.base.stages, k);

	if (threadIdx.x == 32 * LOADER) {
		tensor_prefetch_map(&a.base.w_map);
		tensor_prefetch_map(&a.base.x_map);
		tensor_prefetch_map(&a.a_map);
		tensor_prefetch_map(&a.b_map);
		tensor_prefetch_map(&a.u_map);
	}
	cluster_meet();
	grid_release();
	if (threadIdx.x / 32 == LOADER)
		provide<SIZE, KIND>(a, m, k);
	else
		compute<SIZE, KIND>(a, m, k);
}

#define ENTRY(SIZE, KIND)                                                                                      \
	extern "C" __global__ void __launch_bounds__(SKINNY_THREADS, SIZE <= 64 ? 2 : 1)                       \
		skinny_adapters_##KIND##_n##SIZE(const __grid_constant__ skinny_adapters_args a)               \
	{                                                                                                      \
		run<SIZE, kind_##KIND>(a);                                                                     \
	}
SKINNY_SIZES(ENTRY, bf16)
SKINNY_SIZES(ENTRY, e4m3)
