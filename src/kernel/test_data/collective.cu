/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and checks of collectives. kernel/test_data/collective.h has the formulas,
 * tests/gpu/ref_collective.c the references.
 *   collective_fill   grid-stride loop, one Philox block per element
 *   collective_check  grid-stride loop; a thread that found something adds its count once
 *   collective_busy   grid-stride loop over its memory, repeated
 */
#include "kernel/test_data/collective.h"
#include "kernel/philox.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

static __device__ __forceinline__ uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* The random choices for one element: which ranks give which values. */
struct element {
	uint32_t begin, word;

	__device__ element(uint64_t seed, uint64_t i, uint32_t ranks)
	{
		uint4 words = philox_words(seed, COLLECTIVE_STREAM, i);

		begin = words.x % ranks;
		word = words.y;
	}

	__device__ uint32_t hash(uint32_t j) const
	{
		return mix(word + j * 0x9e3779b9u);
	}
};

template <typename Args> static __device__ __forceinline__ int slot_value(const Args &a, const element &e, uint32_t slot)
{
	uint32_t h = e.hash(slot);
	int m = (int)((1 + (h >> 1) % a.most) * a.unit);

	return h & 1 ? m : -m;
}

static __device__ __forceinline__ int extreme(uint32_t rule, uint32_t most, const element &e, uint32_t rank)
{
	uint32_t h = e.hash(rank);
	int v;

	if (rank != e.begin)
		return (int)(h % (most / 2 * 2 + 1)) - (int)(most / 2);
	v = (int)(most / 2 + 1 + h % (most / 2));
	return rule == COLLECTIVE_MIN ? -v : v;
}

static __device__ __forceinline__ int given(const collective_fill_args &a, uint64_t i)
{
	element e(a.seed, i, a.ranks);
	uint32_t slot;

	if (a.rule == COLLECTIVE_MIN || a.rule == COLLECTIVE_MAX)
		return extreme(a.rule, a.most, e, a.rank);
	slot = a.rank >= e.begin ? a.rank - e.begin : a.rank + a.ranks - e.begin;
	return slot < a.slots ? slot_value(a, e, slot) : 0;
}

static __device__ __forceinline__ uint64_t moved(uint32_t type, uint64_t seed, uint32_t from, uint32_t to, uint64_t i)
{
	uint4 words = philox_words(seed, COLLECTIVE_MOVED + 1024 * from + to, i);

	switch (type) {
	case OPERAND_F64:
		return (words.x | (uint64_t)words.y << 32) & ~(1ull << 62);
	case OPERAND_F32:
		return words.x & ~(1u << 30);
	case OPERAND_F16:
	case OPERAND_BF16:
		return words.x & 0xbfff;
	case OPERAND_E4M3:
	case OPERAND_E5M2:
		return words.x & 0xbf;
	case OPERAND_S8:
		return words.x & 0xff;
	}
	return words.x;
}

template <typename T> static __device__ __forceinline__ T of_int(int v)
{
	return (T)(float)v;
}
template <> __device__ __forceinline__ double of_int<double>(int v)
{
	return v;
}
template <> __device__ __forceinline__ int8_t of_int<int8_t>(int v)
{
	return (int8_t)v;
}
template <> __device__ __forceinline__ int of_int<int>(int v)
{
	return v;
}

/* Bits: an unsigned type as wide as T. */
template <typename T, typename Bits> static __device__ void fill(const collective_fill_args &a)
{
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		if (a.rule == COLLECTIVE_MOVE)
			((Bits *)a.out)[i] = (Bits)moved(a.type, a.seed, a.rank, a.to, a.first + i);
		else
			((T *)a.out)[i] = of_int<T>(given(a, a.first + i));
	}
}

extern "C" __global__ void collective_fill(collective_fill_args a)
{
	switch (a.type) {
	case OPERAND_F64:
		return fill<double, uint64_t>(a);
	case OPERAND_F32:
		return fill<float, uint32_t>(a);
	case OPERAND_F16:
		return fill<__half, uint16_t>(a);
	case OPERAND_BF16:
		return fill<__nv_bfloat16, uint16_t>(a);
	case OPERAND_E4M3:
		return fill<__nv_fp8_e4m3, uint8_t>(a);
	case OPERAND_E5M2:
		return fill<__nv_fp8_e5m2, uint8_t>(a);
	case OPERAND_S8:
		return fill<int8_t, uint8_t>(a);
	case OPERAND_S32:
		return fill<int, uint32_t>(a);
	}
}

static __device__ __forceinline__ double answer(const collective_check_args &a, const element &e)
{
	double sum = 0;

	if (a.rule == COLLECTIVE_MIN || a.rule == COLLECTIVE_MAX)
		return extreme(a.rule, a.most, e, e.begin);
	for (uint32_t slot = 0; slot < a.slots; slot++)
		sum += slot_value(a, e, slot);
	return a.rule == COLLECTIVE_AVG ? sum / a.ranks : sum;
}

/* Finds the rank whose missing or doubled share would explain the difference. */
static __device__ void look(const collective_check_args &a, const element &e, double difference)
{
	for (uint32_t slot = 0; slot < a.slots; slot++) {
		uint32_t rank = (e.begin + slot) % a.ranks;
		double share = slot_value(a, e, slot);

		share = a.rule == COLLECTIVE_AVG ? share / a.ranks : share;
		if (difference == -share)
			atomicAdd(&a.suspect[rank], 1ull);
		if (difference == share)
			atomicAdd(&a.suspect[a.ranks + rank], 1ull);
	}
	atomicAdd(&a.suspect[2 * a.ranks], 1ull);
}

struct tally {
	unsigned wrong, nan;
	unsigned long long first;

	__device__ void add(uint64_t i, bool is_nan)
	{
		if (!wrong++)
			first = i;
		nan += is_nan;
	}
};

template <typename T>
static __device__ __forceinline__ void check_one(const collective_check_args &a, uint64_t i, double found, int fraction,
						 tally *t)
{
	element e(a.seed, a.first + i, a.ranks);
	double expected = answer(a, e);
	double room = a.ulp && expected != 0 ? ldexp((double)a.ulp, ilogb(expected) - fraction) : 0;

	if (found == expected || fabs(found - expected) <= room)
		return;
	t->add(i, isnan(found));
	if (t->wrong <= COLLECTIVE_LOOKED && (a.rule == COLLECTIVE_SUM || a.rule == COLLECTIVE_AVG))
		look(a, e, found - expected);
}

template <typename T> static __device__ __forceinline__ double to_double(T v)
{
	return (double)(float)v;
}
template <> __device__ __forceinline__ double to_double<double>(double v)
{
	return v;
}
template <> __device__ __forceinline__ double to_double<int>(int v)
{
	return v;
}

/* fraction: number of fraction bits of T's significand. */
template <typename T, typename Bits> static __device__ void check(const collective_check_args &a, int fraction)
{
	tally t = {0, 0, ~0ull};

	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.count;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		if (a.rule != COLLECTIVE_MOVE)
			check_one<T>(a, i, to_double<T>(((const T *)a.data)[i]), fraction, &t);
		else if (((const Bits *)a.data)[i] != (Bits)moved(a.type, a.seed, a.from, a.to, a.first + i))
			t.add(i, false);
	}
	if (!t.wrong)
		return;
	atomicAdd(&a.found->wrong, (unsigned long long)t.wrong);
	atomicAdd(&a.found->nan, (unsigned long long)t.nan);
	atomicMin(&a.found->first, t.first);
}

extern "C" __global__ void collective_check(collective_check_args a)
{
	switch (a.type) {
	case OPERAND_F64:
		return check<double, uint64_t>(a, 52);
	case OPERAND_F32:
		return check<float, uint32_t>(a, 23);
	case OPERAND_F16:
		return check<__half, uint16_t>(a, 10);
	case OPERAND_BF16:
		return check<__nv_bfloat16, uint16_t>(a, 7);
	case OPERAND_E4M3:
		return check<__nv_fp8_e4m3, uint8_t>(a, 3);
	case OPERAND_E5M2:
		return check<__nv_fp8_e5m2, uint8_t>(a, 2);
	case OPERAND_S8:
		return check<int8_t, uint8_t>(a, 0);
	case OPERAND_S32:
		return check<int, uint32_t>(a, 0);
	}
}

static __device__ __forceinline__ uint64_t device_ns()
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
	return ns;
}

extern "C" __global__ void collective_busy(collective_busy_args a)
{
	const uint64_t begin = device_ns();
	const volatile uint32_t *stop = a.stop;
	bool over;

	for (;;) {
		/* Only one thread reads *stop. The word can be in host memory across PCIe. With eight
		 * thousand warps reading it, each read took 8 ms. */
		over = !threadIdx.x && (*stop || device_ns() - begin >= a.ns);
		if (__syncthreads_or(over))
			return;
		for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < a.words;
		     i += (uint64_t)gridDim.x * blockDim.x)
			a.memory[i] += 1;
	}
}
