/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of a window, from readings of a made-up device whose true power is a formula. */
#include "journal/telemetry/energy.h"
#include <math.h>
#include "core/math/random.h"
#include "scratch.h"

#define S 1000000000.0
enum { IDLE_W = 80, LOAD_W = 600 };

/* Idle, from 4 s to 14 s under load, then idle. */
struct device {
	double update_s;   /* the counter moves once in this time */
	double jitter_s;   /* and up to this much later */
	double poll_s;	   /* it is read so often */
	double swing_w;	   /* the load's power swings by this, with a period of 0.7 s */
	double frozen_s;   /* the counter stops at this time; 0: never */
	double back_s;	   /* it restarts from zero at this time; 0: never */
	double gauge_from; /* watts are read from then on */
	uint64_t seed;
};

static double until(double t, double from, double to)
{
	return fmin(fmax(t, from), to) - from;
}

/* Joules from time 0 to t: the integral of the power. */
static double energy(const struct device *d, double t)
{
	double loaded = until(t, 4, 14), w = 2 * 3.14159265358979 / 0.7;

	return IDLE_W * t + (LOAD_W - IDLE_W) * loaded + d->swing_w * (1 - cos(w * loaded)) / w;
}

static double power(const struct device *d, double t)
{
	double w = 2 * 3.14159265358979 / 0.7;

	return t < 4 || t > 14 ? IDLE_W : LOAD_W + d->swing_w * sin(w * (t - 4));
}

/* The counter as read at time t: the energy at its latest update. */
static double counter(const struct device *d, double t)
{
	long k = (long)floor(t / d->update_s);
	double update;

	if (d->frozen_s > 0)
		t = fmin(t, d->frozen_s);
	for (k = (long)floor(t / d->update_s); k > 0; k--) {
		update = (double)k * d->update_s +
			 d->jitter_s * fabs((double)random_f32(d->seed, 1, (uint64_t)k));
		if (update <= t)
			return 5000 + energy(d, update) -
			       (d->back_s > 0 && update > d->back_s ? 3000 + energy(d, d->back_s) : 0);
	}
	return 5000;
}

struct readings {
	struct series joules, watts;
};

static void read_device(struct readings *r, const struct device *d, double from, double to)
{
	*r = (struct readings){.joules = {.kind = SIGNAL_COUNTER, .source = "gpu:x", .signal = "energy_j"},
			       .watts = {.kind = SIGNAL_GAUGE, .source = "gpu:x", .signal = "power_w"}};
	for (double t = from; t < to; t += d->poll_s)
		assert_int_equal(series_add(&r->joules, (uint64_t)(t * S), counter(d, t), NULL), STATUS_OK);
	for (double t = fmax(from, d->gauge_from); t < to; t += 0.02)
		assert_int_equal(series_add(&r->watts, (uint64_t)(t * S), power(d, t), NULL), STATUS_OK);
}

static void forget(struct readings *r)
{
	series_release(&r->joules);
	series_release(&r->watts);
}

static struct energy window(const struct readings *r, double t0, double t1)
{
	struct energy e;

	energy_of_window(&e, &r->joules, &r->watts, (uint64_t)(t0 * S), (uint64_t)(t1 * S), 0);
	return e;
}

static void assert_why(const struct energy *e, const char *why)
{
	assert_false(e->known);
	if (strncmp(e->why, why, strlen(why)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", e->why, why);
}

static void test_energy__a_steady_window_is_exact_between_steps(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05};
	struct readings r;
	struct energy e;

	(void)state;
	read_device(&r, &d, 0.013, 18);
	e = window(&r, 5.033, 13.871);
	assert_true(e.known && e.integrated && !e.disagrees && e.idle_known);
	assert_int_equal(e.devices, 1);
	assert_int_equal(e.steps, 88);
	assert_true(fabs(e.period_s - 0.1) < 0.011);
	assert_true(fabs(e.joules - 600 * (13.871 - 5.033)) <= e.error_j);
	assert_true(e.error_j < 0.012 * e.joules); /* two slacks of half a poll: 2 x 600 W x 0.05 s */
	assert_true(fabs(e.integral_j - 600 * (13.871 - 5.033)) < 1);
	assert_true(fabs(e.idle_w - IDLE_W) < 1e-9);
	e = window(&r, 3.98, 4.02);
	assert_why(&e, "the window of 0.04 s is too short for an energy counter that moves every 0.1");
	forget(&r);
}

/* The error bounds the difference to the truth wherever the window begins and ends, also where the power
 * changes. */
static void test_energy__the_truth_is_within_the_error(void **state)
{
	static const struct device devices[] = {
		{.update_s = 0.1, .poll_s = 0.05, .seed = 1},
		{.update_s = 0.1, .jitter_s = 0.02, .poll_s = 0.05, .seed = 2},
		{.update_s = 0.1, .jitter_s = 0.02, .poll_s = 0.047, .swing_w = 90, .seed = 3},
		{.update_s = 0.025, .jitter_s = 0.002, .poll_s = 0.05, .swing_w = 50, .seed = 4},
		{.update_s = 0.001, .poll_s = 0.1, .seed = 5},
	};
	double worst = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(devices) / sizeof(devices[0]); k++) {
		const struct device *d = &devices[k];
		struct readings r;

		read_device(&r, d, 0.01, 18);
		for (uint64_t i = 0; i < 300; i++) {
			double t0 = 2 + 6 * fabs((double)random_f32(d->seed, 2, i));
			double t1 = t0 + 1 + 6 * fabs((double)random_f32(d->seed, 3, i));
			struct energy e = window(&r, t0, t1);
			double truth = energy(d, t1) - energy(d, t0);

			assert_true(e.known);
			assert_true(fabs(e.joules - truth) <= e.error_j + 1e-6);
			worst = fmax(worst, e.error_j);
		}
		forget(&r);
	}
	assert_true(worst < 2 * 0.16 * (LOAD_W + 90)); /* never looser than a step and a poll at both ends */
}

/* The times of another machine are off by 0.2 s where the power rises. */
static void test_energy__an_error_of_the_clock_is_part_of_the_error(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05};
	const double truth = energy(&d, 6) - energy(&d, 3), off_s = 0.2;
	struct readings r;
	struct energy e;

	(void)state;
	for (int sign = -1; sign <= 1; sign += 2) {
		read_device(&r, &d, 0.013, 18);
		for (size_t i = 0; i < r.joules.count; i++)
			r.joules.t_ns[i] += (uint64_t)(S + sign * off_s * S);
		energy_of_window(&e, &r.joules, NULL, (uint64_t)(4 * S), (uint64_t)(7 * S), 0);
		assert_true(e.known && fabs(e.joules - truth) > e.error_j);
		energy_of_window(&e, &r.joules, NULL, (uint64_t)(4 * S), (uint64_t)(7 * S), off_s);
		assert_true(e.known && fabs(e.joules - truth) <= e.error_j);
		assert_true(e.error_j < 2 * (2 * off_s + 0.1) * LOAD_W);
		forget(&r);
	}
}

static void test_energy__steps_are_found_at_any_period(void **state)
{
	static const double periods[] = {0.02, 0.1, 0.5};

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		const struct device d = {.update_s = periods[i], .poll_s = 0.01};
		struct readings r;
		struct energy e;

		read_device(&r, &d, 0, 18);
		e = window(&r, 5, 13);
		assert_true(e.known && fabs(e.period_s - periods[i]) < 0.011);
		forget(&r);
	}
}

static void test_energy__a_counter_that_fails_has_a_reason(void **state)
{
	struct device d = {.update_s = 0.1, .poll_s = 0.05};
	struct series none = {.kind = SIGNAL_COUNTER};
	struct readings r;
	struct energy e;

	(void)state;
	d.frozen_s = 8;
	read_device(&r, &d, 0, 18);
	e = window(&r, 5, 13);
	assert_why(&e, "the energy counter stood still for 7.0 s");
	assert_true(e.integrated && !e.disagrees); /* the integral is there, and does not take its place */
	e = window(&r, 5, 7);
	assert_true(e.known); /* it stopped after this window */
	forget(&r);
	d.frozen_s = 0;
	d.back_s = 8;
	read_device(&r, &d, 0, 18);
	e = window(&r, 5, 13);
	assert_why(&e, "the energy counter ran backwards or wrapped, from ");
	e = window(&r, 9, 13);
	assert_true(e.known && fabs(e.joules - 4 * LOAD_W) <= e.error_j); /* the new count alone */
	e = window(&r, 5, 7.5);
	assert_true(e.known && fabs(e.joules - 2.5 * LOAD_W) <= e.error_j); /* the old one alone */
	energy_of_window(&e, NULL, &r.watts, 5000000000u, 7000000000u, 0);
	assert_why(&e, "the device has no energy counter, or it was not read");
	energy_of_window(&e, &none, NULL, 5000000000u, 7000000000u, 0);
	assert_why(&e, "the device has no energy counter, or it was not read");
	assert_false(e.integrated || e.idle_known);
	e = window(&r, 7, 7);
	assert_why(&e, "the window is empty");
	forget(&r);
}

static void test_energy__readings_must_reach_the_window(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05, .gauge_from = 6};
	struct readings r;
	struct energy e;

	(void)state;
	read_device(&r, &d, 6, 12);
	e = window(&r, 5, 9);
	assert_why(&e, "the energy counter was first read 1.00 s after the start of the window");
	e = window(&r, 7, 13);
	assert_why(&e, "the energy counter last moved 1.");
	e = window(&r, 16, 17);
	assert_why(&e, "the energy counter has no reading near the window");
	e = window(&r, 6.5, 9);
	assert_true(e.known && !e.idle_known); /* no whole second before it */
	forget(&r);
	read_device(&r, &(struct device){.update_s = 1.5, .poll_s = 0.05}, 6, 9);
	e = window(&r, 6.5, 8);
	assert_why(&e, "the energy counter moved fewer than 3 times near the window of 1.50 s");
	forget(&r);
}

static void test_energy__a_gap_in_readings_loses_no_energy(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05};
	struct readings r = {.joules = {.kind = SIGNAL_COUNTER}, .watts = {.kind = SIGNAL_GAUGE}};
	struct energy e;

	(void)state;
	for (double t = 4.2; t<13.9; t += t> 7 && t < 10 ? 3 : d.poll_s) {
		assert_int_equal(series_add(&r.joules, (uint64_t)(t * S), counter(&d, t), NULL), STATUS_OK);
		assert_int_equal(series_add(&r.watts, (uint64_t)(t * S), power(&d, t), NULL), STATUS_OK);
	}
	e = window(&r, 5, 13);
	assert_true(e.known && fabs(e.joules - 8 * LOAD_W) <= e.error_j);
	assert_false(e.integrated); /* the power of those seconds is not known */
	forget(&r);
}

/* A server's telemetry has one reading per second. */
static void test_energy__rare_readings_have_a_larger_error(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 1};
	struct readings r;
	struct energy e;

	(void)state;
	read_device(&r, &d, 0.3, 18);
	e = window(&r, 4.7, 13.6);
	assert_true(e.known && fabs(e.period_s - 1) < 1e-6);
	assert_true(fabs(e.joules - 8.9 * LOAD_W) <= e.error_j && e.error_j > 100 && e.error_j < 1300);
	forget(&r);
}

static void test_energy__counter_and_integral_are_compared(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05};
	struct readings r;
	struct energy e;

	(void)state;
	read_device(&r, &d, 0, 18);
	for (size_t i = 0; i < r.watts.count; i++)
		r.watts.value[i] *= 0.94;
	e = window(&r, 5, 13);
	assert_true(e.known && e.integrated && e.disagrees);
	for (size_t i = 0; i < r.watts.count; i++)
		r.watts.value[i] *= 0.97 / 0.94;
	e = window(&r, 5, 13);
	assert_true(e.known && e.integrated && !e.disagrees);
	forget(&r);
}

static void test_energy__several_devices_are_added(void **state)
{
	const struct device d = {.update_s = 0.1, .poll_s = 0.05},
			    frozen = {.update_s = 0.1, .poll_s = 0.05, .frozen_s = 6};
	struct readings r, stuck;
	struct energy one, bad, sum = {0};

	(void)state;
	read_device(&r, &d, 0, 18);
	read_device(&stuck, &frozen, 0, 18);
	one = window(&r, 5, 13);
	bad = window(&stuck, 5, 13);
	energy_add(&sum, &one);
	energy_add(&sum, &one);
	assert_true(sum.known && sum.devices == 2);
	assert_true(fabs(sum.joules - 2 * one.joules) < 1e-9 && fabs(sum.error_j - 2 * one.error_j) < 1e-9);
	assert_true(sum.idle_known && fabs(sum.idle_w - 2 * IDLE_W) < 1e-9);
	energy_add(&sum, &bad);
	assert_int_equal(sum.devices, 3);
	assert_why(&sum, "the energy counter stood still for ");
	forget(&r);
	forget(&stuck);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_energy__a_steady_window_is_exact_between_steps),
		cmocka_unit_test(test_energy__the_truth_is_within_the_error),
		cmocka_unit_test(test_energy__an_error_of_the_clock_is_part_of_the_error),
		cmocka_unit_test(test_energy__steps_are_found_at_any_period),
		cmocka_unit_test(test_energy__a_counter_that_fails_has_a_reason),
		cmocka_unit_test(test_energy__readings_must_reach_the_window),
		cmocka_unit_test(test_energy__a_gap_in_readings_loses_no_energy),
		cmocka_unit_test(test_energy__rare_readings_have_a_larger_error),
		cmocka_unit_test(test_energy__counter_and_integral_are_compared),
		cmocka_unit_test(test_energy__several_devices_are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
