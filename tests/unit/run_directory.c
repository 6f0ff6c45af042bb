/* SPDX-License-Identifier: Apache-2.0 */
/* A run whose directory is full, closed, removed or taken: what was measured is kept, and nothing written
 * over. */
#include <sys/resource.h>
#include <sys/wait.h>
#include "run_bed.h"

static struct run_bed b;

static void test_run__a_full_disk_ends_the_run_with_what_was_written(void **state)
{
	struct rlimit limit = {60000, 60000};
	struct record r;
	struct error err = {0};
	pid_t child;
	int how;

	run_bed_plan(&b, *state, false,
		     POINT("cpu", "slot: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
				  "20]") "  - {probe: 'null', phases: burst, seconds: 20s, options: {time: "
					 "1us}}\n");
	child = fork();
	if (!child) {
		signal(SIGXFSZ, SIG_IGN); /* as main has it */
		if (setrlimit(RLIMIT_FSIZE, &limit))
			_exit(1);
		_exit(run_plan(&b.plan, b.machine, probe_list, &b.o, &b.summary, &b.err) ==
					      STATUS_NO_RESOURCE &&
				      b.err.cause == CAUSE_DISK_FULL
			      ? 0
			      : 2);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_false(r.closed);
	assert_int_equal(r.cut_bytes, 0);
	assert_true(r.cases[0].ended);
	record_release(&r);
	run_bed_release(&b);
}

static void test_run__a_directory_that_cannot_be_written_is_an_error_before_anything_runs(void **state)
{
	run_bed_plan(&b, *state, false, POINT("cpu", "slot: 1"));
	b.o.dir = "/proc/assay";
	assert_int_not_equal(run_bed_run(&b), STATUS_OK);
	assert_non_null(strstr(b.err.text, "/proc/assay"));
	run_bed_release(&b);
}

static void remove_in_third_case(void *arg, size_t done, size_t total, const char *what, double seconds_left)
{
	char path[PATH_MAX];

	(void)total, (void)seconds_left;
	snprintf(path, sizeof(path), "%s/%s", (const char *)arg, JOURNAL_FILE);
	if (done == 2 && strstr(what, "burst"))
		unlink(path);
}

static void test_run__a_directory_removed_in_the_middle_ends_the_run_and_keeps_what_was_measured(void **state)
{
	struct record r;

	run_bed_plan(&b, *state, false, POINT("cpu", "slot: [1, 2, 3, 4, 5]"));
	b.o.progress = (struct run_progress){remove_in_third_case, *state};
	assert_int_equal(run_bed_run(&b), STATUS_UNAVAILABLE);
	assert_non_null(strstr(b.err.text, *state));
	assert_non_null(strstr(b.err.text, "was removed during the run"));
	assert_int_equal(record_read(&r, *state, NULL), STATUS_OK);
	assert_int_equal(r.cut_bytes, 0);
	assert_false(r.closed);
	for (unsigned i = 0; i < 2; i++)
		assert_true(record_phase(&r.cases[i], "burst")->ns_count >= 2);
	assert_false(r.cases[3].begun);
	record_release(&r);
	run_bed_release(&b);
}

static void test_run__a_run_is_not_written_over(void **state)
{
	run_bed_plan(&b, *state, false, POINT("cpu", "slot: 1"));
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	record_release(&b.record);
	assert_int_equal(run_bed_run(&b), STATUS_BAD_INPUT);
	assert_non_null(strstr(b.err.text, "--resume"));
	run_bed_release(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_run__a_full_disk_ends_the_run_with_what_was_written),
		scratch_test(test_run__a_directory_that_cannot_be_written_is_an_error_before_anything_runs),
		scratch_test(
			test_run__a_directory_removed_in_the_middle_ends_the_run_and_keeps_what_was_measured),
		scratch_test(test_run__a_run_is_not_written_over),
	};
	int code;

	if (run_bed_child(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("run_directory", tests, NULL, NULL);
}
