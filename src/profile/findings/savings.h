/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: how the program can save time in its steady state. Each line has a finding with its figures and the
 * setting to change. */
#ifndef PROFILE_FINDINGS_SAVINGS_H
#define PROFILE_FINDINGS_SAVINGS_H
#include "core/text/text.h"
#include "profile/findings/findings.h"

enum { SAVINGS_LINES = 12 };
struct savings_line {
	const char *key; /* static; key for JSON: "late_rank", "launch" .. */
	char knob[400];
	char evidence[500];
	double share;	    /* upper limit of the saving, as a share of the devices' time */
	double per_step_ns; /* the same saving in ns per step; 0: no steps were found */
};
struct savings {
	struct savings_line line[SAVINGS_LINES]; /* a straggler first, then by saving, largest first */
	size_t lines;
};

struct savings savings_of(const struct findings *f);
#endif
