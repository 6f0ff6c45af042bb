/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "model/tensor/dtype.h"

static float half(uint16_t h)
{
	float f = 0;

	dtype_unpack(DTYPE_F16, &h, &f, 1);
	return f;
}

static uint16_t to_half(float f)
{
	uint16_t h = 0;

	assert_true(dtype_pack(DTYPE_F16, &f, &h, 1));
	return h;
}

static void test_dtype__every_half_is_its_value_and_comes_back(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 65536; h++) {
		int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
		double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
		float f = half((uint16_t)h);

		if (exponent == 31) {
			assert_true(fraction ? isnan(f) : isinf(f));
			if (!fraction)
				assert_int_equal(to_half(f), h);
			continue;
		}
		assert_true((double)f == (h & 0x8000 ? -value : value));
		assert_int_equal(to_half(f), h);
	}
}

static void test_dtype__halves_round_to_nearest_and_ties_to_even(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 0x7bff; h++) {
		double low = (double)half((uint16_t)h), high = (double)half((uint16_t)(h + 1));
		float middle = (float)((low + high) / 2); /* exact */

		assert_int_equal(to_half(middle), h & 1 ? h + 1 : h);
		assert_int_equal(to_half(nextafterf(middle, INFINITY)), h + 1);
		assert_int_equal(to_half(nextafterf(middle, 0)), h);
	}
	assert_int_equal(to_half(65519.996f), 0x7bff);
	assert_int_equal(to_half(65520), 0x7c00);
	assert_true(isnan(half(to_half(NAN))));
}

static void test_dtype__bf16_rounds_to_nearest_and_ties_to_even(void **state)
{
	static const struct {
		uint32_t bits, bf16;
	} cases[] = {
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
		{0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x80000001, 0x8000},
	};
	uint16_t out;
	float f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(&f, &cases[i].bits, sizeof(f));
		assert_true(dtype_pack(DTYPE_BF16, &f, &out, 1));
		assert_int_equal(out, cases[i].bf16);
	}
	f = NAN;
	dtype_pack(DTYPE_BF16, &f, &out, 1);
	dtype_unpack(DTYPE_BF16, &out, &f, 1);
	assert_true(isnan(f));
}

/* Blocks as ggml defines them: d 0.5, quants of both halves told apart. */
static void test_dtype__quantised_blocks_are_what_their_formulas_say(void **state)
{
	uint8_t q8[34] = {0x00, 0x38}, q41[20] = {0x00, 0x38, 0x00, 0x3c}, q40[18] = {0x00, 0x38};
	float out[32];

	(void)state;
	for (int i = 0; i < 32; i++)
		q8[2 + i] = (uint8_t)(i - 16);
	for (int i = 0; i < 16; i++)
		q41[4 + i] = q40[2 + i] = (uint8_t)(i | (15 - i) << 4);
	dtype_unpack(DTYPE_Q8_0, q8, out, 32);
	for (int i = 0; i < 32; i++)
		assert_true(out[i] == 0.5f * (float)(i - 16));
	dtype_unpack(DTYPE_Q4_1, q41, out, 32);
	for (int i = 0; i < 32; i++)
		assert_true(out[i] == 0.5f * (float)(i < 16 ? i : 31 - i) + 1);
	dtype_unpack(DTYPE_Q4_0, q40, out, 32);
	for (int i = 0; i < 32; i++)
		assert_true(out[i] == 0.5f * (float)((i < 16 ? i : 31 - i) - 8));
}

static void test_dtype__nan_and_infinity_are_found_wherever_they_stand(void **state)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
	float numbers[67];
	uint32_t packed[67];

	(void)state;
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (int i = 0; i < 67; i++)
			numbers[i] = (float)(i - 33) * 1000;
		dtype_pack(types[t], numbers, packed, 67);
		assert_true(dtype_finite(types[t], packed, 67));
		for (int i = 0; i < 67; i += 11) {
			float was = numbers[i];

			numbers[i] = i & 1 ? NAN : -INFINITY;
			dtype_pack(types[t], numbers, packed, 67);
			assert_false(dtype_finite(types[t], packed, 67));
			numbers[i] = was;
		}
	}
}

static void test_dtype__sizes_that_overflow_are_refused(void **state)
{
	struct tensor t = {.dtype = DTYPE_F32, .rank = 3, .dim = {1LL << 31, 1LL << 31, 4}};

	(void)state;
	assert_false(dtype_measure(&t));
	t.dim[0] = 0; /* the product is small, the rest is no less absurd */
	t.dim[1] = INT64_MAX;
	assert_false(dtype_measure(&t));
	t.dim[1] = 7;
	assert_true(dtype_measure(&t));
	assert_int_equal(t.size, 0);
	t = (struct tensor){.dtype = DTYPE_Q4_1, .rank = 2, .dim = {3, 64}};
	assert_true(dtype_measure(&t));
	assert_int_equal(t.size, 3 * 2 * 20);
	t.dim[1] = 48; /* a row of one and a half blocks */
	assert_false(dtype_measure(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtype__every_half_is_its_value_and_comes_back),
		cmocka_unit_test(test_dtype__halves_round_to_nearest_and_ties_to_even),
		cmocka_unit_test(test_dtype__bf16_rounds_to_nearest_and_ties_to_even),
		cmocka_unit_test(test_dtype__quantised_blocks_are_what_their_formulas_say),
		cmocka_unit_test(test_dtype__nan_and_infinity_are_found_wherever_they_stand),
		cmocka_unit_test(test_dtype__sizes_that_overflow_are_refused),
	};

	return cmocka_run_group_tests_name("model_dtype", tests, NULL, NULL);
}
