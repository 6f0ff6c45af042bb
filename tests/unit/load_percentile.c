/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles with intervals: ranks beside brute force, and coverage in simulations. */
#include "test.h"

#include <math.h>

#include "core/math/random.h"
#include "core/math/stats.h"
#include "load/measure/percentile.h"

/* P(K <= k) by the definition: binomial coefficients as products. */
static double cumulative(size_t n, size_t k, double p)
{
	long double sum = 0;

	for (size_t i = 0; i <= k; i++) {
		long double term = 1;

		for (size_t j = 1; j <= n; j++)
			term *= j <= i ? (long double)(n - i + j) / (long double)j * (long double)p
				       : 1 - (long double)p;
		sum += term;
	}
	return (double)sum;
}

static void brute_ranks(size_t n, double p, size_t *low, size_t *high)
{
	*low = 0;
	while (*low < n && cumulative(n, *low, p) <= 0.025)
		++*low;
	*high = n + 1;
	while (*high > 1 && 1 - cumulative(n, *high - 2, p) <= 0.025)
		--*high;
}

static void test_ranks__are_those_of_the_definition(void **state)
{
	static const double shares[] = {0.1, 0.5, 0.9, 0.95, 0.99};

	(void)state;
	for (size_t n = 1; n < 120; n += n < 12 ? 1 : 7)
		for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
			size_t low, high, low_brute, high_brute;

			brute_ranks(n, shares[i], &low_brute, &high_brute);
			load_percentile_ranks(n, n, shares[i], &low, &high);
			if (low != low_brute || high != high_brute)
				fail_msg("n %zu, share %g: %zu .. %zu instead of %zu .. %zu", n, shares[i],
					 low, high, low_brute, high_brute);
		}
}

/* (1 - share) needs this many samples: share^n <= 2.5 %. */
static void test_ranks__the_least_count_of_a_percentile(void **state)
{
	static const struct {
		double share;
		size_t least;
	} of[] = {{0.5, 6}, {0.9, 36}, {0.95, 72}, {0.99, 368}, {0.999, 3688}};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		size_t low, high;

		load_percentile_ranks(of[i].least - 1, of[i].least - 1, of[i].share, &low, &high);
		assert_int_equal(high, of[i].least);
		load_percentile_ranks(of[i].least, of[i].least, of[i].share, &low, &high);
		assert_true(low >= 1 && high <= of[i].least);
	}
}

static void test_ranks__fewer_worth_samples_widen_the_interval(void **state)
{
	size_t low, high, low_fewer, high_fewer;

	(void)state;
	load_percentile_ranks(10000, 10000, 0.9, &low, &high);
	load_percentile_ranks(10000, 1000, 0.9, &low_fewer, &high_fewer);
	assert_true(low_fewer < low && high_fewer > high);
	/* the half-width grows with the square root: about 59 and 186 ranks */
	assert_in_range(high - low, 112, 122);
	assert_in_range(high_fewer - low_fewer, 350, 395);
	load_percentile_ranks(10000, 300, 0.99, &low, &high);
	assert_int_equal(high, 10001);
	load_percentile_ranks(20000000, 20000000, 0.5, &low, &high);
	assert_true(low > 9990000 && low < 10000000 && high > 10000000 && high < 10010000);
}

static double uniform(uint64_t i)
{
	return (random_u32(7, 1, i) + 0.5) / 4294967296.0;
}

static double normal(uint64_t i)
{
	return sqrt(-2 * log(uniform(2 * i))) * cos(2 * 3.14159265358979323846 * uniform(2 * i + 1));
}

/* A series with the correlation rho of neighbours and a standard normal distribution; then exp of it. */
static void make_series(double *x, size_t count, double rho, uint64_t from)
{
	double y = normal(from);

	for (size_t i = 0; i < count; i++) {
		y = rho * y + sqrt(1 - rho * rho) * normal(from + 1 + i);
		x[i] = exp(y);
	}
}

/* Share of the series whose interval holds the true percentile, exp of z. */
static double coverage(size_t count, double rho, double share, double z, double *given)
{
	enum { RUNS = 800, ROOM = 4000 };
	static double x[ROOM], sorted[ROOM];
	size_t held = 0, known = 0;

	for (uint64_t run = 0; run < RUNS; run++) {
		struct load_percentile p;

		make_series(x, count, rho, run * 5000);
		memcpy(sorted, x, count * sizeof(*x));
		stats_sort(sorted, count);
		p = load_percentile_of(x, sorted, count, share);
		known += p.known;
		held += p.known && p.low <= exp(z) && exp(z) <= p.high;
		assert_true(!p.known || (p.low <= p.value && p.value <= p.high));
	}
	*given = (double)known / RUNS;
	return (double)held / (double)known;
}

static const double z90 = 1.2815515655446004, z99 = 2.3263478740408408;

/* Of 800 runs, the standard deviation of a coverage of 95 % is 0.8 %. The numbers are the same each time. */
static void test_interval__covers_independent_samples(void **state)
{
	double given, c;

	(void)state;
	c = coverage(400, 0, 0.5, 0, &given);
	assert_true(c > 0.935 && c < 0.995 && given == 1);
	c = coverage(400, 0, 0.9, z90, &given);
	assert_true(c > 0.935 && c < 0.995 && given > 0.99);
	c = coverage(2000, 0, 0.99, z99, &given);
	assert_true(c > 0.935 && c < 0.995 && given > 0.99);
}

static void test_interval__covers_correlated_samples(void **state)
{
	double given, c;

	(void)state;
	c = coverage(4000, 0.8, 0.5, 0, &given);
	assert_true(c > 0.92 && given == 1);
	c = coverage(4000, 0.8, 0.9, z90, &given);
	assert_true(c > 0.92 && given > 0.99);
	c = coverage(4000, 0.9, 0.99, z99, &given);
	assert_true(c > 0.90 && given > 0.5);
}

/* What the variance inflation is for: without it, these intervals hold the median in about half of the runs.
 */
static void test_interval__correlation_matters(void **state)
{
	enum { COUNT = 4000, RUNS = 300 };
	static double x[COUNT], sorted[COUNT];
	size_t held = 0, low, high;

	(void)state;
	load_percentile_ranks(COUNT, COUNT, 0.5, &low, &high);
	for (uint64_t run = 0; run < RUNS; run++) {
		make_series(x, COUNT, 0.8, run * 5000);
		memcpy(sorted, x, sizeof(x));
		stats_sort(sorted, COUNT);
		held += sorted[low - 1] <= 1 && 1 <= sorted[high - 1];
	}
	assert_true(held < 0.75 * RUNS);
}

static void test_inflation__is_that_of_the_series(void **state)
{
	enum { COUNT = 4000, RUNS = 200 };
	static double x[COUNT];
	double sum = 0;

	(void)state;
	assert_true(load_share_inflation(x, LOAD_BATCHED_LEAST - 1, 0) == 1);
	assert_true(load_share_inflation(x, COUNT, 0) == 1); /* all equal */
	for (uint64_t run = 0; run < RUNS; run++) {
		make_series(x, COUNT, 0.8, run * 5000);
		sum += load_share_inflation(x, COUNT, 1) / RUNS;
	}
	/* Signs of a normal series have the correlations 2/pi asin(rho^k); 1 + 2 their sum is 6.2. With
	 * Student's factor (2.093 / 1.960)^2 it is 7.1. */
	assert_true(sum > 6 && sum < 8);
}

static void test_few_samples__give_no_percentile(void **state)
{
	const double x[] = {1, 2, 3, 4, 5, 6};
	struct load_percentile p = load_percentile_of(x, x, 5, 0.5);

	(void)state;
	assert_false(p.known);
	assert_true(p.value == 3);
	assert_false(load_percentile_of(x, x, 0, 0.5).known);
	p = load_percentile_of(x, x, 6, 0.5);
	assert_true(p.known && p.low == 1 && p.high == 6 && p.value == 3.5);
}

/* Wilson's interval solves (p - share)^2 = z^2 p (1 - p) / n. */
static void test_share_interval__solves_its_equation(void **state)
{
	static const double shares[] = {0.01, 0.5, 0.99};
	double low, high;

	(void)state;
	for (int i = 0; i < 3; i++) {
		const double z2 = 1.959963984540054 * 1.959963984540054, n = 150;

		load_share_interval(shares[i], n, &low, &high);
		assert_true(fabs((low - shares[i]) * (low - shares[i]) - z2 * low * (1 - low) / n) < 1e-12);
		assert_true(fabs((high - shares[i]) * (high - shares[i]) - z2 * high * (1 - high) / n) <
			    1e-12);
		assert_true(low < shares[i] && shares[i] < high);
	}
	load_share_interval(1, 100, &low, &high);
	assert_true(high == 1 && low > 0.96 && low < 0.97);
	load_share_interval(0, 100, &low, &high);
	assert_true(low < 1e-12 && high > 0.03 && high < 0.04);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks__are_those_of_the_definition),
		cmocka_unit_test(test_ranks__the_least_count_of_a_percentile),
		cmocka_unit_test(test_ranks__fewer_worth_samples_widen_the_interval),
		cmocka_unit_test(test_interval__covers_independent_samples),
		cmocka_unit_test(test_interval__covers_correlated_samples),
		cmocka_unit_test(test_interval__correlation_matters),
		cmocka_unit_test(test_inflation__is_that_of_the_series),
		cmocka_unit_test(test_few_samples__give_no_percentile),
		cmocka_unit_test(test_share_interval__solves_its_equation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
