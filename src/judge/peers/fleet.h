/* SPDX-License-Identifier: Apache-2.0 */
/* All GPUs of a node below their ranges: one finding about the node, since none of them is the odd one. */
#ifndef JUDGE_PEERS_FLEET_H
#define JUDGE_PEERS_FLEET_H
#include "judge/case/context.h"

/* Over every node of the record; `out` in the record's order, with gaps. False: no memory. */
bool fleet_judge(struct judgement *out, const struct judge_context *ctx);
#endif
