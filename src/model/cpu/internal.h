/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU's operations share, whatever their number type. */
#ifndef MODEL_CPU_INTERNAL_H
#define MODEL_CPU_INTERNAL_H
#include "core/clock.h"
#include "core/process/cpu_pool.h"
#include "model/backend/cost.h"
#include "model/cpu/cpu.h"
#include "vendor/cpu/openblas.h"

struct cpu {
	struct cpu_pool *pool;
	struct blas blas; /* all NULL: loops of our own */
	struct lib_fact blas_fact;
	char gemm[128];
};

static inline struct cpu *cpu_of(const struct backend *back)
{
	return back->device;
}

static inline double cpu_now_s(void)
{
	return (double)clock_now_ns(clock_monotonic()) * 1e-9;
}

/* work(arg, first, last, thread) over parts of [0, count), in multiples of grain; on the calling thread alone
 * where `bytes` in all are too few to wake others for. */
void cpu_parts(const struct backend *back, int64_t count, int64_t grain, double bytes,
	       void (*work)(void *arg, int64_t first, int64_t last, unsigned thread), void *arg);
/* work(arg, item, thread) once for each of `count` items, dealt out as threads come free; `bytes` as above.
 */
void cpu_items(const struct backend *back, int64_t count, double bytes,
	       void (*work)(void *arg, int64_t item, unsigned thread), void *arg);

/* Entries of the table that are of any number type. */
extern __typeof__(*((struct ops *)0)->put) cpu_put;
extern __typeof__(*((struct ops *)0)->get) cpu_get;
extern __typeof__(*((struct ops *)0)->batch) cpu_batch;
extern __typeof__(*((struct ops *)0)->random) cpu_random;
#endif
