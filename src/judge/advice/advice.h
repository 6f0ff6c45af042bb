/* SPDX-License-Identifier: Apache-2.0 */
/* A factor turned into the knob: evidence of this run and what it may buy. Without a number nothing is said.
 */
#ifndef JUDGE_ADVICE_ADVICE_H
#define JUDGE_ADVICE_ADVICE_H
#include "judge/case/context.h"

/* After gap_of. Gains are promised from an A/B measurement of this run alone; else "at most". */
void advice_of(struct judgement *out, const struct subject *s);
/* For the kinds of advice. NULL: no room. */
struct advice *advice_add(struct judgement *out, const char *knob, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#endif
