/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, engines side by side: time, microseconds a head, rate, against the best library and,
 * block-sparse, against the dense case; beside the shape that figures were published of, those. */
#ifndef REPORT_TABLES_ATTENTION_H
#define REPORT_TABLES_ATTENTION_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* False: no case of probe attention has a figure. */
bool attention_grid(struct grid *g, const struct view *v);
/* An object a case; an empty array: none. Caller decrefs. */
json_t *attention_json(struct json_build *b);
#endif
