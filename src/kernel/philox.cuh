/* SPDX-License-Identifier: Apache-2.0 */
/* The random number generator of core/math/random.h on the device. Element i of a stream is word i % 4 of
 * philox(counter = {i / 4 low, i / 4 high, stream, 0}, key = seed). The reference is core/math/random.c. */
#ifndef KERNEL_PHILOX_CUH
#define KERNEL_PHILOX_CUH
#include <stdint.h>

/* philox4x32 of core/math/random.h with the counter (x0, x1, x2, x3). */
static __device__ uint4 philox4x32(uint64_t seed, uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3)
{
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

#pragma unroll
	for (int round = 0; round < 10; round++) {
		uint32_t high0 = __umulhi(0xD2511F53u, x0), low0 = 0xD2511F53u * x0;
		uint32_t high1 = __umulhi(0xCD9E8D57u, x2), low1 = 0xCD9E8D57u * x2;

		x0 = high1 ^ x1 ^ k0;
		x2 = high0 ^ x3 ^ k1;
		x1 = low1;
		x3 = low0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return make_uint4(x0, x1, x2, x3);
}

static __device__ uint4 philox_words(uint64_t seed, uint32_t stream, uint64_t block)
{
	return philox4x32(seed, (uint32_t)block, (uint32_t)(block >> 32), stream, 0);
}

/* (u + 1/2) / 2^31 - 1, uniform in (-1, 1). It is exact in double and rounded to float once. */
static __device__ float philox_uniform(uint32_t u)
{
	return (float)(((double)u + 0.5) * 0x1p-31 - 1.0);
}
#endif
