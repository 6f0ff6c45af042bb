/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of collectives: exact in every order of summation, in every type; and what a wrong one shows.
 */
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/random.h"
#include "probe/collective/collective.h"
#include "probe/collective/expect.h"

enum { TREES = 60, SEED = 7 };
#define assert_same(a, b) assert_true((a) == (b)) /* exactly */

static const enum operand_type types[] = {OPERAND_F64,	OPERAND_F32,  OPERAND_F16, OPERAND_BF16,
					  OPERAND_E4M3, OPERAND_E5M2, OPERAND_S8,  OPERAND_S32};
#define EACH_TYPE(t) for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)

/* A format by its significand, least exponent and greatest value: what one addition leaves. Written for this
 * test. */
static double rounded(enum operand_type type, double v)
{
	static const struct {
		int significand, least;
		double most;
	} formats[] = {
		[OPERAND_F16] = {11, -14, 65504},
		[OPERAND_BF16] = {8, -126, 0x1.fep127},
		[OPERAND_E4M3] = {4, -6, 448},
		[OPERAND_E5M2] = {3, -14, 57344},
	};
	double quantum;
	int exponent;

	if (type == OPERAND_F32)
		return (double)(float)v;
	if (type == OPERAND_S8)
		return (double)(int8_t)(int)v;
	if (type == OPERAND_F64 || type == OPERAND_S32 || v == 0)
		return v;
	frexp(v, &exponent);
	exponent = exponent - 1 < formats[type].least ? formats[type].least : exponent - 1;
	quantum = ldexp(1, exponent - formats[type].significand + 1);
	v = nearbyint(v / quantum) * quantum;
	return fabs(v) > formats[type].most ? (double)INFINITY : v;
}

/* Joins two of the values at random until one is left. */
static double random_tree(enum operand_type type, double *v, unsigned n, uint64_t *turn)
{
	while (n > 1) {
		unsigned a = random_u32(SEED, 1, (*turn)++) % n, b;
		double x = v[a];

		v[a] = v[--n];
		b = random_u32(SEED, 1, (*turn)++) % n;
		v[b] = rounded(type, v[b] + x);
	}
	return v[0];
}

static void test_collective_expect__every_order_of_summation_gives_the_answer(void **state)
{
	uint64_t turn = 0;

	(void)state;
	EACH_TYPE(t)
	{
		for (unsigned n = 2; n <= 17; n++) {
			struct collective_inputs in = collective_inputs(types[t], COLLECTIVE_SUM, n, SEED);

			for (uint64_t i = 0; i < TREES; i++) {
				double v[17];

				for (unsigned r = 0; r < n; r++) {
					v[r] = collective_given(&in, r, i * 977);
					assert_same(rounded(types[t], v[r]), v[r]);
				}
				assert_same(random_tree(types[t], v, n, &turn),
					    collective_answer(&in, i * 977));
			}
		}
	}
}

static void test_collective_expect__an_average_of_a_power_of_two_is_exact(void **state)
{
	uint64_t turn = 0;

	(void)state;
	EACH_TYPE(t)
	{
		for (unsigned n = 2; n <= 16; n *= 2) {
			struct collective_inputs in = collective_inputs(types[t], COLLECTIVE_AVG, n, SEED);
			bool integer = types[t] == OPERAND_S8 || types[t] == OPERAND_S32;

			assert_int_equal(in.ulp, 0);
			for (uint64_t i = 0; i < TREES; i++) {
				double v[16], found;

				for (unsigned r = 0; r < n; r++)
					v[r] = rounded(types[t],
						       collective_given(&in, r, i) / (integer ? 1 : n));
				found = random_tree(types[t], v, n, &turn) / (integer ? n : 1);
				assert_same(found, collective_answer(&in, i));
			}
		}
	}
}

static void test_collective_expect__other_averages_are_within_their_tolerance(void **state)
{
	static const int fraction[] = {52, 23, 10, 7, 3, 2};

	(void)state;
	for (unsigned n = 3; n <= 17; n += 2) {
		EACH_TYPE(t)
		{
			struct collective_inputs in = collective_inputs(types[t], COLLECTIVE_AVG, n, SEED);
			bool integer = types[t] == OPERAND_S8 || types[t] == OPERAND_S32;
			double part = rounded(types[t], 1.0 / n);

			assert_int_equal(in.ulp, integer ? 0 : 2);
			for (uint64_t i = 0; i < TREES; i++) {
				double sum = 0, expected = collective_answer(&in, i), room;
				int exponent;

				for (unsigned r = 0; r < n; r++)
					sum += integer ? collective_given(&in, r, i)
						       : rounded(types[t],
								 part * collective_given(&in, r, i));
				assert_true(!integer || fabs(sum) <= (types[t] == OPERAND_S8 ? 127 : 0x1p31));
				sum = integer ? sum / n : sum;
				frexp(expected, &exponent);
				room = integer ? 0 : ldexp(2, exponent - 1 - fraction[types[t]]);
				assert_true(fabs(sum - expected) <= room);
			}
		}
	}
}

static void test_collective_expect__extremes_are_one_ranks_and_every_rank_is_looked_at(void **state)
{
	(void)state;
	EACH_TYPE(t)
	{
		for (unsigned n = 2; n <= 17; n += 5) {
			struct collective_inputs low = collective_inputs(types[t], COLLECTIVE_MIN, n, SEED),
						 high = collective_inputs(types[t], COLLECTIVE_MAX, n, SEED);
			bool seen[17] = {false};

			for (uint64_t i = 0; i < 40 * n; i++) {
				unsigned winners = 0;

				for (unsigned r = 0; r < n; r++) {
					double a = collective_given(&low, r, i),
					       b = collective_given(&high, r, i);

					assert_same(rounded(types[t], a), a);
					assert_same(rounded(types[t], b), b);
					assert_true(a >= collective_answer(&low, i) &&
						    b <= collective_answer(&high, i));
					winners += b == collective_answer(&high, i);
					seen[r] |= b == collective_answer(&high, i);
				}
				assert_int_equal(winners, 1);
			}
			for (unsigned r = 0; r < n; r++)
				assert_true(seen[r]);
		}
	}
}

/* Each rank's share is in at least slots / ranks of the elements, and taking it away, or twice, changes them.
 */
static void test_collective_expect__a_missing_rank_shows_and_is_named(void **state)
{
	(void)state;
	EACH_TYPE(t)
	{
		for (unsigned n = 2; n <= 17; n += 3) {
			struct collective_inputs in = collective_inputs(types[t], COLLECTIVE_SUM, n, SEED);

			for (unsigned bad = 0; bad < n; bad++) {
				unsigned long long suspect[2 * 17 + 1] = {0};
				unsigned named = n;
				bool twice = bad % 2, said = false;

				for (uint64_t i = 0; i < 2000; i++) {
					double given = collective_given(&in, bad, i),
					       d = twice ? given : -given;

					for (unsigned r = 0; r < n && given != 0; r++) {
						double x = collective_given(&in, r, i);

						suspect[r] += x != 0 && d == -x;
						suspect[n + r] += x != 0 && d == x;
					}
					suspect[2 * n] += given != 0;
				}
				assert_true(suspect[2 * n] >=
					    2000 * (in.slots < n ? in.slots : n) / n * 8 / 10);
				assert_true(collective_suspect(suspect, n, &named, &said));
				assert_int_equal(named, bad);
				assert_int_equal(said, twice);
			}
		}
	}
}

static void test_collective_expect__no_one_is_named_where_nothing_fits(void **state)
{
	unsigned long long none[9] = {0}, split[9] = {50, 50, 0, 0, 0, 0, 0, 0, 100};
	unsigned rank;
	bool twice;

	(void)state;
	assert_false(collective_suspect(none, 4, &rank, &twice));
	assert_false(collective_suspect(split, 4, &rank, &twice));
}

/* Four elements that one flipped bit made wrong differed by exactly what another rank had given. */
static void test_collective_expect__few_elements_tell_nobodys_share(void **state)
{
	const struct collective_inputs in = collective_inputs(OPERAND_BF16, COLLECTIVE_SUM, 4, SEED);
	const unsigned long long suspect[9] = {0, 0, 0, 4, 0, 0, 0, 0, 4};
	struct wrong few = {.count = 4, .place = "element 1"}, many = {.count = 400, .place = "element 1"};

	(void)state;
	collective_blame(&in, suspect, &few);
	assert_string_equal(few.place, "element 1");
	assert_int_equal(few.suspect, 0);
	collective_blame(&in, suspect, &many);
	assert_string_equal(many.place, "element 1: rank 3's share is missing");
	assert_int_equal(many.suspect, 1 + 3);
}

static void test_collective_expect__moved_bits_are_no_nan_and_differ_by_rank(void **state)
{
	(void)state;
	EACH_TYPE(t)
	{
		struct collective_inputs in = collective_inputs(types[t], COLLECTIVE_MOVE, 4, SEED);
		unsigned same = 0, bytes = collective_type_bytes(types[t]);

		for (uint64_t i = 0; i < 4096; i++) {
			uint64_t a = collective_moved(&in, 0, 1, i), b = collective_moved(&in, 1, 0, i);

			assert_true(bytes == 8 || a < (uint64_t)1 << 8 * bytes);
			assert_false(isnan(collective_number(types[t], &a)));
			same += a == b;
		}
		assert_true(same < (bytes == 1 ? 128 : 4));
	}
}

static void test_collective_expect__numbers_are_read_as_each_type_has_them(void **state)
{
	const uint8_t one_e4m3 = 0x38, nan_e4m3 = 0x7f, most_e4m3 = 0x7e, one_e5m2 = 0x3c, inf_e5m2 = 0xfc;
	const uint16_t half = 0xb800, brain = 0x3fc0, small = 1;
	const int8_t byte = -5;
	const int32_t word = -70000;
	const float single = 2.5f;
	const double wide = -1e9;

	(void)state;
	assert_same(collective_number(OPERAND_E4M3, &one_e4m3), 1);
	assert_same(collective_number(OPERAND_E4M3, &most_e4m3), 448);
	assert_true(isnan(collective_number(OPERAND_E4M3, &nan_e4m3)));
	assert_same(collective_number(OPERAND_E5M2, &one_e5m2), 1);
	assert_true(isinf(collective_number(OPERAND_E5M2, &inf_e5m2)));
	assert_same(collective_number(OPERAND_F16, &half), -0.5);
	assert_same(collective_number(OPERAND_F16, &small), 0x1p-24);
	assert_same(collective_number(OPERAND_BF16, &brain), 1.5);
	assert_same(collective_number(OPERAND_S8, &byte), -5);
	assert_same(collective_number(OPERAND_S32, &word), -70000);
	assert_same(collective_number(OPERAND_F32, &single), 2.5);
	assert_same(collective_number(OPERAND_F64, &wide), -1e9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collective_expect__a_missing_rank_shows_and_is_named),
		cmocka_unit_test(test_collective_expect__an_average_of_a_power_of_two_is_exact),
		cmocka_unit_test(test_collective_expect__every_order_of_summation_gives_the_answer),
		cmocka_unit_test(test_collective_expect__extremes_are_one_ranks_and_every_rank_is_looked_at),
		cmocka_unit_test(test_collective_expect__few_elements_tell_nobodys_share),
		cmocka_unit_test(test_collective_expect__moved_bits_are_no_nan_and_differ_by_rank),
		cmocka_unit_test(test_collective_expect__no_one_is_named_where_nothing_fits),
		cmocka_unit_test(test_collective_expect__numbers_are_read_as_each_type_has_them),
		cmocka_unit_test(test_collective_expect__other_averages_are_within_their_tolerance),
	};

	return cmocka_run_group_tests_name("collective_expect", tests, NULL, NULL);
}
