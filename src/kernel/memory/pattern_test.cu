/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests device memory. hbm_write puts a pattern into every word. hbm_check reads the words back and records
 * those that differ. The pattern depends on the word's address, so it detects a wrong address line as well as
 * a wrong bit.
 * Reference: tests/gpu/ref_hbm.c. There is one version: two 64-bit words (16 bytes) per thread, in a
 * grid-stride loop. It is bound by the memory rate, because the random pattern uses a cheap mixing function,
 * not Philox.
 */
#include "kernel/memory/pattern_test.h"

static __device__ uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull; /* splitmix64's finaliser */
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static __device__ uint64_t pattern_at(uint32_t pattern, uint64_t address, uint64_t seed)
{
	switch (pattern) {
	case HBM_ADDRESS:
		return address;
	case HBM_INVERSE:
		return ~address;
	case HBM_MOVING:
		return 1ull << (address / 8 + seed) % 64;
	default:
		return mix(address + seed);
	}
}

extern "C" __global__ void hbm_write(hbm_args a)
{
	ulonglong2 *words = (ulonglong2 *)a.words;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count / 2;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		uint64_t address = (uint64_t)&words[i];

		__stcs(&words[i], make_ulonglong2(pattern_at(a.pattern, address, a.seed),
						  pattern_at(a.pattern, address + 8, a.seed)));
	}
}

static __device__ void wrong(hbm_record *r, uint64_t address, uint64_t expected, uint64_t found)
{
	uint64_t n = atomicAdd((unsigned long long *)&r->count, 1ull);

	atomicMin((unsigned long long *)&r->first, (unsigned long long)address);
	atomicOr((unsigned long long *)&r->bits, (unsigned long long)(expected ^ found));
	if (n < HBM_KEPT) {
		r->kept[n].address = address;
		r->kept[n].expected = expected;
		r->kept[n].found = found;
	}
}

extern "C" __global__ void hbm_check(hbm_args a)
{
	const ulonglong2 *words = (const ulonglong2 *)a.words;
	uint64_t checked = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.count / 2;
	     i += (uint64_t)gridDim.x * blockDim.x) {
		uint64_t address = (uint64_t)&words[i];
		uint64_t expected0 = pattern_at(a.pattern, address, a.seed);
		uint64_t expected1 = pattern_at(a.pattern, address + 8, a.seed);
		ulonglong2 found = __ldcs(&words[i]);

		if (found.x != expected0)
			wrong(a.record, address, expected0, found.x);
		if (found.y != expected1)
			wrong(a.record, address + 8, expected1, found.y);
		checked += 2;
	}
	for (int offset = 16; offset; offset /= 2)
		checked += __shfl_down_sync(0xffffffffu, checked, offset);
	if (threadIdx.x % 32 == 0)
		atomicAdd((unsigned long long *)&a.record->checked, (unsigned long long)checked);
}
