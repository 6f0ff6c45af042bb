/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/file.h"
#include "core/text/text.h"

static void test_text__grows_and_is_empty_after_release(void **state)
{
	struct text t = {0};
	int i;

	(void)state;
	assert_string_equal(text_str(&t), "");
	for (i = 0; i < 1000; i++)
		text_addf(&t, "%d,", i);
	assert_false(t.failed);
	assert_int_equal(t.size, 3890);
	assert_memory_equal(t.data + t.size - 4, "999,", 5);
	text_release(&t);
	assert_string_equal(text_str(&t), "");
	text_add(&t, "again");
	assert_string_equal(text_str(&t), "again");
	text_release(&t);
}

static void test_text__an_impossible_size_fails_and_stays_readable(void **state)
{
	struct text t = {0};

	(void)state;
	text_add(&t, "kept");
	text_add_bytes(&t, "x", SIZE_MAX / 2);
	assert_true(t.failed);
	text_add(&t, "more");
	assert_string_equal(text_str(&t), "kept");
	text_release(&t);
}

static void test_text__html_holds_no_markup_and_no_controls(void **state)
{
	struct text t = {0};

	(void)state;
	text_add_html(&t, "<a b=\"c\" d='e'>&\x01\x1b\x7f\n");
	assert_string_equal(
		text_str(&t),
		"&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n");
	text_release(&t);
}

static void test_text__alike_is_of_the_words(void **state)
{
	(void)state;
	assert_true(text_alike("got 95.2 % of 2", "got 31 % of 10.5"));
	assert_true(text_alike("round 2", "round "));
	assert_false(text_alike("round 2", "round 2 of"));
	assert_false(text_alike("2 GB/s", "2 TB/s"));
	assert_true(text_alike("", ""));
}

static void test_text__copy_cuts_and_terminates(void **state)
{
	char out[4] = "zzz";

	(void)state;
	text_copy(out, sizeof(out), "abcdef");
	assert_string_equal(out, "abc");
	text_copy(out, 0, "x");
	assert_string_equal(out, "abc");
}

static void test_clock__monotonic_runs_forward_through_a_sleep(void **state)
{
	const struct clock *clock = clock_monotonic();
	uint64_t t0 = clock_now_ns(clock);
	char wall[21];

	(void)state;
	clock_sleep_ns(clock, 1000000);
	assert_true(clock_now_ns(clock) - t0 >= 1000000);
	clock_wall_text(wall, sizeof(wall));
	assert_int_equal(strlen(wall), 20);
	assert_int_equal(wall[19], 'Z');
}

static int make_dir(void **state)
{
	static char dir[] = "/tmp/assay-test-XXXXXX";

	*state = mkdtemp(dir);
	return !*state;
}

static int remove_dir(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	return system(command);
}

static void test_file__what_is_written_reads_back(void **state)
{
	char path[256], *data, hex[65];
	struct error err = {0};
	struct stat about;
	size_t size;

	snprintf(path, sizeof(path), "%s/a/b//c", (char *)*state);
	assert_int_equal(file_make_dir(path, &err), STATUS_OK);
	assert_int_equal(file_make_dir(path, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/a/b/c/file", (char *)*state);
	assert_int_equal(file_write(path, "old", 3, &err), STATUS_OK);
	assert_int_equal(file_write(path, "a\0c", 3, &err), STATUS_OK);
	assert_int_equal(file_read(&data, &size, path, 3, &err), STATUS_OK);
	assert_int_equal(size, 3);
	assert_memory_equal(data, "a\0c", 4);
	free(data);
	assert_int_equal(file_sha256_of(hex, path, &err), STATUS_OK);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0600, 0600);
}

static void test_file__reads_files_without_a_size(void **state)
{
	struct error err = {0};
	size_t size;
	char *data;

	(void)state;
	assert_int_equal(file_read(&data, &size, "/proc/self/status", 1 << 20, &err), STATUS_OK);
	assert_int_equal(strlen(data), size);
	assert_memory_equal(data, "Name:", 5);
	free(data);
}

static void test_file__refusals_name_the_file(void **state)
{
	struct error err = {0};
	char path[256], *data = NULL;
	size_t size;

	assert_int_equal(file_read(&data, &size, "/proc/self/status", 10, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "/proc/self/status is larger than 10 bytes");
	error_clear(&err);
	assert_int_equal(file_read(&data, &size, "/nowhere/at/all", 10, &err), STATUS_UNAVAILABLE);
	assert_string_equal(err.text, "cannot open /nowhere/at/all: No such file or directory");
	error_clear(&err);
	assert_int_equal(file_read(&data, &size, *state, 10, &err), STATUS_BAD_INPUT);
	assert_null(data);
	error_clear(&err);
	snprintf(path, sizeof(path), "%s/none/file", (char *)*state);
	assert_int_equal(file_write(path, "x", 1, &err), STATUS_UNAVAILABLE);
	error_clear(&err);
	snprintf(path, sizeof(path), "%s/plain", (char *)*state);
	assert_int_equal(file_write(path, "x", 1, &err), STATUS_OK);
	assert_int_equal(file_make_dir(path, &err), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(file_make_dir("", &err), STATUS_BAD_INPUT);
}

/* Whether something half written lies in a folder. */
static bool anything_new(const char *folder)
{
	char command[256];

	snprintf(command, sizeof(command), "ls %s | grep -q 'new$'", folder);
	return !system(command);
}

static void test_file__a_failed_write_leaves_the_old_file(void **state)
{
	struct error err = {0};
	char path[256];

	/* A directory with an entry cannot be replaced: rename fails after the write went well. */
	snprintf(path, sizeof(path), "%s/kept/inner", (char *)*state);
	assert_int_equal(file_make_dir(path, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/kept", (char *)*state);
	assert_int_not_equal(file_write(path, "x", 1, &err), STATUS_OK);
	assert_false(anything_new(*state));
}

/* A number that no process has: a child's that is gone and was waited for. */
static long gone_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return (long)pid;
}

static void lay(const char *path, bool folder)
{
	struct error err = {0};
	char inner[320];

	snprintf(inner, sizeof(inner), "%s/weights", path);
	assert_int_equal(folder ? file_make_dir(path, &err) : file_write(path, "x", 1, &err), STATUS_OK);
	if (folder)
		assert_int_equal(file_write(inner, "x", 1, &err), STATUS_OK);
}

/* Machines that were restored from one snapshot share boot and namespace, and perhaps a disk: what its writer has
 * locked stays. */
static void check_held(const char *target, const char *here)
{
	char left[256];

	for (int folder = 0; folder < 2; folder++) {
		int fd;

		snprintf(left, sizeof(left), "%s.%ld.%s.new", target, gone_pid(), here);
		lay(left, folder);
		fd = open(left, folder ? O_RDONLY | O_DIRECTORY : O_WRONLY);
		file_hold(fd);
		file_sweep(target);
		assert_int_equal(access(left, F_OK), 0);
		close(fd);
		file_sweep(target);
		assert_int_not_equal(access(left, F_OK), 0);
	}
}

/* Such a machine may even write under our number. */
static void test_file__what_another_writes_under_our_number_is_left(void **state)
{
	char target[128], beside[256], *text = NULL;
	struct error err = {0};
	size_t size;
	int fd;

	snprintf(target, sizeof(target), "%s/numbered", (char *)*state);
	assert_true(file_temporary_name(beside, sizeof(beside), target));
	lay(beside, false);
	fd = open(beside, O_WRONLY);
	file_hold(fd);
	assert_int_equal(file_write(target, "ours", 4, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_BUSY);
	assert_non_null(strstr(err.text, "numbered: another process is writing it now"));
	assert_int_equal(access(beside, F_OK), 0);
	close(fd);
	error_clear(&err);
	assert_int_equal(file_write(target, "ours", 4, &err), STATUS_OK);
	assert_int_equal(file_read(&text, &size, target, 9, &err), STATUS_OK);
	assert_string_equal(text, "ours");
	free(text);
}

/* A process id means something in one PID namespace of one boot: what another node or container writes beside
 * ours under a number that nobody has here is alive, and what lacks boot and namespace is nobody's. */
static void test_file__sweep_takes_only_what_was_left_here(void **state)
{
	static const struct {
		const char *here; /* NULL: our own */
		bool folder, swept;
	} cases[] = {
		{NULL, false, true},
		{NULL, true, true},
		{"00000000-0000-4026531836", false, false}, /* another boot or node */
		{"00000000-0000-4026531836", true, false},
		{"", true, false}, /* "TARGET.12.new", as anybody may call a folder */
		{"", false, false},
	};
	char target[128], left[256], here[FILE_HERE];

	file_here(here);
	assert_true(strlen(here) > 15);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *said = cases[i].here ? cases[i].here : here;

		snprintf(target, sizeof(target), "%s/swept-%zu", (char *)*state, i);
		snprintf(left, sizeof(left), "%s.%ld%s%s.new", target, gone_pid(), *said ? "." : "", said);
		lay(left, cases[i].folder);
		file_sweep(target);
		if (cases[i].swept != (access(left, F_OK) != 0))
			fail_msg("%s", left);
		file_remove_tree(left);
	}
	snprintf(target, sizeof(target), "%s/swept", (char *)*state);
	snprintf(left, sizeof(left), "%s.%ld.%s.new", target, (long)getpid(), here);
	lay(left, false);
	file_sweep(target); /* its writer lives */
	assert_int_equal(access(left, F_OK), 0);
	unlink(left);
	check_held(target, here);
	if (geteuid())
		return;
	snprintf(left, sizeof(left), "%s.%ld.%s.new", target, gone_pid(), here);
	lay(left, true);
	assert_int_equal(chown(left, 12345, 12345), 0);
	file_sweep(target); /* another user's */
	assert_int_equal(access(left, F_OK), 0);
	file_remove_tree(left);
}

/* Of the same boot, in another namespace: what a container wrote is not swept outside, nor the other way. */
static void test_file__namespaces_are_told_apart(void **state)
{
	char here[FILE_HERE], there[FILE_HERE] = "";
	int pipes[2], status;
	pid_t pid;

	(void)state;
	file_here(here);
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		pid_t inner;

		if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(77);
		inner = fork(); /* the first child is in the namespace */
		if (!inner) {
			file_here(there);
			_exit(write(pipes[1], there, sizeof(there)) != sizeof(there));
		}
		waitpid(inner, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(pid, &status, 0);
	if (!WEXITSTATUS(status)) {
		assert_int_equal(read(pipes[0], there, sizeof(there)), sizeof(there));
		assert_string_not_equal(here, there);
		assert_memory_equal(here, there, 13); /* one boot */
	}
	close(pipes[0]);
	close(pipes[1]);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_file__private_files(void **state)
{
	struct error err = {0};
	struct stat about;
	char path[128], *data = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/private", (char *)*state);
	assert_int_equal(file_write_private(path, "abc", 3, &err), STATUS_OK);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_int_equal(file_read_private(&data, &size, path, 10, &err), STATUS_OK);
	assert_string_equal(data, "abc");
	free(data);
	chmod(path, 0620);
	assert_int_equal(file_read_private(&data, &size, path, 10, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "others may write to it (mode 0620)"));
	error_clear(&err);
	assert_int_equal(file_read(&data, &size, path, 10, &err), STATUS_OK); /* what anybody may give us */
	free(data);
}

static void test_file__sha256_known_answers(void **state)
{
	struct error err = {0};
	char hex[65], path[128];

	file_sha256(hex, "", 0);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	file_sha256(hex, "abc", 3);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	snprintf(path, sizeof(path), "%s/empty", (char *)*state);
	assert_int_equal(file_write(path, "", 0, &err), STATUS_OK);
	assert_int_equal(file_sha256_of(hex, path, &err), STATUS_OK);
	assert_memory_equal(hex, "e3b0c442", 8);
	assert_int_not_equal(file_sha256_of(hex, "/dev/null", &err), STATUS_OK); /* no regular file */
	error_clear(&err);
	assert_int_equal(file_sha256_of(hex, "/nowhere", &err), STATUS_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text__grows_and_is_empty_after_release),
		cmocka_unit_test(test_text__an_impossible_size_fails_and_stays_readable),
		cmocka_unit_test(test_text__html_holds_no_markup_and_no_controls),
		cmocka_unit_test(test_text__alike_is_of_the_words),
		cmocka_unit_test(test_text__copy_cuts_and_terminates),
		cmocka_unit_test(test_clock__monotonic_runs_forward_through_a_sleep),
		cmocka_unit_test(test_file__what_is_written_reads_back),
		cmocka_unit_test(test_file__reads_files_without_a_size),
		cmocka_unit_test(test_file__refusals_name_the_file),
		cmocka_unit_test(test_file__a_failed_write_leaves_the_old_file),
		cmocka_unit_test(test_file__sweep_takes_only_what_was_left_here),
		cmocka_unit_test(test_file__what_another_writes_under_our_number_is_left),
		cmocka_unit_test(test_file__namespaces_are_told_apart),
		cmocka_unit_test(test_file__private_files),
		cmocka_unit_test(test_file__sha256_known_answers),
	};

	return cmocka_run_group_tests_name("core_text", tests, make_dir, remove_dir);
}
