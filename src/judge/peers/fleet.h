/* SPDX-License-Identifier: Apache-2.0 */
/* All GPUs of a node below their ranges: one finding about the node, because no single GPU is the outlier. */
#ifndef JUDGE_PEERS_FLEET_H
#define JUDGE_PEERS_FLEET_H
#include "judge/case/context.h"

/* Judges every node of the record. `out` is in the record's order, and gaps are filled in. False: out of
 * memory. */
bool fleet_judge(struct judgement *out, const struct judge_context *ctx);
#endif
