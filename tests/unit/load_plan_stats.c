/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of plans, held against closed forms that are computed here by other means: Kolmogorov and
 * Smirnov's test, chi-square, and means over many seeds. Seeds are fixed. */
#include "test.h"

#include <math.h>
#include "core/math/stats.h"
#include "load/plan/arrival.h"

enum { SAMPLES = 20000, GAPS = 5000, SEEDS = 4000 };

static struct load_plan_spec spec_of(enum load_arrival arrival, double rate, double duration, uint64_t seed)
{
	return (struct load_plan_spec){.arrival = arrival,
				       .rate = rate,
				       .rate_end = rate,
				       .burstiness = 1,
				       .duration_s = duration,
				       .requests_most = 1000000,
				       .turns = 1,
				       .trace_speed = 1,
				       .input = {.kind = LOAD_FIXED, .mean = 100, .min = 1, .max = 1000},
				       .output = {.kind = LOAD_FIXED, .mean = 10, .min = 1, .max = 1000},
				       .seed = seed};
}

typedef double distribution(double x, const void *arg);

/* The largest distance between a sample and its distribution, times the root of the count. Beyond 1.95 with a
 * probability of 0.1 %. */
static double ks(double *x, size_t count, distribution *f, const void *arg)
{
	double worst = 0;

	stats_sort(x, count);
	for (size_t i = 0; i < count; i++) {
		double at = f(x[i], arg);

		worst = fmax(worst,
			     fmax(at - (double)i / (double)count, (double)(i + 1) / (double)count - at));
	}
	return worst * sqrt((double)count);
}

static double exponential(double x, const void *arg)
{
	const double *rate = arg;

	return 1 - exp(-*rate * x);
}

/* Gamma's distribution by Simpson's rule. Shapes below 1 have a pole at 0, which x = u^(1/shape) removes. */
static double gamma_distribution(double x, const void *arg)
{
	const double *shape_rate = arg;
	double shape = shape_rate[0], scaled = x * shape * shape_rate[1];
	double end = shape < 1 ? pow(scaled, shape) : scaled, sum = 0;
	enum { PARTS = 400 };

	for (int i = 0; i <= PARTS; i++) {
		double u = end * i / PARTS, weight = i == 0 || i == PARTS ? 1 : i % 2 ? 4 : 2;

		sum += weight * (shape < 1 ? exp(-pow(u, 1 / shape)) : pow(u, shape - 1) * exp(-u));
	}
	return sum * end / PARTS / 3 / tgamma(shape < 1 ? shape + 1 : shape);
}

/* Gaps between arrivals; the first arrival is not one. */
static size_t gaps_of(double *out, size_t most, const struct load_plan_spec *spec)
{
	struct arrivals a;
	struct error err = {0};
	size_t count = 0;
	double before, at;

	assert_int_equal(arrivals_begin(&a, spec, &err), STATUS_OK);
	assert_true(arrivals_next(&a, &before));
	for (; count < most && arrivals_next(&a, &at); before = at)
		out[count++] = at - before;
	return count;
}

static void test_load_arrivals__gaps_are_exponential(void **state)
{
	struct load_plan_spec spec = spec_of(LOAD_POISSON, 50, 80000, 7);
	static double gap[SAMPLES];

	(void)state;
	assert_int_equal(gaps_of(gap, SAMPLES, &spec), SAMPLES);
	assert_true(ks(gap, SAMPLES, exponential, &spec.rate) < 1.95);
	spec.rate = 52; /* the test can fail: 4 % are seen */
	assert_true(ks(gap, SAMPLES, exponential, &spec.rate) > 1.95);
}

static void test_load_arrivals__gaps_are_gamma(void **state)
{
	static const double shapes[] = {0.25, 0.5, 1, 3.5, 20};
	static double gap[GAPS];

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct load_plan_spec spec = spec_of(LOAD_GAMMA, 50, 80000, 11 + i);
		double arg[] = {shapes[i], spec.rate};

		spec.burstiness = shapes[i];
		assert_int_equal(gaps_of(gap, GAPS, &spec), GAPS);
		assert_true(ks(gap, GAPS, gamma_distribution, arg) < 1.95);
		arg[0] *= 1.3;
		assert_true(ks(gap, GAPS, gamma_distribution, arg) > 1.95);
	}
}

/* Mean and variance of the number of arrivals over many seeds. */
static void counts(struct load_plan_spec spec, double *mean, double *variance)
{
	double sum = 0, squares = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct error err = {0};
		struct arrivals a;
		double at, count = 0;

		spec.seed = seed;
		assert_int_equal(arrivals_begin(&a, &spec, &err), STATUS_OK);
		while (arrivals_next(&a, &at))
			count++;
		sum += count;
		squares += count * count;
	}
	*mean = sum / SEEDS;
	*variance = (squares - sum * *mean) / (SEEDS - 1);
}

/* The expected number is the rate's integral, for bursts too: without the equilibrium's first gap, a shape of
 * 0.1 gives 4.5 arrivals too many. */
static void test_load_arrivals__the_expected_number(void **state)
{
	static const struct {
		enum load_arrival arrival;
		double rate, end, burstiness, expected;
		const char *steps;
	} rows[] = {
		{LOAD_POISSON, 10, 0, 1, 50, NULL}, {LOAD_GAMMA, 10, 0, 0.1, 50, NULL},
		{LOAD_GAMMA, 10, 0, 0.5, 50, NULL}, {LOAD_GAMMA, 10, 0, 8, 50, NULL},
		{LOAD_RAMP, 0, 20, 1, 50, NULL},    {LOAD_RAMP, 20, 0, 1, 50, NULL},
		{LOAD_RAMP, 4, 10, 1, 35, NULL},    {LOAD_STEPS, 0, 0, 1, 35, "2,4,8,14"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct load_plan_spec spec = spec_of(rows[i].arrival, rows[i].rate, 5, 0);
		double mean, variance;

		spec.rate_end = rows[i].end;
		spec.burstiness = rows[i].burstiness;
		spec.steps = rows[i].steps;
		counts(spec, &mean, &variance);
		if (fabs(mean - rows[i].expected) > 3.5 * sqrt(variance / SEEDS))
			fail_msg("row %zu: %g of %g expected", i, mean, rows[i].expected);
		if (rows[i].burstiness == 1) /* Poisson: the variance is the mean; its error is sqrt(2 / n) */
			assert_true(fabs(variance / rows[i].expected - 1) < 3.5 * sqrt(2.0 / SEEDS));
	}
}

/* The share of arrivals before x in a ramp from 5 to 25 over 100 s. */
static double ramp_share(double x, const void *arg)
{
	(void)arg;
	return (5 * x + 0.1 * x * x) / 1500;
}

static void test_load_arrivals__a_ramp_has_its_rate_everywhere(void **state)
{
	static double at[SAMPLES];
	size_t count = 0;

	(void)state;
	for (uint64_t seed = 100; count < SAMPLES - 2000; seed++) {
		struct load_plan_spec spec = spec_of(LOAD_RAMP, 5, 100, seed);
		struct error err = {0};
		struct arrivals a;

		spec.rate_end = 25;
		assert_int_equal(arrivals_begin(&a, &spec, &err), STATUS_OK);
		while (count < SAMPLES && arrivals_next(&a, &at[count]))
			count++;
	}
	assert_true(ks(at, count, ramp_share, NULL) < 1.95);
}

static void test_load_arrivals__steps_have_their_rates(void **state)
{
	struct load_plan_spec spec = spec_of(LOAD_STEPS, 0, 4000, 5);
	static const double rate[] = {1, 4, 2, 8};
	double found[4] = {0}, chi = 0, at;
	struct error err = {0};
	struct arrivals a;

	(void)state;
	spec.steps = "1,4,2,8";
	assert_int_equal(arrivals_begin(&a, &spec, &err), STATUS_OK);
	while (arrivals_next(&a, &at))
		found[(int)(at / 1000)]++;
	for (int i = 0; i < 4; i++)
		chi += pow(found[i] - 1000 * rate[i], 2) / (1000 * rate[i]);
	assert_true(chi < 18.5); /* 4 degrees of freedom, 0.1 % */
}

static void lengths_of(double *out, const char *text)
{
	struct load_length_spec spec;
	struct error err = {0};
	struct draw d;

	assert_int_equal(load_length_read(&spec, text, &err), STATUS_OK);
	draw_begin(&d, 3, DRAW_INPUT);
	for (size_t i = 0; i < SAMPLES; i++)
		out[i] = load_length_draw(&spec, &d);
}

/* Rounding moves a value by half of one at most, which is added before the comparison. */
static double normal_share(double x, const void *arg)
{
	const double *mean_spread = arg;

	return 0.5 * erfc(-(x - mean_spread[0]) / mean_spread[1] / sqrt(2));
}

static double lognormal_share(double x, const void *arg)
{
	const double *m = arg;
	double variance = log(1 + m[1] * m[1] / m[0] / m[0]), middle = log(m[0]) - variance / 2;

	return 0.5 * erfc(-(log(x) - middle) / sqrt(2 * variance));
}

static void check_moments(const double *x, double mean, double spread)
{
	struct stats s = stats_of(x, SAMPLES);

	assert_true(fabs(s.mean - mean) < 3.5 * spread / sqrt(SAMPLES));
	assert_true(fabs(s.stddev / spread - 1) < 0.05);
}

static void test_load_length__distributions(void **state)
{
	static const double normal[] = {100000, 20000}, lognormal[] = {100000, 60000};
	static double x[SAMPLES];
	double chi = 0, found[10] = {0};

	(void)state;
	lengths_of(x, "normal:100000,20000");
	check_moments(x, 100000, 20000);
	assert_true(ks(x, SAMPLES, normal_share, normal) < 1.95);
	lengths_of(x, "lognormal:100000,60000");
	check_moments(x, 100000, 60000); /* of the length itself */
	assert_true(ks(x, SAMPLES, lognormal_share, lognormal) < 1.95);
	lengths_of(x, "uniform:11,20");
	for (size_t i = 0; i < SAMPLES; i++) {
		assert_true(x[i] >= 11 && x[i] <= 20);
		found[(int)x[i] - 11]++;
	}
	for (int i = 0; i < 10; i++)
		chi += pow(found[i] - SAMPLES / 10.0, 2) / (SAMPLES / 10.0);
	assert_true(chi < 27.9); /* 9 degrees of freedom, 0.1 % */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_arrivals__gaps_are_exponential),
		cmocka_unit_test(test_load_arrivals__gaps_are_gamma),
		cmocka_unit_test(test_load_arrivals__the_expected_number),
		cmocka_unit_test(test_load_arrivals__a_ramp_has_its_rate_everywhere),
		cmocka_unit_test(test_load_arrivals__steps_have_their_rates),
		cmocka_unit_test(test_load_length__distributions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
