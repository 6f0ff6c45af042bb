/* SPDX-License-Identifier: Apache-2.0 */
/* Compares pairs of GPUs: finds a slow link with its direction, or the GPU whose links are mostly slow. */
#ifndef JUDGE_PEERS_GPU_PAIRS_H
#define JUDGE_PEERS_GPU_PAIRS_H
#include "judge/case/context.h"

/* Judges all cases on pairs of GPUs. `out` is in the record's order, with each case already judged by itself.
 * If at least half of the outgoing (or incoming) pairs of a GPU are slow, and at least two, that is one
 * finding: its worst pair carries it (judgement.part), the others refer to it. With only one pair its two
 * directions are compared. */
void links_judge(struct judgement *out, const struct judge_context *ctx);
#endif
