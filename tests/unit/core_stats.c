/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "core/math/random.h"
#include "core/math/stats.h"

static void near(double found, double expected)
{
	assert_float_equal(found, expected, 1e-12 * (1 + fabs(expected)));
}

static void test_stats__a_worked_example(void **state)
{
	const double x[] = {4, 1, 3, 2, 100};
	struct stats s = stats_of(x, 5);

	(void)state;
	assert_int_equal(s.count, 5);
	near(s.min, 1);
	near(s.median, 3);
	near(s.mean, 22);
	near(s.max, 100);
	near(s.p90, 61.6); /* 4 + 0.6 * 96 */
	near(s.p05, 1.2);
	near(s.mad, 1);
	near(s.stddev, sqrt((18. * 18 + 21 * 21 + 19 * 19 + 20 * 20 + 78 * 78) / 4));
	near(x[0], 4); /* left in its order */
}

static void test_stats__nothing_and_one(void **state)
{
	const double one = 7;
	struct stats s = stats_of(NULL, 0);

	(void)state;
	assert_int_equal(s.count, 0);
	near(s.mean, 0);
	s = stats_of(&one, 1);
	near(s.median, 7);
	near(s.p99, 7);
	near(s.stddev, 0);
	near(s.mad, 0);
	assert_true(isnan(stats_median(NULL, 0)));
	assert_true(isnan(stats_percentile(NULL, 0, 0.5)));
}

static void test_stats__a_nan_spoils_everything_visibly(void **state)
{
	const double x[] = {1, NAN, 3};
	struct stats s = stats_of(x, 3);
	double low, high;

	(void)state;
	assert_int_equal(s.count, 3);
	assert_true(isnan(s.min) && isnan(s.median) && isnan(s.mean) && isnan(s.p99) && isnan(s.mad));
	stats_median_interval(x, 3, &low, &high);
	assert_true(isnan(low) && isnan(high));
}

static void test_stats__batch_means_see_drift_that_single_samples_hide(void **state)
{
	double x[400];
	size_t i;

	(void)state;
	for (i = 0; i < 400; i++)
		x[i] = i % 2;
	near(stats_batch_half_width(x, 400, 20), 0);
	for (i = 0; i < 400; i++)
		x[i] = (double)(i / 200); /* ten batches of 0, ten of 1 */
	near(stats_batch_half_width(x, 400, 20), stats_t95(19) * sqrt(20 * 0.25 / 19 / 20));
	near(stats_batch_half_width(x, 400, 0), stats_batch_half_width(x, 400, 20));
	assert_true(isinf(stats_batch_half_width(x, 39, 20)));
	assert_true(isinf(stats_batch_half_width(x, 400, 1)));
}

static void test_stats__median_interval_by_order_statistics(void **state)
{
	/* Ranks for 95 % from tables of the sign test: 6 -> 1, 10 -> 2, 20 -> 6, 50 -> 18, 100 -> 40. */
	static const size_t counts[] = {6, 10, 20, 50, 100}, ranks[] = {1, 2, 6, 18, 40};
	double x[100], low, high;
	size_t i, k;

	(void)state;
	for (i = 0; i < 5; i++) {
		for (k = 0; k < counts[i]; k++)
			x[k] = (double)(counts[i] - k);
		stats_median_interval(x, counts[i], &low, &high);
		near(low, (double)ranks[i]);
		near(high, (double)(counts[i] + 1 - ranks[i]));
	}
	stats_median_interval(x, 3, &low, &high); /* 100, 99, 98 */
	near(low, 98);
	near(high, 100);
}

static void test_stats__slope(void **state)
{
	const double t[] = {0, 1, 2, 3}, y[] = {1, 3, 5, 7}, same[] = {2, 2, 2, 2};

	(void)state;
	near(stats_slope(t, y, 4), 2);
	near(stats_slope(same, y, 4), 0);
	near(stats_slope(t, y, 1), 0);
}

static void test_stats__student_quantiles_match_the_table(void **state)
{
	static const struct {
		size_t degrees;
		double value;
	} rows[] = {{1, 12.70620}, {2, 4.30265},  {5, 2.57058},	  {10, 2.22814},  {11, 2.20099},
		    {19, 2.09302}, {30, 2.04227}, {100, 1.98397}, {1000, 1.96234}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_float_equal(stats_t95(rows[i].degrees), rows[i].value, 2e-5);
	assert_true(isinf(stats_t95(0)));
}

/* Known-answer vectors published with Random123 (kat_vectors, philox4x32 10). */
static void test_random__philox_gives_the_published_vectors(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} rows[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	uint32_t out[4];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		philox4x32(out, rows[i].counter, rows[i].key);
		assert_memory_equal(out, rows[i].out, sizeof(out));
	}
	assert_int_equal(random_u32(0, 0, 2), 0xbc57ac4c);
	/* counter { 85a308d3243f6a88, 13198a2e, 0 } in element numbers: index / 4 low, high, stream */
	assert_int_not_equal(random_u32(1, 2, 1ull << 34), random_u32(1, 2, 0));
	assert_int_not_equal(random_u32(1ull << 32, 0, 0), random_u32(1, 0, 0));
}

static void test_random__floats_stay_in_range_and_balance(void **state)
{
	double sum = 0, squares = 0;
	uint64_t i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		float x = random_f32(42, 7, i);

		assert_true(x >= -1 && x <= 1);
		sum += (double)x;
		squares += (double)x * (double)x;
	}
	assert_float_equal(sum / 1e5, 0, 0.01);
	assert_float_equal(squares / 1e5, 1. / 3, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stats__a_worked_example),
		cmocka_unit_test(test_stats__nothing_and_one),
		cmocka_unit_test(test_stats__a_nan_spoils_everything_visibly),
		cmocka_unit_test(test_stats__batch_means_see_drift_that_single_samples_hide),
		cmocka_unit_test(test_stats__median_interval_by_order_statistics),
		cmocka_unit_test(test_stats__slope),
		cmocka_unit_test(test_stats__student_quantiles_match_the_table),
		cmocka_unit_test(test_random__philox_gives_the_published_vectors),
		cmocka_unit_test(test_random__floats_stay_in_range_and_balance),
	};

	return cmocka_run_group_tests_name("core_stats", tests, NULL, NULL);
}
