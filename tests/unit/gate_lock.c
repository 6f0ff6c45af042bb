/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of assay health, also where folders cannot be locked. */
#include "scratch.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/file.h>
#include "cmd/health/lock.h"

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static bool no_folders; /* as on NFS, which locks only descriptors that may write */

int __wrap_flock(int fd, int operation)
{
	struct stat about;

	if (no_folders && !fstat(fd, &about) && S_ISDIR(about.st_mode)) {
		errno = EBADF;
		return -1;
	}
	return __real_flock(fd, operation);
}

static void test_lock__a_second_run_waits_and_then_says_so(void **state)
{
	const volatile sig_atomic_t stop = 1, go = 0; /* a request to stop ends the wait at once */
	struct error err = {0};
	int first, second;

	assert_int_equal(health_lock(&first, *state, &go, &err), STATUS_OK);
	assert_int_equal(health_lock(&second, *state, &stop, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_BUSY);
	assert_int_equal(second, -1);
	close(first);
	error_clear(&err);
	assert_int_equal(health_lock(&second, *state, &stop, &err), STATUS_OK);
	close(second);
	assert_true(health_lock(&second, "/nowhere/at/all", &go, &err));
	assert_int_not_equal(err.cause, CAUSE_BUSY);
}

static void test_lock__a_file_where_folders_cannot_be_locked(void **state)
{
	char path[PATH_MAX];

	no_folders = true;
	test_lock__a_second_run_waits_and_then_says_so(state);
	snprintf(path, sizeof(path), "%s/.assay-health.lock", (const char *)*state);
	assert_int_equal(access(path, F_OK), 0);
	no_folders = false;
}

/* The lock's name belongs to somebody else: nothing is followed. */
static void test_lock__a_link_is_not_followed(void **state)
{
	const volatile sig_atomic_t stop = 1;
	char path[PATH_MAX], victim[PATH_MAX];
	struct error err = {0};
	int fd;

	snprintf(path, sizeof(path), "%s/.assay-health.lock", (const char *)*state);
	snprintf(victim, sizeof(victim), "%s/victim", (const char *)*state);
	assert_int_equal(symlink("victim", path), 0);
	no_folders = true;
	assert_true(health_lock(&fd, *state, &stop, &err));
	no_folders = false;
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, "cannot lock"));
	assert_int_not_equal(err.cause, CAUSE_BUSY);
	assert_int_equal(access(victim, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_lock__a_second_run_waits_and_then_says_so),
		scratch_test(test_lock__a_file_where_folders_cannot_be_locked),
		scratch_test(test_lock__a_link_is_not_followed),
	};

	return cmocka_run_group_tests_name("gate_lock", tests, NULL, NULL);
}
