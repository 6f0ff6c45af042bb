/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways to find a process's steps. Private to steps.c and the files next to it. */
#ifndef PROFILE_STEPS_INTERNAL_H
#define PROFILE_STEPS_INTERNAL_H
#include "profile/steps/launches.h"
#include "profile/steps/steps.h"

/* No steady state if less than this part of the kernels' time lies in the steps, or if more than the other
 * part comes after them. */
#define STEPS_LEAST_INSIDE 0.1
#define STEPS_MOST_BEHIND 0.5

struct steps_found {
	struct windows_span *step; /* in order, without overlap; the caller frees it */
	size_t steps;
	uint8_t mark;
	uint16_t kind;
	uint32_t name;
	bool numbered;
};

/* Fill *f, which must be empty. It stays empty if no steps are found. false: out of memory. */
bool steps_by_range(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l);
bool steps_by_event(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l);
#endif
