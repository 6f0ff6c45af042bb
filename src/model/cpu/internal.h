/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the CPU's operations of every number type. */
#ifndef MODEL_CPU_INTERNAL_H
#define MODEL_CPU_INTERNAL_H
#include "core/clock.h"
#include "core/process/cpu_pool.h"
#include "model/backend/cost.h"
#include "model/cpu/cpu.h"
#include "vendor/cpu/openblas.h"

/* A copy of a matrix that the caller of fetch_wait reads; owned by the back end. */
struct cpu_fetch {
	void *data;
	size_t room;
	bool begun;
};

struct cpu {
	struct cpu_pool *pool;
	uint64_t *wait_ns; /* [2][threads]: waits for a CPU at cpu_backend_wait_begin, and now */
	struct blas blas;  /* all NULL: assay's own loops */
	struct lib_fact blas_fact;
	char gemm[128];
	struct cpu_fetch fetch[FETCHES];
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
extern __typeof__(*((struct ops *)0)->paged_put) cpu_paged_put;
extern __typeof__(*((struct ops *)0)->sample_count) cpu_sample_count;
extern __typeof__(*((struct ops *)0)->fetch_begin) cpu_fetch_begin;
extern __typeof__(*((struct ops *)0)->fetch_wait) cpu_fetch_wait;
extern __typeof__(*((struct ops *)0)->replay) cpu_replay;
extern __typeof__(*((struct ops *)0)->quantize) cpu_quantize;
extern __typeof__(*((struct ops *)0)->slot_fill) cpu_slot_fill;
extern __typeof__(*((struct ops *)0)->slot_ready) cpu_slot_event; /* also slot_free */
extern __typeof__(*((struct ops *)0)->lane_copy) cpu_lane_copy;
extern __typeof__(*((struct ops *)0)->lane_event) cpu_lane_event;
extern __typeof__(*((struct ops *)0)->lane_run) cpu_lane_run;
extern __typeof__(*((struct ops *)0)->lane_join) cpu_lane_join; /* also lane_wait */
#endif
