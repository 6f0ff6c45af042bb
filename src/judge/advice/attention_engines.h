/* SPDX-License-Identifier: Apache-2.0 */
/* An attention beside other engines of the same problem in the same run: how far it errs, what is faster,
 * which of its units binds. */
#ifndef JUDGE_ADVICE_ATTENTION_ENGINES_H
#define JUDGE_ADVICE_ATTENTION_ENGINES_H
#include "judge/case/context.h"

/* Fills error_over_library; above the gate that is a finding. Both hold the same rows of the same data
 * against double precision. */
void attention_accuracy(struct judgement *out, const struct subject *s);
/* Advice; nothing without a number. */
void attention_advice(struct judgement *out, const struct subject *s);
#endif
