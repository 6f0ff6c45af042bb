/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of worker threads that run in rounds. A round starts on all threads at once and ends when the
 * last thread has finished. Threads can be pinned to CPUs. */
#ifndef CORE_PROCESS_CPU_POOL_H
#define CORE_PROCESS_CPU_POOL_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

struct cpu_pool;
/* Creates `count` threads. If `cpus` is not NULL, thread i is pinned to cpus[i]; an error if a CPU
 * refuses. Thread 0 is the calling thread, so no extra thread waits while the others work. The same thread
 * must call cpu_pool_destroy, which restores its affinity. The caller owns the pool. */
enum status cpu_pool_create(struct cpu_pool **p, const unsigned *cpus, unsigned count, struct error *err);
/* Creates a pool for filling and checking data of a device: one thread per CPU that the caller may use, at
 * most 32, not pinned. The caller owns the pool. */
enum status cpu_pool_usable(struct cpu_pool **p, struct error *err);
/* Ends the threads, frees the pool and sets *p to NULL. *p may be NULL. */
void cpu_pool_destroy(struct cpu_pool **p);
unsigned cpu_pool_count(const struct cpu_pool *p);
/* Runs work(arg, i) once on every thread i in 0 .. count-1 and returns when all have finished. Threads
 * spin for a while between rounds, so that short rounds start within a microsecond; then they sleep. If
 * other work needs their CPUs, they sleep sooner. */
void cpu_pool_run(struct cpu_pool *p, void (*work)(void *arg, unsigned thread), void *arg);
/* For many short rounds that follow each other closely: between begin and end no thread sleeps for longer
 * than a moment. While other work needs their CPUs, threads that wait give them up. */
void cpu_pool_begin(struct cpu_pool *p);
void cpu_pool_end(struct cpu_pool *p);
/* Whether the pool is between begin and end. */
bool cpu_pool_is_begun(const struct cpu_pool *p);
/* Runs work(arg, item, thread) once for each item in 0 .. count - 1; each thread takes the next item when it
 * is free. Between begin and end, a thread that gets no CPU takes no item, and nobody waits for it. */
void cpu_pool_share(struct cpu_pool *p, int64_t count, void (*work)(void *arg, int64_t item, unsigned thread),
		    void *arg);
/* CPU time of all threads since creation, including spinning, plus the time that threads waited for the
 * slowest one at the end of rounds, in ns. If it is less than threads x wall time, other work kept busy
 * threads from their CPUs for the difference. */
uint64_t cpu_pool_time_ns(const struct cpu_pool *p);
/* Writes for each thread the time in ns in which it could run and no CPU was free. The time counts from the
 * thread's beginning. It is 0 if the kernel does not tell (/proc/self/task/TID/schedstat). */
void cpu_pool_waits(const struct cpu_pool *p, uint64_t *wait_ns);

/* The items [first, last) of `count` that thread `thread` of `threads` handles, in multiples of `grain`. */
void cpu_share(uint64_t count, uint64_t grain, unsigned thread, unsigned threads, uint64_t *first,
	       uint64_t *last);
#endif
