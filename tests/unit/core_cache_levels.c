/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "core/math/cache_levels.h"
#include "core/math/random.h"

enum { POINTS = 40 };

/* Sizes from 4 KiB on, four a doubling; between the caches the time mixes: a share `hit` comes from the inner
 * one. */
static void curve(double *x, double *y, size_t count, const double *capacity, const double *latency,
		  size_t levels, double noise)
{
	for (size_t i = 0; i < count; i++) {
		double inner = 0;

		x[i] = 4096 * pow(2, (double)i / 2);
		y[i] = 0;
		for (size_t l = 0; l < levels; l++) {
			double upto = l + 1 < levels ? fmin(1, capacity[l] / x[i]) : 1;

			y[i] += (upto - inner) * latency[l];
			inner = upto;
		}
		y[i] *= 1 + noise * (double)random_f32(3, 1, i);
	}
}

static void near(double found, double right, double share)
{
	if (!(fabs(found / right - 1) <= share))
		fail_msg("%g is not within %g of %g", found, share, right);
}

static void three_caches_and_memory_are_found(void **state)
{
	const double capacity[] = {32768, 1 << 20, 36 << 20}, latency[] = {1.5, 5, 20, 95};
	double x[POINTS], y[POINTS];
	struct level level[LEVELS_MAX];

	(void)state;
	curve(x, y, POINTS, capacity, latency, 4, 0.02);
	assert_int_equal(levels_of(x, y, POINTS, level, LEVELS_MAX), 4);
	near(level[0].value, 1.5, 0.05);
	near(level[1].value, 5, 0.15);
	near(level[2].value, 20, 0.2);
	near(level[3].value, 95, 0.15);
	assert_true(isinf(level[3].end));
	for (unsigned i = 0; i < 3; i++) /* half way up: between the capacity and a few times it */
		assert_true(level[i].end > 0.9 * capacity[i] && level[i].end < 3 * capacity[i]);
}

static void sharp_steps_are_found_exactly(void **state)
{
	double x[20], y[20];
	struct level level[LEVELS_MAX];

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		x[i] = 1000 * pow(2, i);
		y[i] = i < 7 ? 100 : i < 15 ? 40 : 10; /* a rate falls */
	}
	assert_int_equal(levels_of(x, y, 20, level, LEVELS_MAX), 3);
	near(level[0].value, 100, 1e-9);
	near(level[1].value, 40, 1e-9);
	near(level[2].value, 10, 1e-9);
	assert_true(level[0].end > x[6] && level[0].end < x[7]);
	assert_true(level[1].end > x[14] && level[1].end < x[15]);
	assert_int_equal(level[1].first, 7);
	assert_int_equal(level[1].points, 8);
}

static void noise_makes_no_levels(void **state)
{
	double x[POINTS], y[POINTS];
	struct level level[LEVELS_MAX];

	(void)state;
	for (unsigned seed = 0; seed < 50; seed++) {
		for (unsigned i = 0; i < POINTS; i++) {
			x[i] = i + 1;
			y[i] = 50 * (1 + 0.05 * (double)random_f32(seed, 2, i));
		}
		assert_int_equal(levels_of(x, y, POINTS, level, LEVELS_MAX), 1);
		near(level[0].value, 50, 0.03);
	}
}

static void an_outlier_is_no_level(void **state)
{
	double x[20], y[20];
	struct level level[LEVELS_MAX];

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		x[i] = i + 1;
		y[i] = i < 10 ? 100 : 30;
	}
	y[10] = 60; /* on the way down */
	assert_int_equal(levels_of(x, y, 20, level, LEVELS_MAX), 2);
	assert_true(level[0].end > 10 && level[0].end < 12);
}

static void bad_curves_have_none(void **state)
{
	const double x[] = {1, 2, 3}, same[] = {1, 1, 2}, zero[] = {1, 0, 2}, nan_[] = {1, (double)NAN, 2};
	const double good[] = {5, 5, 5};
	struct level level[LEVELS_MAX];

	(void)state;
	assert_int_equal(levels_of(x, good, 0, level, LEVELS_MAX), 0);
	assert_int_equal(levels_of(same, good, 3, level, LEVELS_MAX), 0);
	assert_int_equal(levels_of(x, zero, 3, level, LEVELS_MAX), 0);
	assert_int_equal(levels_of(x, nan_, 3, level, LEVELS_MAX), 0);
	assert_int_equal(levels_of(x, good, 1000, level, LEVELS_MAX), 0);
	assert_int_equal(levels_of(x, good, 3, level, 0), 0);
	assert_int_equal(levels_of(x, good, 1, level, LEVELS_MAX), 1);
	assert_int_equal(level[0].points, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_caches_and_memory_are_found),
		cmocka_unit_test(sharp_steps_are_found_exactly),
		cmocka_unit_test(noise_makes_no_levels),
		cmocka_unit_test(an_outlier_is_no_level),
		cmocka_unit_test(bad_curves_have_none),
	};

	return cmocka_run_group_tests_name("core_levels", tests, NULL, NULL);
}
