/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory that others remove, move, replace or close. */
#include "journal/file/run_dir.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/text/text.h"
#include "scratch.h"

static char dir[PATH_MAX], moved[PATH_MAX + 8], now[PATH_MAX];
static struct run_dir home;
static int why;

static void begin(void **state)
{
	snprintf(dir, sizeof(dir), "%.4000s/run", (char *)*state);
	snprintf(moved, sizeof(moved), "%s.moved", dir);
	assert_int_equal(mkdir(dir, 0755), 0);
	run_dir_open(&home, dir);
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_HERE);
	assert_string_equal(now, dir);
}

static void test_home__removed(void **state)
{
	begin(state);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_REMOVED);
	assert_int_equal(mkdir(dir, 0755), 0); /* another one is not it */
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_REMOVED);
	run_dir_close(&home);
	assert_int_equal(rmdir(dir), 0);
}

static void test_home__moved_and_replaced(void **state)
{
	begin(state);
	assert_int_equal(rename(dir, moved), 0);
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_MOVED);
	assert_non_null(strstr(now, "/run.moved"));
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_MOVED);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(rename(moved, dir), 0); /* and back */
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_HERE);
	run_dir_close(&home);
	assert_int_equal(rmdir(dir), 0);
}

static void test_home__shut(void **state)
{
	begin(state);
	assert_int_equal(chmod(dir, 0555), 0);
	if (!access(dir,
		    W_OK)) { /* a superuser may write everywhere: end2end/train_lost.sh asks another user */
		run_dir_close(&home);
		assert_int_equal(rmdir(dir), 0);
		skip();
	}
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_SHUT);
	assert_int_equal(why, EACCES);
	assert_int_equal(chmod(dir, 0755), 0);
	run_dir_close(&home);
	assert_int_equal(rmdir(dir), 0);
}

static void test_home__what_is_not_known_costs_nobody_his_run(void **state)
{
	(void)state;
	run_dir_open(&home, "/nowhere/at/all");
	assert_int_equal(run_dir_look(&home, now, &why), RUN_DIR_HERE);
	run_dir_close(&home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_home__removed),
		scratch_test(test_home__moved_and_replaced),
		scratch_test(test_home__shut),
		cmocka_unit_test(test_home__what_is_not_known_costs_nobody_his_run),
	};

	return cmocka_run_group_tests_name("home", tests, NULL, NULL);
}
