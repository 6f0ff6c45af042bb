/* SPDX-License-Identifier: Apache-2.0 */
/* judge_record without the machine's parser: for tests that build a machine by hand. */
#ifndef JUDGE_JUDGE_RUN_H
#define JUDGE_JUDGE_RUN_H
#include "judge/case/context.h"

enum status judge_run(struct judgements *out, const struct judge_context *ctx, const struct judge_site *site,
		      struct error *err);
#endif
