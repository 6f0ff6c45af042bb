/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways to find a process's steps; steps.c's own. */
#ifndef PROFILE_STEPS_INTERNAL_H
#define PROFILE_STEPS_INTERNAL_H
#include "profile/steps/launches.h"
#include "profile/steps/steps.h"

/* Less than this much of a process's kernels' time in its steps, or more than the other behind them: no
 * steady state. */
#define STEPS_LEAST_INSIDE 0.1
#define STEPS_MOST_BEHIND 0.5

struct steps_found {
	struct windows_span *step; /* in order, none over another; free() */
	size_t steps;
	uint8_t mark;
	uint16_t kind;
	uint32_t name;
	bool numbered;
};

/* Into *f, which is empty; it stays so where there are none. false: no memory. */
bool steps_by_range(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l);
bool steps_by_event(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l);
#endif
