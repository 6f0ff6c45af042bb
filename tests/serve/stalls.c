/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often this machine stops a program that only reads the clock: threads of one per CPU that it may use, for SECONDS (default 8).
 * Prints one line: threads, seconds, and how many stalls of more than 1, 2 and 4 ms the threads had together per second.
 * usage: stalls [SECONDS]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS_MOST = 64, LIMITS = 3 };
static const double limit_s[LIMITS] = {1e-3, 2e-3, 4e-3};

struct thread {
	pthread_t thread;
	double seconds;
	long stalls[LIMITS];
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *watch(void *arg)
{
	struct thread *t = arg;
	double before = now_s(), end = before + t->seconds;

	while (before < end) {
		const double now = now_s();

		for (int i = 0; i < LIMITS; i++)
			t->stalls[i] += now - before > limit_s[i];
		before = now;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 8;
	static struct thread all[THREADS_MOST];
	double rate[LIMITS] = {0};
	cpu_set_t cpus;
	int count = 1;

	if (!(seconds > 0)) {
		fputs("usage: stalls [SECONDS]\n", stderr);
		return 64;
	}
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		count = CPU_COUNT(&cpus) < THREADS_MOST ? CPU_COUNT(&cpus) : THREADS_MOST;
	for (int i = 0; i < count; i++) {
		all[i].seconds = seconds;
		if (pthread_create(&all[i].thread, NULL, watch, &all[i])) {
			fputs("stalls: no thread\n", stderr);
			return 1;
		}
	}
	for (int i = 0; i < count; i++) {
		pthread_join(all[i].thread, NULL);
		for (int k = 0; k < LIMITS; k++)
			rate[k] += (double)all[i].stalls[k] / seconds;
	}
	printf("%d threads, %.1f s, stalls per second above 1 ms: %.2f, 2 ms: %.2f, 4 ms: %.2f\n", count, seconds, rate[0], rate[1], rate[2]);
	return 0;
}
