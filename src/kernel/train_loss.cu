/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-entropy of rows of logits, loss and gradient in place. A row is passed over twice, once for the maximum and the sum of
 * exponentials (kept together, the sum scaled again where the maximum grows), once for the gradient; in between it lies in
 * shared memory as far as that goes (the rest comes again from L2), so each logit is read once from memory and written once. A
 * block writes one row's gradient while it reads the next row. Reference: tests/gpu/ref_train_loss.c.
 */
#include "kernel/train.cuh"
#include "kernel/train_loss.h"

enum { AHEAD = 3 }; /* vectors that a thread has under way */
#define LOG2E 1.44269504088896341f
#define LOWEST (-3.402823466e38f)

struct softmax {
	float most, sum; /* of exp(z - most) */
};

static __device__ softmax joined(softmax x, softmax y)
{
	const float most = fmaxf(x.most, y.most);

	return softmax{most, x.sum * exp2f((x.most - most) * LOG2E) + y.sum * exp2f((y.most - most) * LOG2E)};
}

/* fmaxf would pass over a NaN; the sum has it then. */
static __device__ void add_vector(softmax &s, uint4 q, int64_t left)
{
	const eight e = eight_of(q);
	float most = s.most, sum = 0;

#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			most = fmaxf(most, e.v[j]);
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			sum += exp2f((e.v[j] - most) * LOG2E);
	s.sum = s.sum * exp2f((s.most - most) * LOG2E) + sum;
	s.most = most;
}

static __device__ softmax over_block(softmax s, softmax *room)
{
	const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		s = joined(s, softmax{__shfl_xor_sync(0xffffffffu, s.most, offset),
				      __shfl_xor_sync(0xffffffffu, s.sum, offset)});
	if (lane == 0)
		room[warp] = s;
	__syncthreads();
	s = lane < blockDim.x / 32 ? room[lane] : softmax{LOWEST, 0};
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		s = joined(s, softmax{__shfl_xor_sync(0xffffffffu, s.most, offset),
				      __shfl_xor_sync(0xffffffffu, s.sum, offset)});
	return s;
}

struct gradient {
	float most, factor; /* element: exp(z - most) * factor, less `scale` at the target */
	float scale;
	int64_t target; /* -1: none */
};

static __device__ uint4 gradient_of(uint4 q, const gradient &g, int64_t col)
{
	eight e = eight_of(q);

#pragma unroll
	for (int j = 0; j < 8; j++) {
		e.v[j] = exp2f((e.v[j] - g.most) * LOG2E) * g.factor;
		if (col + j == g.target)
			e.v[j] -= g.scale;
	}
	return four_words(e);
}

/* Writes the gradient over `row` and reads `next` in its place; either may be absent. `kept`: the first vectors of a row. */
template <bool WRITE, bool READ>
static __device__ softmax turn(const train_loss_args &a, uint16_t *row, const uint16_t *next, const gradient &g, uint4 *kept)
{
	const uint32_t vectors = (a.vocab + 7) / 8, room = a.shared_bytes / 16;
	const bool wide = wide_bf16(a.logits, a.ld);
	softmax s = {LOWEST, 0};

	for (uint32_t first = threadIdx.x; first < vectors; first += AHEAD * blockDim.x) {
		uint4 incoming[AHEAD], own[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t v = first + i * blockDim.x;
			const int64_t col = (int64_t)v * 8, left = a.vocab - col;

			if (READ && v < vectors)
				incoming[i] = raw8(next + col, left, wide);
			if (WRITE && v < vectors)
				own[i] = v < room ? kept[v] : raw8(row + col, left, wide);
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t v = first + i * blockDim.x;
			const int64_t col = (int64_t)v * 8, left = a.vocab - col;

			if (v >= vectors)
				continue;
			if (WRITE)
				put8(row + col, gradient_of(own[i], g, col), left, wide);
			if (READ) {
				add_vector(s, incoming[i], left);
				if (v < room)
					kept[v] = incoming[i];
			}
		}
	}
	return s;
}

/* The row's loss, by one thread, and what its gradient needs, in all. */
static __device__ gradient close_row(const train_loss_args &a, uint32_t i, softmax s, softmax *room)
{
	const int32_t target = a.target[a.row[i]];
	const bool counts = target >= 0 && (uint32_t)target < a.vocab;
	const float z = counts ? bf16_f32(a.logits[i * a.ld + target]) : 0; /* before any thread writes: the barrier below */

	s = over_block(s, room);
	if (threadIdx.x == 0)
		a.loss[i * a.ld_loss] = counts ? s.most + logf(s.sum) - z : 0;
	return gradient{s.most, counts ? a.grad_scale / s.sum : 0, a.grad_scale, counts ? target : -1};
}

extern "C" __global__ void __launch_bounds__(TRAIN_LOSS_THREADS, 1) train_cross_entropy(train_loss_args a)
{
	extern __shared__ uint4 kept[];
	__shared__ softmax room[2][32];
	unsigned side = 0;
	gradient g = {};
	softmax s;

	if (blockIdx.x >= a.rows)
		return;
	s = turn<false, true>(a, NULL, a.logits + blockIdx.x * a.ld, g, kept);
	for (uint32_t i = blockIdx.x; i < a.rows; i += gridDim.x, side ^= 1) {
		const bool more = a.rows - i > gridDim.x;
		uint16_t *row = a.logits + i * a.ld;
		const uint16_t *next = row + gridDim.x * a.ld;

		g = close_row(a, i, s, room[side]);
		if (a.grad_scale == 0 && more)
			s = turn<false, true>(a, row, next, g, kept);
		else if (a.grad_scale != 0 && more)
			s = turn<true, true>(a, row, next, g, kept);
		else if (a.grad_scale != 0)
			turn<true, false>(a, row, next, g, kept);
	}
}
