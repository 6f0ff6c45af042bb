/* SPDX-License-Identifier: Apache-2.0 */
/* The expected range of a case: a band's ends, scaled by what the site states, and where a failure begins.
 * METHODS "Verdicts". */
#ifndef JUDGE_CASE_RANGE_H
#define JUDGE_CASE_RANGE_H
#include "judge/case/context.h"

/* Parts of a GPU that fail apart from each other. */
enum range_class { RANGE_NO_CLASS, RANGE_COMPUTE, RANGE_MEMORY, RANGE_LINK, RANGE_CLASS_COUNT };
const char *range_class_name(enum range_class which);
/* Of a headline case, which a user reads first: products, attention, device memory, copies, collectives, on
 * a GPU. RANGE_NO_CLASS: it is none. */
enum range_class range_class_of(const struct subject *s);

#define RANGE_MARGIN_LEAST 0.05 /* two cards or more: this, or their scatter where it is larger */
#define RANGE_MARGIN_ONE 0.10	/* one card */

struct range {
	double low, high; /* as the band has them, scaled */
	double mark;	  /* a published fail mark, scaled; 0: none */
	double margin;	  /* beyond the worse end by more than this: fail; 0: published figures alone */
	bool lenient;	  /* what is stated may slow it by an amount that nobody measured: it warns at most */
};

/* How far from its range a headline case fails; 0: published figures alone. */
double range_margin(const struct basis *b);
void range_of(struct range *out, const struct subject *s, const struct band_row *b);
/* The figure with its 95 % interval is a failure by margin or mark. A figure whose window is not to be
 * trusted
 * (`trusted` false) is not. */
bool range_fails(const struct range *r, const struct subject *s, const struct band_row *b, double value,
		 bool trusted);
#endif
