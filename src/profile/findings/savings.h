/* SPDX-License-Identifier: Apache-2.0 */
/* What would buy time in the steady state, by what was found: a line has its figures and a knob, or is not
 * there. */
#ifndef PROFILE_FINDINGS_SAVINGS_H
#define PROFILE_FINDINGS_SAVINGS_H
#include "core/text/text.h"
#include "profile/findings/findings.h"

enum { SAVINGS_LINES = 12 };
struct savings_line {
	const char *key; /* static; for programs: "late_rank", "launch" .. */
	char knob[400];
	char evidence[500];
	double share;	    /* of the devices' time, at most what it buys */
	double per_step_ns; /* the same, a step; 0: no steps were found */
};
struct savings {
	struct savings_line line[SAVINGS_LINES]; /* a late rank first, then what buys most */
	size_t lines;
};

struct savings savings_of(const struct findings *f);
#endif
