/* SPDX-License-Identifier: Apache-2.0 */
/* The table of data transfers between GPUs or ranks with single iterations timed:
 * docs/explanation/methods/measuring.md, "Single iterations". */
#ifndef REPORT_TABLES_SINGLE_ITERATIONS_H
#define REPORT_TABLES_SINGLE_ITERATIONS_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* Fills one row per case whose iterations were timed one by one, the longest tail (99th percentile over
 * median) first. False: there is none. */
bool single_iterations_grid(struct grid *g, const struct view *v);
#endif
