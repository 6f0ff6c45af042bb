/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the highest rate that meets the limits: first the rate at which the server is saturated, by
 * a closed loop, then bisection. Pure: the caller runs the stages.
 */
#ifndef LOAD_RUN_SWEEP_H
#define LOAD_RUN_SWEEP_H
#include <stdbool.h>

enum { SWEEP_STAGES_MOST = 12 };

struct sweep {
	double saturated; /* requests/s that the closed loop reached */
	double low, high; /* the highest rate that met the limits, the lowest one that did not; 0: none yet */
	unsigned stages;
};
void sweep_begin(struct sweep *s, double saturated);
/* The rate of the next stage; 0: the search has ended, because the bracket is 5 % wide, or nothing is met, or
 * after SWEEP_STAGES_MOST stages. */
double sweep_next(const struct sweep *s);
/* The stage with `rate` has ended. */
void sweep_take(struct sweep *s, double rate, bool met);
#endif
