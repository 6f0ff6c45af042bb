/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a run that attends too, side by side: rate, efficiency, latency. */
#ifndef REPORT_TABLES_GEMM_H
#define REPORT_TABLES_GEMM_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* False: no product has a figure, or nothing attends on its target: the table of figures says enough. */
bool gemm_grid(struct grid *g, const struct view *v);
#endif
