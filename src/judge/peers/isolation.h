/* SPDX-License-Identifier: Apache-2.0 */
/* What a search for the bad one among several GPUs found (docs/explanation/design/isolation.md), and its
 * cases. */
#ifndef JUDGE_PEERS_ISOLATION_H
#define JUDGE_PEERS_ISOLATION_H
#include "judge/case/context.h"

/* A case of a search is evidence of another case: it is told, judged by nothing, and counts for nothing. */
bool isolated_case(struct judgement *out, const struct subject *s);
/* The finding, where the case was searched: before all else in its reason. */
void isolated_tell(struct judgement *out, const struct subject *s);
#endif
