/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the highest rate that meets the limits: first the rate at which the server is saturated, by
 * a closed loop, then rising rates until one is missed, then bisection. Pure: the caller runs the stages.
 */
#ifndef LOAD_RUN_SWEEP_H
#define LOAD_RUN_SWEEP_H
#include <jansson.h>
#include <stdbool.h>

enum { SWEEP_STAGES_MOST = 12 };

struct sweep {
	double saturated; /* requests/s that the closed loop reached */
	double low, high; /* the highest rate that met the limits, the lowest one that did not; 0: none yet */
	double sure;	  /* the highest rate that met them with 95 % confidence; 0: none */
	unsigned stages;
};
void sweep_begin(struct sweep *s, double saturated);
/* The rate of the next stage; 0: the search has ended, because the bracket is 5 % wide, or nothing is met, or
 * after SWEEP_STAGES_MOST stages. */
double sweep_next(const struct sweep *s);
/* The stage with `rate` has ended. `met`: by the shares of its requests, which decide the search, because
 * near the rate that is looked for an interval holds the required share. `sure`: by the low ends of their
 * intervals, too. */
void sweep_take(struct sweep *s, double rate, bool met, bool sure);
/* Whether the low end of the 95 % interval of each set's share in a stage's figures is at least the
 * attainment. If all requests must meet a set, the share itself decides. */
bool sweep_is_sure(const json_t *values);
#endif
