/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on a case's GPUs during the run. */
#ifndef JUDGE_CASE_GPU_CHANGES_H
#define JUDGE_CASE_GPU_CHANGES_H
#include "judge/case/context.h"

/* A GPU that was lost in this case, which outweighs how the case ended. */
void changes_lost(struct judgement *out, const struct subject *s);
/* Xids that came while it ran, or after it and before the next on this GPU. */
void changes_xids(struct judgement *out, const struct subject *s);
/* The rest, of all cases that the plan did not skip: counters that rose, telemetry that stopped, a reboot.
 * `of_case`: a judgement for each case of ctx->record. False: no memory. */
bool changes_judge(struct judgement *of_case, const struct judge_context *ctx);
#endif
