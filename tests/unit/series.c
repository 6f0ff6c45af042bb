/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/telemetry/series.h"
#include <math.h>
#include "scratch.h"

enum { MS = 1000000 };

static void near(double found, double expected)
{
	assert_true(fabs(found - expected) <= 1e-9 * fabs(expected) + 1e-12);
}

static void add(struct series *s, uint64_t t_ms, double value)
{
	struct error err = {0};

	assert_int_equal(series_add(s, t_ms * MS, value, &err), STATUS_OK);
}

static void test_series__a_gauge_is_weighted_by_time(void **state)
{
	struct series s = {.kind = SIGNAL_GAUGE};
	struct span span;

	(void)state;
	add(&s, 50, 1000); /* before the window: not the window's */
	add(&s, 100, 10);
	add(&s, 200, 20);
	add(&s, 400, 40);
	assert_int_equal(series_over(&s, 100 * MS, 500ull * MS, &span), STATUS_OK);
	assert_int_equal(span.readings, 3);
	near(span.mean, (15 * 0.1 + 30 * 0.2 + 40 * 0.1) / 0.4);
	near(span.min, 10);
	near(span.max, 40);
	near(span.first, 10);
	near(span.last, 40);
	near(span.gap_s, 0.2);
	series_release(&s);
	assert_null(s.t_ns);
}

static void test_series__edges_count_as_gaps(void **state)
{
	struct series s = {.kind = SIGNAL_GAUGE};
	struct span span;

	(void)state;
	add(&s, 1000, 5);
	assert_int_equal(series_over(&s, 0, 3000ull * MS, &span), STATUS_OK);
	near(span.gap_s, 2.0);
	near(span.mean, 5);
	assert_int_equal(series_over(&s, 1001ull * MS, 3000ull * MS, &span), STATUS_UNAVAILABLE);
	assert_int_equal(series_over(&s, 1000ull * MS, 1000ull * MS, &span), STATUS_OK);
	near(span.mean, 5);
	series_release(&s);
}

static void test_series__a_counter_is_read_between_its_own_ticks(void **state)
{
	struct series s = {.kind = SIGNAL_COUNTER};
	struct span span;

	(void)state;
	/* 500 W; the counter moves every 100 ms, polled every 20 ms, one reading after the tick. */
	for (unsigned t = 0; t <= 1000; t += 20)
		add(&s, 10 + t, 50.0 * (t / 100));
	assert_int_equal(series_over(&s, 0, 2000ull * MS, &span), STATUS_OK);
	assert_int_equal(span.ticks, 10);
	near(span.rate, 500);
	near(span.rate_error, 500 * 0.02 / 0.9);
	assert_false(span.went_back);
	/* A window that ends between two ticks gives the same rate: no part of a tick is lost or won. */
	assert_int_equal(series_over(&s, 150ull * MS, 777ull * MS, &span), STATUS_OK);
	near(span.rate, 500);
	series_release(&s);
}

static void test_series__a_counter_that_runs_backwards_says_so(void **state)
{
	struct series s = {.kind = SIGNAL_COUNTER};
	struct span span;

	(void)state;
	add(&s, 0, 100);
	add(&s, 100, 200);
	add(&s, 200, 5);
	add(&s, 300, 105);
	assert_int_equal(series_over(&s, 0, 300ull * MS, &span), STATUS_OK);
	assert_true(span.went_back);
	near(span.rate, 0);
	assert_int_equal(series_over(&s, 200ull * MS, 300ull * MS, &span), STATUS_OK);
	assert_false(span.went_back);
	assert_int_equal(span.ticks, 1); /* one step alone is no rate */
	near(span.rate, 0);
	series_release(&s);
}

static void test_series__bits_are_joined_both_ways(void **state)
{
	struct series s = {.kind = SIGNAL_BITS};
	struct span span;

	(void)state;
	add(&s, 0, 0x4);
	add(&s, 10, 0x44);
	add(&s, 20, 0x6);
	assert_int_equal(series_over(&s, 0, 20ull * MS, &span), STATUS_OK);
	assert_int_equal(span.bits_and, 0x4);
	assert_int_equal(span.bits_or, 0x46);
	series_release(&s);
}

/* A reading that tells of the time before it counts where all of that time, come late or not, was the window's. */
static void test_series__only_whole_intervals_count_and_by_their_length(void **state)
{
	struct series s = {.kind = SIGNAL_GAUGE};
	double mean = -1;

	(void)state;
	assert_false(series_whole(&s, 0, 1000ull * MS, 0, &mean)); /* no reading at all */
	add(&s, 90, 0.1);
	add(&s, 340, 0.5); /* 90 .. 340 may tell of -10 .. 240 */
	add(&s, 640, 0.9);
	add(&s, 740, 0.5);
	add(&s, 1010, 0.2); /* ends after the window */
	assert_true(series_whole(&s, 0, 1000ull * MS, 100 * MS, &mean));
	near(mean, (300 * 0.9 + 100 * 0.5) / 400);
	assert_true(series_whole(&s, 0, 1000ull * MS, 0, &mean)); /* without delay the first counts as well */
	near(mean, (250 * 0.5 + 300 * 0.9 + 100 * 0.5) / 650);
	mean = -1;
	assert_false(series_whole(&s, 300ull * MS, 640ull * MS, 100 * MS, &mean));
	near(mean, -1);
	series_release(&s);
}

static void test_series__what_is_no_reading_is_refused(void **state)
{
	struct series s = {.source = "gpu:0000:1b:00.0", .signal = "power_w"};
	struct error err = {0};

	(void)state;
	add(&s, 10, 1);
	assert_int_equal(series_add(&s, 11 * MS, NAN, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "power_w"));
	assert_int_equal(series_add(&s, 9 * MS, 1, NULL), STATUS_BAD_INPUT);
	assert_int_equal(s.count, 1);
	series_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series__a_gauge_is_weighted_by_time),
		cmocka_unit_test(test_series__edges_count_as_gaps),
		cmocka_unit_test(test_series__a_counter_is_read_between_its_own_ticks),
		cmocka_unit_test(test_series__a_counter_that_runs_backwards_says_so),
		cmocka_unit_test(test_series__bits_are_joined_both_ways),
		cmocka_unit_test(test_series__only_whole_intervals_count_and_by_their_length),
		cmocka_unit_test(test_series__what_is_no_reading_is_refused),
	};

	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
