/* SPDX-License-Identifier: Apache-2.0 */
/* Finds figures of one run that cannot both be right. */
#ifndef JUDGE_PEERS_CONTRADICTIONS_H
#define JUDGE_PEERS_CONTRADICTIONS_H
#include "judge/case/context.h"

/* A CPU ceiling measured twice in one run, by itself and interleaved with a case: if the two differ by more
 * than this share, both are named. */
#define CONTRADICTIONS_MOMENTS 0.25

/* Compares all CPU cases of the record, which are already judged by themselves. If more threads reach less in
 * every round, both figures become untrusted. If a larger size is faster, the case gets a warning, or only a
 * note in its reason if the plan does not require a judgement. False: out of memory. */
bool contradictions_judge(struct judgement *of_case, const struct judge_context *ctx);
#endif
