/* SPDX-License-Identifier: Apache-2.0 */
/* What one step of a training run took, as its journal has it: the steady step of median length, so that its
 * parts add up to it. Journals that do not tell which steps are steady have all of them count. */
#ifndef JUDGE_GAP_TRAINING_STEP_H
#define JUDGE_GAP_TRAINING_STEP_H
#include "journal/record/record.h"

enum { TRAINING_PARTS_MOST = 16 };

struct training_part {	/* a kind of operation, by events */
	char name[40];	/* "attention_backward" */
	double s, flop; /* 0: none, or not told (older journals); what was made again is among them */
	double bytes;	/* of what has no FLOP, each operand once; 0: not told */
};
struct training_step {
	size_t steps; /* told, steady ones where any are; of an even number the lower median is taken */
	double step_s, mean_s; /* this one; all of them */
	double phases_s;       /* forward, backward, optimiser together */
	double gemm_s;	       /* in products, attention's among them; NAN: not timed */
	double flop;	       /* that the model asks for */
	double gemm_rate;      /* FLOP/s of a large product before the first step; 0: not told */
	struct training_part part[TRAINING_PARTS_MOST];
	size_t part_count;	    /* 0: not timed */
	double parts_s, parts_flop; /* their sums */
	uint64_t t_ns;		    /* its readings' */
};

/* False: the journal tells no steps. */
bool training_step_of(struct training_step *out, const struct record *r);
/* A reading of that moment; NAN: none. */
double training_reading(const struct series *s, uint64_t t_ns);
/* Products and attention: what is bound by its FLOP. */
bool training_part_multiplies(const struct training_part *p);
#endif
