/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the memory that cases need with the machine's memory before the run:
 * docs/explanation/methods/measuring.md, "Memory needed before a run". */
#ifndef RUN_PLAN_MEMORY_NEED_H
#define RUN_PLAN_MEMORY_NEED_H
#include "run/probe.h"

/* Device memory that a plan leaves free: 2 GiB by the rule of gpu_alloc, and room for contexts and code. */
#define MEMORY_NEED_LEFT_ALONE ((double)(3ull << 30))

/* Writes the probe's estimate to c->need. */
void memory_need_estimate(struct bench_case *c, const struct machine *m);
/* OK: it fits, or the need is unknown. UNSUPPORTED: the machine has less memory. UNAVAILABLE: the machine has
 * enough, but others use it. The cause is NO_MEMORY, and the text has the figures. */
enum status memory_need_check(const struct bench_case *c, const struct machine *m, struct error *err);

/* Peak memory of a plan. */
struct memory_need_peak {
	double device_bytes; /* the largest case, on one GPU */
	double host_bytes;   /* the largest case, or the sum of cases that run together */
	size_t unknown;	     /* cases that run but have no estimate */
};
struct memory_need_peak memory_need_peak(const struct plan *p);
#endif
