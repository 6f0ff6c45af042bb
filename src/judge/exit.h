/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is worth as a whole: exit code, verdict, headline. Table: docs/explanation/design/exit.md. */
#ifndef JUDGE_EXIT_H
#define JUDGE_EXIT_H
#include "judge/case/context.h"

/* What one case asks of the exit code: 0, 1 or 2. `require` as in a subject: KNOWN is
 * settled. */
/* `said`: the suite asks for judgement in words; then a kernel log that cannot be read counts too. */
int exit_of_case(const struct judgement *j, enum require require, bool said);
/* Fills exit_code, verdict and headline from of_case (and `stated`, where has_stated). */
void exit_judge(struct judgements *out, const struct judge_context *ctx);
#endif
