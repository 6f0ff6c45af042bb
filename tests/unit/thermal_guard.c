/* SPDX-License-Identifier: Apache-2.0 */
/* Heat and brakes end our load: at the temperature, after the time, and not before. Times are the readings'
 * own. */
#include "fake_machine.h"
#include "run/supervisor/thermal_guard.h"
#include "test.h"

enum { THERMAL = 0x40, BRAKE = 0x80, POWER_CAP = 0x4 };

static struct thermal_guard armed(double slowdown_c)
{
	struct gpu gpu = {0};
	struct thermal_guard g = {.cause = CAUSE_POWER_BRAKE, .braking = true}; /* of a case before */

	if (slowdown_c > 0)
		fake_gpu_fact(&gpu, GPU_FACT_temperature_slowdown_c, slowdown_c);
	thermal_guard_arm(&g, &gpu);
	assert_int_equal(g.cause, CAUSE_NONE);
	return g;
}

static void reasons(struct thermal_guard *g, unsigned from_ms, unsigned to_ms, unsigned bits)
{
	for (unsigned t = from_ms; t <= to_ms; t += 20)
		thermal_guard_reading(g, "clock_reasons", t * 1000000ull, bits);
}

static void test_guard__three_degrees_below_slowdown_is_the_end(void **state)
{
	struct thermal_guard g = armed(89);

	(void)state;
	thermal_guard_reading(&g, "temperature_c", 1, 85.9);
	thermal_guard_reading(&g, "temperature_memory_c", 2, 95); /* has limits of its own */
	assert_int_equal(g.cause, CAUSE_NONE);
	thermal_guard_reading(&g, "temperature_c", 3, 86);
	assert_int_equal(g.cause, CAUSE_TEMPERATURE_STOP);
	assert_non_null(strstr(g.text, "86"));
	assert_non_null(strstr(g.text, "89"));
}

static void test_guard__without_a_known_limit_only_the_hardware_speaks(void **state)
{
	struct thermal_guard g = armed(0);

	(void)state;
	thermal_guard_reading(&g, "temperature_c", 1, 120);
	assert_int_equal(g.cause, CAUSE_NONE);
	reasons(&g, 0, 1100, THERMAL);
	assert_int_equal(g.cause, CAUSE_TEMPERATURE_STOP);
}

static void test_guard__the_hardware_may_slow_down_for_a_second(void **state)
{
	struct thermal_guard g = armed(89);

	(void)state;
	reasons(&g, 5000, 6000, THERMAL | POWER_CAP);
	assert_int_equal(g.cause, CAUSE_NONE);
	reasons(&g, 6020, 6020, THERMAL | POWER_CAP);
	assert_int_equal(g.cause, CAUSE_TEMPERATURE_STOP);
	assert_non_null(strstr(g.text, "0x44"));
}

static void test_guard__a_pause_begins_the_second_anew(void **state)
{
	struct thermal_guard g = armed(89);

	(void)state;
	reasons(&g, 0, 900, THERMAL);
	reasons(&g, 920, 920, POWER_CAP);
	reasons(&g, 940, 1900, THERMAL);
	assert_int_equal(g.cause, CAUSE_NONE);
	reasons(&g, 1920, 1980, THERMAL);
	assert_int_equal(g.cause, CAUSE_TEMPERATURE_STOP);
}

static void test_guard__a_brake_is_named_as_one_and_the_first_alarm_stays(void **state)
{
	struct thermal_guard g = armed(89);

	(void)state;
	reasons(&g, 0, 1020, BRAKE);
	assert_int_equal(g.cause, CAUSE_POWER_BRAKE);
	thermal_guard_reading(&g, "temperature_c", 1100000000, 95);
	assert_int_equal(g.cause, CAUSE_POWER_BRAKE);
}

static void test_guard__the_power_cap_is_no_alarm_and_absurd_bits_are_none(void **state)
{
	struct thermal_guard g = armed(89);

	(void)state;
	reasons(&g, 0, 60000, POWER_CAP);
	thermal_guard_reading(&g, "clock_reasons", 61000000000, -1);
	thermal_guard_reading(&g, "clock_reasons", 63000000000, 1e300);
	assert_int_equal(g.cause, CAUSE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard__three_degrees_below_slowdown_is_the_end),
		cmocka_unit_test(test_guard__without_a_known_limit_only_the_hardware_speaks),
		cmocka_unit_test(test_guard__the_hardware_may_slow_down_for_a_second),
		cmocka_unit_test(test_guard__a_pause_begins_the_second_anew),
		cmocka_unit_test(test_guard__a_brake_is_named_as_one_and_the_first_alarm_stays),
		cmocka_unit_test(test_guard__the_power_cap_is_no_alarm_and_absurd_bits_are_none),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
