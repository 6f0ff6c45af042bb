/* SPDX-License-Identifier: Apache-2.0 */
/* The expected range of a case: the ends of the row, scaled by what the site states, and the point where a
 * failure begins. docs/explanation/methods/verdicts.md. */
#ifndef JUDGE_CASE_RANGE_H
#define JUDGE_CASE_RANGE_H
#include "judge/case/context.h"

/* Parts of a GPU that fail independently of each other. */
enum range_class { RANGE_NO_CLASS, RANGE_COMPUTE, RANGE_MEMORY, RANGE_LINK, RANGE_CLASS_COUNT };
const char *range_class_name(enum range_class which);
/* Class of a headline case, the cases a user reads first: GEMM, attention, device memory, copies and
 * collectives on a GPU. RANGE_NO_CLASS: any other case. */
enum range_class range_class_of(const struct subject *s);

#define RANGE_MARGIN_LEAST 0.05 /* two cards or more: this, or their scatter if that is larger */
#define RANGE_MARGIN_ONE 0.10	/* one card */

struct range {
	double low, high; /* as in the row, scaled */
	double mark;	  /* a published fail mark, scaled; 0: none */
	double margin;	  /* the case fails if it misses the worse end by more than this; 0: only published
			     figures, no failure by margin */
	bool lenient;	  /* the stated limits may slow the case by an amount that nobody has measured; it can
			     warn but not fail */
};

/* How far from its range a headline case fails; 0: the range comes from published figures only. */
double range_margin(const struct basis *b);
void range_of(struct range *out, const struct subject *s, const struct band_row *b);
/* True if the figure with its 95 % interval fails by margin or mark. A figure whose window is not trustworthy
 * (`trusted` false) does not fail. */
bool range_fails(const struct range *r, const struct subject *s, const struct band_row *b, double value,
		 bool trusted);
#endif
