/* SPDX-License-Identifier: Apache-2.0 */
/* Philox 4x32-10 (Salmon et al., SC11), a counter-based generator: host and device can compute any element
 * independently. Element i of stream s under a seed is word i%4 of philox(counter = {i/4 low, i/4 high, s,
 * 0}, key = seed). */
#ifndef CORE_MATH_RANDOM_H
#define CORE_MATH_RANDOM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
uint32_t random_u32(uint64_t seed, uint32_t stream, uint64_t index);
/* A uniform number in [-1, 1]: (u32 + 0.5) * 2^-31 - 1, exact in double, then rounded to float once. */
float random_f32(uint64_t seed, uint32_t stream, uint64_t index);
/* Fills `out` with random_f32 of `count` consecutive elements from `first` on, four per generator call. */
void random_fill_f32(float *out, size_t count, uint64_t seed, uint32_t stream, uint64_t first);
/* Writes size - 1 hex digits of random bits from the kernel, which nobody can guess, and a NUL. size - 1
 * is even and at most 32. False: errno says why. */
bool random_hex(char *out, size_t size);
#endif
