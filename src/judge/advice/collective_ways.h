/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the ways in which one collective was run is best, and what it gains over NCCL's own. METHODS,
 * "Best way". */
#ifndef JUDGE_ADVICE_COLLECTIVE_WAYS_H
#define JUDGE_ADVICE_COLLECTIVE_WAYS_H
#include "judge/judge.h"

/* Fills out->way of verdicts that stand. Pure. */
enum status ways_judge(struct judgements *out, const struct record *r, struct error *err);
void ways_release(struct judgements *out);
#endif
