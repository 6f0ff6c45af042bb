/* SPDX-License-Identifier: Apache-2.0 */
/* What a CPU engine may use: threads (core/process/cpu_pool.h), cache, memory, pages. */
#ifndef PROBE_SHARED_CPU_H
#define PROBE_SHARED_CPU_H
#include "core/process/cpu_pool.h"
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
/* Memory that a case may take: half of the smaller of MemTotal (or the node's) and the cgroup's limit, and no
 * more than is free. */
uint64_t cpu_memory_bytes(const struct machine *m, const struct target *t);
/* NO_RESOURCE where a case needs more than that; `what` is the probe and what takes it: "gemm: A, B and C".
 */
enum status cpu_memory_check(const struct machine *m, const struct target *t, const char *what, double need,
			     struct error *err);

/* The CPUs and the number of threads a case gets: cpu_threads of the target, checked against what the bench
 * lends. */
enum status cpu_bench_threads(const struct bench *b, unsigned wanted, unsigned *threads, struct error *err);

/* Pages on a 2 MiB boundary with huge pages advised, zero-filled on first touch: untouched here, so that the
 * working thread's first touch places them. Owner: caller, cpu_pages_free. */
enum status cpu_pages_alloc(void **out, uint64_t size, struct error *err);
void cpu_pages_free(void **p, uint64_t size);
/* Share of the range that huge pages back, 0 .. 1; -1 where the kernel does not tell. */
double cpu_pages_huge_share(const void *p, uint64_t size);

#endif
