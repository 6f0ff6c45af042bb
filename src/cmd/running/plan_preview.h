/* SPDX-License-Identifier: Apache-2.0 */
/* A plan before anything runs, as the judge sees it. */
#ifndef CMD_RUNNING_PLAN_PREVIEW_H
#define CMD_RUNNING_PLAN_PREVIEW_H
#include "judge/judge.h"
#include "run/plan/case.h"

/* Owner: caller, record_release. */
enum status plan_preview_record(struct record *r, const struct plan *p, const struct machine *m,
				struct error *err);
/* What is known before the run of what each case of the plan has to reach (run_options.expected), by its
 * number: the low edge of its band, of a time the inverse of the high one; the share of the bound that sound
 * machines reach. Caller frees *out. */
enum status plan_preview_expected(struct expected_before_run **out, const struct plan *p,
				  const struct machine *m, const struct expectations *e, struct error *err);
#endif
