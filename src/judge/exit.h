/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run as a whole: exit code, verdict, headline. Table: docs/explanation/design/exit.md. */
#ifndef JUDGE_EXIT_H
#define JUDGE_EXIT_H
#include "judge/case/context.h"

/* Returns the exit code that one case demands: 0, 1 or 2. `require` is that of the subject, where KNOWN is
 * already resolved. `said`: the suite names `require` explicitly; then an unreadable kernel log counts too.
 */
int exit_of_case(const struct judgement *j, enum require require, bool said);
/* Fills exit_code, verdict and headline from of_case, and from `stated` if has_stated. */
void exit_judge(struct judgements *out, const struct judge_context *ctx);
#endif
