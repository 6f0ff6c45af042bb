/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of a warpgroup's tile in registers. A thread has two rows: lane / 4 and the row 8 below. */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_SOFTMAX_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_SOFTMAX_CUH
#include "kernel/attention/forward/sm90_shape.cuh"

static __device__ __forceinline__ float exp2_unit(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

struct softmax_rows {
	float shift[2]; /* OFFSET - scale_log2 * (reference maximum of the exponents); +inf before any key */
	float sum[2];	/* sum over this thread's columns */
};

/* Largest sum for which no exponential can exceed the range of type T. Above it the block is computed again
 * with its own maximum. */
template <typename T> static __device__ __forceinline__ float stale_limit(T)
{
	return 32768.f;
}

static __device__ __forceinline__ float stale_limit(__nv_fp8_e4m3)
{
	return 448.f;
}

/* Masks scores of keys outside low[r] .. high[r]. column: the column of the thread's first score. */
template <int N>
static __device__ __forceinline__ void scores_mask(float (&s)[N], const int (&low)[2], const int (&high)[2], int column)
{
#pragma unroll
	for (int i = 0; i < N; i++) {
		const int c = column + i / 4 * 8 + i % 2, r = i / 2 % 2;

		if (c < low[r] || c > high[r])
			s[i] = -INFINITY;
	}
}

/* Packs the exponentials of the scores into pairs, and sums them by row. */
template <typename T, int N>
static __device__ __forceinline__ void scores_exp(const float (&s)[N], const float (&shift)[2], float scale_log2,
						  uint32_t (&p)[N / 2], float (&sum)[2])
{
	sum[0] = sum[1] = 0;
#pragma unroll
	for (int i = 0; i < N / 2; i++) {
		const int r = i % 2;
		const float e0 = exp2_unit(fmaf(s[2 * i], scale_log2, shift[r]));
		const float e1 = exp2_unit(fmaf(s[2 * i + 1], scale_log2, shift[r]));

		sum[r] += e0;
		sum[r] += e1;
		p[i] = pack2(T(), e0, e1);
	}
}

/* The FP8 version. Its operand needs four neighbours along k: columns of two groups of eight, which are
 * neighbours in the order of the values (turn_values). */
template <typename T, int N>
static __device__ __forceinline__ void scores_exp(const float (&s)[N], const float (&shift)[2], float scale_log2,
						  uint32_t (&p)[N / 4], float (&sum)[2])
{
	sum[0] = sum[1] = 0;
#pragma unroll
	for (int i = 0; i < N / 4; i++) {
		const int r = i % 2, at = i / 2 * 8 + 2 * r;
		const float e0 = exp2_unit(fmaf(s[at], scale_log2, shift[r]));
		const float e1 = exp2_unit(fmaf(s[at + 1], scale_log2, shift[r]));
		const float e2 = exp2_unit(fmaf(s[at + 4], scale_log2, shift[r]));
		const float e3 = exp2_unit(fmaf(s[at + 5], scale_log2, shift[r]));

		sum[r] += e0 + e1;
		sum[r] += e2 + e3;
		p[i] = pack4_e4m3(e0, e1, e2, e3);
	}
}

/* As scores_exp, in place. It is used while the registers of the pairs are still being read. */
template <int N>
static __device__ __forceinline__ void scores_exp_in_place(float (&s)[N], const float (&shift)[2], float scale_log2,
							   float (&sum)[2])
{
	sum[0] = sum[1] = 0;
#pragma unroll
	for (int i = 0; i < N; i++) {
		s[i] = exp2_unit(fmaf(s[i], scale_log2, shift[i / 2 % 2]));
		sum[i / 2 % 2] += s[i];
	}
}

template <typename T, int N>
static __device__ __forceinline__ void scores_pack(const float (&s)[N], uint32_t (&p)[N / 2])
{
#pragma unroll
	for (int i = 0; i < N / 2; i++)
		p[i] = pack2(T(), s[2 * i], s[2 * i + 1]);
}

/* Takes the new maximum; its exponential becomes 2^OFFSET. `factor` receives the factor for the sums relative
 * to the old maximum. */
template <int OFFSET = 0, int N>
static __device__ __forceinline__ void scores_top(const float (&s)[N], softmax_rows &x, float scale_log2,
						  float (&factor)[2])
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float top = -INFINITY;

#pragma unroll
		for (int i = 2 * r; i < N; i += 4)
			top = fmaxf(top, fmaxf(s[i], s[i + 1]));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
		top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
		const float shift = fminf(x.shift[r], OFFSET - top * scale_log2);

		factor[r] = shift == x.shift[r] ? 1.f : exp2_unit(shift - x.shift[r]);
		x.shift[r] = shift;
	}
}

/* Processes one block of scores: writes p and updates the rows' sums. Returns true if the accumulated O must
 * be multiplied by factor. `ready`: every row of the warp has a maximum. */
template <typename C, int N, int PAIRS>
static __device__ __forceinline__ bool scores_take(const float (&s)[N], softmax_rows &x, float scale_log2, bool ready,
						   uint32_t (&p)[PAIRS], float (&factor)[2])
{
	float sum[2];

	if (C::STALE && ready) {
		scores_exp<typename C::T>(s, x.shift, scale_log2, p, sum);
		if (__all_sync(~0u, sum[0] < stale_limit(typename C::T()) && sum[1] < stale_limit(typename C::T()))) {
			x.sum[0] += sum[0];
			x.sum[1] += sum[1];
			return false;
		}
	}
	scores_top<C::OFFSET>(s, x, scale_log2, factor);
	const float shift[2] = {x.shift[0] == INFINITY ? 0.f : x.shift[0], x.shift[1] == INFINITY ? 0.f : x.shift[1]};
	scores_exp<typename C::T>(s, shift, scale_log2, p, sum);
	x.sum[0] = x.sum[0] * factor[0] + sum[0];
	x.sum[1] = x.sum[1] * factor[1] + sum[1];
	return __any_sync(~0u, factor[0] != 1.f || factor[1] != 1.f);
}

/* Processes the tile's first block, which the mask cuts. Among the groups of 16 keys, only group `last` is
 * cut for the warp's 16 rows; no row sees the groups after it. */
template <typename C, int N, int PAIRS>
static __device__ __forceinline__ void scores_take_cut(float (&s)[N], softmax_rows &x, float scale_log2, unsigned last,
						       unsigned lane, uint32_t (&p)[PAIRS])
{
	float top[2] = {-INFINITY, -INFINITY};

#pragma unroll
	for (unsigned g = 0; g < N / 8; g++) {
		if (g > last)
			continue;
		if (g == last)
#pragma unroll
			for (unsigned i = 0; i < 8; i++)
				if (i / 4 * 8 + lane % 4 * 2 + i % 2 > lane / 4 + i / 2 % 2 * 8)
					s[8 * g + i] = -INFINITY;
#pragma unroll
		for (unsigned i = 0; i < 8; i++)
			top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[8 * g + i]);
	}
#pragma unroll
	for (int r = 0; r < 2; r++) {
		top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 1));
		top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 2));
		x.shift[r] = -top[r] * scale_log2;
		x.sum[r] = 0;
	}
#pragma unroll
	for (unsigned g = 0; g < N / 8; g++) {
		if (g > last) {
#pragma unroll
			for (unsigned i = 4 * g; i < 4 * g + 4; i++)
				p[i] = 0;
			continue;
		}
#pragma unroll
		for (unsigned i = 4 * g; i < 4 * g + 4; i++) {
			const float e0 = exp2_unit(fmaf(s[2 * i], scale_log2, x.shift[i % 2]));
			const float e1 = exp2_unit(fmaf(s[2 * i + 1], scale_log2, x.shift[i % 2]));

			x.sum[i % 2] += e0 + e1;
			p[i] = pack2(typename C::T(), e0, e1);
		}
	}
}

template <int N> static __device__ __forceinline__ void accumulator_scale(float (&o)[N], const float (&factor)[2])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		o[i] *= factor[i / 2 % 2];
}
#endif
