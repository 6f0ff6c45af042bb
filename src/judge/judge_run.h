/* SPDX-License-Identifier: Apache-2.0 */
/* judge_record for a machine that is already parsed: tests use it with a machine built by hand. */
#ifndef JUDGE_JUDGE_RUN_H
#define JUDGE_JUDGE_RUN_H
#include "judge/case/context.h"

enum status judge_run(struct judgements *out, const struct judge_context *ctx, const struct judge_site *site,
		      struct error *err);
#endif
