/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files that another program cuts: the reader goes on, and the next check names the file. */
#include "scratch.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "core/file/mapped.h"

enum { SIZE = 5 << 16 };

struct file {
	char path[PATH_MAX];
	uint8_t *data;
	uint64_t size;
};

/* SIZE bytes of 7, mapped. */
static struct file new_file(const char *folder, const char *name)
{
	struct file f;
	struct error err = {0};
	FILE *out;

	snprintf(f.path, sizeof(f.path), "%s/%s", folder, name);
	out = fopen(f.path, "w");
	assert_non_null(out);
	for (int i = 0; i < SIZE; i++)
		fputc(7, out);
	fclose(out);
	assert_int_equal(mapped_open((void **)&f.data, &f.size, f.path, &err), STATUS_OK);
	assert_int_equal(f.size, SIZE);
	return f;
}

static unsigned long sum(const struct file *f)
{
	const volatile uint8_t *data = f->data;
	unsigned long all = 0;

	for (uint64_t i = 0; i < f->size; i += 64)
		all += data[i];
	return all;
}

static void assert_told(const struct file *f, enum status before)
{
	struct error err = {0};

	if (before)
		error_set(&err, before, "the numbers are wrong");
	assert_int_equal(mapped_check(before, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, f->path));
	assert_non_null(strstr(err.text, "another program shortened the file while assay read it: 10 bytes instead of 327680"));
}

static void test_mapped__a_whole_file_is_nothing_to_tell(void **state)
{
	struct file f = new_file(*state, "whole");
	struct error err = {0};

	assert_int_equal(sum(&f), SIZE / 64 * 7);
	assert_int_equal(mapped_check_sizes(STATUS_OK, &err), STATUS_OK);
	assert_int_equal(mapped_check_sizes(STATUS_MISMATCH, &err), STATUS_MISMATCH);
	mapped_close(f.data, f.size);
}

/* What else went wrong came from zeros: the file is named in its place. */
static void test_mapped__a_cut_file_reads_as_zeros_and_is_named(void **state)
{
	struct file whole = new_file(*state, "beside"), f = new_file(*state, "cut");
	struct error err = {0};

	assert_int_equal(truncate(f.path, 10), 0);
	assert_int_equal(sum(&f), 7); /* of the page that is left, its first byte here */
	assert_told(&f, STATUS_OK);
	assert_told(&f, STATUS_MISMATCH);
	mapped_close(f.data, f.size);
	assert_told(&f, STATUS_OK); /* once more, for who did not ask before */
	assert_int_equal(mapped_check(STATUS_OK, &err), STATUS_OK);
	assert_int_equal(sum(&whole), SIZE / 64 * 7);
	mapped_close(whole.data, whole.size);
}

/* Bytes behind the end of a file, in its last page, read as zeros without a signal. */
static void test_mapped__a_cut_within_the_last_page_is_seen_by_its_size(void **state)
{
	struct file f = new_file(*state, "last");
	struct error err = {0};

	assert_int_equal(truncate(f.path, SIZE - 1), 0);
	sum(&f);
	assert_int_equal(mapped_check(STATUS_OK, &err), STATUS_OK);
	assert_int_equal(mapped_check_sizes(STATUS_OK, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "327679 bytes instead of 327680"));
	mapped_close(f.data, f.size);
	mapped_check(STATUS_OK, NULL);
}

/* Who replaces a file by another of its name leaves what is mapped as it was. */
static void test_mapped__a_replaced_file_is_whole(void **state)
{
	struct file f = new_file(*state, "old");
	struct error err = {0};
	char path[PATH_MAX];
	FILE *out;

	snprintf(path, sizeof(path), "%s/new", (char *)*state);
	out = fopen(path, "w");
	assert_non_null(out);
	fclose(out);
	assert_int_equal(rename(path, f.path), 0);
	assert_int_equal(sum(&f), SIZE / 64 * 7);
	assert_int_equal(mapped_check_sizes(STATUS_OK, &err), STATUS_OK);
	mapped_close(f.data, f.size);
}

static void *read_it(void *f)
{
	sum(f);
	return NULL;
}

static void test_mapped__threads_meet_the_cut_at_once(void **state)
{
	struct file f = new_file(*state, "threads");
	pthread_t thread[8];

	assert_int_equal(truncate(f.path, 10), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_it, &f), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	assert_told(&f, STATUS_OK);
	mapped_close(f.data, f.size);
	mapped_check(STATUS_OK, NULL);
}

/* The signal that ended a child which does this. */
static int end_of(void (*does)(const char *path), const char *path)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		void *data;
		uint64_t size;

		signal(SIGBUS, SIG_DFL); /* cmocka's goes, or a sanitizer's; ours comes with the file */
		if (mapped_open(&data, &size, path, NULL))
			_exit(2);
		does(path);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A mapping of somebody else's. */
static void reads_a_foreign_cut(const char *path)
{
	int fd = open(path, O_RDWR);
	const volatile uint8_t *at = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);

	if (ftruncate(fd, 0))
		_exit(1);
	_exit(at[SIZE - 1]);
}

static void is_sent_one(const char *path)
{
	(void)path;
	raise(SIGBUS);
}

static void test_mapped__other_bus_errors_end_the_process_as_ever(void **state)
{
	struct file f = new_file(*state, "foreign");

	assert_int_equal(end_of(reads_a_foreign_cut, f.path), SIGBUS);
	assert_int_equal(end_of(is_sent_one, f.path), SIGBUS);
	mapped_close(f.data, f.size);
}

static void leave_with_mark(int number)
{
	(void)number;
	_exit(41);
}

/* A handler that comes later, such as that of a screen, gets other addresses only. */
static void test_mapped__a_later_handler_gets_other_addresses_only(void **state)
{
	struct file f = new_file(*state, "a");
	pid_t child = fork();
	int how;

	if (!child) {
		signal(SIGBUS, leave_with_mark);
		mapped_handle_first();
		if (truncate(f.path, 10))
			_exit(1);
		sum(&f);
		raise(SIGBUS);
		_exit(mapped_check(STATUS_OK, NULL) ? 2 : 3);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 41);
	child = fork();
	if (!child) {
		signal(SIGBUS, leave_with_mark);
		mapped_handle_first();
		if (truncate(f.path, 10))
			_exit(1);
		sum(&f);
		_exit(mapped_check(STATUS_OK, NULL) ? 42 : 3);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_int_equal(WEXITSTATUS(how), 42);
	mapped_close(f.data, f.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped__other_bus_errors_end_the_process_as_ever),
		cmocka_unit_test(test_mapped__a_whole_file_is_nothing_to_tell),
		cmocka_unit_test(test_mapped__a_cut_file_reads_as_zeros_and_is_named),
		cmocka_unit_test(test_mapped__a_cut_within_the_last_page_is_seen_by_its_size),
		cmocka_unit_test(test_mapped__a_replaced_file_is_whole),
		cmocka_unit_test(test_mapped__a_later_handler_gets_other_addresses_only),
		cmocka_unit_test(test_mapped__threads_meet_the_cut_at_once),
	};

	return cmocka_run_group_tests_name("core_mapped", tests, scratch_create, scratch_remove);
}
