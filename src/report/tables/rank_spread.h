/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a case differ: the first, the last, and the time spent waiting. */
#ifndef REPORT_TABLES_RANK_SPREAD_H
#define REPORT_TABLES_RANK_SPREAD_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* Fills a table with one row per case of several ranks. `notable`: only cases whose ranks differ or wait by
 * at least RANKS_APART. No rows: nothing to show. */
#define RANKS_APART 0.02 /* share of the time; docs/explanation/methods/measuring.md, "Several ranks" */
void ranks_grid(struct grid *g, const struct view *v, bool notable);
#endif
