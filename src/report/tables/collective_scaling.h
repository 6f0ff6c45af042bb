/* SPDX-License-Identifier: Apache-2.0 */
/* One collective over 2, 4, .. GPUs and nodes: what of the smallest group's bus bandwidth is left, as a table
 * a collective. A step's efficiency over the same groups is scaling.h's. */
#ifndef REPORT_TABLES_COLLECTIVE_SCALING_H
#define REPORT_TABLES_COLLECTIVE_SCALING_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* True: the row is the smallest of at least two groups with one collective, of its node or of the team. */
bool collective_scaling_lead(const struct view *v, size_t row);
/* False: of one node of many that a brief report leaves to the others. */
bool collective_scaling_brief(const struct view *v, size_t row);
/* All groups of a lead, by growing ranks. */
void collective_scaling_grid(struct grid *g, const struct view *v, size_t lead);
/* One object a lead; an empty array: none. Caller decrefs. */
json_t *collective_scaling_json(struct json_build *b);
#endif
