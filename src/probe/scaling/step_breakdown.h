/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a training step of several ranks goes. Pure; every time is of a rank's own device, so
 * no two clocks are compared: steps are joined by the last bucket's all-reduce, which all ranks leave
 * together. METHODS, "Scaling".
 */
#ifndef PROBE_SCALING_STEP_BREAKDOWN_H
#define PROBE_SCALING_STEP_BREAKDOWN_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum { SCALING_RANKS_MAX = 4096 };

/* Times are ns a step. Arrays of ranks * steps: [rank * steps + step]. */
struct scaling_trace {
	unsigned ranks, steps;
	const double *ready; /* last step's end to this step's last gradient */
	const double *drain; /* from there to the end of its last bucket */
	double wall;	     /* host's clock, the slowest rank's */
	/* Measured apart; 0: was not. */
	double one;	    /* the step on one rank, the others idle: median over ranks */
	double together;    /* the computation of all ranks at once, without collectives: mean */
	double collective;  /* the collectives alone */
	double first_ready; /* begin of the step to the first bucket's readiness: mean */
};

/* name, what is lost to it */
#define SCALING_LOSSES(X)                                                                                    \
	X(NONE, "nothing")                                                                                   \
	X(COMPUTE, "computation")                                                                            \
	X(CONTENTION, "contention")                                                                          \
	X(EXPOSED, "communication")                                                                          \
	X(WAITING, "waiting")
#define X(name, text) SCALING_LOSS_##name,
enum scaling_loss { SCALING_LOSSES(X) SCALING_LOSS_COUNT };
#undef X

/* Of the whole: compute + exposed + waiting = step, as sums of one trace. */
struct scaling_account {
	double step, compute, exposed, waiting;
	double waiting_others;		 /* of all ranks but the slowest; of all where none is named */
	double contention;		 /* of compute, beside collectives; 0: not known */
	double lost[SCALING_LOSS_COUNT]; /* against one rank; needs `one` and `together` */
	double efficiency;		 /* one rank's step over this one; 0: not known */
	double exposed_model;	  /* a second sight of `exposed`, from parts measured apart; -1: not known */
	double unexplained_share; /* |step - wall| / wall */
	bool explained;		  /* within SCALING_CLOSED of the host's clock */
	int slowest;		  /* rank; -1: none is it in most steps */
	double slowest_share;	  /* of steps in which it was */
	enum scaling_loss largest;
};
#define SCALING_CLOSED 0.03	  /* the sum may be off the host's time by so much */
#define SCALING_SLOWEST_SHARE 0.8 /* last in so many steps: it is the slowest */
#define SCALING_SLOWEST_COST 0.01 /* and the others wait so long for it, share of the step */

/* BAD_INPUT: no rank, no step, or a time that is none. */
enum status scaling_account(struct scaling_account *out, const struct scaling_trace *t, struct error *err);
const char *scaling_loss_text(enum scaling_loss loss);
#endif
