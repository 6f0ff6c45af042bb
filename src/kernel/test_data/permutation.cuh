/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A permutation of 0 .. count - 1 that needs no memory. A Feistel network of four rounds permutes the next
 * even power of two. If the result is past the end, the network is applied again until it is in range. This
 * takes at most four rounds of the network on average, since the larger range is below 4 x count.
 */
#ifndef KERNEL_TEST_DATA_PERMUTATION_CUH
#define KERNEL_TEST_DATA_PERMUTATION_CUH
#include <stdint.h>

static __device__ uint32_t permutation_mix(uint32_t x)
{
	x ^= x >> 16; /* the finaliser of MurmurHash3 */
	x *= 0x85EBCA6Bu;
	x ^= x >> 13;
	x *= 0xC2B2AE35u;
	return x ^ x >> 16;
}

static __device__ uint64_t permutation(uint64_t i, uint64_t count, uint64_t seed)
{
	unsigned half = 1;
	uint32_t mask;

	while ((uint64_t)1 << 2 * half < count)
		half++;
	mask = (uint32_t)(((uint64_t)1 << half) - 1);
	do {
		uint32_t left = (uint32_t)(i >> half), right = (uint32_t)i & mask;

#pragma unroll
		for (uint32_t round = 0; round < 4; round++) {
			uint32_t key = (uint32_t)(seed >> 16 * (round % 2)) + round * 0x9E3779B9u;
			uint32_t next = left ^ (permutation_mix(right ^ key) & mask);

			left = right;
			right = next;
		}
		i = (uint64_t)left << half | right;
	} while (i >= count);
	return i;
}
#endif
