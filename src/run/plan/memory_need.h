/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that cases need, against what is there: before anything runs. METHODS "Memory ahead". */
#ifndef RUN_NEED_H
#define RUN_NEED_H
#include "run/probe.h"

/* Device memory that a plan leaves alone: 2 GiB by the rule of gpu_alloc, and room for contexts and code. */
#define NEED_LEFT_ALONE ((double)(3ull << 30))

/* The probe's estimate into c->need. */
void need_estimate(struct bench_case *c, const struct machine *m);
/* OK: it fits, or nobody knows. UNSUPPORTED: this machine has not so much. UNAVAILABLE: it has, but others
 * hold it. Cause NO_MEMORY; the text has the numbers. */
enum status need_check(const struct bench_case *c, const struct machine *m, struct error *err);

/* What a plan needs at one time. */
struct need_peak {
	double device_bytes; /* the largest case, on one GPU */
	double host_bytes;   /* the largest case, or cases that run together */
	size_t unknown;	     /* cases that run and cannot say */
};
struct need_peak need_peak(const struct plan *p);
#endif
