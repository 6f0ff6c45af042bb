/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps the CPUs busy, from texts of /proc. */
#include "test.h"
#include <errno.h>
#include <stdlib.h>
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
	assert_true(
		cpu_use_process("42 (a) b) S 7 42 42 0 -1 4194304 1 2 3 4 500 25 8 9 20 0", &ticks, &parent));
	assert_float_equal(ticks, 525, 1e-9);
	assert_int_equal(parent, 7);
	assert_false(cpu_use_process("42 (a S 7", &ticks, &parent));
	assert_false(cpu_use_process("42 (a) S", &ticks, &parent));
	assert_false(cpu_use_process(NULL, &ticks, &parent));
}

/* A kernel of 4,096 CPUs, of which we may use 1500. */
static int large(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	if (size < 4096 / 8) {
		errno = EINVAL;
		return -1;
	}
	CPU_SET_S(1500, size, set);
	return 0;
}

static int refused(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid, (void)size, (void)set;
	errno = EPERM;
	return -1;
}

static int never_enough(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid, (void)size, (void)set;
	errno = EINVAL;
	return -1;
}

static void test_cpu_use__more_than_1024_cpus_are_watched(void **state)
{
	unsigned count, used = 0;
	double busy, total;
	bool *usable;

	(void)state;
	count = cpu_use_usable(&usable, large);
	assert_int_equal(count, 4096);
	for (unsigned i = 0; i < count; i++)
		used += usable[i];
	assert_true(used == 1 && usable[1500]);
	assert_true(cpu_use_ticks("cpu0 9 9 9 9 9\ncpu1500 5 0 5 90 0", usable, count, &busy, &total));
	assert_true(busy == 10 && total == 100);
	free(usable);
	assert_int_equal(cpu_use_usable(&usable, refused), 0);
	assert_null(usable);
	assert_int_equal(cpu_use_usable(&usable, never_enough), 0);
	assert_null(usable);
}

static void test_cpu_use__this_machine_gives_shares(void **state)
{
	json_t *use = cpu_use_watch();
	double window, busy, own;

	(void)state;
	assert_non_null(use);
	assert_int_equal(json_unpack(use, "{s:F, s:F, s:F}", "window_s", &window, "busy_share", &busy,
				     "own_share", &own),
			 0);
	assert_true(window > 0 && busy >= 0 && busy <= 1 && own >= 0 && own <= 1);
	json_decref(use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_cpu_use__##name)
		T(the_cpus_we_may_use_are_added_up),
		T(more_than_1024_cpus_are_watched),
		T(a_process_of_any_name_is_read),
		T(this_machine_gives_shares),
#undef T
	};

	return cmocka_run_group_tests_name("machine_cpu_use", tests, NULL, NULL);
}
