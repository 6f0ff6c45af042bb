/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of normal numbers in formats below FP32, which references write by the million. */
#ifndef TESTS_GPU_REF_NARROW_H
#define TESTS_GPU_REF_NARROW_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* To nearest, ties to even; beyond `largest`, the code of the format's largest number, that one. `bits` are
 * those of the whole format, `fraction` those after the point. False: it is none of the format's normal
 * numbers, so nothing is written. */
static inline bool ref_narrow_code(int bits, int fraction, int bias, uint32_t largest, double value,
				   uint32_t *code)
{
	const int drop = 52 - fraction;
	uint64_t u, magnitude, rounded;

	memcpy(&u, &value, sizeof(u));
	magnitude = u & (UINT64_MAX >> 1);
	if (magnitude >> 52 < (uint64_t)(1024 - bias) || magnitude >> 52 == 2047)
		return false;
	/* a carry out of the fraction raises the exponent, as it must */
	rounded = (magnitude + (UINT64_C(1) << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
	rounded -= (uint64_t)(1023 - bias) << fraction;
	*code = (uint32_t)(u >> 63) << (bits - 1) | (rounded > largest ? largest : (uint32_t)rounded);
	return true;
}

/* BF16 is the upper half of FP32. */
static inline double ref_narrow_of_bf16(uint32_t code)
{
	float value;

	code <<= 16;
	memcpy(&value, &code, sizeof(value));
	return (double)value;
}
#endif
