/* SPDX-License-Identifier: Apache-2.0 */
/* The text about a waiting process: real children that wait, and files like those of /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scratch.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/place.h"

enum { LOOKS = 2000 }; /* of 5 ms: a busy machine starts a child late */

static void *join_nobody(void *arg)
{
	(void)arg;
	return NULL;
}

static void *read_for_ever(void *path)
{
	char byte;
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	while (read(fd, &byte, 1) >= 0)
		;
	return NULL;
}

enum what { READS, SPINS, WAITS_FOR_READER };

static void child(enum what what, char *path)
{
	pthread_t thread;
	volatile bool goes_on = true;

	if (what == READS)
		read_for_ever(path);
	while (what == SPINS && goes_on)
		;
	if (!pthread_create(&thread, NULL, what == WAITS_FOR_READER ? read_for_ever : join_nobody, path))
		pthread_join(thread, NULL);
	_exit(0);
}

/* Waits until the child is where it should be; then its text holds `wanted`. */
static void expect(const char *folder, enum what what, const char *wanted, bool stops)
{
	char path[300], text[240] = "", state = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/rows.jsonl", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	pid = fork();
	if (!pid)
		child(what, path);
	assert_true(pid > 0);
	if (stops)
		kill(pid, SIGSTOP);
	for (unsigned i = 0; i < LOOKS && !strstr(text, wanted); i++) {
		usleep(5000);
		process_place_text(text, sizeof(text), "/proc", pid, &state);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!strstr(text, "cannot be read") && !strstr(text, "the kernel's")) /* a container may forbid it */
		assert_non_null(strstr(text, wanted));
	assert_true(!stops || state == 'T');
}

static void test_place__a_read_names_the_file(void **state)
{
	expect(*state, READS, "waits in read() of rows.jsonl", false);
}

static void test_place__a_loop_computes(void **state)
{
	expect(*state, SPINS, "computes", false);
}

static void test_place__a_stopped_process_is_stopped(void **state)
{
	expect(*state, SPINS, "is stopped (SIGSTOP)", true);
}

static void test_place__the_thread_that_is_waited_for_is_named(void **state)
{
	expect(*state, WAITS_FOR_READER, "waits in read() of rows.jsonl", false);
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/7/task/7/%s", folder, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_place__what_is_not_readable_is_said(void **state)
{
	const char *folder = *state;
	char path[300], text[240], is;

	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_string_equal(text, "cannot be read");
	assert_int_equal(is, 0);
	snprintf(path, sizeof(path), "%s/7", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/7/task", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/7/task/7", folder);
	mkdir(path, 0700);
	put(folder, "stat", "7 (a) b) D 1 7");
	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_string_equal(text, "waits, and its system call cannot be read (a disk or another device)");
	put(folder, "wchan", "folio_wait_bit");
	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_string_equal(text, "waits in the kernel's folio_wait_bit (a disk or another device)");
	put(folder, "syscall", "74 0x9 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7fff\n"); /* fsync on x86-64 */
	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_non_null(strstr(text, "waits in "));
	put(folder, "syscall", "99999 0x9\n");
	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_non_null(strstr(text, "waits in system call 99999"));
	put(folder, "stat", "7 (a) Z 1 7");
	process_place_text(text, sizeof(text), folder, 7, &is);
	assert_string_equal(text, "has ended");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_place__a_read_names_the_file),
		scratch_test(test_place__a_loop_computes),
		scratch_test(test_place__a_stopped_process_is_stopped),
		scratch_test(test_place__the_thread_that_is_waited_for_is_named),
		scratch_test(test_place__what_is_not_readable_is_said),
	};

	return cmocka_run_group_tests_name("core_place", tests, NULL, NULL);
}
