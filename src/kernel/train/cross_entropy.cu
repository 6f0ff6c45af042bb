/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-entropy of rows of logits. The loss is written, and the gradient replaces the logits in place.
 * A row is processed in two passes. The first computes the maximum and the sum of exponentials together; it
 * rescales the sum when the maximum grows. The second computes the gradient. In between, shared memory holds
 * as much of the row as fits, and the rest is read again from the L2. So each logit is read once from memory
 * and written once. A block writes one row's gradient while it reads the next row. Reference:
 * tests/gpu/ref_train_loss.c.
 */
#include "kernel/train/vector8.cuh"
#include "kernel/train/cross_entropy.h"

enum { AHEAD = 3 }; /* vectors that a thread has in flight */
#define LOG2E 1.44269504088896341f
#define LOWEST (-1e37f) /* LOWEST * LOG2E is still finite */

struct softmax {
	float most, sum; /* sum of exp(z - most) */
};

/* 2^x by one instruction. Results below 2^-126 are 0. */
static __device__ float power_of_2(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* exp(z - most) is power_of_2(z * LOG2E + minus(most)). */
static __device__ float minus(float most)
{
	return -most * LOG2E;
}

/* The sum, relative to another maximum. It uses the difference of the maxima, because for LOWEST the rounded
 * product with LOG2E would be far off. */
static __device__ float moved(const softmax &s, float most)
{
	return s.sum * power_of_2((s.most - most) * LOG2E);
}

static __device__ softmax joined(softmax x, softmax y)
{
	const float most = fmaxf(x.most, y.most);

	return softmax{most, moved(x, most) + moved(y, most)};
}

#ifdef TRAIN_F32
static __device__ float largest_of(const raw &q)
{
	const eight e = eight_of(q);
	float most = e.v[0];

#pragma unroll
	for (int j = 1; j < 8; j++)
		most = fmaxf(most, e.v[j]);
	return most;
}

static __device__ raw gradient_words(const eight &e)
{
	return e;
}
#else
static __device__ uint32_t larger_of_pairs(uint32_t x, uint32_t y)
{
	__nv_bfloat162 m = __hmax2(*(__nv_bfloat162 *)&x, *(__nv_bfloat162 *)&y);

	return *(uint32_t *)&m;
}

static __device__ float largest_of(const raw &q)
{
	const uint32_t m = larger_of_pairs(larger_of_pairs(q.x, q.y), larger_of_pairs(q.z, q.w));

	return fmaxf(bf16_f32(m), __uint_as_float(m & 0xffff0000u));
}

/* Rounds two values to BF16 by one instruction. */
static __device__ uint32_t word_of(float low, float high)
{
	const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);

	return *(const uint32_t *)&both;
}

static __device__ raw gradient_words(const eight &e)
{
	return make_uint4(word_of(e.v[0], e.v[1]), word_of(e.v[2], e.v[3]), word_of(e.v[4], e.v[5]), word_of(e.v[6], e.v[7]));
}
#endif

/* Adds eight logits. The maximum ignores a NaN, but the sum becomes NaN. */
static __device__ void add_vector(softmax &s, raw q)
{
	const eight e = eight_of(q);
	const float most = fmaxf(s.most, largest_of(q)), shift = minus(most);
	float sum[2] = {0, 0};

#pragma unroll
	for (int j = 0; j < 8; j++)
		sum[j % 2] += power_of_2(fmaf(e.v[j], LOG2E, shift));
	s.sum = moved(s, most) + (sum[0] + sum[1]);
	s.most = most;
}

/* Adds the first `left` of eight logits. */
static __device__ void add_rest(softmax &s, raw q, int64_t left)
{
	const eight e = eight_of(q);

#pragma unroll
	for (int j = 0; j < 8; j++)
		if (j < left)
			s = joined(s, softmax{fmaxf(e.v[j], LOWEST), isnan(e.v[j]) ? e.v[j] : 1});
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

/* The target's logit, which the loss needs in addition to the sum. It is loaded while the row is read. */
struct row_target {
	float z;
	int32_t target; /* -1: no valid target */
};

static __device__ row_target target_of(const train_loss_args &a, uint32_t i)
{
	const int32_t target = a.target[a.row[i]];
	const bool counts = target >= 0 && (uint32_t)target < a.vocab;

	return row_target{counts ? number_f32(a.logits[i * a.ld + target]) : 0, counts ? target : -1};
}

struct gradient {
	float shift; /* gradient of an element: 2^(z * LOG2E + shift), minus `scale` at the target */
	float scale;
	int32_t target; /* -1: no valid target, all gradients are 0 */
};

static __device__ raw gradient_of(raw q, const gradient &g, uint32_t col)
{
	eight e = eight_of(q);

	if (g.target < 0)
		return zeros();
#pragma unroll
	for (int j = 0; j < 8; j++)
		e.v[j] = power_of_2(fmaf(e.v[j], LOG2E, g.shift));
	if ((uint32_t)g.target - col < 8) {
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (col + j == (uint32_t)g.target)
				e.v[j] -= g.scale;
	}
	return gradient_words(e);
}

/* A row to overwrite with its gradient, the next row to read, and the shared memory that holds a row's first
 * vectors. */
struct two_rows {
	train_real *row;
	const train_real *next;
	raw *kept;
	uint32_t room, vocab;
	bool wide;
};

/* Processes vector `v`, of which `left` elements exist (may be more than 8). */
template <bool WRITE, bool READ> static __device__ void turn_one(const two_rows &r, uint32_t v, int64_t left, const gradient &g, softmax &s)
{
	const raw incoming = READ ? raw8(r.next + v * 8, left, r.wide) : raw{};

	if (WRITE)
		put8(r.row + v * 8, gradient_of(v < r.room ? r.kept[v] : raw8(r.row + v * 8, left, r.wide), g, v * 8), left, r.wide);
	if (READ && left >= 8)
		add_vector(s, incoming);
	else if (READ)
		add_rest(s, incoming, left);
	if (READ && v < r.room)
		r.kept[v] = incoming;
}

/* Writes the gradient over the row, and reads the next row into its place. */
template <bool WRITE, bool READ> static __device__ softmax turn(const two_rows &r, const gradient &g)
{
	const uint32_t whole = r.wide ? r.vocab / 8 : 0; /* number of whole vectors */
	softmax s = {LOWEST, 0};

	for (uint32_t v = threadIdx.x; v < whole; v += AHEAD * TRAIN_LOSS_THREADS) {
		raw incoming[AHEAD], own[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t at = v + i * TRAIN_LOSS_THREADS;

			if (READ && at < whole)
				incoming[i] = ((const raw *)r.next)[at];
			if (WRITE && at < whole)
				own[i] = at < r.room ? r.kept[at] : ((const raw *)r.row)[at];
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t at = v + i * TRAIN_LOSS_THREADS;

			if (at >= whole)
				continue;
			if (WRITE)
				((raw *)r.row)[at] = gradient_of(own[i], g, at * 8);
			if (READ)
				add_vector(s, incoming[i]);
			if (READ && at < r.room)
				r.kept[at] = incoming[i];
		}
	}
	for (uint32_t v = whole + threadIdx.x; v * 8 < r.vocab; v += TRAIN_LOSS_THREADS)
		turn_one<WRITE, READ>(r, v, (int64_t)r.vocab - v * 8, g, s);
	return s;
}

/* Prefetches the first vectors of the next row while the block synchronizes. */
static __device__ void fetch(const two_rows &r)
{
#pragma unroll
	for (int i = 0; i < AHEAD; i++) {
		const uint32_t col = (threadIdx.x + i * TRAIN_LOSS_THREADS) * 8;

		if (col < r.vocab)
			asm volatile("prefetch.global.L2 [%0];" ::"l"(r.next + col));
	}
}

/* One thread writes the row's loss. Returns the constants of the gradient in all threads. */
static __device__ gradient close_row(const train_loss_args &a, uint32_t i, softmax s, row_target t, softmax *room)
{
	s = over_block(s, room); /* the barrier in over_block makes sure that all threads have the target's
				  * logit before any thread writes */
	if (threadIdx.x == 0)
		a.loss[i * a.ld_loss] = t.target >= 0 ? s.most + logf(s.sum) - t.z : 0;
	return gradient{minus(s.most) + log2f(a.grad_scale / s.sum), a.grad_scale, t.target};
}

extern "C" __global__ void __launch_bounds__(TRAIN_LOSS_THREADS, 1) TRAIN_ENTRY(train_cross_entropy)(train_loss_args a)
{
	extern __shared__ uint4 kept[];
	__shared__ softmax room[2][32];
	two_rows r = {NULL, a.logits + blockIdx.x * a.ld, (raw *)kept, a.shared_bytes / (uint32_t)sizeof(raw), a.vocab,
		      wide_number(a.logits, a.ld)};
	unsigned side = 0;
	row_target t;
	gradient g = {};
	softmax s;

	if (blockIdx.x >= a.rows)
		return;
	t = target_of(a, blockIdx.x);
	s = turn<false, true>(r, g);
	for (uint32_t i = blockIdx.x; i < a.rows; i += gridDim.x, side ^= 1) {
		const bool more = a.rows - i > gridDim.x;

		r.row = a.logits + i * a.ld;
		r.next = r.row + gridDim.x * a.ld;
		if (more)
			fetch(r);
		g = close_row(a, i, s, t, room[side]);
		if (more)
			t = target_of(a, i + gridDim.x);
		if (a.grad_scale == 0 && more)
			s = turn<false, true>(r, g);
		else if (a.grad_scale != 0 && more)
			s = turn<true, true>(r, g);
		else if (a.grad_scale != 0)
			turn<true, false>(r, g);
	}
}

/* Rows of a part of the vocabulary, one after another without shared memory. */
static __device__ two_rows part_rows(const train_loss_part_args &a, uint32_t i)
{
	return two_rows{a.logits + i * a.ld, a.logits + i * a.ld, NULL, 0, a.vocab, wide_number(a.logits, a.ld)};
}

/* The target's column; past all columns if another rank has it. */
static __device__ int32_t part_target(const train_loss_part_args &a, uint32_t i)
{
	const int32_t at = a.target[a.row[i]] - a.first;

	return (uint32_t)at < a.vocab ? at : INT32_MAX;
}

extern "C" __global__ void __launch_bounds__(TRAIN_LOSS_THREADS, 1) TRAIN_ENTRY(train_loss_part)(train_loss_part_args a)
{
	__shared__ softmax room[2][32];
	unsigned side = 0;

	for (uint32_t i = blockIdx.x; i < a.rows; i += gridDim.x, side ^= 1) {
		const softmax s = over_block(turn<false, true>(part_rows(a, i), gradient{}), room[side]);
		const int32_t target = part_target(a, i);
		float *out = a.part + i * a.ld_part;

		if (threadIdx.x)
			continue;
		out[0] = s.most;
		out[1] = s.sum;
		out[2] = target == INT32_MAX ? 0 : number_f32(a.logits[i * a.ld + target]);
	}
}

extern "C" __global__ void __launch_bounds__(TRAIN_LOSS_THREADS, 1) TRAIN_ENTRY(train_loss_join)(train_loss_part_args a)
{
	for (uint32_t i = blockIdx.x; i < a.rows; i += gridDim.x) {
		softmax s = {LOWEST, 0};
		float z = 0;

		for (uint32_t r = 0; r < a.ranks; r++) {
			const float *part = a.part + (int64_t)(r * a.rows + i) * a.ld_part;

			s = joined(s, softmax{part[0], part[1]});
			z += part[2];
		}
		if (threadIdx.x == 0)
			a.loss[i * a.ld_loss] = s.most + logf(s.sum) - z;
		if (a.grad_scale != 0)
			turn<true, false>(part_rows(a, i), gradient{minus(s.most) + log2f(a.grad_scale / s.sum), a.grad_scale, part_target(a, i)});
	}
}
