/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GEMM cases in runs that have attention cases too: rate, efficiency, latency. */
#ifndef REPORT_TABLES_GEMM_H
#define REPORT_TABLES_GEMM_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* Fills the table. False: no GEMM case has a figure, or its target has no attention case; then the table of
 * figures is enough. */
bool gemm_grid(struct grid *g, const struct view *v);
#endif
