/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one run that cannot both be right. */
#ifndef JUDGE_CONTRADICTIONS_H
#define JUDGE_CONTRADICTIONS_H
#include "judge/context.h"

/* A CPU ceiling taken twice in one run, by itself and in turns with a case: beyond this both are told. */
#define CONTRADICTIONS_MOMENTS 0.25

/* Over every CPU case of the record, each judged by itself already. What contradicts another in every round
 * that was measured is untrusted, and so is the other. */
void contradictions_judge(struct judgement *of_case, const struct judge_context *ctx);
#endif
