/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on the flat vector: sums in double in a fixed order, and AdamW. One AdamW pass clips the gradient
 * and updates the moments, the master copy and the BF16 copies that GEMMs read. References:
 * tests/gpu/ref_train_flat.c.
 */
#include "kernel/block_sum.cuh"
#include "kernel/train/vector8.cuh"
#include "kernel/train/flat_vector.h"

/* The block's part is split among its threads by vectors. block_sum adds their sums in a fixed order. */
extern "C" __global__ void train_reduce(train_reduce_args a)
{
	const uint64_t vectors = (a.count + 7) / 8, each = (vectors + gridDim.x - 1) / gridDim.x;
	const uint64_t begin = blockIdx.x * each, end = begin + each < vectors ? begin + each : vectors;
	const bool wide = a.bf16 ? wide_bf16(a.x, 0) : wide_f32(a.x, 0);
	double sum = 0;

#pragma unroll 4
	for (uint64_t v = begin + threadIdx.x; v < end; v += blockDim.x) {
		const int64_t left = (int64_t)(a.count - v * 8);
		const eight e = a.bf16 ? load8((const uint16_t *)a.x + v * 8, left, wide)
				       : load8((const float *)a.x + v * 8, left, wide);

#pragma unroll
		for (int j = 0; j < 8; j++)
			sum += a.squares ? (double)e.v[j] * (double)e.v[j] : (double)e.v[j];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		a.sums[blockIdx.x] = sum;
}

extern "C" __global__ void train_reduce_end(train_reduce_args a)
{
	double sum = 0;

	for (unsigned i = threadIdx.x; i < TRAIN_REDUCE_BLOCKS; i += blockDim.x)
		sum += a.sums[i];
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		*a.sum += sum;
}

/* Returns the last tensor that begins at or before element i; -1: none. */
static __device__ int tensor_at(const train_adamw_args &a, uint64_t i)
{
	int low = -1, high = (int)a.tensors;

	while (high - low > 1) {
		int middle = (low + high) / 2;

		if (a.live[middle].begin <= i)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* As tensor_at, for an element at or after one for which tensor_at returned `t`. */
static __device__ int tensor_from(const train_adamw_args &a, int t, uint64_t i)
{
	while (t + 1 < (int)a.tensors && a.live[t + 1].begin <= i)
		t++;
	return t;
}

static __device__ bool within(const train_adamw_args &a, int t, uint64_t i)
{
	return t >= 0 && i - a.live[t].begin < a.live[t].count;
}

static __device__ void put_live(const train_live &l, uint64_t i, float value)
{
	const uint64_t at = i - l.begin, row = at / l.cols;

	if (l.to)
		l.to[row * l.ld + (at - row * l.cols)] = f32_bf16(value * l.scale);
}

/* Writes eight neighbours of the flat vector, in one access if they are in one row of one tensor. */
static __device__ void put_live8(const train_adamw_args &a, int t, uint64_t i, const eight &x, int64_t left)
{
	if (left >= 8 && within(a, t, i) && within(a, t, i + 7)) {
		const train_live l = a.live[t];
		const uint64_t at = i - l.begin, row = (uint32_t)(at >> 32) ? at / l.cols : (uint32_t)at / l.cols;
		const uint64_t col = at - row * l.cols;

		if (!l.to)
			return;
		if (col + 8 <= l.cols) {
			uint16_t *to = l.to + row * l.ld + col;
			eight e = x;

#pragma unroll
			for (int j = 0; j < 8; j++)
				e.v[j] *= l.scale;
			store8(to, e, 8, (uint64_t)to % 16 == 0);
			return;
		}
	}
#pragma unroll
	for (int j = 0; j < 8; j++) {
		if (j < left) {
			t = tensor_from(a, t, i + j);
			if (within(a, t, i + j))
				put_live(a.live[t], i + j, x.v[j]);
		}
	}
}

/* Same result as train/step/optimiser.c. NaN means that the step must be skipped. */
static __device__ float clip_of(const train_adamw_args &a)
{
	if (!a.norm_squares)
		return a.clip_scale;
	const double norm = sqrt(*a.norm_squares);

	if (!isfinite(norm))
		return __int_as_float(0x7fffffff);
	return a.max_norm > 0 && a.max_norm < norm + 1e-6 ? (float)(a.max_norm / (norm + 1e-6)) : 1.0f;
}

struct stepped {
	float clip, b1, b2, step, root, eps;
};

/* Algorithm 2 of Loshchilov and Hutter as PyTorch computes it: decay first, eps outside the corrected
 * root. */
static __device__ void step_one(const stepped &s, float g, float &m, float &v, float &master, float keep)
{
	const float d = g * s.clip;

	m = s.b1 * m + (1 - s.b1) * d;
	v = s.b2 * v + (1 - s.b2) * d * d;
	master = keep * master - s.step * m / (sqrtf(v) * s.root + s.eps);
}

static __device__ float keep_of(const train_adamw_args &a, int t, uint64_t i)
{
	return 1 - a.lr * (within(a, t, i) ? a.decay * a.live[t].decay : a.decay);
}

/* Steps elements i .. i + 7. The first is in tensor t or after it. The decay of single elements is looked up
 * only at a tensor's border. */
static __device__ void step_eight(const train_adamw_args &a, const stepped &s, int t, uint64_t i, const eight &g, eight &m,
				  eight &v, eight &x)
{
	const bool plain = !a.tensors || (within(a, t, i) && within(a, t, i + 7));
	float keep = keep_of(a, t, i);

#pragma unroll
	for (int j = 0; j < 8; j++) {
		if (!plain) {
			t = tensor_from(a, t, i + j);
			keep = keep_of(a, t, i + j);
		}
		step_one(s, g.v[j], m.v[j], v.v[j], x.v[j], keep);
	}
}

extern "C" __global__ void train_adamw(train_adamw_args a)
{
	const uint64_t piece = (uint64_t)blockDim.x * 8;
	const bool wide = wide_f32(a.g, 0) && wide_f32(a.m, 0) && wide_f32(a.v, 0) && wide_f32(a.master, 0);
	const stepped s = {clip_of(a), a.beta1, a.beta2, a.lr / a.correction1, 1.0f / sqrtf(a.correction2), a.eps};

	if (isnan(s.clip))
		return;
	for (uint64_t first = blockIdx.x * piece; first < a.count; first += gridDim.x * piece) {
		const uint64_t at = first + threadIdx.x * 8;
		const int64_t left = (int64_t)(a.count - at);

		if (at >= a.count)
			continue;
		eight g = load8(a.g + at, left, wide), m = load8(a.m + at, left, wide);
		eight v = load8(a.v + at, left, wide), x = load8(a.master + at, left, wide);
		const int t = tensor_from(a, tensor_at(a, a.begin + first), a.begin + at);

		step_eight(a, s, t, a.begin + at, g, m, v, x);
		store8(a.m + at, m, left, wide);
		store8(a.v + at, v, left, wide);
		store8(a.master + at, x, left, wide);
		if (a.zero_gradient)
			store8(a.g + at, eight{}, left, wide);
		if (a.tensors)
			put_live8(a, t, a.begin + at, x, left);
	}
}

extern "C" __global__ void train_live_refresh(train_adamw_args a)
{
	const uint64_t piece = (uint64_t)blockDim.x * 8;
	const bool wide = wide_f32(a.master, 0);

	for (uint64_t first = blockIdx.x * piece; first < a.count; first += gridDim.x * piece) {
		const uint64_t at = first + threadIdx.x * 8;
		const int64_t left = (int64_t)(a.count - at);

		if (at < a.count)
			put_live8(a, tensor_from(a, tensor_at(a, a.begin + first), a.begin + at), a.begin + at,
				  load8(a.master + at, left, wide), left);
	}
}
