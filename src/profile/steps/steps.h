/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a program: the part that repeats after the start-up. A step lasts from one mark to the next. A
 * mark is something that the process does once in each step. docs/explanation/methods/profile.md, "Steps of a
 * profile". */
#ifndef PROFILE_STEPS_STEPS_H
#define PROFILE_STEPS_STEPS_H
#include "profile/nccl/nccl.h"
#include "profile/timeline/windows.h"

enum { STEPS_LEAST = 5 }; /* with fewer steps there is no steady state */

enum steps_mark {
	STEPS_NONE,
	STEPS_RANGE, /* begin of an NVTX range */
	STEPS_EVENT  /* launch of a kernel, copy, set or graph, or a wait of the host */
};

/* Steps of one process, in device time: a step begins when the first kernel, copy or set of its mark begins.
 */
struct steps_process {
	uint8_t mark;  /* enum steps_mark */
	uint16_t kind; /* enum timeline_kind of the mark */
	uint32_t name; /* name of the mark: index into the timeline's names */
	bool numbered; /* the names of the marks differ in digits only; `name` is the first */
	size_t steps;  /* 0: none were found */
	double median_ns, p10_ns, p90_ns, mean_ns;
	uint64_t first_ns, last_ns; /* first and last time at which the process did something on a device */
};

struct steps {
	struct steps_process *process; /* one per process of the timeline */
	struct windows each;	 /* one window per step; analyzed separately if ranks share their steps */
	struct windows start_up; /* time before the first step of each process */
	size_t steps;		 /* over all processes */
};

/* Finds the steps. Ranks that meet in collectives share the steps of one rank: of a rank that opens ranges,
 * else of the one with most steps. `n` belongs to the same timeline. NO_RESOURCE: out of memory. */
enum status steps_of(struct steps *s, const struct timeline *t, const struct nccl *n, struct error *err);
void steps_release(struct steps *s); /* leaves *s empty */
/* The windows that shares and advice describe: the steps; NULL if no process has steps. */
const struct windows *steps_steady(const struct steps *s);
#endif
