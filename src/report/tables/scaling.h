/* SPDX-License-Identifier: Apache-2.0 */
/* One table of cases of probe scaling that differ only in their number of ranks: efficiency over ranks, and
 * the parts of the step. */
#ifndef REPORT_TABLES_SCALING_H
#define REPORT_TABLES_SCALING_H
#include "report/tables/grid.h"
#include "report/view/view.h"

enum { SCALING_ROWS = 16, SCALING_TABLES = 8 };

struct scaling_table {
	const char *title;			  /* the title of its rows; owned by the view */
	const struct view_row *row[SCALING_ROWS]; /* by increasing number of ranks */
	size_t count;
};
struct scaling_tables {
	struct scaling_table table[SCALING_TABLES];
	size_t count;
};

/* Collects the rows with a step breakdown. Above SCALING_TABLES keys or SCALING_ROWS sizes the others are
 * left out; the table of figures has all rows. */
void scaling_collect(struct scaling_tables *out, const struct view *v);
/* Fills the table. Its note explains the shares and names rows whose parts do not add up to the step. */
void scaling_grid(struct grid *g, const struct scaling_table *t);
#endif
