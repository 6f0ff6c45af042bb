/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of probe scaling that differ in their ranks alone, as one table: efficiency over ranks, and where the
 * rest of the step went. */
#ifndef REPORT_SCALING_H
#define REPORT_SCALING_H
#include "report/view.h"

enum { SCALING_ROWS = 16, SCALING_TABLES = 8 };

/* head, flush right */
#define SCALING_COLUMNS(X)                                                                                   \
	X(ranks, 1)                                                                                          \
	X(target, 0)                                                                                         \
	X(step, 1)                                                                                           \
	X(efficiency, 1)                                                                                     \
	X(compute, 1)                                                                                        \
	X(exposed, 1)                                                                                        \
	X(waiting, 1)                                                                                        \
	X(slowest, 0)                                                                                        \
	X(largest_loss, 0)
#define X(name, right) SCALING_COLUMN_##name,
enum scaling_column { SCALING_COLUMNS(X) SCALING_COLUMN_COUNT };
#undef X

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
const char *scaling_head(enum scaling_column column);
bool scaling_right(enum scaling_column column);
void scaling_cell(char *out, size_t size, const struct view_row *row, enum scaling_column column);
/* What the shares are of, and which accounts do not close. */
void scaling_note(struct text *out, const struct scaling_table *t);
/* All tables for a terminal of so many columns. */
void terminal_scaling(struct text *out, const struct view *v, unsigned columns);
#endif
