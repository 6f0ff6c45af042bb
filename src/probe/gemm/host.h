/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the CPU engines of probe gemm share: sets of matrices in host memory, filling, and all functions
 * that verification needs. */
#ifndef PROBE_GEMM_HOST_H
#define PROBE_GEMM_HOST_H
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"
#include "vendor/lib.h"

enum { GEMM_HOST_SETS = 3 };

struct gemm_host { /* first member of each engine's state */
	struct gemm common;
	unsigned threads;
	struct cpu_pool *pool; /* fills and checks; it never runs during a GEMM */
	void *a[GEMM_HOST_SETS], *b[GEMM_HOST_SETS], *c[GEMM_HOST_SETS]; /* as stored, all batches */
	void *bias;							 /* (n) of the output type, or NULL */
	uint64_t a_count, b_count, c_count;				 /* elements */
	struct cpu_confined before;
	/* Runs one GEMM on a set; each engine has its own. */
	enum status (*multiply)(struct gemm_host *h, unsigned set, struct error *err);
};

/*
 * Sets up threads, affinity, memory and data. The affinity limits threads that the library creates later to
 * the case's CPUs. enqueue and verification call the engine's `multiply`. Call gemm_host_end also after a
 * failure.
 */
enum status gemm_host_begin(struct gemm_host *h, const struct bench *b, const struct gemm_opts *o,
			    enum status (*multiply)(struct gemm_host *h, unsigned set, struct error *err),
			    struct error *err);
void gemm_host_end(struct gemm_host *h);
/* enqueue of the CPU engines. */
enum status gemm_host_enqueue(void *state, uint64_t i, struct error *err);
/* For supports: the three matrices of one set must fit into memory; else STATUS_NO_RESOURCE. */
enum status gemm_host_fits(const struct machine *m, const struct target *t, const struct gemm_opts *o,
			   struct error *err);
/* For supports: STATUS_UNSUPPORTED if an option is set that only GPU libraries support. */
enum status gemm_host_check_options(const struct gemm_opts *o, const char *library, struct error *err);
/* For supports: whether the SOFTWARE layer of the facts found the library. The message names it by `shown`,
 * with its soname. OK if that layer was not read. */
enum status gemm_host_library(const struct machine *m, const struct lib_spec *spec, const char *shown,
			      struct error *err);

extern const struct engine gemm_openblas_engine, gemm_onednn_engine;
#endif
