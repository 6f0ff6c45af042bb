/* SPDX-License-Identifier: Apache-2.0 */
/* The result of an isolation search for the faulty one of several GPUs
 * (docs/explanation/design/isolation.md), and the cases of the search. */
#ifndef JUDGE_PEERS_ISOLATION_H
#define JUDGE_PEERS_ISOLATION_H
#include "judge/case/context.h"

/* Describes a case of an isolation search. It is evidence for another case, so it has no verdict and does not
 * count. False: the case is none. */
bool isolated_case(struct judgement *out, const struct subject *s);
/* Puts the result of the search at the beginning of the reason of the case that was searched. */
void isolated_explain(struct judgement *out, const struct subject *s);
#endif
