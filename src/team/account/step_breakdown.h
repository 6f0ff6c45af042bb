/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the time of a training step of several ranks into its parts. Pure. Every time is measured on a
 * rank's own device, so no clocks of different devices are compared. The all-reduce of the last bucket aligns
 * the steps of the ranks, because all ranks finish it together. See docs/explanation/methods/scaling.md,
 * "Where the time of a step goes".
 */
#ifndef TEAM_ACCOUNT_STEP_BREAKDOWN_H
#define TEAM_ACCOUNT_STEP_BREAKDOWN_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum { SCALING_RANKS_MAX = 4096 };

/* Times are in ns per step. Arrays have ranks * steps elements: [rank * steps + step]. */
struct scaling_trace {
	unsigned ranks, steps;
	const double *ready; /* time from the end of the previous step to this step's last gradient */
	const double *drain; /* time from there to the end of the step's last bucket */
	double wall;	     /* by the host's clock, of the slowest rank */
	/* Measured separately; 0: not measured. */
	double one;	    /* step on one rank while the others are idle: median over ranks */
	double together;    /* computation of all ranks at once, without collectives: mean */
	double collective;  /* collectives alone */
	double first_ready; /* time from the start of the step until the first bucket is ready: mean */
};

/* name, text of the cause of the loss */
#define SCALING_LOSSES(X)                                                                                    \
	X(NONE, "nothing")                                                                                   \
	X(COMPUTE, "computation")                                                                            \
	X(CONTENTION, "contention")                                                                          \
	X(EXPOSED, "communication")                                                                          \
	X(WAITING, "waiting")
#define X(name, text) SCALING_LOSS_##name,
enum scaling_loss { SCALING_LOSSES(X) SCALING_LOSS_COUNT };
#undef X

/* Parts of the step time: compute + exposed + waiting = step, from one trace. */
struct scaling_account {
	double step, compute, exposed, waiting;
	double waiting_others; /* mean over all ranks but the slowest; over all ranks if slowest is -1 */
	double contention;     /* part of compute: slowdown by concurrent collectives; 0: not known */
	/* time lost compared with one rank alone; needs `one` and `together` */
	double lost[SCALING_LOSS_COUNT];
	double efficiency; /* step of one rank alone divided by this step; 0: not known */
	/* second estimate of `exposed`, from parts measured separately; -1: not known */
	double exposed_model;
	double unexplained_share; /* |step - wall| / wall */
	bool explained;		  /* unexplained_share is at most SCALING_CLOSED */
	int slowest;		  /* rank that is last in most steps; -1: no rank is */
	double slowest_share;	  /* share of steps in which it was last */
	enum scaling_loss largest;
};
#define SCALING_CLOSED                                                                                       \
	0.03 /* largest accepted difference between the sum of the parts and the host's time, as a share */
#define SCALING_SLOWEST_SHARE 0.8 /* a rank is the slowest if it is last in this share of the steps */
#define SCALING_SLOWEST_COST 0.01 /* and if the others wait at least this share of the step for it */

/* Computes the parts from the trace. BAD_INPUT: no ranks, no steps, or an invalid time. */
enum status scaling_account(struct scaling_account *out, const struct scaling_trace *t, struct error *err);
const char *scaling_loss_text(enum scaling_loss loss);
#endif
