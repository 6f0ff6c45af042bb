/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of GEMMs and checks of their results. Host references: tests/gpu/ref_operand.c.
 *   operand_fill     one Philox block per thread: 4, 16 or 32 elements
 *   operand_sums     a block takes 64 rows x 1024 columns, 4 columns per thread; rows are reduced over the
 *                    warp
 *   operand_compare  grid-stride loop; a thread that found something adds its counts once
 *   operand_judge    grid-stride loop
 *   operand_memory   grid-stride loop: read, compare, write
 *   operand_turn     one thread increments the pass counter
 */
#include "kernel/test_data/gemm.h"
#include "kernel/philox.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

template <typename T> static __device__ __forceinline__ T element_of(float v)
{
	return (T)v;
}
template <> __device__ __forceinline__ __half element_of<__half>(float v)
{
	return __float2half_rn(v);
}
template <> __device__ __forceinline__ __nv_bfloat16 element_of<__nv_bfloat16>(float v)
{
	return __float2bfloat16_rn(v);
}
template <> __device__ __forceinline__ __nv_fp8_e4m3 element_of<__nv_fp8_e4m3>(float v)
{
	__nv_fp8_e4m3 r;

	r.__x = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
	return r;
}
template <> __device__ __forceinline__ __nv_fp8_e5m2 element_of<__nv_fp8_e5m2>(float v)
{
	__nv_fp8_e5m2 r;

	r.__x = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2);
	return r;
}

static __device__ __forceinline__ uint32_t word_of(uint4 w, unsigned i)
{
	return i == 0 ? w.x : i == 1 ? w.y : i == 2 ? w.z : w.w;
}

template <typename T> static __device__ void fill(const operand_fill_args &a, bool integer)
{
	const unsigned span = a.data == OPERAND_SPARSE ? 32 : a.data == OPERAND_DENSE ? 16 : 4;
	uint64_t block = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
	T *out = (T *)a.out + block * span;
	uint64_t left = block * span < a.count ? a.count - block * span : 0;
	uint4 words;

	if (!left)
		return;
	words = philox_words(a.seed, a.stream, block);
#pragma unroll
	for (unsigned i = 0; i < 32; i++) {
		float v = 0;

		if (i >= span || i >= left)
			break;
		if (a.data == OPERAND_SPARSE) {
			uint32_t nibble = word_of(words, i / 8) >> (i % 8 * 4) & 15;

			v = nibble == 0 ? 1.0f : nibble == 1 ? -1.0f : 0.0f;
		} else if (a.data == OPERAND_DENSE) {
			v = (float)((int)(int8_t)(word_of(words, i / 4) >> (i % 4 * 8)) >> (8 - a.bits));
		} else if (a.data == OPERAND_RANDOM) {
			uint32_t word = word_of(words, i & 3);

			v = integer ? (float)((int)word >> 24) : philox_uniform(word);
		}
		out[i] = element_of<T>(v);
	}
}

extern "C" __global__ void operand_fill(operand_fill_args a)
{
	switch (a.type) {
	case OPERAND_F64:
		return fill<double>(a, false);
	case OPERAND_F32:
		return fill<float>(a, false);
	case OPERAND_F16:
		return fill<__half>(a, false);
	case OPERAND_BF16:
		return fill<__nv_bfloat16>(a, false);
	case OPERAND_E4M3:
		return fill<__nv_fp8_e4m3>(a, false);
	case OPERAND_E5M2:
		return fill<__nv_fp8_e5m2>(a, false);
	case OPERAND_S8:
		return fill<int8_t>(a, true);
	case OPERAND_S32:
		return fill<int32_t>(a, true);
	}
}

static __device__ __forceinline__ int weight(unsigned which, uint64_t p)
{
	return which ? 1 + (int)((uint32_t)p * 2654435761u >> 20) : 1 + (int)p;
}

/* Returns the element as an integer. Sets *odd if it is not an integer within the limit; the comparison is
 * false for NaN. */
template <typename T> static __device__ __forceinline__ int whole(T v, unsigned limit, unsigned *odd)
{
	float f = (float)v;

	if (fabsf(f) <= (float)limit && f == truncf(f))
		return (int)f;
	*odd = 1;
	return 0;
}
template <> __device__ __forceinline__ int whole<double>(double v, unsigned limit, unsigned *odd)
{
	if (fabs(v) <= (double)limit && v == trunc(v))
		return (int)v;
	*odd = 1;
	return 0;
}
template <> __device__ __forceinline__ int whole<int>(int v, unsigned limit, unsigned *odd)
{
	if (v >= -(int)limit && v <= (int)limit)
		return v;
	*odd = 1;
	return 0;
}

static __device__ __forceinline__ long long warp_sum(long long v)
{
	for (int step = 16; step; step /= 2)
		v += __shfl_down_sync(~0u, v, step);
	return v;
}

template <typename T> static __device__ void sums(const operand_sums_args &a)
{
	enum { EACH = OPERAND_SUMS_COLUMNS / OPERAND_SUMS_THREADS };
	const uint64_t column = blockIdx.x * (uint64_t)OPERAND_SUMS_COLUMNS + threadIdx.x;
	const uint64_t first = blockIdx.y * (uint64_t)OPERAND_SUMS_ROWS;
	const uint64_t last = min(first + OPERAND_SUMS_ROWS, (uint64_t)a.rows);
	long long wc[2][EACH] = {};
	unsigned odd_column[EACH] = {};
	int w0[EACH], w1[EACH];

#pragma unroll
	for (int q = 0; q < EACH; q++) {
		w0[q] = weight(0, column + q * OPERAND_SUMS_THREADS);
		w1[q] = weight(1, column + q * OPERAND_SUMS_THREADS);
	}
	for (uint64_t i = first; i < last; i++) {
		const T *row = (const T *)a.c + i * a.row_step;
		long long cw0 = 0, cw1 = 0;
		unsigned odd_row = 0;

#pragma unroll
		for (int q = 0; q < EACH; q++) {
			uint64_t j = column + q * OPERAND_SUMS_THREADS;
			unsigned odd = 0;
			int v = j < a.columns ? whole<T>(row[j], a.limit, &odd) : 0;

			cw0 += (long long)v * w0[q];
			cw1 += (long long)v * w1[q];
			wc[0][q] += (long long)v * weight(0, i);
			wc[1][q] += (long long)v * weight(1, i);
			odd_column[q] += odd;
			odd_row += odd;
		}
		cw0 = warp_sum(cw0);
		cw1 = warp_sum(cw1);
		odd_row = __reduce_add_sync(~0u, odd_row);
		if (threadIdx.x % 32 == 0) {
			atomicAdd(&a.cw[i], (unsigned long long)cw0);
			atomicAdd(&a.cw[a.rows + i], (unsigned long long)cw1);
			if (odd_row)
				atomicAdd(&a.odd_row[i], odd_row);
		}
	}
#pragma unroll
	for (int q = 0; q < EACH; q++) {
		uint64_t j = column + q * OPERAND_SUMS_THREADS;

		if (j >= a.columns)
			continue;
		atomicAdd(&a.wc[j], (unsigned long long)wc[0][q]);
		atomicAdd(&a.wc[a.columns + j], (unsigned long long)wc[1][q]);
		if (odd_column[q])
			atomicAdd(&a.odd_column[j], odd_column[q]);
	}
}

extern "C" __global__ void __launch_bounds__(OPERAND_SUMS_THREADS) operand_sums(operand_sums_args a)
{
	switch (a.type) {
	case OPERAND_F64:
		return sums<double>(a);
	case OPERAND_F32:
		return sums<float>(a);
	case OPERAND_F16:
		return sums<__half>(a);
	case OPERAND_BF16:
		return sums<__nv_bfloat16>(a);
	case OPERAND_S32:
		return sums<int>(a);
	}
}

/* Adds a thread's counts to the record. Threads that found nothing do no atomic operation. */
static __device__ void found_add(operand_found *found, unsigned wrong, unsigned nan, unsigned long long first)
{
	if (!wrong)
		return;
	atomicAdd(&found->wrong, (unsigned long long)wrong);
	atomicAdd(&found->nan, (unsigned long long)nan);
	atomicMin(&found->first, first);
}

template <typename T> static __device__ void compare(const operand_compare_args &a)
{
	const T *x = (const T *)a.a, *y = (const T *)a.b;
	unsigned long long first = ~0ull;
	unsigned wrong = 0, nan = 0;

	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		double p = (double)(float)x[i], q = (double)(float)y[i];

		if (sizeof(T) == 8) {
			p = *(const double *)&x[i];
			q = *(const double *)&y[i];
		}
		if (p == q || fabs(p - q) <= a.tolerance)
			continue;
		if (!wrong++)
			first = i;
		nan += isnan(p) || isnan(q);
	}
	found_add(a.found, wrong, nan, first);
}

static __device__ void compare_s32(const operand_compare_args &a)
{
	const int *x = (const int *)a.a, *y = (const int *)a.b;
	unsigned long long first = ~0ull;
	unsigned wrong = 0;

	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x)
		if (fabs((double)x[i] - (double)y[i]) > a.tolerance && !wrong++)
			first = i;
	found_add(a.found, wrong, 0, first);
}

extern "C" __global__ void operand_compare(operand_compare_args a)
{
	switch (a.type) {
	case OPERAND_F64:
		return compare<double>(a);
	case OPERAND_F32:
		return compare<float>(a);
	case OPERAND_F16:
		return compare<__half>(a);
	case OPERAND_BF16:
		return compare<__nv_bfloat16>(a);
	case OPERAND_S32:
		return compare_s32(a);
	}
}

extern "C" __global__ void operand_judge(operand_judge_args a)
{
	unsigned long long first = ~0ull;
	unsigned wrong = 0, nan = 0;

	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		unsigned odd = a.odd[i];
		bool bad = odd || a.sums[i] != a.expected[i] || a.sums[a.count + i] != a.expected[a.count + i];

		if (bad && !wrong++)
			first = i;
		nan += odd;
		a.sums[i] = a.sums[a.count + i] = 0;
		a.odd[i] = 0;
	}
	found_add(a.found, wrong, nan, first);
}

static __device__ __forceinline__ unsigned long long pattern(uint64_t i, unsigned long long pass)
{
	unsigned long long v = i * 0x9e3779b97f4a7c15ull + pass * 0xc2b2ae3d27d4eb4full;

	return pass & 1 ? ~v : v;
}

extern "C" __global__ void operand_memory(operand_memory_args a)
{
	const unsigned long long pass = *a.pass;
	ulonglong2 *words = (ulonglong2 *)a.words;
	unsigned long long first = ~0ull;
	unsigned wrong = 0;

	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count / 2;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		if (pass) {
			ulonglong2 v = words[i];
			unsigned bad = (v.x != pattern(2 * i, pass)) + (v.y != pattern(2 * i + 1, pass));

			if (bad && !wrong)
				first = 2 * i + (v.x == pattern(2 * i, pass));
			wrong += bad;
		}
		words[i] = make_ulonglong2(pattern(2 * i, pass + 1), pattern(2 * i + 1, pass + 1));
	}
	found_add(a.found, wrong, 0, first);
}

extern "C" __global__ void operand_turn(operand_memory_args a)
{
	if (threadIdx.x == 0 && blockIdx.x == 0)
		++*a.pass;
}
