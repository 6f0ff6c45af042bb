/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a program: the part that it repeats, told apart from its start-up. A step lasts from one mark
 * to the next; a mark is a thing that the process does once in each. docs/explanation/methods, "Steps of a
 * profile".
 */
#ifndef PROFILE_STEPS_STEPS_H
#define PROFILE_STEPS_STEPS_H
#include "profile/nccl/nccl.h"
#include "profile/timeline/windows.h"

enum { STEPS_LEAST = 5 }; /* fewer are no steady state */

enum steps_mark {
	STEPS_NONE,
	STEPS_RANGE, /* an NVTX range begins */
	STEPS_EVENT  /* a kernel, copy, set or graph is launched, or the host waits */
};

/* Steps of one process, on its devices' time: the mark's first kernel, copy or set begins. */
struct steps_process {
	uint8_t mark;  /* enum steps_mark */
	uint16_t kind; /* of the mark: enum timeline_kind */
	uint32_t name; /* of the mark: index to the timeline's names */
	bool numbered; /* the mark's names differ in their digits alone; `name` is the first */
	size_t steps;  /* 0: none were found */
	double median_ns, p10_ns, p90_ns, mean_ns;
	uint64_t first_ns, last_ns; /* the process's first and last moment on a device */
};

struct steps {
	struct steps_process *process; /* as many as the timeline has */
	struct windows each;	       /* one window per step; kept apart where ranks share them */
	struct windows start_up;       /* what lies before a process's first step */
	size_t steps;		       /* of all processes */
};

/* Ranks that meet in collectives share their steps: those of one that opens ranges, else of the one that has
 * most. `n`: of the same timeline. NO_RESOURCE: memory. */
enum status steps_of(struct steps *s, const struct timeline *t, const struct nccl *n, struct error *err);
void steps_release(struct steps *s); /* empty again */
/* The windows that shares and advice are for: the steps, or NULL where no process has any. */
const struct windows *steps_steady(const struct steps *s);
#endif
