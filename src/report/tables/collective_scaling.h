/* SPDX-License-Identifier: Apache-2.0 */
/* One table per collective over groups of 2, 4, .. GPUs and nodes: bus bandwidth relative to the smallest
 * group. scaling.h has the efficiency of a training step over the same groups. */
#ifndef REPORT_TABLES_COLLECTIVE_SCALING_H
#define REPORT_TABLES_COLLECTIVE_SCALING_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* True if the row is the smallest of at least two groups that ran the same collective, on one node or over
 * the whole run. */
bool collective_scaling_lead(const struct view *v, size_t row);
/* False if a brief report omits the table: it is about one node of a run of many nodes. */
bool collective_scaling_brief(const struct view *v, size_t row);
/* Fills the table with all groups of `lead`, by increasing number of ranks. */
void collective_scaling_grid(struct grid *g, const struct view *v, size_t lead);
/* An array with one object per lead; empty: none. The caller decrefs it. */
json_t *collective_scaling_json(struct json_build *b);
#endif
