/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the CPU's operations of every number type. */
#ifndef MODEL_CPU_INTERNAL_H
#define MODEL_CPU_INTERNAL_H
#include "core/clock.h"
#include "core/process/cpu_pool.h"
#include "model/backend/cost.h"
#include "model/cpu/cpu.h"
#include "vendor/cpu/openblas.h"

struct cpu {
	struct cpu_pool *pool;
	struct blas blas; /* all NULL: assay's own loops */
	struct lib_fact blas_fact;
	char gemm[128];
};

static inline struct cpu *cpu_of(const struct backend *back)
{
	return back->device;
}

/* Calls work(arg, first, last, thread) on parts of [0, count), whose borders are multiples of `grain`. If
 * the work's `bytes` are too few to wake other threads, only the calling thread works. */
void cpu_parts(const struct backend *back, int64_t count, int64_t grain, double bytes,
	       void (*work)(void *arg, int64_t first, int64_t last, unsigned thread), void *arg);
/* Calls work(arg, item, thread) once for each of `count` items; each free thread takes the next item.
 * `bytes` as above. */
void cpu_items(const struct backend *back, int64_t count, double bytes,
	       void (*work)(void *arg, int64_t item, unsigned thread), void *arg);

/* Entries of the table that do not depend on the number type. */
extern __typeof__(*((struct ops *)0)->put) cpu_put;
extern __typeof__(*((struct ops *)0)->get) cpu_get;
extern __typeof__(*((struct ops *)0)->batch) cpu_batch;
extern __typeof__(*((struct ops *)0)->random) cpu_random;
#endif
