/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads: every round starts on one go and ends when the last has ended. Pinned where CPUs are named.
 */
#ifndef CORE_PROCESS_CPU_POOL_H
#define CORE_PROCESS_CPU_POOL_H
#include <stdint.h>
#include "core/error.h"

struct cpu_pool;
/*
 * `count` threads, each pinned to cpus[i] where cpus is given (a CPU that refuses is an error). Thread 0 is
 * the caller's own: no thread waits beside the ones that work; its affinity is put back by cpu_pool_destroy,
 * which the same thread calls. Owner: caller.
 */
enum status cpu_pool_create(struct cpu_pool **p, const unsigned *cpus, unsigned count, struct error *err);
/* Threads for filling and checking beside a device: as many as the caller may use CPUs, 32 at most, none of
 * them pinned. Owner: caller. */
enum status cpu_pool_usable(struct cpu_pool **p, struct error *err);
/* Ends the threads; NULL is fine; sets NULL. */
void cpu_pool_destroy(struct cpu_pool **p);
unsigned cpu_pool_count(const struct cpu_pool *p);
/* Runs work(arg, thread 0 .. count-1) once on every thread; returns when all have ended. Threads spin between
 * rounds for a while, so that short rounds start within a microsecond, then sleep. */
void cpu_pool_run(struct cpu_pool *p, void (*work)(void *arg, unsigned thread), void *arg);
/* CPU time of all threads since creation, spinning included, and the time that threads with a lighter part
 * waited for the slowest at the end of rounds, ns: what is missing to threads x wall is time that threads
 * with work to do were kept from their CPUs. */
uint64_t cpu_pool_time_ns(const struct cpu_pool *p);

/* [first, last) of `count` items for one of `threads`, in multiples of `grain`. */
void cpu_share(uint64_t count, uint64_t grain, unsigned thread, unsigned threads, uint64_t *first,
	       uint64_t *last);
#endif
