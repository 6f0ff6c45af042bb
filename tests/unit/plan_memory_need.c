/* SPDX-License-Identifier: Apache-2.0 */
/* What memory cases and plans need, and what cannot fit. */
#include "plan_bed.h"

static void fits(const char *target, enum status expected, const char *word)
{
	char cases[80];

	snprintf(cases, sizeof(cases), "  - {probe: hungry, target: %s, engine: big}\n", target);
	assert_int_equal(build(cases), STATUS_OK);
	assert_int_equal(nth(0)->skip, expected);
	assert_int_equal(nth(0)->skip_cause, expected ? CAUSE_NO_MEMORY : CAUSE_NONE);
	if (word && !strstr(nth(0)->skip_reason, word))
		fail_msg("no \"%s\" in: %s", word, nth(0)->skip_reason);
	assert_true(nth(0)->need.known);
	plan_release(&plan);
}

/* The GPU has 80 GB, 79.5 of them free; 3 GiB (3.22 GB) are left alone. */
static void test_plan_need__a_case_that_cannot_fit_is_skipped_ahead_with_the_numbers(void **state)
{
	(void)state;
	fake_machine_init(&machine, 1);
	machine.cpu.memory_bytes = 16000000000;
	wanted = (struct need){.device_bytes = 76e9};
	fits("gpu0", STATUS_OK, NULL);
	wanted.device_bytes = 76.5e9;
	fits("gpu0", STATUS_UNAVAILABLE, "has free only 79.5 GB");
	wanted.device_bytes = 77e9;
	fits("gpu0", STATUS_UNSUPPORTED, "needs 77.0 GB of device memory");
	wanted = (struct need){.host_bytes = 16e9};
	fits("cpu", STATUS_OK, NULL);
	wanted.host_bytes = 16.1e9;
	fits("cpu", STATUS_UNSUPPORTED, "this machine has 16.0 GB");
	fits("gpu0", STATUS_UNSUPPORTED, "needs 16.1 GB of host memory");
	machine.cpu.memory_available_bytes = 9000000000;
	wanted.host_bytes = 9e9;
	fits("cpu", STATUS_OK, NULL);
	wanted.host_bytes = 9.1e9;
	fits("cpu", STATUS_UNAVAILABLE, "needs 9.10 GB of host memory, this machine has free only 9.00 GB");
	machine.cpu.memory_limit_bytes = 2000000000;
	machine.cpu.memory_available_bytes = 1000000000;
	wanted.host_bytes = 1.5e9;
	fits("cpu", STATUS_UNAVAILABLE, "this control group has free only 1.00 GB");
	wanted.host_bytes = 2.5e9;
	fits("cpu", STATUS_UNSUPPORTED, "control group may use 2.00 GB");
	machine.cpu.memory_bytes = machine.cpu.memory_limit_bytes = 0; /* nobody knows */
	machine.cpu.memory_available_bytes = 0;
	fits("cpu", STATUS_OK, NULL);
	fake_machine_init(&machine, 0);
}

static void test_plan_need__the_peak_is_of_the_largest_case_and_of_those_together(void **state)
{
	struct memory_need_peak peak;

	(void)state;
	fake_machine_init(&machine, 2);
	wanted = (struct need){.device_bytes = 5e9, .host_bytes = 2e9};
	assert_int_equal(build("  - {probe: hungry, target: gpu0, engine: big}\n"
			       "  - {probe: hungry, target: gpu1, engine: big}\n"
			       "  - {probe: thing}\n"),
			 STATUS_OK);
	peak = memory_need_peak(&plan);
	assert_true(peak.device_bytes == 5e9 && peak.host_bytes == 2e9);
	assert_int_equal(peak.unknown, 1);
	plan_release(&plan);
	assert_int_equal(build("  - together:\n"
			       "      - {probe: hungry, target: gpu0, engine: big}\n"
			       "      - {probe: hungry, target: gpu1, engine: big}\n"),
			 STATUS_OK);
	peak = memory_need_peak(&plan);
	assert_true(peak.device_bytes == 5e9 && peak.host_bytes == 4e9);
	assert_int_equal(peak.unknown, 0);
	plan_release(&plan);
	fake_machine_init(&machine, 0);
}

static void test_plan_need__an_engine_that_finds_no_room_ahead_skips_its_case(void **state)
{
	(void)state;
	assert_int_equal(build("  - {probe: thing, engine: fast, options: {size: 99}}\n"), STATUS_OK);
	assert_int_equal(nth(0)->skip, STATUS_UNSUPPORTED);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_MEMORY);
	assert_string_equal(nth(0)->skip_reason, "fast: 99 is more than half of the memory");
	plan_release(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan_need__##name, setup)
		test(a_case_that_cannot_fit_is_skipped_ahead_with_the_numbers),
		test(the_peak_is_of_the_largest_case_and_of_those_together),
		test(an_engine_that_finds_no_room_ahead_skips_its_case),
#undef test
	};

	return cmocka_run_group_tests_name("plan_need", tests, NULL, NULL);
}
