/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of fp8.h. All are bound by memory. A thread has eight elements of a tile, so a group of 16 lanes has
 * a tile of a row, and finds its largest magnitude by shuffles. References: tests/gpu/ref_train_fp8.c.
 */
#include "kernel/train/vector8.cuh"
#include "kernel/train/fp8.h"

enum { LANES = 16, TILE = TRAIN_FP8_TILE, KEEP = 2 /* vectors of a row per thread; train_row_threads */ };
#define LEAST 0x1p-100f
#define MOST 448.0f
#define FINITE_MOST 3.402823466e38f

/* The larger one; NaN if either is. Magnitudes alone. */
static __device__ float larger(float x, float y)
{
	return y <= x || x != x ? x : y;
}

static __device__ float largest8(const eight &e)
{
	float most = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		most = larger(most, fabsf(e.v[j]));
	return most;
}

/* Of a group of lanes. All lanes of the warp call it. */
static __device__ float group_most(float most)
{
#pragma unroll
	for (int offset = LANES / 2; offset; offset /= 2)
		most = larger(most, __shfl_xor_sync(0xffffffffu, most, offset));
	return most;
}

struct factor {
	float scale, inverse;
};

static __device__ factor factor_of(float most)
{
	const float m = most < LEAST ? LEAST : most;

	if (!(most <= FINITE_MOST))
		return factor{__int_as_float(0x7fc00000), __int_as_float(0x7fc00000)};
	return most == 0 ? factor{1, 1} : factor{__fdiv_rn(m, MOST), __fdiv_rn(MOST, m)};
}

static __device__ void count(int32_t *overflows, float scale)
{
	if (scale != scale && overflows)
		atomicAdd(overflows, 1); /* of integers, so any order gives the same sum */
}

/* Two numbers to nearest even, the first one in the low byte. Larger ones become 448. */
static __device__ uint32_t two_e4m3(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
	uint16_t both;

	asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
	return both;
#else
	const float v[2] = {low, high};
	uint32_t both = 0;

#pragma unroll
	for (int i = 0; i < 2; i++) {
		uint32_t bits = __float_as_uint(v[i]), sign = bits >> 31 << 7, code;

		bits &= 0x7fffffffu;
		if (bits > 0x7f800000u) {
			sign = 0;
			code = 0x7fu;
		} else if (bits >= 0x43e00000u) { /* 448 */
			code = 0x7eu;
		} else if (bits < 0x3c800000u) { /* 2^-6: below it, multiples of 2^-9 */
			code = __float_as_uint(__uint_as_float(bits) + 16384.0f) & 15u;
		} else {
			bits += 0x7ffffu + (bits >> 20 & 1u);
			code = (bits >> 20) - (120u << 3);
		}
		both |= (sign | code) << 8 * i;
	}
	return both;
#endif
}

static __device__ uint2 eight_e4m3(const eight &e, float inverse)
{
	return make_uint2(two_e4m3(e.v[0] * inverse, e.v[1] * inverse) |
				  two_e4m3(e.v[2] * inverse, e.v[3] * inverse) << 16,
			  two_e4m3(e.v[4] * inverse, e.v[5] * inverse) |
				  two_e4m3(e.v[6] * inverse, e.v[7] * inverse) << 16);
}

/* Quantizes a group's tile. e: the lane's elements, rounded to BF16, 0 where there are none. `mine` is false if
 * the group has no tile; `left`: the columns from the lane's own on. */
static __device__ void put_tile(const train_fp8_rows &q, const eight &e, uint32_t row, int64_t col, int64_t left,
				bool mine)
{
	const factor f = factor_of(group_most(largest8(e)));

	if (!mine)
		return;
	if (threadIdx.x % LANES == 0) {
		q.scale[col / TILE * q.step + row] = f.scale;
		count(q.overflows, f.scale);
	}
	if (left > 0)
		*(uint2 *)(q.to + row * q.ld + col) = eight_e4m3(e, f.inverse);
}

/* Calls load and store for each tile of a rows x cols matrix, two per group and turn. Both are loaded before the
 * first is stored. All lanes of a warp call store together. */
struct tile_place {
	uint32_t row;
	int64_t col, left; /* of the lane; left <= 0: the lane has no columns */
	bool mine;
};

template <typename loader, typename storer>
static __device__ void for_tiles(uint32_t rows, uint32_t cols, loader load, storer store)
{
	const uint32_t per_row = (cols + TILE - 1) / TILE, groups = blockDim.x / LANES;
	const uint64_t all = (uint64_t)rows * per_row, step = (uint64_t)gridDim.x * groups * 2;

	for (uint64_t base = (uint64_t)blockIdx.x * groups * 2; base < all; base += step) {
		decltype(load(tile_place{})) loaded[2];
		tile_place at[2];

#pragma unroll
		for (int i = 0; i < 2; i++) {
			const uint64_t tile = base + i * groups + threadIdx.x / LANES;

			at[i].mine = tile < all;
			at[i].row = (uint32_t)(tile / per_row);
			at[i].col = (int64_t)(tile - (uint64_t)at[i].row * per_row) * TILE + threadIdx.x % LANES * 8;
			at[i].left = at[i].mine ? (int64_t)cols - at[i].col : 0;
			loaded[i] = {};
			if (at[i].left > 0)
				loaded[i] = load(at[i]);
		}
#pragma unroll
		for (int i = 0; i < 2; i++)
			store(at[i], loaded[i]);
	}
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_fp8_quantize(train_fp8_quantize_args a)
{
	const bool wide = wide_bf16(a.x, a.ld_x);

	for_tiles(
		a.rows, a.cols, [&](tile_place p) { return raw8(a.x + p.row * a.ld_x + p.col, p.left, wide); },
		[&](tile_place p, const uint4 &x) { put_tile(a.y, eight_of(x), p.row, p.col, p.left, p.mine); });
}

extern "C" __global__ void __launch_bounds__(1024) train_fp8_rmsnorm(train_fp8_norm_args a)
{
	__shared__ float room[2][33];
	const bool wide_x = wide_bf16(a.x, a.ld_x), wide_y = wide_bf16(a.y, a.ld_y), wide_w = wide_bf16(a.w, 0);
	const float over = 1.0f / (float)a.cols;

	for (uint32_t row = blockIdx.x, turn = 0; row < a.rows; row += gridDim.x, turn ^= 1) {
		uint4 kept[KEEP];
		float sum = 0, rstd;

#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			kept[i] = left > 0 ? raw8(a.x + row * a.ld_x + col, left, wide_x) : make_uint4(0, 0, 0, 0);
		}
#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const eight e = eight_of(kept[i]);

#pragma unroll
			for (int j = 0; j < 8; j++)
				sum += e.v[j] * e.v[j];
		}
		sum = sum_to_all(sum, room[turn]);
		rstd = 1.0f / sqrtf(sum * over + a.eps);
		if (threadIdx.x == 0)
			a.rstd[row * a.ld_rstd] = rstd;
#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;
			eight e = eight_of(kept[i]);

			if (left > 0) {
				const eight w = load8(a.w + col, left, wide_w);

#pragma unroll
				for (int j = 0; j < 8; j++)
					e.v[j] = rounded(w.v[j] * rounded(e.v[j] * rstd));
				store8(a.y + row * a.ld_y + col, e, left, wide_y);
			} else {
				e = eight{};
			}
			put_tile(a.q, e, row, col, left, col / TILE * TILE < a.cols);
		}
	}
}

static __device__ float sigmoid(float x)
{
	return __fdividef(1.0f, 1.0f + __expf(-x)); /* as in rows.cu */
}

static __device__ eight rounded8(eight e)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		e.v[j] = rounded(e.v[j]);
	return e;
}

struct gate_up_dh {
	uint4 gate, up, dh;
};

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_fp8_swiglu(train_fp8_swiglu_args a)
{
	const bool wide = wide_bf16(a.gate_up, a.ld_gate_up), wide_up = wide && a.ffn % 8 == 0;
	const bool wide_h = wide_bf16(a.h, a.ld_h);

	for_tiles(
		a.rows, a.ffn,
		[&](tile_place p) {
			const uint16_t *gate = a.gate_up + p.row * a.ld_gate_up + p.col;

			return gate_up_dh{raw8(gate, p.left, wide), raw8(gate + a.ffn, p.left, wide_up), {}};
		},
		[&](tile_place p, const gate_up_dh &x) {
			const eight g = eight_of(x.gate), u = eight_of(x.up);
			eight h;

#pragma unroll
			for (int j = 0; j < 8; j++)
				h.v[j] = g.v[j] * sigmoid(g.v[j]) * u.v[j];
			h = rounded8(h);
			if (p.left > 0)
				store8(a.h + p.row * a.ld_h + p.col, h, p.left, wide_h);
			put_tile(a.q, h, p.row, p.col, p.left, p.mine);
		});
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_fp8_swiglu_bwd(train_fp8_swiglu_args a)
{
	const bool wide = wide_bf16(a.gate_up, a.ld_gate_up), wide_h = wide_bf16(a.h, a.ld_h);
	const bool wide_again = wide_bf16(a.h_again, a.ld_h_again);

	for_tiles(
		a.rows, a.ffn,
		[&](tile_place p) {
			const uint16_t *gate = a.gate_up + p.row * a.ld_gate_up + p.col;

			return gate_up_dh{raw8(gate, p.left, wide), raw8(gate + a.ffn, p.left, wide),
					  raw8(a.h + p.row * a.ld_h + p.col, p.left, wide_h)};
		},
		[&](tile_place p, const gate_up_dh &x) {
			uint16_t *gate = a.gate_up + p.row * a.ld_gate_up + p.col;
			const eight g = eight_of(x.gate), u = eight_of(x.up), dh = eight_of(x.dh);
			eight dg, du, h;

#pragma unroll
			for (int j = 0; j < 8; j++) {
				float s = sigmoid(g.v[j]), silu = g.v[j] * s;

				dg.v[j] = dh.v[j] * u.v[j] * (s + silu * (1.0f - s));
				du.v[j] = dh.v[j] * silu;
				h.v[j] = silu * u.v[j];
			}
			dg = rounded8(dg);
			du = rounded8(du);
			if (p.left > 0) {
				store8(gate, dg, p.left, wide);
				store8(gate + a.ffn, du, p.left, wide);
				if (a.h_again)
					store8(a.h_again + p.row * a.ld_h_again + p.col, h, p.left, wide_again);
			}
			put_tile(a.q, dg, p.row, p.col, p.left, p.mine);
			put_tile(a.q, du, p.row, p.col + a.ffn, p.left, p.mine);
		});
}

enum { PITCH = TILE + 4 }; /* bytes of a row of transposed elements in shared memory */

/* Eight elements at consecutive columns of the tile, as bytes of as many rows of the transposed tile. */
static __device__ void turn8(uint8_t (*turned)[PITCH], int column, int row, uint2 q)
{
#pragma unroll
	for (int j = 0; j < 8; j++)
		turned[column + j][row] = (uint8_t)((j < 4 ? q.x : q.y) >> j % 4 * 8);
}

/* Writes `columns` rows of transposed elements, of which `left` columns and `rows` elements exist, 4 bytes at a
 * time. */
static __device__ void put_turned(uint8_t (*turned)[PITCH], uint8_t *to, int64_t ld, int columns, int64_t left,
				  int64_t rows)
{
	for (int i = threadIdx.x; i < columns * (TILE / 4); i += blockDim.x) {
		const int column = i / (TILE / 4), row = i % (TILE / 4) * 4;

		if (column < left && row < rows)
			*(uint32_t *)(to + column * ld + row) = *(const uint32_t *)&turned[column][row];
	}
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_fp8_weights(train_fp8_weights_args a)
{
	enum { ROWS = TRAIN_THREADS / LANES, TURNS = TILE / ROWS, WARPS = TRAIN_THREADS / 32 };
	__shared__ uint8_t turned[TILE][PITCH];
	__shared__ float warp_most[WARPS];
	const bool wide = wide_bf16(a.w, a.ld_w);
	const int64_t row0 = (int64_t)blockIdx.y * TILE, col0 = (int64_t)blockIdx.x * TILE;
	const int64_t col = col0 + threadIdx.x % LANES * 8, left = a.cols - col;
	uint4 kept[TURNS];
	float most = 0;
	factor f;

#pragma unroll
	for (int i = 0; i < TURNS; i++) {
		const int64_t row = row0 + i * ROWS + threadIdx.x / LANES;

		kept[i] = row < a.rows && left > 0 ? raw8(a.w + row * a.ld_w + col, left, wide)
						   : make_uint4(0, 0, 0, 0);
	}
#pragma unroll
	for (int i = 0; i < TURNS; i++)
		most = larger(most, largest8(eight_of(kept[i])));
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		most = larger(most, __shfl_xor_sync(0xffffffffu, most, offset));
	if (threadIdx.x % 32 == 0)
		warp_most[threadIdx.x / 32] = most;
	__syncthreads();
#pragma unroll
	for (int i = 0; i < WARPS; i++)
		most = larger(most, warp_most[i]);
	f = factor_of(most);
	if (threadIdx.x == 0) {
		a.scale[blockIdx.y * a.step + blockIdx.x] = f.scale;
		a.scale_transposed[blockIdx.x * a.step_transposed + blockIdx.y] = f.scale;
		count(a.overflows, f.scale);
	}
#pragma unroll
	for (int i = 0; i < TURNS; i++) {
		const int64_t row = row0 + i * ROWS + threadIdx.x / LANES;
		const uint2 q = eight_e4m3(eight_of(kept[i]), f.inverse);

		if (row < a.rows && left > 0)
			*(uint2 *)(a.to + row * a.ld_to + col) = q;
		turn8(turned, threadIdx.x % LANES * 8, (int)(row - row0), q);
	}
	__syncthreads();
	put_turned(turned, a.transposed + col0 * a.ld_transposed + row0, a.ld_transposed, TILE, a.cols - col0,
		   a.rows - row0);
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS) train_fp8_columns(train_fp8_columns_args a)
{
	enum { COLUMNS = TRAIN_FP8_COLUMNS, ACROSS = COLUMNS / 8, ROWS = TRAIN_THREADS / ACROSS, TURNS = TILE / ROWS };
	__shared__ uint8_t turned[COLUMNS][PITCH];
	__shared__ float part_most[ROWS][COLUMNS];
	__shared__ float inverse[COLUMNS];
	const bool wide = wide_bf16(a.x, a.ld_x);
	const int64_t row0 = (int64_t)blockIdx.y * TILE, col0 = (int64_t)blockIdx.x * COLUMNS;
	const int across = threadIdx.x % ACROSS * 8, down = threadIdx.x / ACROSS;
	const int64_t left = a.cols - col0 - across;
	eight most = {};
	uint4 kept[TURNS];

#pragma unroll
	for (int i = 0; i < TURNS; i++) {
		const int64_t row = row0 + i * ROWS + down;

		kept[i] = row < a.rows && left > 0 ? raw8(a.x + row * a.ld_x + col0 + across, left, wide)
						   : make_uint4(0, 0, 0, 0);
	}
#pragma unroll
	for (int i = 0; i < TURNS; i++) {
		const eight e = eight_of(kept[i]);

#pragma unroll
		for (int j = 0; j < 8; j++)
			most.v[j] = larger(most.v[j], fabsf(e.v[j]));
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		part_most[down][across + j] = most.v[j];
	__syncthreads();
	if (threadIdx.x < COLUMNS) {
		float all = 0;
		factor f;

		for (int i = 0; i < ROWS; i++)
			all = larger(all, part_most[i][threadIdx.x]);
		f = factor_of(all);
		inverse[threadIdx.x] = f.inverse;
		if (col0 + threadIdx.x < a.cols) {
			a.y.scale[blockIdx.y * a.y.step + col0 + threadIdx.x] = f.scale;
			count(a.y.overflows, f.scale);
		}
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < TURNS; i++) {
		eight e = eight_of(kept[i]);

#pragma unroll
		for (int j = 0; j < 8; j++)
			e.v[j] *= inverse[across + j];
		turn8(turned, across, i * ROWS + down, eight_e4m3(e, 1));
	}
	__syncthreads();
	put_turned(turned, a.y.to + col0 * a.y.ld + row0, a.y.ld, COLUMNS, a.cols - col0, a.rows - row0);
}
