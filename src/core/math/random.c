/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/random.h"
#include <stdio.h>
#include <sys/random.h>

/* Multipliers and Weyl constants of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11. */
static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t weyl[2] = {0x9E3779B9u, 0xBB67AE85u};
enum { PHILOX_ROUNDS = 10 };

void philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
	uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	int round;

	for (round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)multiplier[0] * x0;
		uint64_t p1 = (uint64_t)multiplier[1] * x2;

		x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
		x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
		x1 = (uint32_t)p1;
		x3 = (uint32_t)p0;
		k0 += weyl[0];
		k1 += weyl[1];
	}
	out[0] = x0;
	out[1] = x1;
	out[2] = x2;
	out[3] = x3;
}

/* Computes the four words that contain element `index`. */
static void four(uint32_t out[4], uint64_t seed, uint32_t stream, uint64_t index)
{
	const uint32_t counter[4] = {(uint32_t)(index >> 2), (uint32_t)(index >> 34), stream, 0};
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	philox4x32(out, counter, key);
}

static float to_f32(uint32_t word)
{
	return (float)(((double)word + 0.5) * 0x1p-31 - 1.0);
}

uint32_t random_u32(uint64_t seed, uint32_t stream, uint64_t index)
{
	uint32_t out[4];

	four(out, seed, stream, index);
	return out[index & 3];
}

float random_f32(uint64_t seed, uint32_t stream, uint64_t index)
{
	return to_f32(random_u32(seed, stream, index));
}

void random_fill_f32(float *out, size_t count, uint64_t seed, uint32_t stream, uint64_t first)
{
	uint32_t words[4];

	for (size_t i = 0; i < count; i++) {
		if (!i || !((first + i) & 3))
			four(words, seed, stream, first + i);
		out[i] = to_f32(words[(first + i) & 3]);
	}
}

bool random_hex(char *out, size_t size)
{
	unsigned char bytes[16];
	size_t count = (size - 1) / 2;

	if (count > sizeof(bytes) || getrandom(bytes, count, 0) != (ssize_t)count)
		return false;
	for (size_t i = 0; i < count; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return true;
}
