/* SPDX-License-Identifier: Apache-2.0 */
/* How far the GPU's units were used beside the published targets, and what this run says would move them,
 * each with its evidence. They decide nothing: METHODS "Metrics against targets". */
#ifndef REPORT_TABLES_UNIT_USE_H
#define REPORT_TABLES_UNIT_USE_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* A row a case of products and attention whose units were read, and the fastest memory case of each GPU.
 * False: none. */
bool unit_use_grid(struct grid *g, const struct view *v);
/* Of products and attention on GPUs: knob, evidence, what it may buy. False: nothing has a number that asks
 * for any. */
bool unit_use_advice_grid(struct grid *g, const struct view *v);
/* [{"name", "value", "unit", "target", "reached", "from"}]; empty: none. Caller decrefs. */
json_t *unit_use_json(struct json_build *b, const struct view_row *row);
#endif
