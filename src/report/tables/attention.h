/* SPDX-License-Identifier: Apache-2.0 */
/* The table of attention cases, engines side by side: time, microseconds per head, rate, time relative to
 * cuDNN and, for block-sparse cases, to the dense case. Shapes with a published figure show it too. */
#ifndef REPORT_TABLES_ATTENTION_H
#define REPORT_TABLES_ATTENTION_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* Fills the table. False: no case of probe attention has a figure. */
bool attention_grid(struct grid *g, const struct view *v);
/* An array with one object per case; empty: none. The caller decrefs it. */
json_t *attention_json(struct json_build *b);
#endif
