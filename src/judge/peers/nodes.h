/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of one team held against each other: facts in which they differ. */
#ifndef JUDGE_PEERS_NODES_H
#define JUDGE_PEERS_NODES_H
#include "judge/case/context.h"

/* Fills difference of *out, what hurts first; nothing where there are not two nodes with a machine. */
enum status nodes_judge(struct judgements *out, const struct judge_context *ctx, struct error *err);
void nodes_release(struct judgements *out);
#endif
