/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of GPUs against each other: a slow link with its direction, or the GPU that is slow with most others.
 */
#ifndef JUDGE_PEERS_GPU_PAIRS_H
#define JUDGE_PEERS_GPU_PAIRS_H
#include "judge/case/context.h"

/*
 * Over every case on a pair of GPUs; `out` in the record's order, judged so far each by itself. A GPU whose
 * outgoing (or incoming) pairs are slow in at least half, and at least two, is one finding: the worst of them
 * carries it (judgement.part), the others say which. Two directions of one pair are held against each other.
 */
void links_judge(struct judgement *out, const struct judge_context *ctx);
#endif
