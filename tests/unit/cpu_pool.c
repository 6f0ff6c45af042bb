/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/process/cpu_wait.h"
#include "probe/shared/cpu.h"
#include "unit/cpu_bench.h"

struct tally {
	atomic_uint calls[3];
};

static void count(void *arg, unsigned thread)
{
	struct tally *t = arg;

	atomic_fetch_add(&t->calls[thread], 1);
}

static void spin(void *arg, unsigned thread)
{
	volatile unsigned own = 0;

	(void)arg;
	(void)thread;
	for (unsigned i = 0; i < 2000000; i++)
		own = own + i;
}

static void each_thread_runs_once_a_round(void **state)
{
	struct tally t = {0};
	struct cpu_pool *p;

	(void)state;
	assert_int_equal(cpu_pool_create(&p, NULL, 3, NULL), STATUS_OK);
	assert_int_equal(cpu_pool_count(p), 3);
	for (unsigned round = 1; round <= 200; round++) {
		cpu_pool_run(p, count, &t);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(atomic_load(&t.calls[i]), round);
	}
	cpu_pool_destroy(&p);
	assert_null(p);
	cpu_pool_destroy(&p); /* NULL is fine */
}

enum { ITEMS = 64 };

struct items {
	atomic_uint done[ITEMS];
	atomic_uint thread_most;
};

static void do_item(void *arg, int64_t item, unsigned thread)
{
	struct items *items = arg;

	atomic_fetch_add(&items->done[item], 1);
	if (thread > atomic_load(&items->thread_most))
		atomic_store(&items->thread_most, thread);
}

static void shared_items_run_once_each(void **state)
{
	struct cpu_pool *p;

	(void)state;
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct tally t = {0};
		struct items items = {0};
		unsigned rounds = 0, runs = 0;

		assert_int_equal(cpu_pool_create(&p, NULL, threads, NULL), STATUS_OK);
		for (unsigned many = 0; many < 60; many++) {
			cpu_pool_begin(p);
			cpu_pool_begin(p); /* no effect */
			assert_int_equal(cpu_pool_is_begun(p), threads > 1);
			for (unsigned i = 0; i < many; i++, rounds++)
				cpu_pool_share(p, ITEMS, do_item, &items);
			cpu_pool_run(p, count, &t); /* also in between */
			cpu_pool_end(p);
			assert_false(cpu_pool_is_begun(p));
			cpu_pool_share(p, ITEMS, do_item, &items);
			cpu_pool_share(p, 0, do_item, &items);
			cpu_pool_run(p, count, &t);
			rounds++;
			runs += 2;
			for (unsigned i = 0; i < ITEMS; i++)
				assert_int_equal(atomic_load(&items.done[i]), rounds);
			for (unsigned i = 0; i < threads; i++)
				assert_int_equal(atomic_load(&t.calls[i]), runs);
		}
		assert_true(atomic_load(&items.thread_most) < threads);
		cpu_pool_destroy(&p);
	}
}

static void cpu_time_of_all_threads_is_counted(void **state)
{
	struct cpu_pool *p;
	uint64_t before;

	(void)state;
	assert_int_equal(cpu_pool_create(&p, NULL, 2, NULL), STATUS_OK);
	before = cpu_pool_time_ns(p);
	cpu_pool_run(p, spin, NULL);
	assert_true(cpu_pool_time_ns(p) > before);
	cpu_pool_destroy(&p);
}

enum { SHARED_NS = 20000000 };

static void no_work(void *arg, unsigned thread)
{
	(void)arg, (void)thread;
}

static void use_cpu(void *arg, unsigned thread)
{
	struct timespec first, now;

	(void)arg, (void)thread;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &first);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - first.tv_sec) * 1000000000LL + now.tv_nsec - first.tv_nsec < SHARED_NS);
}

/* Two threads that need 20 ms of the same CPU each. */
static void waiting_for_a_cpu_is_counted(void **state)
{
	struct cpu_pool *p;
	cpu_set_t mine;
	unsigned cpus[2] = {0};
	uint64_t before[2], now[2];

	(void)state;
	if (access("/proc/thread-self/schedstat", R_OK))
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (!CPU_ISSET(cpus[0], &mine))
		cpus[0]++;
	cpus[1] = cpus[0];
	assert_int_equal(cpu_pool_create(&p, cpus, 2, NULL), STATUS_OK);
	cpu_pool_run(p, no_work, NULL); /* both threads have begun */
	cpu_pool_waits(p, before);
	assert_true(cpu_wait_ns(0) >= before[0]); /* this thread is the first one */
	cpu_pool_run(p, use_cpu, NULL);
	cpu_pool_waits(p, now);
	assert_true(now[0] >= before[0] && now[1] >= before[1]);
	assert_true(cpu_wait_longest_ns(before, now, 2) > SHARED_NS / 2);
	cpu_pool_destroy(&p);
}

static void the_thread_that_waited_longest_counts(void **state)
{
	const uint64_t before[] = {10, 20, 30, 40}, now[] = {13, 29, 31, 0}; /* the last one cannot be read now */

	(void)state;
	assert_int_equal(cpu_wait_longest_ns(before, now, 4), 9);
	assert_int_equal(cpu_wait_longest_ns(before, now, 1), 3);
	assert_int_equal(cpu_wait_longest_ns(before, before, 4), 0);
}

/* Thread 0 is slow without using its CPU; the other ends at once: its wait is no CPU time that others took.
 */
static void one_is_slow(void *arg, unsigned thread)
{
	(void)arg;
	if (!thread)
		nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

/* CPU time that one round of `work` is said to have used, as a share of the time it took. */
static double share_of_round(struct cpu_pool *p, void (*work)(void *, unsigned))
{
	const struct clock *clock = clock_monotonic();
	uint64_t used = cpu_pool_time_ns(p), begun = clock_now_ns(clock), took;

	cpu_pool_run(p, work, NULL);
	took = clock_now_ns(clock) - begun;
	return (double)(cpu_pool_time_ns(p) - used) / (double)took;
}

/* A machine with other work may begin a thread late: of many rounds one is as it should be, where a wait that
 * counts for nothing, or twice, makes none so. */
static void waiting_for_a_slower_thread_is_not_being_kept_from_the_cpu(void **state)
{
	struct cpu_pool *p;
	double share = 0;

	(void)state;
	assert_int_equal(cpu_pool_create(&p, NULL, 2, NULL), STATUS_OK);
	for (int i = 0; i < 300 && !(share > 0.8 && share < 1.2); i++)
		share = share_of_round(p, one_is_slow);
	assert_true(share > 0.8 && share < 1.2);
	cpu_pool_destroy(&p);
}

/* Other work on the CPU of thread 0. */
static void *occupy(void *stop)
{
	while (!atomic_load((atomic_bool *)stop))
		;
	return NULL;
}

/* Longer than a thread spins for. */
static void another_is_slow(void *arg, unsigned thread)
{
	(void)arg;
	if (thread)
		nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
}

static double own_cpu_s(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Beside other work on its CPU, thread 0 leaves it that CPU while it waits: 2 ms of spinning in each round
 * would be half of the wait. */
static void on_a_busy_machine_waits_take_little_cpu_time(void **state)
{
	atomic_bool stop = false;
	cpu_set_t before, one;
	pthread_t other;
	struct cpu_pool *p;
	double used;
	unsigned cpu = 0;

	(void)state;
	assert_int_equal(cpu_pool_create(&p, NULL, 2, NULL), STATUS_OK);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(pthread_create(&other, NULL, occupy, &stop), 0); /* it inherits the CPU */
	for (int i = 0; i < 20; i++)
		cpu_pool_run(p, another_is_slow, NULL);
	used = -own_cpu_s();
	for (int i = 0; i < 50; i++)
		cpu_pool_run(p, another_is_slow, NULL);
	used += own_cpu_s();
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_true(used < 50 * 0.5e-3);
	cpu_pool_destroy(&p);
}

static void affinity_is_set_and_put_back(void **state)
{
	cpu_set_t before, now;
	struct cpu_pool *p;
	unsigned cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	assert_int_equal(cpu_pool_create(&p, &cpu, 1, NULL), STATUS_OK);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_true(CPU_ISSET(cpu, &now));
	cpu_pool_destroy(&p);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&before, &now));
}

static void a_cpu_that_is_not_there_is_an_error(void **state)
{
	const unsigned cpus[] = {1023, 1022};
	struct error err = {0};
	struct cpu_pool *p;

	(void)state;
	assert_int_not_equal(cpu_pool_create(&p, cpus, 2, &err), STATUS_OK);
	assert_null(p);
	assert_non_null(strstr(err.text, "CPU 1023"));
}

static void shares_cover_everything_once(void **state)
{
	static const uint64_t counts[] = {0, 1, 7, 8, 9, 64, 1000, 4096, 12345};

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (unsigned threads = 1; threads <= 5; threads++) {
			uint64_t at = 0, first, last;

			for (unsigned i = 0; i < threads; i++) {
				cpu_share(counts[c], 8, i, threads, &first, &last);
				assert_int_equal(first, at);
				assert_true(last >= first);
				assert_true(last == counts[c] || last % 8 == 0);
				at = last;
			}
			assert_int_equal(at, counts[c]);
		}
}

static void pages_are_aligned_writable_and_freed(void **state)
{
	void *p;

	(void)state;
	for (uint64_t size = 1; size < 20000000; size *= 7) {
		assert_int_equal(cpu_pages_alloc(&p, size, NULL), STATUS_OK);
		assert_int_equal((uintptr_t)p % (2 << 20), 0);
		memset(p, 1, size);
		assert_true(cpu_pages_huge_share(p, size) <= 1);
		cpu_pages_free(&p, size);
		assert_null(p);
	}
	cpu_pages_free(&p, 1);
	struct error err = {0};

	assert_int_equal(cpu_pages_alloc(&p, (uint64_t)1 << 60, &err), STATUS_NO_RESOURCE);
	assert_null(p);
	assert_non_null(strstr(err.text, "1152921504606846976 bytes"));
}

static void threads_keep_within_quota_node_and_wish(void **state)
{
	struct cpu_bench b;
	unsigned threads;
	struct error err = {0};

	(void)state;
	cpu_bench_make(&b);
	b.machine.cpu.usable = 16;
	assert_int_equal(cpu_threads(&b.machine, &b.target, 0), 16);
	assert_int_equal(cpu_threads(&b.machine, &b.target, 3), 3);
	assert_int_equal(cpu_threads(&b.machine, &b.target, 99), 16);
	b.machine.cpu.quota = 2.5;
	assert_int_equal(cpu_threads(&b.machine, &b.target, 0), 3);
	b.machine.cpu.quota = 0.25;
	assert_int_equal(cpu_threads(&b.machine, &b.target, 0), 1);
	b.machine.cpu.quota = 0;
	b.machine.cpu.numa[0] = (struct numa){.node = 1, .cpus = 8, .memory_bytes = 1000};
	b.machine.cpu.numa_count = 1;
	b.target.numa = 1;
	assert_int_equal(cpu_threads(&b.machine, &b.target, 0), 8);
	assert_int_equal(cpu_memory_bytes(&b.machine, &b.target), 500);
	b.bench.cpus = (const unsigned[]){0, 1};
	assert_int_equal(cpu_bench_threads(&b.bench, 0, &threads, &err), STATUS_NO_RESOURCE);
	assert_int_equal(cpu_bench_threads(&b.bench, 2, &threads, NULL), STATUS_OK);
	assert_int_equal(threads, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_runs_once_a_round),
		cmocka_unit_test(shared_items_run_once_each),
		cmocka_unit_test(cpu_time_of_all_threads_is_counted),
		cmocka_unit_test(waiting_for_a_cpu_is_counted),
		cmocka_unit_test(the_thread_that_waited_longest_counts),
		cmocka_unit_test(waiting_for_a_slower_thread_is_not_being_kept_from_the_cpu),
		cmocka_unit_test(on_a_busy_machine_waits_take_little_cpu_time),
		cmocka_unit_test(affinity_is_set_and_put_back),
		cmocka_unit_test(a_cpu_that_is_not_there_is_an_error),
		cmocka_unit_test(shares_cover_everything_once),
		cmocka_unit_test(pages_are_aligned_writable_and_freed),
		cmocka_unit_test(threads_keep_within_quota_node_and_wish),
	};

	return cmocka_run_group_tests_name("cpu_pool", tests, NULL, NULL);
}
