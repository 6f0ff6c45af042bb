/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a run that attends too, side by side: rate, efficiency, latency. */
#ifndef REPORT_PRODUCTS_H
#define REPORT_PRODUCTS_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* False: no product has a figure, or nothing attends on its target: the table of figures says enough. */
bool products_grid(struct grid *g, const struct view *v);
#endif
