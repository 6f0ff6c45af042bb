/* SPDX-License-Identifier: Apache-2.0 */
/* A plan before anything runs, as the judge sees it. */
#ifndef CMD_AHEAD_H
#define CMD_AHEAD_H
#include "judge/judge.h"
#include "run/case.h"

/* Owner: caller, record_release. */
enum status ahead_record(struct record *r, const struct plan *p, const struct machine *m, struct error *err);
/* What each case of the plan has to reach at least (run_options.expected_low), by its number: the low edge of
 * its band, of a time the inverse of the high one; where no band fits, the share of the bound that sound
 * machines reach; 0: neither. Caller frees *low. */
enum status ahead_low(struct figure_low **low, const struct plan *p, const struct machine *m,
		      const struct expectations *e, struct error *err);
#endif
