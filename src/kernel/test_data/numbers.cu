/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test data and its verification. Every element is a function of (seed, stream, index). So a check needs no
 * second buffer, and the host can recompute any element. References: tests/gpu/ref_data.c.
 *
 *   fill_integers  float, byte i % 4 of word i / 4 of the stream, -128 .. 127; sums and products stay exact
 *   fill_uniform   float in (-scale, scale)
 *   fill_words     the stream's raw words
 *   check_linear   compares with a linear combination of two integer streams; no tolerance
 *   sum_integers   the exact sum of a stream, or of the products of two; read and dot must find it
 *   hash           sum of mix(word, index) mod 2^64; depends on positions, not on the order of summation
 *   compare        compares two buffers of words
 *   permute, ring  a permutation as indices, or as one ring of nodes to chase
 *
 * Each has only one version, because these kernels are not measured. Any grid size is correct.
 */
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "kernel/test_data/permutation.cuh"
#include "kernel/philox.cuh"

#define FOR_GRID(i, count)                                                                       \
	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);          \
	     i += (uint64_t)gridDim.x * blockDim.x)

static __device__ uint32_t word_of(uint4 w, unsigned i)
{
	return i < 2 ? (i ? w.y : w.x) : (i == 2 ? w.z : w.w);
}

static __device__ int integer_of(uint4 w, unsigned i) /* i: 0 .. 15 */
{
	return (int8_t)(word_of(w, i / 4) >> i % 4 * 8);
}

extern "C" __global__ void fill_integers(fill_args a)
{
	FOR_GRID(block, (a.count + 15) / 16)
	{
		uint4 w = philox_words(a.seed, a.stream, block);

#pragma unroll
		for (unsigned j = 0; j < 16; j++)
			if (block * 16 + j < a.count)
				((float *)a.out)[block * 16 + j] = (float)integer_of(w, j);
	}
}

extern "C" __global__ void fill_uniform(fill_args a)
{
	FOR_GRID(block, (a.count + 3) / 4)
	{
		uint4 w = philox_words(a.seed, a.stream, block);

#pragma unroll
		for (unsigned j = 0; j < 4; j++)
			if (block * 4 + j < a.count)
				((float *)a.out)[block * 4 + j] = a.scale * philox_uniform(word_of(w, j));
	}
}

extern "C" __global__ void fill_words(fill_args a)
{
	FOR_GRID(block, (a.count + 3) / 4)
	{
		uint4 w = philox_words(a.seed, a.stream, block);

#pragma unroll
		for (unsigned j = 0; j < 4; j++)
			if (block * 4 + j < a.count)
				((uint32_t *)a.out)[block * 4 + j] = word_of(w, j);
	}
}

static __device__ void note(compare_record *r, uint64_t index, bool nan)
{
	atomicAdd((unsigned long long *)&r->count, 1ull);
	atomicMin((unsigned long long *)&r->first, (unsigned long long)index);
	if (nan)
		atomicAdd((unsigned long long *)&r->nan, 1ull);
}

static __device__ void add_to(int64_t *total, uint64_t value)
{
	for (int offset = 16; offset; offset /= 2)
		value += __shfl_down_sync(0xffffffffu, value, offset);
	if (threadIdx.x % 32 == 0)
		atomicAdd((unsigned long long *)total, (unsigned long long)value);
}

extern "C" __global__ void check_linear(check_args a)
{
	FOR_GRID(block, (a.count + 15) / 16)
	{
		uint4 w0 = philox_words(a.seed, a.stream0, block), w1 = philox_words(a.seed, a.stream1, block);

		for (unsigned j = 0; j < 16 && block * 16 + j < a.count; j++) {
			float expected = a.factor0 * integer_of(w0, j) + a.factor1 * integer_of(w1, j) + a.constant;
			float found = a.out[block * 16 + j];

			/* Compares as numbers, so -0 equals 0. NaN equals nothing. */
			if (!(found == expected))
				note(a.record, block * 16 + j, !isfinite(found));
		}
	}
}

extern "C" __global__ void sum_integers(sum_args a)
{
	int64_t sum = 0;

	FOR_GRID(block, (a.count + 15) / 16)
	{
		uint4 w0 = philox_words(a.seed, a.stream0, block), w1 = philox_words(a.seed, a.stream1, block);

		for (unsigned j = 0; j < 16 && block * 16 + j < a.count; j++)
			sum += integer_of(w0, j) * (a.product ? integer_of(w1, j) : 1);
	}
	add_to(&a.record->sum, (uint64_t)sum);
}

static __device__ uint64_t hash_mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15ull; /* splitmix64 */
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

extern "C" __global__ void hash(hash_args a)
{
	uint64_t sum = 0;

	FOR_GRID(i, a.count)
	{
		sum += hash_mix(hash_mix(i) ^ a.words[i]);
	}
	add_to(&a.record->sum, sum);
}

extern "C" __global__ void compare(hash_args a)
{
	FOR_GRID(i, a.count)
	{
		if (a.words[i] != a.other[i])
			note(a.record, i, false);
	}
}

extern "C" __global__ void permute(permute_args a)
{
	FOR_GRID(i, a.count)
	{
		a.out[i] = (uint32_t)permutation(i, a.count, a.seed);
	}
}

extern "C" __global__ void ring(ring_args a)
{
	FOR_GRID(place, a.count)
	{
		memory_node *node = &a.nodes[permutation(place, a.count, a.seed)];

		node->next = &a.nodes[permutation(place + 1 < a.count ? place + 1 : 0, a.count, a.seed)];
		node->place = place;
		if (place == 0)
			*a.cursor = node;
	}
}
