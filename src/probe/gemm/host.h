/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU engines of probe gemm share: sets of matrices in host memory, filling, and all that
 * verification asks. */
#ifndef PROBE_GEMM_HOST_H
#define PROBE_GEMM_HOST_H
#include <sched.h>
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"
#include "vendor/lib.h"

enum { GEMM_HOST_SETS = 3 };

struct gemm_host { /* first member of each engine's state */
	struct gemm common;
	unsigned threads;
	struct cpu_pool *pool; /* fills and checks; it never runs while a product does */
	void *a[GEMM_HOST_SETS], *b[GEMM_HOST_SETS], *c[GEMM_HOST_SETS]; /* as stored, all batches */
	void *bias;							 /* (n) of the output type, or NULL */
	uint64_t a_count, b_count, c_count;				 /* elements */
	bool confined;
	cpu_set_t affinity; /* of the calling thread, before */
	/* One product on a set: the engine's own. */
	enum status (*multiply)(struct gemm_host *h, unsigned set, struct error *err);
};

/*
 * Threads, affinity (so that the library's threads, made later, keep to the case's CPUs), memory and data.
 * `multiply` of the engine is called from enqueue and verification. On failure gemm_host_end is called all
 * the same.
 */
enum status gemm_host_begin(struct gemm_host *h, const struct bench *b, const struct gemm_opts *o,
			    enum status (*multiply)(struct gemm_host *h, unsigned set, struct error *err),
			    struct error *err);
void gemm_host_end(struct gemm_host *h);
/* The engines' enqueue. */
enum status gemm_host_enqueue(void *state, uint64_t i, struct error *err);
/* For supports: three matrices of one set must fit; STATUS_NO_RESOURCE where they do not. */
enum status gemm_host_fits(const struct machine *m, const struct target *t, const struct gemm_opts *o,
			   struct error *err);
/* For supports: STATUS_UNSUPPORTED where an option is set that only a GPU library heeds. */
enum status gemm_host_heeds(const struct gemm_opts *o, const char *library, struct error *err);
/* For supports: what the SOFTWARE layer says of the library, which people know as `shown`, with the soname
 * looked for; OK where that layer was not read. */
enum status gemm_host_library(const struct machine *m, const struct lib_spec *spec, const char *shown,
			      struct error *err);

extern const struct engine gemm_openblas_engine, gemm_onednn_engine;
#endif
