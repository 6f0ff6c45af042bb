/* SPDX-License-Identifier: Apache-2.0 */
/* Compares an attention case with other engines on the same problem in the same run: its error, a faster
 * engine, and the unit that limits it. */
#ifndef JUDGE_ADVICE_ATTENTION_ENGINES_H
#define JUDGE_ADVICE_ATTENTION_ENGINES_H
#include "judge/case/context.h"

/* Fills error_over_library; above the limit it adds a finding. Both engines compare the same rows of the same
 * data with double precision. */
void attention_accuracy(struct judgement *out, const struct subject *s);
/* Adds advice if this run gives a number for it. */
void attention_advice(struct judgement *out, const struct subject *s);
#endif
