/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a factor into advice: a setting, the evidence of this run, and the possible gain. Without a number
 * there is no advice. */
#ifndef JUDGE_ADVICE_ADVICE_H
#define JUDGE_ADVICE_ADVICE_H
#include "judge/case/context.h"

/* Call after gap_of. Only an A/B measurement of this run promises a gain; all other gains say "at most". */
void advice_of(struct judgement *out, const struct subject *s);
/* For the kinds of advice. NULL: the list is full. */
struct advice *advice_add(struct judgement *out, const char *knob, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#endif
