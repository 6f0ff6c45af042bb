/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of a CPU case: threads (core/process/cpu_pool.h), caches, memory and pages. */
#ifndef PROBE_SHARED_CPU_H
#define PROBE_SHARED_CPU_H
#include <sched.h>
#include "core/process/cpu_pool.h"
#include "run/probe.h"

/*
 * Number of threads of a CPU case: `wanted`, or for 0 every logical CPU of the target (one NUMA node, or all
 * usable CPUs). The result is at least 1 and at most the number of usable CPUs and the cgroup quota rounded
 * up. Pure, so that work() and prepare agree.
 */
unsigned cpu_threads(const struct machine *m, const struct target *t, unsigned wanted);

/* Size in bytes of the target's last-level cache, all instances together; 32 MiB if the facts do not contain
 * it. */
uint64_t cpu_cache_bytes(const struct machine *m, const struct target *t);
/* Memory in bytes that a case may use: half of the total (of the machine, or of the NUMA node), or half of
 * the cgroup limit if that is smaller; but at most 7/8 of the free memory. */
uint64_t cpu_memory_bytes(const struct machine *m, const struct target *t);
/* NO_RESOURCE if a case needs more memory than cpu_memory_bytes. `what` names the probe and its buffers, as
 * in "gemm: A, B and C". */
enum status cpu_memory_check(const struct machine *m, const struct target *t, const char *what, double need,
			     struct error *err);

/* Number of threads of a case: cpu_threads of the target. NO_RESOURCE if the bench has fewer CPUs. */
enum status cpu_bench_threads(const struct bench *b, unsigned wanted, unsigned *threads, struct error *err);

/* The CPUs of the calling thread before cpu_bench_confine. */
struct cpu_confined {
	cpu_set_t before;
	bool set;
};
/* Lets the calling thread run on the case's first `threads` CPUs, all of them: threads that a library creates
 * inherit the CPUs of their creator. Call it before a library that computes with threads of its own is
 * opened, and after cpu_pool_create, which pins the caller to one CPU. */
enum status cpu_bench_confine(const struct bench *b, unsigned threads, struct cpu_confined *out,
			      struct error *err);
void cpu_bench_unconfine(struct cpu_confined *c);

/* Allocates pages on a 2 MiB boundary, with huge pages advised. The pages are untouched, so the first touch
 * of each worker thread decides their NUMA node; they read as zero. Owner: caller, cpu_pages_free. */
enum status cpu_pages_alloc(void **out, uint64_t size, struct error *err);
void cpu_pages_free(void **p, uint64_t size);
/* Share of the range in huge pages, 0 .. 1; -1 if the kernel does not report it. */
double cpu_pages_huge_share(const void *p, uint64_t size);

#endif
