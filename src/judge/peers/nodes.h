/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the nodes of one team: the facts in which they differ. */
#ifndef JUDGE_PEERS_NODES_H
#define JUDGE_PEERS_NODES_H
#include "judge/case/context.h"

/* Fills out->difference, with harmful differences first. It stays empty unless at least two nodes have a
 * machine. */
enum status nodes_judge(struct judgements *out, const struct judge_context *ctx, struct error *err);
void nodes_release(struct judgements *out);
#endif
