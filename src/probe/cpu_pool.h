/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned worker threads for CPU engines: every round starts on one go and ends when the last has ended. */
#ifndef PROBE_CPU_POOL_H
#define PROBE_CPU_POOL_H
#include "run/probe.h"

/*
 * Threads that a CPU case uses: `wanted` or, for 0, every logical CPU of the target (one NUMA node, or all
 * usable); never more than usable ones, nor than a cgroup quota rounded up. At least 1. Pure: work() and
 * prepare agree by it.
 */
unsigned cpu_threads(const struct machine *m, const struct target *t, unsigned wanted);

/* Last-level cache of the target, all instances as far as known, in bytes; 32 MiB where the facts are hidden.
 */
uint64_t cpu_cache_bytes(const struct machine *m, const struct target *t);
/* Memory that a case may take: half of the smaller of MemTotal (or the node's) and the cgroup's limit. */
uint64_t cpu_memory_bytes(const struct machine *m, const struct target *t);

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

/* The CPUs and the number of threads a case gets: cpu_threads of the target, checked against what the bench
 * lends. */
enum status cpu_bench_threads(const struct bench *b, unsigned wanted, unsigned *threads, struct error *err);

/* Pages on a 2 MiB boundary with huge pages advised, zero-filled on first touch: untouched here, so that the
 * working thread's first touch places them. Owner: caller, cpu_pages_free. */
enum status cpu_pages_alloc(void **out, uint64_t size, struct error *err);
void cpu_pages_free(void **p, uint64_t size);
/* Share of the range that huge pages back, 0 .. 1; -1 where the kernel does not tell. */
double cpu_pages_huge_share(const void *p, uint64_t size);

/* [first, last) of `count` items for one of `threads`, in multiples of `grain`. */
void cpu_share(uint64_t count, uint64_t grain, unsigned thread, unsigned threads, uint64_t *first,
	       uint64_t *last);
#endif
