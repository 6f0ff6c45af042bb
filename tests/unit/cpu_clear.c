/* SPDX-License-Identifier: Apache-2.0 */
/* Clearing of large memory by several threads, by which new pages are made. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/process/cpu_clear.h"

enum { LARGE = 128 << 20, BESIDE = 64 };

static bool is_all(const unsigned char *p, size_t size, unsigned char value)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void test_cpu_clear__clears_exactly_its_memory(void **state)
{
	static const size_t sizes[] = {0, 1, 4096, (64 << 20) - 1, 64 << 20, (64 << 20) + 1, LARGE - 3};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *all = malloc(sizes[i] + 2 * BESIDE);

		assert_non_null(all);
		memset(all, 0xa5, sizes[i] + 2 * BESIDE);
		cpu_clear(all + BESIDE, sizes[i]);
		assert_true(is_all(all, BESIDE, 0xa5));
		assert_true(is_all(all + BESIDE, sizes[i], 0));
		assert_true(is_all(all + BESIDE + sizes[i], BESIDE, 0xa5));
		free(all);
	}
}

static long faults(void)
{
	struct rusage use;

	assert_int_equal(getrusage(RUSAGE_THREAD, &use), 0);
	return use.ru_minflt;
}

/* The calling thread makes only its share of new pages. */
static void test_cpu_clear__other_threads_make_pages(void **state)
{
	const long pages = LARGE / sysconf(_SC_PAGESIZE);
	cpu_set_t set;
	long before;
	void *memory;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 2)
		skip();
	memory = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, LARGE, MADV_NOHUGEPAGE); /* a fault for each page, so that they can be counted */
	before = faults();
	cpu_clear(memory, LARGE);
	assert_true(faults() - before < pages * 2 / 3);
	assert_true(is_all(memory, LARGE, 0));
	before = faults();
	cpu_clear(memory, LARGE); /* they are there now */
	assert_true(faults() - before < pages / 10);
	munmap(memory, LARGE);
}

static void *nothing(void *arg)
{
	return arg;
}

/* Ends as the process of its own that it is: no thread can have a stack. */
static void clear_without_threads(unsigned char *memory)
{
	const struct rlimit none = {0, 0};
	pthread_attr_t attributes;
	pthread_t thread;

	if (setrlimit(RLIMIT_AS, &none) || pthread_attr_init(&attributes))
		_exit(2);
	if (!pthread_create(&thread, NULL, nothing, NULL))
		_exit(3); /* the limit does not hold */
	cpu_clear(memory, LARGE);
	_exit(is_all(memory, LARGE, 0) ? 0 : 1);
}

static void test_cpu_clear__a_process_without_threads_clears_alone(void **state)
{
	unsigned char *memory;
	int status = -1;
	pid_t child;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* a sanitizer needs address space of its own */
#endif
	memory = malloc(LARGE);
	assert_non_null(memory);
	memset(memory, 0x5a, LARGE);
	child = fork();
	if (!child)
		clear_without_threads(memory);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first, because a thread that has ended leaves its stack to the next one */
		cmocka_unit_test(test_cpu_clear__a_process_without_threads_clears_alone),
		cmocka_unit_test(test_cpu_clear__clears_exactly_its_memory),
		cmocka_unit_test(test_cpu_clear__other_threads_make_pages),
	};

	return cmocka_run_group_tests_name("cpu_clear", tests, NULL, NULL);
}
