/* SPDX-License-Identifier: Apache-2.0 */
/* A plan before it runs: what it will take, case by case. */
#ifndef CMD_RUNNING_PLAN_H
#define CMD_RUNNING_PLAN_H
#include "machine/machine.h"
#include "run/plan/case.h"

/* A case that waits for a device in use; NULL: none. */
const struct bench_case *running_busy(const struct plan *p);
/* Whether a required case of the team is for nobody, since this rank lacks something. */
bool running_lacks(const struct plan *p);
/* To stdout: time, watts and bytes first, then the cases with their reasons. */
void running_print_plan(const struct plan *p, const struct machine *m, const char *dir, bool json);
#endif
