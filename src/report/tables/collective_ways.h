/* SPDX-License-Identifier: Apache-2.0 */
/* The best way to run each collective, as a grid a target: a row a size. */
#ifndef REPORT_TABLES_COLLECTIVE_WAYS_H
#define REPORT_TABLES_COLLECTIVE_WAYS_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* False: this is not the first of its collective and target. */
bool ways_lead(const struct view *v, size_t way);
/* Of all sizes of this one's collective and target. */
void ways_grid(struct grid *g, const struct view *v, size_t way);
/* "window buffers, graph"; of a search its variant. */
void ways_name(struct text *out, const struct view *v, const struct judge_way *w);
#endif
