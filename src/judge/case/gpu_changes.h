/* SPDX-License-Identifier: Apache-2.0 */
/* Changes on the GPUs of a case during the run. */
#ifndef JUDGE_CASE_GPU_CHANGES_H
#define JUDGE_CASE_GPU_CHANGES_H
#include "judge/case/context.h"

/* Judges a GPU that was lost in this case. This outweighs how the case ended. */
void changes_lost(struct judgement *out, const struct subject *s);
/* Judges the Xids that came while the case ran, or after it and before the next case on this GPU. */
void changes_xids(struct judgement *out, const struct subject *s);
/* Judges all other changes of the cases that the plan did not skip: counters that rose, telemetry that
 * stopped, a reboot. `of_case` has one judgement for each case of ctx->record. False: out of memory. */
bool changes_judge(struct judgement *of_case, const struct judge_context *ctx);
#endif
