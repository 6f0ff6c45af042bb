/* SPDX-License-Identifier: Apache-2.0 */
/* What a case came to, as far as more cases may follow from it: its figure as a rate, and whether it is
 * right. */
#ifndef RUN_FOLLOWUP_CASE_OUTCOME_H
#define RUN_FOLLOWUP_CASE_OUTCOME_H
#include <jansson.h>
#include <stdbool.h>
#include "core/status.h"
#include "journal/figure/figure.h"

struct record_case;

struct case_outcome {
	bool done; /* it ended by itself, well or not */
	enum status status;
	enum cause cause;
	double rate;  /* its figure; of a time, its inverse; 0: none */
	double noise; /* standard error of it, as a share; 0: not known */
	enum figure_way way;
	int suspect;	      /* the rank whose data its probe suspects, counted from 1; 0: none */
	double ceiling_ratio; /* median share of its ceiling, timed in turns; 0: none */
	char kernels[32];     /* the set that its library chose; "": unknown */
	unsigned wrong_ranks, wrong_rank; /* so many ranks found something wrong, the first of them */
};

/* Takes what a result of one phase says; of several phases that have the figure the last counts. */
void case_outcome_result(struct case_outcome *n, const char *limit, const char *phase, const json_t *values);
/* What another rank says that it came to. */
void case_outcome_take(struct case_outcome *n, double rate, double noise);
/* Its figure as a result tells it, with its half-width; empty where it has none. Caller decrefs. */
json_t *case_outcome_values(const struct case_outcome *n, const char *limit);
/* What an earlier run recorded of the case. */
void case_outcome_record(struct case_outcome *n, const struct record_case *c);
#endif
