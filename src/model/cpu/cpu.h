/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU back end: F32 throughout. GEMMs use OpenBLAS if it is installed, else assay's own loops. */
#ifndef MODEL_CPU_CPU_H
#define MODEL_CPU_CPU_H
#include "model/backend/ops.h"

/* The number of CPUs that this process may use, at most 32. For cpu_options and plans. */
unsigned cpu_backend_threads(void);

struct cpu_options {
	unsigned threads; /* 0: cpu_backend_threads() */
	bool own_gemm;	  /* do not use OpenBLAS */
	bool invariant;	  /* for inference (struct backend) */
};
/* Owner: caller, cpu_backend_release. The arena belongs to the caller. */
enum status cpu_backend_create(struct backend *back, const struct cpu_options *options, struct arena *arena,
			       struct error *err);
void cpu_backend_release(struct backend *back);
/* Memory for an arena, in huge pages if the system has them: reading weights is then up to twice as fast.
 * NULL: there is none. Owner: caller, free(). */
void *cpu_memory(size_t size);
/* To be called before the first GEMM: checks that OpenBLAS can get the address space that it needs. */
enum status cpu_backend_check_room(const struct backend *back, struct error *err);
/* From here on, cpu_backend_wait_s counts. */
void cpu_backend_wait_begin(struct backend *back);
/* Seconds in which a thread could run and no CPU was free, of the thread that waited longest. */
double cpu_backend_wait_s(struct backend *back);
/* "OpenBLAS 0.3.21 .." or "own". */
const char *cpu_backend_gemm(const struct backend *back);
/* *rate is raised to the FLOP/s of the fastest large F32 GEMM, timed in free memory of the arena, which is
 * unchanged afterwards. */
enum status cpu_backend_gemm_rate(struct backend *back, double *rate, struct error *err);
#endif
