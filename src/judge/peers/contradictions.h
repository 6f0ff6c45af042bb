/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one run that cannot both be right. */
#ifndef JUDGE_PEERS_CONTRADICTIONS_H
#define JUDGE_PEERS_CONTRADICTIONS_H
#include "judge/case/context.h"

/* A CPU ceiling taken twice in one run, by itself and in turns with a case: beyond this both are told. */
#define CONTRADICTIONS_MOMENTS 0.25

/* Over every CPU case of the record, each judged by itself already. More threads that do less in every round
 * are untrusted, and so are the fewer threads; a larger size that is faster warns, or, where nobody asked to
 * judge the case, only stands in its reason. False: no memory. */
bool contradictions_judge(struct judgement *of_case, const struct judge_context *ctx);
#endif
