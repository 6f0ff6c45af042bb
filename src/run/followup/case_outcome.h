/* SPDX-License-Identifier: Apache-2.0 */
/* Outcome of a case, as far as further cases may follow from it: its figure as a rate, and its status. */
#ifndef RUN_FOLLOWUP_CASE_OUTCOME_H
#define RUN_FOLLOWUP_CASE_OUTCOME_H
#include <jansson.h>
#include <stdbool.h>
#include "core/status.h"
#include "journal/figure/figure.h"

struct record_case;

struct case_outcome {
	bool done; /* it ended by itself, even with an error */
	enum status status;
	enum cause cause;
	double rate;  /* its figure; for a time, the inverse; 0: none */
	double noise; /* standard error of the rate, as a share; 0: unknown */
	enum figure_way way;
	int suspect;	      /* the rank whose data the probe suspects, counted from 1; 0: none */
	double ceiling_ratio; /* median share of its ceiling, from interleaved measurement; 0: none */
	char kernels[32];     /* the kernel set that its library chose; "": unknown */
	unsigned wrong_ranks, wrong_rank; /* number of ranks that found wrong data, and the first of them */
};

/* Takes the values of one phase's result. If several phases have the figure, the last one counts. */
void case_outcome_result(struct case_outcome *n, const char *limit, const char *phase, const json_t *values);
/* Takes the outcome that another rank reported. */
void case_outcome_take(struct case_outcome *n, double rate, double noise);
/* The figure as a result has it, with its half-width; empty if there is none. Caller decrefs. */
json_t *case_outcome_values(const struct case_outcome *n, const char *limit);
/* Takes the outcome that an earlier run recorded. */
void case_outcome_record(struct case_outcome *n, const struct record_case *c);
#endif
