/* SPDX-License-Identifier: Apache-2.0 */
/* The use of the GPU's units compared with published targets, and recommendations with their evidence. No
 * verdict depends on them: docs/explanation/methods/report.md, "Metrics against targets". */
#ifndef REPORT_TABLES_UNIT_USE_H
#define REPORT_TABLES_UNIT_USE_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* Fills one row per GEMM or attention case with readings of the units, and the fastest memory case per GPU.
 * False: none. */
bool unit_use_grid(struct grid *g, const struct view *v);
/* Fills the recommendations for GEMM and attention on GPUs: setting, evidence, gain. False: none. */
bool unit_use_advice_grid(struct grid *g, const struct view *v);
/* [{"name", "value", "unit", "target", "reached", "from"}]; empty: none. The caller decrefs it. */
json_t *unit_use_json(struct json_build *b, const struct view_row *row);
#endif
