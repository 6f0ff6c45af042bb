/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lowest rate that a case is expected to reach. All callers use expected_of to choose between the known
 * references: the judge before and after a run, and the run before it starts an isolation search for a slow
 * case.
 */
#ifndef JOURNAL_FIGURE_EXPECTED_H
#define JOURNAL_FIGURE_EXPECTED_H
#include <jansson.h>
#include "journal/figure/figure.h"

/* Share of the rate of a smaller group of nodes: docs/explanation/methods/expected-ranges.md, "Shares of the
 * bound". */
#define EXPECTED_OF_GROUP 0.5

/* Rates, and the inverse of times; 0: not known. */
struct expected_known {
	double band;  /* the low end of the expected range that fits */
	double share; /* the lowest share of the bound that healthy machines reach, as a rate */
	double group; /* from the rate of fewer nodes in this run: expected_by_group */
};

/* References known before the run, for each way that the run may report (figure.h). */
struct expected_before_run {
	struct expected_known way[FIGURE_WAYS];
	double ceiling_pass;  /* on a CPU: the case passes from this ratio to its ceiling; 0: not judged */
	double ceiling_above; /* from this ratio it is invalid: something slowed the ceiling */
};

enum expected_from { EXPECTED_NOTHING, EXPECTED_BAND, EXPECTED_SHARE, EXPECTED_GROUP };
struct expected {
	double rate; /* below it the case is slow; 0: not known */
	enum expected_from from;
};
/* Returns the expected range if one fits, else the largest known rate. */
struct expected expected_of(const struct expected_known *known);

/* A planned collective of this run. */
struct expected_case {
	const char *key, *limit;
	const json_t *layout; /* from its CASE object; NULL: none */
	double rate;	      /* measured */
};
/*
 * The lowest rate expected of `whole`, from the rate of `group`: the same collective on fewer nodes, but at
 * least two, with the same number of ranks on each. 0: `group` is not such a case.
 */
double expected_by_group(const struct expected_case *whole, const struct expected_case *group);
#endif
