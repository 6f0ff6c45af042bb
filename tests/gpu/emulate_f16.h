/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/f16_matrix.cuh on a CPU, for files that emulate.h stands in front of. */
#ifndef TESTS_GPU_EMULATE_F16_H
#define TESTS_GPU_EMULATE_F16_H
#include "emulate.h"

/* FP16 to and from float. The product corrects the exponent's bias, also of subnormal numbers. */
static inline float emulate_f16(uint32_t h)
{
	const float v = __uint_as_float((h & 0x7fff) << 13 | (h & 0x8000) << 16) * 0x1p112f;

	return (h & 0x7c00) != 0x7c00 ? v : h & 1023 ? NAN : v * INFINITY;
}

static inline float emulate_bf16(uint32_t h)
{
	return __uint_as_float(h << 16);
}

static inline uint32_t emulate_round_f16(float v)
{
	const uint32_t sign = __float_as_uint(v) >> 16 & 0x8000;
	int exponent;
	float steps;

	v = fabsf(v);
	if (!(v < 65520))
		return sign | (isnan(v) ? 0x7fff : 0x7c00);
	(void)frexpf(v, &exponent);
	exponent = exponent < -13 || v == 0 ? -13 : exponent; /* subnormal: steps of 2^-24 */
	steps = rintf(ldexpf(v, 11 - exponent));
	return sign | (uint32_t)(steps + (float)(exponent + 13) * 1024);
}

static inline uint32_t pack_f16(float low, float high)
{
	return emulate_round_f16(low) | emulate_round_f16(high) << 16;
}

static inline void unpack_f16(uint32_t v, float *low, float *high)
{
	*low = emulate_f16(v & 0xffff);
	*high = emulate_f16(v >> 16);
}

/* Row r, columns 2 w and 2 w + 1 of A are in register r / 8 + w / 4 * 2 of lane r % 8 * 4 + w % 4. Rows 2 w and 2 w + 1, column c
 * of B are in register w / 4 of lane 4 c + w % 4. `value`: of the 16 bits of an element. */
static inline void emulate_matrix(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, float (*value)(uint32_t bits))
{
	const uint32_t words[6] = {a[0], a[1], a[2], a[3], b0, b1}, lane = threadIdx.x % 32;
	const uint32_t(*all)[EMULATE_WORDS] = emulate_warp(words, 6);

	for (uint32_t e = 0; e < 4; e++) {
		const uint32_t row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;

		for (uint32_t w = 0; w < 8; w++) {
			const uint32_t x = all[row % 8 * 4 + w % 4][row / 8 + w / 4 * 2], y = all[column * 4 + w % 4][4 + w / 4];

			c[e] += value(x & 0xffff) * value(y & 0xffff) + value(x >> 16) * value(y >> 16);
		}
	}
}

static inline void matrix_step_f16(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	emulate_matrix(c, a, b0, b1, emulate_f16);
}

static inline uint32_t widen_e4m3(uint32_t v)
{
	float number[2];

	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t code = v >> 8 * i & 0xff, exponent = code >> 3 & 15, fraction = code & 7;
		const float size = exponent ? ldexpf((float)(8 + fraction), (int)exponent - 10) : ldexpf((float)fraction, -9);

		number[i] = (code & 0x7f) == 0x7f ? NAN : code & 0x80 ? -size : size;
	}
	return pack_f16(number[0], number[1]);
}
#endif
