/* SPDX-License-Identifier: Apache-2.0 */
/* The best way to run each collective: one table per collective and target, with one row per size. */
#ifndef REPORT_TABLES_COLLECTIVE_WAYS_H
#define REPORT_TABLES_COLLECTIVE_WAYS_H
#include "report/tables/grid.h"
#include "report/view/view.h"

/* True if this is the first entry of its collective and target. */
bool ways_lead(const struct view *v, size_t way);
/* Fills the table with all sizes of this entry's collective and target. */
void ways_grid(struct grid *g, const struct view *v, size_t way);
/* Appends the way in words: "window buffers, graph", or the variant that a search found. */
void ways_name(struct text *out, const struct view *v, const struct judge_way *w);
#endif
