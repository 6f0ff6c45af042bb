/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal attention within documents, forward and backward, for any GPU, length and head size. Tiles of 32
 * queries x 32 keys are in shared memory. All arithmetic is FP32 on the ordinary units. The fast kernels must
 * agree with this kernel, and it runs where they do not support a shape. It uses no atomics: in the backward
 * pass each tile of keys and each tile of queries has its own block, and both compute the scores again.
 * Reference: tests/gpu/ref_train_attention.c.
 */
#include "kernel/train/vector8.cuh"
#include "kernel/train/plain_attention.h"

enum { ROWS = TRAIN_ATTENTION_ROWS, LANES = TRAIN_ATTENTION_THREADS / ROWS, SCORES = ROWS / LANES, PITCH = ROWS + 1 };

/* One head of one document. */
struct view {
	const train_real *q, *k, *v, *d_o;
	train_real *dq, *dk, *dv;
	uint64_t row; /* the document's first row */
	uint32_t head, rows;
};

static __device__ view view_of(const train_attention_args &a, uint32_t head, uint32_t doc)
{
	const uint32_t kv = head / (a.heads / a.kv_heads);
	const uint64_t row = a.doc_start[doc], k_col = (uint64_t)(a.heads + kv) * a.head_dim;
	const uint64_t v_col = k_col + (uint64_t)a.kv_heads * a.head_dim, q_col = (uint64_t)head * a.head_dim;
	const train_real *x = a.qkv + row * a.ld_qkv;
	train_real *dx = a.dqkv ? a.dqkv + row * a.ld_dqkv : NULL;
	view w = {x + q_col, x + k_col, x + v_col, a.d_o ? a.d_o + row * a.ld_d_o + q_col : NULL};

	if (dx) {
		w.dq = dx + q_col;
		w.dk = dx + k_col;
		w.dv = dx + v_col;
	}
	w.row = row;
	w.head = head;
	w.rows = a.doc_start[doc + 1] - a.doc_start[doc];
	return w;
}

/* Rows of a tile have head_dim + 8 elements, so neighbouring rows begin in different banks. */
static __device__ void load_tile(train_real *tile, const train_real *from, int64_t ld, uint32_t first, uint32_t rows, uint32_t dim)
{
	const bool wide = wide_number(from, ld);
	const uint32_t vectors = dim / 8;

	for (uint32_t i = threadIdx.x; i < ROWS * vectors; i += blockDim.x) {
		const uint32_t row = i / vectors, col = i % vectors * 8;

		*(raw *)(tile + row * (dim + 8) + col) =
			first + row < rows ? raw8(from + (first + row) * ld + col, 8, wide) : zeros();
	}
}

static __device__ float2 two_at(const train_real *p)
{
#ifdef TRAIN_F32
	return *(const float2 *)p;
#else
	const uint32_t w = *(const uint32_t *)p;

	return make_float2(bf16_f32(w), __uint_as_float(w & 0xffff0000u));
#endif
}

/* Dot products of row `row` of x with rows lane, lane + LANES, .. of y. */
static __device__ void dots(float (&s)[SCORES], const train_real *x, const train_real *y, uint32_t row, uint32_t lane, uint32_t dim)
{
#pragma unroll
	for (int j = 0; j < SCORES; j++)
		s[j] = 0;
	for (uint32_t d = 0; d < dim; d += 2) {
		const float2 u = two_at(x + row * (dim + 8) + d);

#pragma unroll
		for (int j = 0; j < SCORES; j++) {
			const float2 w = two_at(y + (lane + j * LANES) * (dim + 8) + d);

			s[j] += u.x * w.x + u.y * w.y;
		}
	}
}

/* sum[i] += the sum over j of score(j) times row j of the tile, for the thread's pairs of columns. */
template <int PAIRS, typename score>
static __device__ void add_rows(float2 (&sum)[PAIRS], const train_real *tile, uint32_t lane, uint32_t dim, score at)
{
	for (uint32_t j = 0; j < ROWS; j++) {
		const float p = at(j);

#pragma unroll
		for (int i = 0; i < PAIRS; i++) {
			const uint32_t col = 2 * (lane + i * LANES);

			if (col < dim) {
				const float2 v = two_at(tile + j * (dim + 8) + col);

				sum[i].x += p * v.x;
				sum[i].y += p * v.y;
			}
		}
	}
}

template <int PAIRS>
static __device__ void store_row(train_real *to, const float2 (&sum)[PAIRS], float factor, uint32_t lane, uint32_t dim)
{
#pragma unroll
	for (int i = 0; i < PAIRS; i++) {
		const uint32_t col = 2 * (lane + i * LANES);

		if (col < dim) {
			to[col] = f32_number(sum[i].x * factor);
			to[col + 1] = f32_number(sum[i].y * factor);
		}
	}
}

static __device__ float row_max(float x)
{
#pragma unroll
	for (int offset = LANES / 2; offset; offset /= 2)
		x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
	return x;
}

static __device__ float row_sum(float x)
{
#pragma unroll
	for (int offset = LANES / 2; offset; offset /= 2)
		x += __shfl_xor_sync(0xffffffffu, x, offset);
	return x;
}

template <int PAIRS> static __device__ void forward(const train_attention_args &a, uint4 *shared)
{
	const view w = view_of(a, blockIdx.y, blockIdx.z);
	const uint32_t first = (gridDim.x - 1 - blockIdx.x) * ROWS, dim = a.head_dim, size = ROWS * (dim + 8);
	const uint32_t row = threadIdx.x / LANES, lane = threadIdx.x % LANES, at = first + row;
	train_real *q = (train_real *)shared, *k = q + size, *v = k + size;
	float *p = (float *)(v + 2 * size);
	float most = -INFINITY, sum = 0;
	float2 o[PAIRS] = {};

	if (first >= w.rows)
		return;
	load_tile(q, w.q, a.ld_qkv, first, w.rows, dim);
	for (uint32_t key = 0; key <= first; key += ROWS) {
		float s[SCORES], top = most, factor;

		load_tile(k, w.k, a.ld_qkv, key, w.rows, dim);
		load_tile(v, w.v, a.ld_qkv, key, w.rows, dim);
		__syncthreads();
		dots(s, q, k, row, lane, dim);
#pragma unroll
		for (int j = 0; j < SCORES; j++) {
			s[j] = key + lane + j * LANES <= at ? s[j] * a.scale : -INFINITY;
			top = fmaxf(top, s[j]);
		}
		top = row_max(top); /* the first tile contains key 0, which every row sees */
		factor = expf(most - top);
		most = top;
		sum *= factor;
#pragma unroll
		for (int j = 0; j < SCORES; j++) {
			s[j] = expf(s[j] - most);
			sum += s[j];
			p[row * PITCH + lane + j * LANES] = s[j];
		}
#pragma unroll
		for (int i = 0; i < PAIRS; i++) {
			o[i].x *= factor;
			o[i].y *= factor;
		}
		__syncwarp(); /* the threads of a row are in one warp */
		add_rows(o, v, lane, dim, [&](uint32_t j) { return p[row * PITCH + j]; });
		__syncthreads();
	}
	sum = row_sum(sum);
	if (at >= w.rows)
		return;
	store_row(a.o + (w.row + at) * a.ld_o + (int64_t)w.head * dim, o, 1 / sum, lane, dim);
	if (lane == 0)
		a.lse[(w.row + at) * a.ld_lse + w.head] = most + logf(sum);
}

extern "C" __global__ void TRAIN_ENTRY(train_attention_delta)(train_attention_args a)
{
	const uint32_t lane = threadIdx.x % 8, dim = a.head_dim;
	const bool wide_o = wide_number(a.o, a.ld_o), wide_d_o = wide_number(a.d_o, a.ld_d_o);
	const uint64_t all = (uint64_t)a.rows * a.heads, step = (uint64_t)gridDim.x * (blockDim.x / 8);

	for (uint64_t first = blockIdx.x * (blockDim.x / 8); first < all; first += step) {
		const uint64_t i = first + threadIdx.x / 8, row = i / a.heads, head = i % a.heads;
		float sum = 0;

		for (uint32_t col = lane * 8; i < all && col < dim; col += 64) {
			const eight x = load8(a.o + row * a.ld_o + head * dim + col, 8, wide_o);
			const eight y = load8(a.d_o + row * a.ld_d_o + head * dim + col, 8, wide_d_o);

#pragma unroll
			for (int j = 0; j < 8; j++)
				sum += x.v[j] * y.v[j];
		}
		sum = row_sum(sum);
		if (lane == 0 && i < all)
			a.delta[i] = sum;
	}
}

/* Computes p and ds for a tile of queries and keys. If the query sees the key, p = exp(scale q k' - lse) and
 * ds = p (do v' - delta) scale. Otherwise both are zero. */
static __device__ void score_tile(const train_attention_args &a, const view &w, const train_real *q, const train_real *d_o,
				  const train_real *k, const train_real *v, uint32_t at, uint32_t key, float *p, float *ds)
{
	const uint32_t row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
	const bool there = at + row < w.rows;
	const float lse = there ? a.lse[(w.row + at + row) * a.ld_lse + w.head] : 0;
	const float delta = there ? a.delta[(w.row + at + row) * a.heads + w.head] : 0;
	float s[SCORES], dp[SCORES];

	dots(s, q, k, row, lane, a.head_dim);
	dots(dp, d_o, v, row, lane, a.head_dim);
#pragma unroll
	for (int j = 0; j < SCORES; j++) {
		const bool seen = there && key + lane + j * LANES <= at + row;
		const float e = seen ? expf(s[j] * a.scale - lse) : 0;

		if (p)
			p[row * PITCH + lane + j * LANES] = e;
		ds[row * PITCH + lane + j * LANES] = seen ? e * (dp[j] - delta) * a.scale : 0;
	}
}

template <int PAIRS> static __device__ void backward_kv(const train_attention_args &a, uint4 *shared)
{
	const uint32_t group = a.heads / a.kv_heads, key = blockIdx.x * ROWS, dim = a.head_dim, size = ROWS * (dim + 8);
	const uint32_t row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
	const view own = view_of(a, blockIdx.y * group, blockIdx.z);
	train_real *q = (train_real *)shared, *d_o = q + size, *k = d_o + size, *v = k + size;
	float *p = (float *)(v + size), *ds = p + ROWS * PITCH;
	float2 dk[PAIRS] = {}, dv[PAIRS] = {};

	if (key >= own.rows)
		return;
	load_tile(k, own.k, a.ld_qkv, key, own.rows, dim);
	load_tile(v, own.v, a.ld_qkv, key, own.rows, dim);
	for (uint32_t g = 0; g < group; g++) {
		const view w = view_of(a, blockIdx.y * group + g, blockIdx.z);

		for (uint32_t at = key; at < w.rows; at += ROWS) {
			load_tile(q, w.q, a.ld_qkv, at, w.rows, dim);
			load_tile(d_o, w.d_o, a.ld_d_o, at, w.rows, dim);
			__syncthreads();
			score_tile(a, w, q, d_o, k, v, at, key, p, ds);
			__syncthreads();
			add_rows(dv, d_o, lane, dim, [&](uint32_t j) { return p[j * PITCH + row]; });
			add_rows(dk, q, lane, dim, [&](uint32_t j) { return ds[j * PITCH + row]; });
			__syncthreads();
		}
	}
	if (key + row < own.rows) {
		store_row(own.dk + (key + row) * a.ld_dqkv, dk, 1, lane, dim);
		store_row(own.dv + (key + row) * a.ld_dqkv, dv, 1, lane, dim);
	}
}

template <int PAIRS> static __device__ void backward_q(const train_attention_args &a, uint4 *shared)
{
	const view w = view_of(a, blockIdx.y, blockIdx.z);
	const uint32_t at = (gridDim.x - 1 - blockIdx.x) * ROWS, dim = a.head_dim, size = ROWS * (dim + 8);
	const uint32_t row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
	train_real *q = (train_real *)shared, *d_o = q + size, *k = d_o + size, *v = k + size;
	float *ds = (float *)(v + size);
	float2 dq[PAIRS] = {};

	if (at >= w.rows)
		return;
	load_tile(q, w.q, a.ld_qkv, at, w.rows, dim);
	load_tile(d_o, w.d_o, a.ld_d_o, at, w.rows, dim);
	for (uint32_t key = 0; key <= at; key += ROWS) {
		load_tile(k, w.k, a.ld_qkv, key, w.rows, dim);
		load_tile(v, w.v, a.ld_qkv, key, w.rows, dim);
		__syncthreads();
		score_tile(a, w, q, d_o, k, v, at, key, NULL, ds);
		__syncwarp();
		add_rows(dq, k, lane, dim, [&](uint32_t j) { return ds[row * PITCH + j]; });
		__syncthreads();
	}
	if (at + row < w.rows)
		store_row(w.dq + (at + row) * a.ld_dqkv, dq, 1, lane, dim);
}

/* Selects the number of column pairs per thread by the head size, so small heads do not need the registers of
 * large ones. */
#define BY_DIM(f)                                                                                                              \
	do {                                                                                                                   \
		extern __shared__ uint4 train_shared[];                                                                        \
		if (a.head_dim <= 4 * 2 * LANES)                                                                               \
			f<4>(a, train_shared);                                                                                 \
		else if (a.head_dim <= 8 * 2 * LANES)                                                                          \
			f<8>(a, train_shared);                                                                                 \
		else                                                                                                           \
			f<16>(a, train_shared);                                                                                \
	} while (0)

extern "C" __global__ void __launch_bounds__(TRAIN_ATTENTION_THREADS) TRAIN_ENTRY(train_attention)(train_attention_args a)
{
	BY_DIM(forward);
}

extern "C" __global__ void __launch_bounds__(TRAIN_ATTENTION_THREADS) TRAIN_ENTRY(train_attention_bwd_kv)(train_attention_args a)
{
	BY_DIM(backward_kv);
}

extern "C" __global__ void __launch_bounds__(TRAIN_ATTENTION_THREADS) TRAIN_ENTRY(train_attention_bwd_q)(train_attention_args a)
{
	BY_DIM(backward_q);
}
