/* SPDX-License-Identifier: Apache-2.0 */
/* The table of values that a reading can have, held against the facts and the signals that it speaks of. */
#include "test.h"

#include <math.h>

#include "core/math/plausible_range.h"
#include "machine/machine.h"
#include "telemetry_bed.h"

static bool is_fact(const char *name)
{
	for (int f = 0; f < GPU_FACT_COUNT; f++)
		if (!strcmp(gpu_fact_name((enum gpu_fact)f), name))
			return true;
	return false;
}

static void test_plausible__each_row_is_of_a_fact_or_a_signal(void **state)
{
	static const char *const names[] = {
#define X(name, ...) #name,
		PLAUSIBLE(X)
#undef X
	};
	static const char *const units[] = {
#define X(name, low, high, unit, function) unit,
		PLAUSIBLE(X)
#undef X
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct telemetry_signal *signal = signal_by_name(names[i]);
		const struct plausible *p = plausible_of(names[i]);

		if (!signal && !is_fact(names[i]))
			fail_msg("%s is neither a fact nor a signal", names[i]);
		assert_true(p && p->low < p->high && *p->function);
		if (signal)
			assert_string_equal(signal->unit, units[i]);
		for (int f = 0; f < GPU_FACT_COUNT; f++)
			if (!strcmp(gpu_fact_name((enum gpu_fact)f), names[i]))
				assert_string_equal(gpu_fact_unit((enum gpu_fact)f), units[i]);
	}
}

static void test_plausible__impossible_values_are_told_from_odd_ones(void **state)
{
	static const struct {
		const char *name;
		double value;
		bool ever, under_load;
	} rows[] = {
		{"sm_clock_mhz", 4294967295.0, false, false},
		{"sm_clock_mhz", 345, true, true},
		{"sm_clock_mhz", 0, true, false},
		{"sm_clock_mhz", -1, false, false},
		{"memory_clock_mhz", 0, true, false},
		{"memory_clock_mhz", 14001, true, true},
		{"temperature_c", -300, false, false},
		{"temperature_c", -20, true, true},
		{"temperature_c", 110, true, true},
		{"temperature_memory_c", 4294967295.0, false, false},
		{"pcie_width", 64, false, false},
		{"pcie_width", 0, false, false},
		{"pcie_width", 17, false, false}, /* no link is that wide */
		{"pcie_width_max", 24, false, false},
		{"pcie_width", 16, true, true},
		{"pcie_gen", 4294967295.0, false, false},
		{"power_w", 0, true, false},
		{"power_w", 4294967.295, false, false},
		{"power_w", 1200, true, true},
		{"power_limit_w", 0, false, false},
		{"pcie_replays", 4294967295.0, false, false},
		{"pcie_replays", 4000000000.0, true, true},
		{"ecc_volatile_uncorrected", -1, false, false},
		{"clock_reasons", -1, false, false},
		{"utilization_share", 1.01, false, false},
		{"remap_failed", 4294967295.0, false, false},
		{"sm_clock_mhz", NAN, false, false},
		{"no such name", 1e30, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (plausible(rows[i].name, rows[i].value) != rows[i].ever ||
		    plausible_under_load(rows[i].name, rows[i].value) != rows[i].under_load)
			fail_msg("%s of %g", rows[i].name, rows[i].value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plausible__each_row_is_of_a_fact_or_a_signal),
		cmocka_unit_test(test_plausible__impossible_values_are_told_from_odd_ones),
	};

	return cmocka_run_group_tests_name("plausible", tests, NULL, NULL);
}
