/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the GEMMs of few rows (skinny.h): units, the ring, products and results. The
 * weights come from memory once, so a ring of stages in shared memory keeps many bytes on their way. One warp
 * asks for the loads. Two warpgroups multiply by wgmma, with weights as A and rows of x as B, so that few rows
 * cost few columns. The loading warp asks for weights before it waits for the preceding kernel, which writes x.
 */
#ifndef KERNEL_MATMUL_SKINNY_DEVICE_CUH
#define KERNEL_MATMUL_SKINNY_DEVICE_CUH
#include "kernel/hopper.cuh"
#include "kernel/matmul/skinny.h"
#include "kernel/matmul/skinny_mma.cuh"

enum { WARPS = 8, LOADER = 8 /* number of the warp that loads */ };

/* W and x in BF16. */
struct kind_bf16 {
	typedef __nv_bfloat16 type;
	enum { BOXES = 1, CONVERT = 0, W_ELEMENTS = 64, X_ELEMENTS = 64 };
};
/* W in E4M3, converted to BF16 in registers. A step has two boxes of x. */
struct kind_mixed {
	typedef __nv_bfloat16 type;
	enum { BOXES = 2, CONVERT = 1, W_ELEMENTS = 128, X_ELEMENTS = 64 };
};
/* W and x in E4M3. */
struct kind_e4m3 {
	typedef __nv_fp8_e4m3 type;
	enum { BOXES = 1, CONVERT = 0, W_ELEMENTS = 128, X_ELEMENTS = 128 };
};

struct cluster {
	uint32_t size, rank, number, count;
};

/* This block's part of a unit: steps `begin` to `end` of one tile. The `peers` blocks from rank `first` on
 * compute other tiles with the same steps. */
struct part {
	uint32_t tile, begin, end;
	uint32_t peers, first;
	uint32_t splits, split;
};

/* Place in the ring. */
struct place {
	uint32_t slot, parity;
};

struct memory {
	uint32_t ring, full, empty, turn; /* shared-memory addresses; barriers are 8 bytes each */
};

static __device__ __forceinline__ struct cluster cluster_of_block()
{
	struct cluster c;

	c.size = cluster_size();
	c.rank = cluster_rank();
	c.number = blockIdx.x / c.size;
	c.count = gridDim.x / c.size;
	return c;
}

static __device__ __forceinline__ struct part part_of(const skinny_args &a, const struct cluster &c, uint32_t unit)
{
	const bool wide = unit < a.wide_units;
	struct part p;

	p.peers = wide ? c.size : a.together;
	p.splits = c.size / p.peers;
	p.split = c.rank / p.peers;
	p.first = p.split * p.peers;
	p.tile = c.rank - p.first +
		 (wide ? unit * c.size : a.wide_units * c.size + (unit - a.wide_units) * a.together);
	p.begin = a.steps * p.split / p.splits;
	p.end = a.steps * (p.split + 1) / p.splits;
	return p;
}

static __device__ __forceinline__ void advance(struct place &p, uint32_t stages)
{
	if (++p.slot == stages) {
		p.slot = 0;
		p.parity ^= 1;
	}
}

/* -- the loading warp: these functions run in one thread -- */

template <int SIZE, typename KIND>
static __device__ __forceinline__ void load_w(const skinny_args &a, const struct memory &m, const struct part &p,
					      const struct place &at, uint32_t step)
{
	enum { STAGE = SKINNY_STAGE(SIZE, KIND::BOXES) };
	const uint32_t to = m.ring + at.slot * STAGE, full = m.full + 8 * at.slot;
	const int column = (int)(step * KIND::W_ELEMENTS), row = (int)(p.tile * a.tile_steps);

	barrier_wait(m.empty + 8 * at.slot, at.parity ^ 1);
	barrier_expect(full, STAGE);
	tensor_load_kept(to, &a.w_map, full, a.w_priority, column, row);
	tensor_load_kept(to + SKINNY_GROUP * SKINNY_BOX_BYTES, &a.w_map, full, a.w_priority, column,
			 row + (int)a.second);
}

/* Blocks with the same steps take turns to load x for all of them. */
template <int SIZE, typename KIND>
static __device__ __forceinline__ void load_x(const skinny_args &a, const struct memory &m, const struct part &p,
					      uint32_t rank, const struct place &at, uint32_t step)
{
	enum { STAGE = SKINNY_STAGE(SIZE, KIND::BOXES), BOX = SIZE * SKINNY_BOX_BYTES };
	const uint32_t to = m.ring + at.slot * STAGE + SKINNY_TILE * SKINNY_BOX_BYTES, full = m.full + 8 * at.slot;
	const uint16_t blocks = (uint16_t)(((1u << p.peers) - 1) << p.first);

	if (step % p.peers != rank - p.first)
		return;
#pragma unroll
	for (int b = 0; b < KIND::BOXES; b++) {
		const int column = (int)(step * KIND::W_ELEMENTS + b * KIND::X_ELEMENTS);

		if (p.peers == 1)
			tensor_load_kept(to + b * BOX, &a.x_map, full, L2_EVICT_LAST, column, 0);
		else
			tensor_load_spread(to + b * BOX, &a.x_map, full, blocks, L2_EVICT_LAST, column, 0);
	}
}

template <int SIZE, typename KIND>
static __device__ __forceinline__ void load(const skinny_args &a, const struct memory &m, const struct part &p,
					    uint32_t rank, struct place &at, bool first)
{
	struct place ahead = at;
	uint32_t step = p.begin;

	/* Only the loads of x wait for the kernel that writes x. */
	if (first) {
		for (; step < p.end && step - p.begin < a.stages; step++) {
			load_w<SIZE, KIND>(a, m, p, ahead, step);
			advance(ahead, a.stages);
		}
		grid_wait();
	}
	for (uint32_t s = p.begin; s < p.end; s++) {
		if (s >= step)
			load_w<SIZE, KIND>(a, m, p, at, s);
		load_x<SIZE, KIND>(a, m, p, rank, at, s);
		advance(at, a.stages);
	}
}

/* -- the warpgroups that multiply -- */

/* A warp has read its operands of a slot. Each peer loads into the slots of all peers, so it hears of it. */
static __device__ __forceinline__ void release(const struct memory &m, const struct part &p, uint32_t slot,
					       uint32_t cluster)
{
	const uint32_t lane = threadIdx.x % 32;

	if (lane < p.peers)
		barrier_arrive_at(m.empty + 8 * slot, p.first + lane, cluster / p.peers);
	__syncwarp();
}

template <int LENGTH>
static __device__ __forceinline__ void multiply(struct kind_bf16, float (&c)[LENGTH], uint32_t w, uint32_t x)
{
	const uint64_t wt = wgmma_tile(w), xt = wgmma_tile(x);

	wgmma_fence();
#pragma unroll
	for (int k = 0; k < 4; k++)
		skinny_mma(__nv_bfloat16(), c, wgmma_on(wt, 32 * k), wgmma_on(xt, 32 * k));
	wgmma_commit();
}

template <int LENGTH>
static __device__ __forceinline__ void multiply(struct kind_e4m3, float (&c)[LENGTH], uint32_t w, uint32_t x)
{
	const uint64_t wt = wgmma_tile(w), xt = wgmma_tile(x);

	wgmma_fence();
#pragma unroll
	for (int k = 0; k < 4; k++)
		skinny_mma(__nv_fp8_e4m3(), c, wgmma_on(wt, 32 * k), wgmma_on(xt, 32 * k));
	wgmma_commit();
}

template <int SIZE, typename KIND, int LENGTH>
static __device__ __forceinline__ void multiply_all(const skinny_args &a, const struct memory &m,
						    const struct part &p, uint32_t cluster, struct place &at,
						    float (&c)[LENGTH])
{
	enum { STAGE = SKINNY_STAGE(SIZE, KIND::BOXES) };
	const uint32_t group = warp_uniform(threadIdx.x / 128);
	uint32_t before = 0;

	for (uint32_t s = p.begin; s < p.end; s++) {
		const uint32_t w = m.ring + at.slot * STAGE;

		barrier_wait(m.full + 8 * at.slot, at.parity);
		multiply(KIND(), c, w + group * SKINNY_GROUP * SKINNY_BOX_BYTES, w + SKINNY_TILE * SKINNY_BOX_BYTES);
		wgmma_wait<1>();
		if (s > p.begin)
			release(m, p, before, cluster);
		before = at.slot;
		advance(at, a.stages);
	}
	wgmma_wait<0>();
	wgmma_hold(c);
	if (p.end > p.begin)
		release(m, p, before, cluster);
}

/* Two E4M3 numbers in the low 16 bits, as two BF16. The bits of an E4M3 number, put where BF16's are, mean
 * 2^-120 times its value, also if it is subnormal. */
static __device__ __forceinline__ uint32_t bf16_of_e4m3(uint32_t two)
{
	const uint32_t spread = __byte_perm(two, 0, 0x1404);
	const uint32_t bits = (spread & 0x80008000) | (spread >> 4 & 0x07f007f0);

	return multiply_bf16x2(bits, 0x7b807b80);
}

/* A's fragments of four products (64 elements along k) from rows of 128 E4M3 numbers. `at`: this thread's
 * first row, `half`: which 64. */
static __device__ __forceinline__ void convert(uint32_t (&f)[4][4], uint32_t at, uint32_t half)
{
	const uint32_t lane = threadIdx.x % 32;

#pragma unroll
	for (int k = 0; k < 4; k++) {
		const uint32_t from = at + (((half * 4 + k) ^ (lane / 4)) << 4) + lane % 4 * 2;

#pragma unroll
		for (int i = 0; i < 4; i++)
			f[k][i] = bf16_of_e4m3(shared_load_16(from + i % 2 * 8 * SKINNY_BOX_BYTES + i / 2 * 8));
	}
}

template <int LENGTH>
static __device__ __forceinline__ void multiply_half(float (&c)[LENGTH], uint32_t (&f)[4][4], uint32_t x)
{
	const uint64_t xt = wgmma_tile(x);

	wgmma_fence();
#pragma unroll
	for (int k = 0; k < 4; k++)
		skinny_mma(__nv_bfloat16(), c, f[k], wgmma_on(xt, 32 * k));
	wgmma_commit();
}

static __device__ __forceinline__ void hold(uint32_t (&f)[4][4])
{
#pragma unroll
	for (int k = 0; k < 4; k++)
		wgmma_hold(f[k]);
}

/* While the matrix unit works on one half of a stage, the other half is converted. */
template <int SIZE, int LENGTH>
static __device__ __forceinline__ void multiply_converted(const skinny_args &a, const struct memory &m,
							  const struct part &p, uint32_t cluster, struct place &at,
							  float (&c)[LENGTH])
{
	enum { STAGE = SKINNY_STAGE(SIZE, kind_mixed::BOXES) };
	const uint32_t row = threadIdx.x / 128 * SKINNY_GROUP + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
	uint32_t low[4][4] = {}, high[4][4] = {}, before = 0;

	for (uint32_t s = p.begin; s < p.end; s++) {
		const uint32_t w = m.ring + at.slot * STAGE, x = w + SKINNY_TILE * SKINNY_BOX_BYTES;

		barrier_wait(m.full + 8 * at.slot, at.parity);
		convert(low, w + row * SKINNY_BOX_BYTES, 0);
		multiply_half(c, low, x);
		wgmma_wait<1>();
		hold(high);
		if (s > p.begin)
			release(m, p, before, cluster);
		convert(high, w + row * SKINNY_BOX_BYTES, 1);
		multiply_half(c, high, x + SIZE * SKINNY_BOX_BYTES);
		wgmma_wait<1>();
		hold(low);
		before = at.slot;
		advance(at, a.stages);
	}
	wgmma_wait<0>();
	hold(high);
	wgmma_hold(c);
	if (p.end > p.begin)
		release(m, p, before, cluster);
}

/* -- results -- */

/* Accumulators of columns 8 first .. 8 (first + COUNT) - 1 to a buffer of rows of SKINNY_TURN floats, one per
 * row of x. */
template <int COUNT, int LENGTH>
static __device__ __forceinline__ void turn(float (&c)[LENGTH], int first, uint32_t to)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t row = threadIdx.x / 128 * SKINNY_GROUP + threadIdx.x % 128 / 32 * 16 + lane / 4;

#pragma unroll
	for (int j = 0; j < COUNT; j++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const uint32_t column = 8 * j + lane % 4 * 2 + e % 2;

			shared_store(to + 4 * (column * SKINNY_TURN + row + 8 * (e / 2)), c[4 * (first + j) + e]);
		}
}

/* Sum of the parts of four results, in the order of the parts. */
static __device__ __forceinline__ void gather(float (&v)[4], uint32_t at, const struct part &p, uint32_t rank)
{
	cluster_load4(v, at, rank - p.first);
	for (uint32_t i = 1; i < p.splits; i++) {
		float more[4];

		cluster_load4(more, at, rank - p.first + i * p.peers);
#pragma unroll
		for (int e = 0; e < 4; e++)
			v[e] += more[e];
	}
}

static __device__ __forceinline__ void add_bf16(float (&v)[4], const void *from, int64_t at)
{
	const uint2 bits = *(const uint2 *)((const __nv_bfloat16 *)from + at);
	const float2 low = __bfloat1622float2(*(const __nv_bfloat162 *)&bits.x);
	const float2 high = __bfloat1622float2(*(const __nv_bfloat162 *)&bits.y);

	v[0] += low.x;
	v[1] += low.y;
	v[2] += high.x;
	v[3] += high.y;
}

static __device__ __forceinline__ void scale4(float (&v)[4], const float *scale, uint32_t at, float by)
{
	const float4 s = *(const float4 *)(scale + at);

	v[0] *= s.x * by;
	v[1] *= s.y * by;
	v[2] *= s.z * by;
	v[3] *= s.w * by;
}

static __device__ __forceinline__ void store4(const skinny_args &a, uint32_t row, uint32_t at, const float (&v)[4])
{
	const uint2 bits = {pack2(__nv_bfloat16(), v[0], v[1]), pack2(__nv_bfloat16(), v[2], v[3])};

	*(uint2 *)((__nv_bfloat16 *)a.y + row * a.row_y + at) = bits;
}

/* Four results of `row`, from the buffer's row at `from`. */
static __device__ __forceinline__ void finish_plain(const skinny_args &a, const struct part &p, uint32_t rank,
						    uint32_t row, uint32_t from)
{
	const uint32_t lane = threadIdx.x % 32, at = p.tile * a.tile_steps + 4 * lane;
	float v[4];

	if (at >= a.outputs)
		return;
	gather(v, from + 16 * lane, p, rank);
	if (a.w_scale)
		scale4(v, a.w_scale, at, a.x_scale ? a.x_scale[row] : 1);
	if (a.bias)
		add_bf16(v, a.bias, at);
	if (a.residual)
		add_bf16(v, a.residual, row * a.row_residual + at);
	store4(a, row, at, v);
}

/* The same with gate and up in the buffer's row; a half of the warp is enough. */
static __device__ __forceinline__ void finish_swiglu(const skinny_args &a, const struct part &p, uint32_t rank,
						     uint32_t row, uint32_t from)
{
	const uint32_t lane = threadIdx.x % 16, at = p.tile * a.tile_steps + 4 * lane;
	float gate[4], up[4];

	if (at >= a.outputs)
		return;
	gather(gate, from + 16 * lane, p, rank);
	gather(up, from + 4 * SKINNY_GROUP + 16 * lane, p, rank);
	if (a.w_scale) {
		const float by = a.x_scale ? a.x_scale[row] : 1;

		scale4(gate, a.w_scale, at, by);
		scale4(up, a.w_scale, a.outputs + at, by);
	}
#pragma unroll
	for (int e = 0; e < 4; e++)
		up[e] *= gate[e] / (1 + __expf(-gate[e]));
	store4(a, row, at, up);
}

/* Rows begin + split, begin + split + splits .. below `end` of this block's tile; the buffer at `from` begins
 * with row `begin`. */
static __device__ __forceinline__ void finish(const skinny_args &a, const struct part &p, uint32_t rank, uint32_t begin,
					      uint32_t end, uint32_t from)
{
	const uint32_t warp = threadIdx.x / 32, at_once = a.swiglu ? 2 : 1;
	const uint32_t number = a.swiglu ? 2 * warp + threadIdx.x % 32 / 16 : warp;

	end = end < a.rows ? end : a.rows;
	for (uint32_t r = begin + p.split + p.splits * number; r < end; r += p.splits * at_once * WARPS) {
		const uint32_t at = from + 4 * SKINNY_TURN * (r - begin);

		if (a.swiglu)
			finish_swiglu(a, p, rank, r, at);
		else
			finish_plain(a, p, rank, r, at);
	}
}

/* The whole tile is this block's. The ring may already hold stages of the next unit. */
template <int SIZE, int LENGTH>
static __device__ __forceinline__ void finish_whole(const skinny_args &a, const struct memory &m, const struct part &p,
						    uint32_t rank, float (&c)[LENGTH])
{
	enum { ROWS = SIZE < SKINNY_TURN_ROWS ? SIZE : SKINNY_TURN_ROWS };

#pragma unroll
	for (int begin = 0; begin < SIZE; begin += ROWS) {
		if (begin && begin >= a.rows)
			break;
		named_sync(1, 32 * WARPS);
		turn<ROWS / 8>(c, begin / 8, m.turn);
		named_sync(1, 32 * WARPS);
		finish(a, p, rank, (uint32_t)begin, (uint32_t)(begin + ROWS), m.turn);
	}
}

/* Other blocks have parts of the tile's sums. The ring is free: the loading warp waits. */
template <int SIZE, int LENGTH>
static __device__ __forceinline__ void finish_parts(const skinny_args &a, const struct memory &m, const struct part &p,
						    uint32_t rank, float (&c)[LENGTH])
{
	named_sync(1, 32 * WARPS);
	turn<SIZE / 8>(c, 0, m.ring);
	cluster_sync();
	finish(a, p, rank, 0, SIZE, m.ring);
	proxy_fence();
	cluster_meet(); /* every block has read the sums */
}
#endif
