/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan before the run: what each case needs. */
#ifndef CMD_RUNNING_PLAN_H
#define CMD_RUNNING_PLAN_H
#include "machine/machine.h"
#include "run/plan/case.h"

/* The first case that waits for a device in use; NULL if there is none. */
const struct bench_case *running_busy(const struct plan *p);
/* True if a required case of the team cannot run because this rank lacks something. */
bool running_lacks(const struct plan *p);
/* Prints the plan to stdout: time, power and disk space first, then the cases and the reasons for skipped
 * ones. */
void running_print_plan(const struct plan *p, const struct machine *m, const char *dir, bool json);
#endif
