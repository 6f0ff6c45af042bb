/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a case should reach at least, of all that a run knows: the one place that says which of it counts. The
 * judge asks it ahead of a run and after it, the run before it follows a case that is slow.
 */
#ifndef JOURNAL_FIGURE_EXPECTED_H
#define JOURNAL_FIGURE_EXPECTED_H
#include <jansson.h>
#include "journal/figure/figure.h"

/* Of what a smaller group of nodes reached, as METHODS ("Shares of the bound") has it. */
#define EXPECTED_OF_GROUP 0.5

/* Rates (of a time: its inverse); 0: none. */
struct expected_known {
	double band;  /* the low end of the band that fits */
	double share; /* what sound machines reach of the bound at least */
	double group; /* by what fewer nodes of this run reached: expected_by_group */
};

/* What is known before the run, by what the run may tell (figure.h). */
struct expected_before_run {
	struct expected_known way[FIGURE_WAYS];
	double ceiling_pass;  /* on a CPU: the ratio to its ceiling from which it passes; 0: none judges it */
	double ceiling_above; /* and from which it is no figure: something held the ceiling up */
};

enum expected_from { EXPECTED_NOTHING, EXPECTED_BAND, EXPECTED_SHARE, EXPECTED_GROUP };
struct expected {
	double rate; /* below it the case is slow; 0: nobody knows */
	enum expected_from from;
};
/* A band, where one fits; else the most of what is known. */
struct expected expected_of(const struct expected_known *known);

/* A collective of this run, as it was planned. */
struct expected_case {
	const char *key, *limit;
	const json_t *layout; /* of its CASE object; NULL: none */
	double rate;	      /* what it came to */
};
/*
 * What `whole` should reach at least by what `group` did: the same collective on fewer nodes, two at least,
 * with as many ranks on each. 0: it is none such.
 */
double expected_by_group(const struct expected_case *whole, const struct expected_case *group);
#endif
