/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest way to run one collective, and its gain over NCCL's own choice.
 * docs/explanation/methods/collectives.md, "Best way". */
#ifndef JUDGE_ADVICE_COLLECTIVE_WAYS_H
#define JUDGE_ADVICE_COLLECTIVE_WAYS_H
#include "judge/judge.h"

/* Fills out->way. Call it after all cases have their final verdicts. Pure. */
enum status ways_judge(struct judgements *out, const struct record *r, struct error *err);
void ways_release(struct judgements *out);
#endif
