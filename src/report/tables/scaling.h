/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of probe scaling that differ in their ranks alone, as one table: efficiency over ranks, and where the
 * rest of the step went. */
#ifndef REPORT_TABLES_SCALING_H
#define REPORT_TABLES_SCALING_H
#include "report/tables/grid.h"
#include "report/view/view.h"

enum { SCALING_ROWS = 16, SCALING_TABLES = 8 };

struct scaling_table {
	const char *title;			  /* of its rows; lent */
	const struct view_row *row[SCALING_ROWS]; /* by growing ranks */
	size_t count;
};
struct scaling_tables {
	struct scaling_table table[SCALING_TABLES];
	size_t count;
};

/* Rows whose account was told; beyond SCALING_TABLES keys or SCALING_ROWS sizes the rest is left to the table
 * of figures, where each of them stands anyway. */
void scaling_collect(struct scaling_tables *out, const struct view *v);
/* With a note of what the shares are of, and of which accounts do not close. */
void scaling_grid(struct grid *g, const struct scaling_table *t);
#endif
