/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that process each row once: SwiGLU, gather and scatter, dropout, conversion, strided copies, column
 * sums and random weights. All but the random weights are bound by memory: 16 bytes per thread and operand.
 * There are no atomics, so every sum has a fixed order. References: tests/gpu/ref_train_rows.c.
 */
#include "kernel/philox.cuh"
#include "kernel/train/vector8.cuh"
#include "kernel/train/rows.h"

static __device__ float sigmoid(float x)
{
	return __fdividef(1.0f, 1.0f + __expf(-x)); /* 0 if the exponential exceeds 2^126 */
}

struct gate_up {
	raw gate, up, dh;
};

extern "C" __global__ void TRAIN_ENTRY(train_swiglu)(train_swiglu_args a)
{
	const bool wide = wide_number(a.gate_up, a.ld_gate_up), wide_up = wide && a.ffn % 8 == 0;
	const bool wide_h = wide_number(a.h, a.ld_h);

	for_vectors(
		a.rows, a.ffn,
		[&](place p) {
			const train_real *gate = a.gate_up + p.row * a.ld_gate_up + p.col;

			return gate_up{raw8(gate, p.left, wide), raw8(gate + a.ffn, p.left, wide_up), {}};
		},
		[&](place p, const gate_up &x) {
			const eight g = eight_of(x.gate), u = eight_of(x.up);
			eight h;

#pragma unroll
			for (int j = 0; j < 8; j++)
				h.v[j] = g.v[j] * sigmoid(g.v[j]) * u.v[j];
			store8(a.h + p.row * a.ld_h + p.col, h, p.left, wide_h);
		});
}

/* d silu(g) / dg = s + g s (1 - s) with s = sigmoid(g). */
extern "C" __global__ void TRAIN_ENTRY(train_swiglu_bwd)(train_swiglu_args a)
{
	const bool wide = wide_number(a.gate_up, a.ld_gate_up), wide_up = wide && a.ffn % 8 == 0;
	const bool wide_h = wide_number(a.h, a.ld_h), wide_again = wide_number(a.h_again, a.ld_h_again);

	for_vectors(
		a.rows, a.ffn,
		[&](place p) {
			const train_real *gate = a.gate_up + p.row * a.ld_gate_up + p.col;

			return gate_up{raw8(gate, p.left, wide), raw8(gate + a.ffn, p.left, wide_up),
				       raw8(a.h + p.row * a.ld_h + p.col, p.left, wide_h)};
		},
		[&](place p, const gate_up &x) {
			train_real *gate = a.gate_up + p.row * a.ld_gate_up + p.col;
			const eight g = eight_of(x.gate), u = eight_of(x.up), dh = eight_of(x.dh);
			eight dg, du, h;

#pragma unroll
			for (int j = 0; j < 8; j++) {
				float s = sigmoid(g.v[j]), silu = g.v[j] * s;

				dg.v[j] = dh.v[j] * u.v[j] * (s + silu * (1.0f - s));
				du.v[j] = dh.v[j] * silu;
				h.v[j] = silu * u.v[j];
			}
			store8(gate, dg, p.left, wide);
			store8(gate + a.ffn, du, p.left, wide_up);
			if (a.h_again)
				store8(a.h_again + p.row * a.ld_h_again + p.col, h, p.left, wide_again);
		});
}

extern "C" __global__ void TRAIN_ENTRY(train_gather)(train_gather_args a)
{
	const bool wide_from = wide_number(a.from, a.ld_from), wide_to = wide_number(a.to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) {
			const int32_t row = a.row[p.row] - a.first;

			return (uint32_t)row < a.count ? raw8(a.from + row * a.ld_from + p.col, p.left, wide_from)
						    : zeros();
		},
		[&](place p, const raw &x) { put8(a.to + p.row * a.ld_to + p.col, x, p.left, wide_to); });
}

struct two {
	raw x, y;
};

extern "C" __global__ void TRAIN_ENTRY(train_scatter_add)(train_gather_args a)
{
	const bool wide_from = wide_number(a.from, a.ld_from), wide_to = wide_number(a.to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) {
			return two{raw8(a.from + p.row * a.ld_from + p.col, p.left, wide_from),
				   raw8(a.to + a.row[p.row] * a.ld_to + p.col, p.left, wide_to)};
		},
		[&](place p, const two &e) {
			store8(a.to + a.row[p.row] * a.ld_to + p.col, added(eight_of(e.y), eight_of(e.x)),
			       p.left, wide_to);
		});
}

/* The block of a token's first row adds all rows of the token. The blocks of its later rows find an earlier
 * row and exit. */
extern "C" __global__ void TRAIN_ENTRY(train_embed_bwd)(train_embed_bwd_args a)
{
	__shared__ uint32_t list[TRAIN_THREADS];
	__shared__ uint32_t warp_count[TRAIN_THREADS / 32];
	const uint32_t own = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int32_t token = a.token[own];
	const bool wide_dx = wide_number(a.dx, a.ld_dx);
	const bool wide_to = a.bf16 ? wide_bf16(a.dtable, a.ld_dtable) : wide_f32(a.dtable, a.ld_dtable);
	const int32_t at = token - a.first;
	float *const to = (float *)a.dtable + at * a.ld_dtable;
	uint16_t *const to_bf16 = (uint16_t *)a.dtable + at * a.ld_dtable;

	if ((uint32_t)at >= a.count)
		return;

	for (uint32_t first = 0; first < own; first += blockDim.x)
		if (__syncthreads_or(first + threadIdx.x < own && a.token[first + threadIdx.x] == token))
			return;
	for (uint32_t first = own; first < a.rows; first += blockDim.x) {
		const uint32_t t = first + threadIdx.x;
		const bool same = t < a.rows && a.token[t] == token;
		const unsigned votes = __ballot_sync(0xffffffffu, same);
		uint32_t begin = 0, count = 0;

		if (lane == 0)
			warp_count[warp] = __popc(votes);
		__syncthreads();
		for (uint32_t w = 0; w < blockDim.x / 32; w++) {
			begin += w < warp ? warp_count[w] : 0;
			count += warp_count[w];
		}
		if (same)
			list[begin + __popc(votes & ((1u << lane) - 1))] = t;
		__syncthreads();
		for (uint32_t col = threadIdx.x * 8; count && col < a.cols; col += blockDim.x * 8) {
			const int64_t left = a.cols - col;
			eight sum =
				a.bf16 ? load8(to_bf16 + col, left, wide_to) : load8(to + col, left, wide_to);

			for (uint32_t i = 0; i < count; i++)
				sum = added(sum, load8(a.dx + list[i] * a.ld_dx + col, left, wide_dx));
			if (a.bf16)
				store8(to_bf16 + col, sum, left, wide_to);
			else
				store8(to + col, sum, left, wide_to);
		}
		__syncthreads();
	}
}

extern "C" __global__ void TRAIN_ENTRY(train_dropout)(train_dropout_args a)
{
	const bool wide_x = wide_number(a.x, a.ld_x), wide_y = wide_number(a.y, a.ld_y);

	for_vectors(
		a.rows, a.cols,
		[&](place p) {
			return two{raw8(a.x + p.row * a.ld_x + p.col, p.left, wide_x),
				   a.add ? raw8(a.y + p.row * a.ld_y + p.col, p.left, wide_y) : raw{}};
		},
		[&](place p, const two &e) {
			const uint64_t row = a.row_begin + p.row;
			const uint32_t low = (uint32_t)row, high = (uint32_t)(row >> 32),
				       block = (uint32_t)((a.col_begin + p.col) / 4);
			const uint4 v = philox4x32(a.seed, block, low, high, a.site);
			const uint4 w = philox4x32(a.seed, block + 1, low, high, a.site);
			const uint32_t word[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
			eight x = eight_of(e.x);

#pragma unroll
			for (int j = 0; j < 8; j++)
				x.v[j] = word[j] >= a.least ? x.v[j] * a.scale : 0;
			store8(a.y + p.row * a.ld_y + p.col, a.add ? added(x, eight_of(e.y)) : x, p.left,
			       wide_y);
		});
}

/* A warp has the 256 columns of its block, eight per lane, and every eighth row of the block's rows. The sums
 * of the eight warps are added in order. */
extern "C" __global__ void TRAIN_ENTRY(train_column_sums)(train_columns_args a)
{
	__shared__ float part[TRAIN_THREADS / 32][32 * 8];
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const uint32_t each = (a.rows + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * each;
	const uint32_t end = begin + each < a.rows ? begin + each : a.rows;
	const int64_t col = (int64_t)blockIdx.x * 256 + lane * 8, left = a.cols - col;
	const bool wide = wide_number(a.x, a.ld_x);
	eight sum = {};

	if (left > 0) {
#pragma unroll 4
		for (uint32_t row = begin + warp; row < end; row += warps)
			sum = added(sum, load8(a.x + row * a.ld_x + col, left, wide));
	}
#pragma unroll
	for (int j = 0; j < 8; j++)
		part[warp][lane * 8 + j] = sum.v[j];
	__syncthreads();
	for (uint32_t j = threadIdx.x; j < 256 && blockIdx.x * 256 + j < a.cols; j += blockDim.x) {
		float total = 0;

		for (uint32_t w = 0; w < warps; w++)
			total += part[w][j];
		a.sums[(uint64_t)blockIdx.y * a.cols + blockIdx.x * 256 + j] = total;
	}
}

#ifndef TRAIN_F32 /* the rest does not depend on that type */
extern "C" __global__ void train_to_bf16(train_convert_args a)
{
	const float *from = (const float *)a.from;
	uint16_t *to = (uint16_t *)a.to;
	const bool wide_from = wide_f32(from, a.ld_from), wide_to = wide_bf16(to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) { return load8(from + p.row * a.ld_from + p.col, p.left, wide_from); },
		[&](place p, const eight &x) { store8(to + p.row * a.ld_to + p.col, x, p.left, wide_to); });
}

extern "C" __global__ void train_to_f32(train_convert_args a)
{
	const uint16_t *from = (const uint16_t *)a.from;
	float *to = (float *)a.to;
	const bool wide_from = wide_bf16(from, a.ld_from), wide_to = wide_f32(to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) { return raw8(from + p.row * a.ld_from + p.col, p.left, wide_from); },
		[&](place p, uint4 x) {
			store8(to + p.row * a.ld_to + p.col, eight_of(x), p.left, wide_to);
		});
}

extern "C" __global__ void train_add_bf16(train_convert_args a)
{
	const uint16_t *from = (const uint16_t *)a.from;
	uint16_t *to = (uint16_t *)a.to;
	const bool wide_from = wide_bf16(from, a.ld_from), wide_to = wide_bf16(to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) {
			return two{raw8(from + p.row * a.ld_from + p.col, p.left, wide_from),
				   raw8(to + p.row * a.ld_to + p.col, p.left, wide_to)};
		},
		[&](place p, const two &e) {
			store8(to + p.row * a.ld_to + p.col, added(eight_of(e.y), eight_of(e.x)), p.left,
			       wide_to);
		});
}

/* Loads up to 16 bytes: in one access if alignment allows it, else by 16-bit words, else by bytes. */
static __device__ uint4 bytes16(const uint8_t *p, int64_t left, bool wide)
{
	uint32_t w[4] = {0, 0, 0, 0};

	if (wide && left >= 16)
		return *(const uint4 *)p;
#pragma unroll
	for (int i = 0; i < 16; i++)
		if (i < left)
			w[i / 4] |= (uint32_t)p[i] << i % 4 * 8;
	return make_uint4(w[0], w[1], w[2], w[3]);
}

static __device__ void put16(uint8_t *p, uint4 q, int64_t left, bool wide)
{
	const uint32_t w[4] = {q.x, q.y, q.z, q.w};

	if (wide && left >= 16) {
		*(uint4 *)p = q;
		return;
	}
#pragma unroll
	for (int i = 0; i < 16; i++)
		if (i < left)
			p[i] = (uint8_t)(w[i / 4] >> i % 4 * 8);
}

static __device__ bool wide_bytes(const void *p, int64_t pitch)
{
	return ((uint64_t)p | (uint64_t)pitch) % 16 == 0;
}

extern "C" __global__ void train_copy(train_copy_args a)
{
	const uint8_t *from = (const uint8_t *)a.from;
	uint8_t *to = (uint8_t *)a.to;
	const bool wide_from = wide_bytes(from, a.pitch_from), wide_to = wide_bytes(to, a.pitch_to);

	for_vectors(
		a.rows, (a.bytes + 1) / 2,
		[&](place p) {
			return bytes16(from + p.row * a.pitch_from + 2 * p.col, (int64_t)a.bytes - 2 * p.col,
				       wide_from);
		},
		[&](place p, uint4 x) {
			put16(to + p.row * a.pitch_to + 2 * p.col, x, (int64_t)a.bytes - 2 * p.col, wide_to);
		});
}

extern "C" __global__ void train_zero(train_copy_args a)
{
	uint8_t *to = (uint8_t *)a.to;
	const bool wide_to = wide_bytes(to, a.pitch_to);

	for_vectors(
		a.rows, (a.bytes + 1) / 2, [&](place) { return uint4{}; },
		[&](place p, uint4 x) {
			put16(to + p.row * a.pitch_to + 2 * p.col, x, (int64_t)a.bytes - 2 * p.col, wide_to);
		});
}

/* A block has 32 columns. Eight warps sum eight contiguous parts of the rows, and the parts are added in
 * order. */
extern "C" __global__ void train_sums_add(train_sums_args a)
{
	__shared__ float part[TRAIN_THREADS / 32][32];
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const uint64_t col = (uint64_t)blockIdx.x * 32 + lane, each = (a.count + warps - 1) / warps,
		       begin = warp * each;
	float sum = 0;

	if (col < a.cols)
		for (uint64_t i = begin; i < begin + each && i < a.count; i++)
			sum += a.sums[i * a.cols + col];
	part[warp][lane] = sum;
	__syncthreads();
	if (warp == 0 && col < a.cols) {
		for (uint32_t w = 1; w < warps; w++)
			sum += part[w][lane];
		if (a.bf16)
			((uint16_t *)a.out)[col] = f32_bf16(bf16_f32(((uint16_t *)a.out)[col]) + sum);
		else
			((float *)a.out)[col] += sum;
	}
}

/* Rounds as the host does: first the product, then the sum. */
static __device__ float weight_of(const train_random_args &a, uint32_t word)
{
	return __fadd_rn(a.centre, __fmul_rn(a.width, philox_uniform(word)));
}

static __device__ uint32_t word_at(uint4 w, unsigned i)
{
	return i < 2 ? (i ? w.y : w.x) : (i == 2 ? w.z : w.w);
}

/* Eight numbers of the stream from `first` on. They span three Philox blocks of four if `first` is inside a
 * block. */
static __device__ eight weights_of(const train_random_args &a, uint64_t first)
{
	const uint64_t block = first / 4;
	const unsigned shift = first % 4;
	const uint4 p = philox_words(a.seed, a.stream, block), q = philox_words(a.seed, a.stream, block + 1);
	eight e;

	if (shift == 0) {
		const uint32_t word[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};

#pragma unroll
		for (int j = 0; j < 8; j++)
			e.v[j] = weight_of(a, word[j]);
		return e;
	}
	const uint4 r = philox_words(a.seed, a.stream, block + 2);

#pragma unroll
	for (unsigned j = 0; j < 8; j++) {
		const unsigned at = j + shift;

		e.v[j] = weight_of(a, word_at(at < 4 ? p : at < 8 ? q : r, at % 4));
	}
	return e;
}

extern "C" __global__ void train_random_bf16(train_random_args a)
{
	uint16_t *to = (uint16_t *)a.to;
	const bool wide = wide_bf16(to, a.ld_to);

	for_vectors(
		a.rows, a.cols,
		[&](place p) { return four_words(weights_of(a, a.first + p.row * a.cols + p.col)); },
		[&](place p, uint4 x) { put8(to + p.row * a.ld_to + p.col, x, p.left, wide); });
}

extern "C" __global__ void train_random_f32(train_random_args a)
{
	float *to = (float *)a.to;
	const bool wide = wide_f32(to, a.ld_to);

	for_vectors(
		a.rows, a.cols, [&](place p) { return weights_of(a, a.first + p.row * a.cols + p.col); },
		[&](place p, const eight &x) { store8(to + p.row * a.ld_to + p.col, x, p.left, wide); });
}
#endif
