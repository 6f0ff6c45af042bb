/* SPDX-License-Identifier: Apache-2.0 */
/* How far the GPU's units were used, beside the targets that are published for such kernels. */
#ifndef JUDGE_ADVICE_UNIT_USE_H
#define JUDGE_ADVICE_UNIT_USE_H
#include "judge/case/context.h"

/* Fills `metric` of a judgement that has a figure of one GPU: products, attention, memory. */
void unit_use_of(struct judgement *out, const struct subject *s);
#endif
