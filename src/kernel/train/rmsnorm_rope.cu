/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMSNorm of rows and of heads, and RoPE. A block holds a row in registers between the sum of squares and the
 * multiplication. So each element is read once and written once. Each block sums its part of a weight
 * gradient, and train_sums_add adds the parts. There are no atomics, so results are bit-equal. References:
 * tests/gpu/ref_train_norm.c.
 */
#include "kernel/train/vector8.cuh"
#include "kernel/train/rmsnorm_rope.h"

enum { KEEP = 2 }; /* vectors of a row per thread; must match train_row_threads */

extern "C" __global__ void __launch_bounds__(1024) TRAIN_ENTRY(train_rmsnorm)(train_norm_args a)
{
	__shared__ float room[2][33];
	const bool wide_x = wide_number(a.x, a.ld_x), wide_add = wide_number(a.add, a.ld_add);
	const bool wide_y = wide_number(a.y, a.ld_y), wide_w = wide_number(a.w, 0);
	const float over = 1.0f / (float)a.cols;

	for (uint32_t row = blockIdx.x, turn = 0; row < a.rows; row += gridDim.x, turn ^= 1) {
		train_real *x = a.x + row * a.ld_x, *y = a.y + row * a.ld_y;
		raw kept[KEEP];
		float sum = 0, rstd;

#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			kept[i] = left > 0 ? raw8(x + col, left, wide_x) : zeros();
		}
		if (a.add) {
#pragma unroll
			for (int i = 0; i < KEEP; i++) {
				const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

				if (left > 0) {
					eight e = eight_of(kept[i]);
					const eight d = load8(a.add + row * a.ld_add + col, left, wide_add);

#pragma unroll
					for (int j = 0; j < 8; j++)
						e.v[j] += d.v[j];
					kept[i] = raw_of(e);
					put8(x + col, kept[i], left, wide_x);
				}
			}
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

			if (left > 0) {
				const eight w = load8(a.w + col, left, wide_w);
				eight e = eight_of(kept[i]);

#pragma unroll
				for (int j = 0; j < 8; j++)
					e.v[j] = w.v[j] * rounded(e.v[j] * rstd);
				store8(y + col, e, left, wide_y);
			}
		}
	}
}

/* A block processes its rows in a fixed order. If dw is wanted, each thread sums dw for its own columns. */
template <bool WEIGHT> static __device__ void rmsnorm_bwd(const train_norm_bwd_args &a)
{
	__shared__ float room[2][33];
	const bool wide_dy = wide_number(a.dy, a.ld_dy), wide_x = wide_number(a.x, a.ld_x);
	const bool wide_dx = wide_number(a.dx, a.ld_dx), wide_w = wide_number(a.w, 0);
	const float over = 1.0f / (float)a.cols;
	eight dw[WEIGHT ? KEEP : 1] = {};

	for (uint32_t row = blockIdx.x, turn = 0; row < a.rows; row += gridDim.x, turn ^= 1) {
		const float rstd = a.rstd[row * a.ld_rstd];
		raw dy[KEEP], x[KEEP], dx[KEEP];
		float mean = 0;

#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			dy[i] = x[i] = dx[i] = zeros();
			if (left > 0) {
				dy[i] = raw8(a.dy + row * a.ld_dy + col, left, wide_dy);
				x[i] = raw8(a.x + row * a.ld_x + col, left, wide_x);
				dx[i] = raw8(a.dx + row * a.ld_dx + col, left, wide_dx);
			}
		}
#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			if (left > 0) {
				const eight w = load8(a.w + col, left, wide_w), d = eight_of(dy[i]), e = eight_of(x[i]);

#pragma unroll
				for (int j = 0; j < 8; j++) {
					mean += d.v[j] * w.v[j] * e.v[j];
					if (WEIGHT)
						dw[i].v[j] += d.v[j] * rounded(e.v[j] * rstd);
				}
			}
		}
		mean = sum_to_all(mean, room[turn]) * rstd * rstd * over;
#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			if (left > 0) {
				const eight w = load8(a.w + col, left, wide_w), d = eight_of(dy[i]), e = eight_of(x[i]);
				eight sum = eight_of(dx[i]);

#pragma unroll
				for (int j = 0; j < 8; j++)
					sum.v[j] += rstd * (d.v[j] * w.v[j] - e.v[j] * mean);
				store8(a.dx + row * a.ld_dx + col, sum, left, wide_dx);
			}
		}
	}
	if (WEIGHT) {
		float *sums = a.sums + (uint64_t)blockIdx.x * a.cols;

#pragma unroll
		for (int i = 0; i < KEEP; i++) {
			const int64_t col = (int64_t)(i * blockDim.x + threadIdx.x) * 8, left = a.cols - col;

			if (left > 0)
				store8(sums + col, dw[i], left, wide_f32(a.sums, a.cols));
		}
	}
}

extern "C" __global__ void __launch_bounds__(1024) TRAIN_ENTRY(train_rmsnorm_bwd)(train_norm_bwd_args a)
{
	if (a.sums)
		rmsnorm_bwd<true>(a);
	else
		rmsnorm_bwd<false>(a);
}

/* A group of lanes, a power of two, processes one head. Each lane has eight numbers of the first half and
 * their partners in the second half. A group lies within a warp, and all lanes of a warp make the same number
 * of rounds. */
struct head_lane {
	unsigned lanes;	   /* lanes of a group */
	unsigned groups;   /* groups of the block */
	unsigned group;	   /* group of this thread */
	int64_t at, left; /* first number of this lane within a half; numbers left from there */
};

static __device__ head_lane head_lane_of(uint32_t dim)
{
	head_lane h;

	h.lanes = 1;
	while (h.lanes * 16 < dim)
		h.lanes *= 2;
	h.groups = blockDim.x / h.lanes;
	h.group = threadIdx.x / h.lanes;
	h.at = (int64_t)(threadIdx.x % h.lanes) * 8;
	h.left = dim / 2 - h.at;
	return h;
}

static __device__ float group_sum(float value, unsigned lanes)
{
	for (unsigned offset = lanes / 2; offset; offset /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, offset);
	return value;
}

struct halves {
	eight a, b;
};
struct raw_halves {
	raw a, b;
};

static __device__ raw_halves load_halves(const train_real *p, const head_lane &h, uint32_t half, bool wide)
{
	raw_halves x = {};

	if (h.left > 0) {
		x.a = raw8(p + h.at, h.left, wide);
		x.b = raw8(p + half + h.at, h.left, wide);
	}
	return x;
}

static __device__ void put_halves(train_real *p, const raw_halves &x, const head_lane &h, uint32_t half, bool wide)
{
	if (h.left > 0) {
		put8(p + h.at, x.a, h.left, wide);
		put8(p + half + h.at, x.b, h.left, wide);
	}
}

static __device__ halves halves_of(const raw_halves &x)
{
	return halves{eight_of(x.a), eight_of(x.b)};
}

static __device__ raw_halves packed(const halves &x)
{
	return raw_halves{raw_of(x.a), raw_of(x.b)};
}

static __device__ void rotate(halves &x, const float *angles, const head_lane &h, uint32_t half, float sign, bool wide)
{
	if (h.left <= 0)
		return;
	const eight c = load8(angles + h.at, h.left, wide), s = load8(angles + half + h.at, h.left, wide);

#pragma unroll
	for (int j = 0; j < 8; j++) {
		float a = x.a.v[j], b = x.b.v[j], sine = sign * s.v[j];

		x.a.v[j] = a * c.v[j] - b * sine;
		x.b.v[j] = b * c.v[j] + a * sine;
	}
}

static __device__ float dot_halves(const halves &x, const halves &y)
{
	float sum = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		sum += x.a.v[j] * y.a.v[j] + x.b.v[j] * y.b.v[j];
	return sum;
}

/* The halves of a head stay 16-byte aligned only if a half consists of whole vectors. */
static __device__ bool wide_halves(const void *p, int64_t ld, uint32_t dim)
{
	return wide_number(p, ld) && dim % 16 == 0;
}

/* A head of a row. `mine` is false if another group has this head; this group then only takes part in the
 * shuffles. */
struct head_place {
	uint32_t row, head;
	bool mine;
};

/* Splits all heads of all rows among the grid's groups, ITEMS at a time. All ITEMS are loaded before the
 * first is processed. */
template <int ITEMS, typename loader, typename worker>
static __device__ void for_heads(const train_head_args &a, const head_lane &h, loader load, worker work)
{
	const uint32_t all = a.rows * a.heads, step = gridDim.x * h.groups * ITEMS;

	for (uint32_t first = blockIdx.x * h.groups * ITEMS; first < all; first += step) {
		decltype(load(head_place{})) loaded[ITEMS];
		head_place at[ITEMS];

#pragma unroll
		for (int i = 0; i < ITEMS; i++) {
			const uint32_t n = first + i * h.groups + h.group, there = n < all ? n : all - 1;

			at[i].row = there / a.heads;
			at[i].head = there - at[i].row * a.heads;
			at[i].mine = n < all;
			loaded[i] = load(at[i]);
		}
#pragma unroll
		for (int i = 0; i < ITEMS; i++)
			work(at[i], loaded[i]);
	}
}

template <bool NORM> static __device__ void head_rope(const train_head_args &a)
{
	const head_lane h = head_lane_of(a.dim);
	const uint32_t half = a.dim / 2;
	const bool wide_x = wide_halves(a.x, a.ld_x, a.dim), wide_raw = wide_halves(a.raw, a.ld_raw, a.dim);
	const bool wide_angles = wide_f32(a.cos_sin, a.ld_cos_sin) && half % 4 == 0;
	const raw_halves w = NORM ? load_halves(a.w, h, half, wide_halves(a.w, 0, a.dim)) : raw_halves{};

	for_heads<NORM ? 1 : 2>(
		a, h,
		[&](head_place p) {
			return load_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, h, half, wide_x);
		},
		[&](head_place p, const raw_halves &raw) {
			halves e = halves_of(raw);

			if (NORM) {
				const halves weight = halves_of(w);
				const float rstd = 1.0f / sqrtf(group_sum(dot_halves(e, e), h.lanes) / (float)a.dim + a.eps);

				if (p.mine) {
					put_halves(a.raw + p.row * a.ld_raw + (int64_t)p.head * a.dim, raw, h, half, wide_raw);
					if (h.at == 0)
						a.rstd[p.row * a.ld_rstd + p.head] = rstd;
				}
#pragma unroll
				for (int j = 0; j < 8; j++) {
					e.a.v[j] = weight.a.v[j] * rounded(e.a.v[j] * rstd);
					e.b.v[j] = weight.b.v[j] * rounded(e.b.v[j] * rstd);
				}
			}
			rotate(e, a.cos_sin + a.position[p.row] * a.ld_cos_sin, h, half, 1, wide_angles);
			if (p.mine)
				put_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, packed(e), h, half, wide_x);
		});
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS, 3) TRAIN_ENTRY(train_head_rope)(train_head_args a)
{
	if (a.w)
		head_rope<true>(a);
	else
		head_rope<false>(a);
}

/* Writes the block's column sums of its groups' dw to sums (dim), added in the order of the groups. */
static __device__ void write_head_sums(const halves &dw, const head_lane &h, uint32_t half, float *sums)
{
	__shared__ float part[2 * 8 * TRAIN_THREADS]; /* (groups, dim) */

	if (h.left > 0) {
		for (int j = 0; j < 8 && j < h.left; j++) {
			part[h.group * 2 * half + h.at + j] = dw.a.v[j];
			part[h.group * 2 * half + half + h.at + j] = dw.b.v[j];
		}
	}
	__syncthreads();
	for (uint32_t col = threadIdx.x; col < 2 * half; col += blockDim.x) {
		float sum = 0;

		for (unsigned g = 0; g < h.groups; g++)
			sum += part[g * 2 * half + col];
		sums[col] = sum;
	}
}

/* Backward of RoPE without a norm. */
static __device__ void rope_bwd(const train_head_args &a)
{
	const head_lane h = head_lane_of(a.dim);
	const uint32_t half = a.dim / 2;
	const bool wide_x = wide_halves(a.x, a.ld_x, a.dim);
	const bool wide_angles = wide_f32(a.cos_sin, a.ld_cos_sin) && half % 4 == 0;

	for_heads<2>(
		a, h,
		[&](head_place p) {
			return load_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, h, half, wide_x);
		},
		[&](head_place p, const raw_halves &x) {
			halves e = halves_of(x);

			rotate(e, a.cos_sin + a.position[p.row] * a.ld_cos_sin, h, half, -1, wide_angles);
			if (p.mine)
				put_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, packed(e), h, half, wide_x);
		});
}

struct head_loaded {
	raw_halves dx, raw;
};

/* Backward of RoPE, then of the norm. */
static __device__ void head_norm_bwd(const train_head_args &a)
{
	const head_lane h = head_lane_of(a.dim);
	const uint32_t half = a.dim / 2;
	const bool wide_x = wide_halves(a.x, a.ld_x, a.dim), wide_raw = wide_halves(a.raw, a.ld_raw, a.dim);
	const bool wide_angles = wide_f32(a.cos_sin, a.ld_cos_sin) && half % 4 == 0;
	const raw_halves w = load_halves(a.w, h, half, wide_halves(a.w, 0, a.dim));
	halves dw = {};

	for_heads<1>(
		a, h,
		[&](head_place p) {
			return head_loaded{
				load_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, h, half, wide_x),
				load_halves(a.raw + p.row * a.ld_raw + (int64_t)p.head * a.dim, h, half, wide_raw)};
		},
		[&](head_place p, const head_loaded &x) {
			const float rstd = a.rstd[p.row * a.ld_rstd + p.head];
			const halves raw = halves_of(x.raw), weight = halves_of(w);
			halves e = halves_of(x.dx);
			float mean;

			rotate(e, a.cos_sin + a.position[p.row] * a.ld_cos_sin, h, half, -1, wide_angles);
#pragma unroll
			for (int j = 0; j < 8; j++) {
				if (p.mine) {
					dw.a.v[j] += e.a.v[j] * rounded(raw.a.v[j] * rstd);
					dw.b.v[j] += e.b.v[j] * rounded(raw.b.v[j] * rstd);
				}
				e.a.v[j] *= weight.a.v[j];
				e.b.v[j] *= weight.b.v[j];
			}
			mean = group_sum(dot_halves(e, raw), h.lanes) * rstd * rstd / (float)a.dim;
#pragma unroll
			for (int j = 0; j < 8; j++) {
				e.a.v[j] = rstd * (e.a.v[j] - raw.a.v[j] * mean);
				e.b.v[j] = rstd * (e.b.v[j] - raw.b.v[j] * mean);
			}
			if (p.mine)
				put_halves(a.x + p.row * a.ld_x + (int64_t)p.head * a.dim, packed(e), h, half, wide_x);
		});
	if (a.sums)
		write_head_sums(dw, h, half, a.sums + (uint64_t)blockIdx.x * a.dim);
}

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS, 3) TRAIN_ENTRY(train_head_rope_bwd)(train_head_args a)
{
	if (a.w)
		head_norm_bwd(a);
	else
		rope_bwd(a);
}
