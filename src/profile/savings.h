/* SPDX-License-Identifier: Apache-2.0 */
/* What would buy time, by what was found: a line has its figures and a knob, or is not there. */
#ifndef PROFILE_SAVINGS_H
#define PROFILE_SAVINGS_H
#include "core/text.h"
#include "profile/findings.h"

enum { SAVINGS_LINES = 8 };
struct savings_line {
	const char *knob; /* static */
	char evidence[400];
	double share; /* of the devices' time, at most what it buys */
};
struct savings {
	struct savings_line line[SAVINGS_LINES]; /* what buys most first */
	size_t lines;
};

struct savings savings_of(const struct findings *f);
#endif
