/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that cases need, against what is there: before anything runs. METHODS "Memory ahead". */
#ifndef RUN_PLAN_MEMORY_NEED_H
#define RUN_PLAN_MEMORY_NEED_H
#include "run/probe.h"

/* Device memory that a plan leaves alone: 2 GiB by the rule of gpu_alloc, and room for contexts and code. */
#define MEMORY_NEED_LEFT_ALONE ((double)(3ull << 30))

/* The probe's estimate into c->need. */
void memory_need_estimate(struct bench_case *c, const struct machine *m);
/* OK: it fits, or nobody knows. UNSUPPORTED: this machine has not so much. UNAVAILABLE: it has, but others
 * hold it. Cause NO_MEMORY; the text has the numbers. */
enum status memory_need_check(const struct bench_case *c, const struct machine *m, struct error *err);

/* What a plan needs at one time. */
struct memory_need_peak {
	double device_bytes; /* the largest case, on one GPU */
	double host_bytes;   /* the largest case, or cases that run together */
	size_t unknown;	     /* cases that run and cannot say */
};
struct memory_need_peak memory_need_peak(const struct plan *p);
#endif
