/* SPDX-License-Identifier: Apache-2.0 */
/* The time of one step of a training run, from its journal: the steady step of median length, so that its
 * parts add up to it. If a journal does not say which steps are steady, all of them count. */
#ifndef JUDGE_GAP_TRAINING_STEP_H
#define JUDGE_GAP_TRAINING_STEP_H
#include "journal/record/record.h"

enum { TRAINING_PARTS_MOST = 16 };

struct training_part {	/* one kind of operation, timed by events */
	char name[40];	/* "attention_backward" */
	double s, flop; /* flop 0: none, or not recorded (older journals); recomputed FLOP are included */
	double bytes;	/* for operations without FLOP, each operand counted once; 0: not recorded */
};
struct training_step {
	size_t steps; /* recorded steps, only the steady ones if there are any; for an even number the lower
			 median is taken */
	double step_s, mean_s; /* the median step, and the mean of all steps */
	double phases_s;       /* forward, backward and optimizer together */
	double comm_s;	       /* several ranks: waiting for collectives and slower ranks; not in phases_s */
	double gemm_s;	       /* in GEMMs, including those of attention; NAN: not timed */
	double flop;	       /* FLOP that the model needs */
	double gemm_rate;      /* FLOP/s of a large GEMM before the first step; 0: not recorded */
	struct training_part part[TRAINING_PARTS_MOST];
	size_t part_count;	    /* 0: not timed */
	double parts_s, parts_flop; /* sums over the parts */
	uint64_t t_ns;		    /* time of the readings of this step */
};

/* False: the journal has no steps. */
bool training_step_of(struct training_step *out, const struct record *r);
/* Returns the reading at that time; NAN: there is none. */
double training_reading(const struct series *s, uint64_t t_ns);
/* True for GEMMs and attention, whose bound is their FLOP. */
bool training_part_multiplies(const struct training_part *p);
#endif
