/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of arrivals, one after the other. The expected number of arrivals in any part of the duration is the
 * integral of the rate over that part, exactly. CONSTANT begins at 0. The first gap of GAMMA is drawn from
 * the equilibrium distribution, as if the process had begun long ago; otherwise bursty arrivals would be too
 * many. RAMP and STEPS are Poisson processes whose rate changes with time.
 */
#ifndef LOAD_PLAN_ARRIVAL_H
#define LOAD_PLAN_ARRIVAL_H
#include "load/plan/plan.h"

enum { LOAD_STEPS_MOST = 256 };

struct arrivals {
	const struct load_plan_spec *spec;
	struct draw draw;
	uint64_t count;
	double sum; /* of gaps: of rate 1, or seconds (GAMMA) */
	double step[LOAD_STEPS_MOST];
	size_t steps;
};

/* BAD_INPUT: rates or burstiness out of range. The spec must outlive *a. */
enum status arrivals_begin(struct arrivals *a, const struct load_plan_spec *spec, struct error *err);
/* Seconds after the begin, ascending. False: the duration has ended, and *at is beyond it. */
bool arrivals_next(struct arrivals *a, double *at);
#endif
