/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of the cases differ that several measure together: who is the first, who the last, who waits.
 */
#ifndef REPORT_TABLES_RANK_SPREAD_H
#define REPORT_TABLES_RANK_SPREAD_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* A row a case; `notable`: of those alone whose ranks are RANKS_APART apart or wait so much. No rows: nothing
 * to show. */
#define RANKS_APART 0.02 /* share of the time: METHODS, "Several ranks" */
void ranks_grid(struct grid *g, const struct view *v, bool notable);
#endif
