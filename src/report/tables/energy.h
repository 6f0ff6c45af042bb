/* SPDX-License-Identifier: Apache-2.0 */
/* Energy per unit of work of timed cases: docs/explanation/methods/measuring.md, "Energy". */
#ifndef REPORT_TABLES_ENERGY_H
#define REPORT_TABLES_ENERGY_H
#include "report/tables/grid.h"
#include "report/data/json_build.h"

/* Of the judged window. A value of zero: the case's figure does not count this work. */
struct energy_of_work {
	double power_w, joules;
	double per_flop_j, per_byte_j; /* bytes read and written, or sent over a link */
};

/* False: the case has no energy or no work, its energy is not of the whole device, or it is in doubt because
 * counter and readings differ. */
bool energy_of_work(struct energy_of_work *out, const struct view_row *row);
/* Fills one row per such case. False: none. */
bool energy_grid(struct grid *g, const struct view *v);
/* {"power_w", "joules", "joules_per_flop", "joules_per_byte"}, or {"why"} if counter and readings differ;
 * NULL: the case has no such energy. The caller decrefs it. */
json_t *energy_json(struct json_build *b, const struct view_row *row);
#endif
