/* SPDX-License-Identifier: Apache-2.0 */
/* How much the units of the GPU were used, next to published targets for such kernels. */
#ifndef JUDGE_ADVICE_UNIT_USE_H
#define JUDGE_ADVICE_UNIT_USE_H
#include "judge/case/context.h"

/* Fills `metric` of a judgement with a figure of one GPU: GEMM, attention or memory. */
void unit_use_of(struct judgement *out, const struct subject *s);
#endif
