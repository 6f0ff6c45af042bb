/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps the CPUs busy, from texts of /proc. */
#include "test.h"
#include "machine/cpu_use.h"

static const char stat[] = "cpu  900 0 100 1000 50 0 0 30\n"
			   "cpu0 100 10 20 300 7 3 4 11 5 0\n"
			   "cpu1 200 0 0 100 0 0 0 0\n"
			   "cpu12 50 0 0 50 0 0 0 0\n"
			   "intr 12345 0 9\n";

static void test_cpu_use__the_cpus_we_may_use_are_added_up(void **state)
{
	bool usable[16] = {[0] = true, [12] = true};
	double busy, total;

	(void)state;
	assert_true(cpu_use_ticks(stat, usable, 16, &busy, &total));
	assert_float_equal(busy, 100 + 10 + 20 + 3 + 4 + 50, 1e-9); /* neither idle nor stolen */
	assert_float_equal(total, 455 + 100, 1e-9);
	usable[0] = usable[12] = false;
	usable[2] = true;
	assert_false(cpu_use_ticks(stat, usable, 16, &busy, &total));
	assert_false(cpu_use_ticks("", usable, 16, &busy, &total));
	assert_false(cpu_use_ticks("cpu2 x\ncpu\ncpu99999 1 2 3 4 5\ncpu2", usable, 16, &busy, &total));
}

static void test_cpu_use__a_process_of_any_name_is_read(void **state)
{
	double ticks;
	long parent;

	(void)state;
	assert_true(cpu_use_process("42 (a) b) S 7 42 42 0 -1 4194304 1 2 3 4 500 25 8 9 20 0", &ticks, &parent));
	assert_float_equal(ticks, 525, 1e-9);
	assert_int_equal(parent, 7);
	assert_false(cpu_use_process("42 (a S 7", &ticks, &parent));
	assert_false(cpu_use_process("42 (a) S", &ticks, &parent));
	assert_false(cpu_use_process(NULL, &ticks, &parent));
}

static void test_cpu_use__this_machine_gives_shares(void **state)
{
	json_t *use = cpu_use_watch();
	double window, busy, own;

	(void)state;
	assert_non_null(use);
	assert_int_equal(json_unpack(use, "{s:F, s:F, s:F}", "window_s", &window, "busy_share", &busy, "own_share",
				     &own),
			 0);
	assert_true(window > 0 && busy >= 0 && busy <= 1 && own >= 0 && own <= 1);
	json_decref(use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_cpu_use__##name)
		T(the_cpus_we_may_use_are_added_up),
		T(a_process_of_any_name_is_read),
		T(this_machine_gives_shares),
#undef T
	};

	return cmocka_run_group_tests_name("machine_cpu_use", tests, NULL, NULL);
}
