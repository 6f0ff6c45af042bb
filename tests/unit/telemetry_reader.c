/* SPDX-License-Identifier: Apache-2.0 */
/* What telemetry says of a window, and what it does not. */
#include <math.h>
#include "run/supervisor/supervisor.h"
#include "scratch.h"

enum { MS = 1000000, SERIES = 6 };

static struct series series[SERIES];

static void add(unsigned i, const char *signal, enum signal_kind kind, uint64_t t_ms, double value)
{
	struct error err = { 0 };

	series[i].kind = kind;
	text_copy(series[i].source, sizeof(series[i].source), "gpu:0000:1b:00.0");
	text_copy(series[i].signal, sizeof(series[i].signal), signal);
	assert_int_equal(series_add(&series[i], t_ms * MS, value, &err), STATUS_OK);
}

static int setup(void **state)
{
	(void)state;
	/* 2 s at 1500 MHz and 700 W; before it an idle card at 300 MHz. The energy counter moves every 100 ms. */
	for (unsigned t = 0; t <= 3000; t += 20) {
		add(0, "sm_clock_mhz", SIGNAL_GAUGE, t, t < 1000 ? 300 : 1500);
		add(1, "energy_j", SIGNAL_COUNTER, t, t < 1000 ? 0 : 70.0 * ((t - 1000) / 100));
		add(2, "clock_reasons", SIGNAL_BITS, t, t < 1000 ? 0x1 : t == 2000 ? 0x44 : 0x4);
		add(3, "violation_power_s", SIGNAL_COUNTER, t, t < 1000 ? 0 : 0.5e-3 * (t - 1000));
	}
	for (unsigned t = 0; t <= 3000; t += 250)
		add(4, "gpm_tensor_share", SIGNAL_GAUGE, t, t <= 1000 ? 0 : 0.9);
	add(5, "temperature_c", SIGNAL_GAUGE, 1500, 61);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SERIES; i++)
		series_release(&series[i]);
	return 0;
}

static void near(const struct result *r, const struct field *f, double expected)
{
	double found = result_get(r, f, NAN);

	if (!(fabs(found - expected) <= 1e-6 * fabs(expected)))
		fail_msg("%s is %g, not %g", f->name, found, expected);
}

static void test_watch__a_window_has_its_own_means(void **state)
{
	struct result *r = result_create();

	(void)state;
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 1000ull * MS, 3000ull * MS, r);
	near(r, &field_clock_nvml_hz, 1500e6);
	near(r, &field_power_w, 700);
	near(r, &field_energy_j, 1400);
	near(r, &field_clock_reasons_and, 0x4);
	near(r, &field_clock_reasons_or, 0x44);
	near(r, &field_violation_power_share, 0.5);
	near(r, &field_tensor_active_share, 0.9); /* the interval that began before the window is left out */
	near(r, &field_temperature_c, 61);
	assert_false(result_has(r, &field_memory_clock_hz)); /* not read: absent */
	assert_true(telemetry_reader_mean(series, SERIES, "gpu:0000:1b:00.0", "sm_clock_mhz", 1000ull * MS,
					  3000ull * MS) == 1500);
	assert_true(telemetry_reader_mean(series, SERIES, "gpu:0000:1b:00.0", "pcie_gen", 1000ull * MS,
					  3000ull * MS) == 0);
	assert_false(result_has(r, &field_violation_thermal_share));
	result_destroy(r);
}

static void test_watch__energy_of_too_few_ticks_is_absent(void **state)
{
	struct result *r = result_create();

	(void)state;
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 1000ull * MS, 1400ull * MS, r);
	assert_false(result_has(r, &field_power_w));
	assert_false(result_has(r, &field_energy_j));
	assert_true(result_has(r, &field_clock_nvml_hz));
	result_destroy(r);
}

static void test_watch__a_counter_that_ran_backwards_gives_no_energy(void **state)
{
	struct result *r = result_create();

	(void)state;
	add(1, "energy_j", SIGNAL_COUNTER, 3020, 1);
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 1000ull * MS, 3100ull * MS, r);
	assert_false(result_has(r, &field_energy_j));
	result_destroy(r);
}

/* Still for two seconds, of which the window saw the last tenths: the steps that follow do not tell its power. */
static void test_watch__a_counter_that_stood_still_gives_no_energy(void **state)
{
	struct result *r = result_create();

	(void)state;
	series_release(&series[1]);
	for (unsigned t = 0; t <= 3000; t += 20)
		add(1, "energy_j", SIGNAL_COUNTER, t, t < 2000 ? 5 : 5 + 70.0 * ((t - 2000) / 100 + 1));
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 1900ull * MS, 3000ull * MS, r);
	assert_true(result_has(r, &field_energy_j));
	result_destroy(r);
	r = result_create();
	add(1, "energy_j", SIGNAL_COUNTER, 3020, 6000);
	for (unsigned t = 3040; t <= 5100; t += 20)
		add(1, "energy_j", SIGNAL_COUNTER, t, 6000);
	for (unsigned t = 5120; t <= 6000; t += 20)
		add(1, "energy_j", SIGNAL_COUNTER, t, 6000 + 70.0 * ((t - 5100) / 100 + 1));
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 5000ull * MS, 6000ull * MS, r);
	assert_false(result_has(r, &field_energy_j));
	assert_false(result_has(r, &field_power_w));
	result_destroy(r);
}

/* No device works at a clock of zero: those readings do not count, and a window of nothing else has no mean. */
static void test_watch__a_clock_of_zero_is_no_reading(void **state)
{
	struct result *r = result_create();

	(void)state;
	for (unsigned t = 3020; t <= 4000; t += 20)
		add(0, "sm_clock_mhz", SIGNAL_GAUGE, t, t % 40 ? 0 : 1500);
	for (unsigned t = 4020; t <= 5000; t += 20)
		add(0, "sm_clock_mhz", SIGNAL_GAUGE, t, 0);
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 3020ull * MS, 4000ull * MS, r);
	near(r, &field_clock_nvml_hz, 1500e6);
	result_destroy(r);
	r = result_create();
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 4020ull * MS, 5000ull * MS, r);
	assert_false(result_has(r, &field_clock_nvml_hz));
	result_destroy(r);
}

static void test_watch__another_device_says_nothing(void **state)
{
	struct result *r = result_create();
	json_t *values;

	(void)state;
	telemetry_reader_values(series, SERIES, "gpu:0000:1c:00.0", 1000ull * MS, 3000ull * MS, r);
	telemetry_reader_values(series, SERIES, "gpu:0000:1b:00.0", 5000ull * MS, 6000ull * MS, r);
	values = result_json(r);
	assert_int_equal(json_object_size(values), 0);
	json_decref(values);
	result_destroy(r);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(test_watch__a_window_has_its_own_means),
		test(test_watch__energy_of_too_few_ticks_is_absent),
		test(test_watch__a_counter_that_ran_backwards_gives_no_energy),
		test(test_watch__a_counter_that_stood_still_gives_no_energy),
		test(test_watch__a_clock_of_zero_is_no_reading),
		test(test_watch__another_device_says_nothing),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
