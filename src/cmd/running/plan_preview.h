/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a plan to the judge before anything runs. */
#ifndef CMD_RUNNING_PLAN_PREVIEW_H
#define CMD_RUNNING_PLAN_PREVIEW_H
#include "judge/judge.h"
#include "run/plan/case.h"

/* Makes a record of the plan without results. The caller calls record_release. */
enum status plan_preview_record(struct record *r, const struct plan *p, const struct machine *m,
				struct error *err);
/* The values that each case should reach, as far as known before the run (run_options.expected), by case
 * number: the low end of its expected range (for a time, the inverse of the high end), and the share of
 * the bound that healthy machines reach. The caller frees *out. */
enum status plan_preview_expected(struct expected_before_run **out, const struct plan *p,
				  const struct machine *m, const struct expectations *e, struct error *err);
#endif
