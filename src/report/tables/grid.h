/* SPDX-License-Identifier: Apache-2.0 */
/* A table of texts, such as a matrix of pairs, scaling or single iterations. All renderers show the same
 * grid. */
#ifndef REPORT_TABLES_GRID_H
#define REPORT_TABLES_GRID_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/text.h"

struct terminal_style;
struct view;
struct view_row;

enum { GRID_COLUMNS = 20 };

struct grid {
	struct text title, note; /* note: shown below the table, without its full stop; "" none */
	const char *style;	 /* its CSS class on the page; NULL: none */
	bool row_heads;		 /* the first column is the heading of its row */
	size_t brief;		 /* maximum number of rows on a terminal; 0: all */
	bool folded;		 /* on the page the table is folded at first */
	size_t columns;
	struct {
		char head[32];
		bool right; /* aligned right, for figures */
	} column[GRID_COLUMNS];
	char **cell; /* by row */
	size_t cells;
	struct {
		size_t cell;
		char *text;
	} * hint; /* sorted by cell */
	size_t hints;
	struct {
		size_t cell;
		const struct view_row *row;
	} * place; /* sorted by cell */
	size_t places;
	bool failed; /* out of memory: the grid is incomplete */
};

void grid_release(struct grid *g);
void grid_column(struct grid *g, const char *head, bool right);
/* Appends the next cell. Cells fill row after row. */
void grid_cell(struct grid *g, const char *s);
/* Adds more about the last cell, at most once per cell. The page shows it as a tooltip; the other formats do
 * not show it. */
void grid_hint(struct grid *g, const char *s);
/* The last cell is the place of a case on the page (html_case_id). At most once per cell. */
void grid_place(struct grid *g, const struct view_row *row);
size_t grid_rows(const struct grid *g);
const char *grid_at(const struct grid *g, size_t row, size_t column);

/* Visits every grid of the view in the order of the report; a grid is valid during the call. `brief`: leave
 * out rows that need no attention if they would hide the others. */
typedef void grid_visit(void *arg, const struct grid *g);
void grid_each(const struct view *v, bool brief, grid_visit *visit, void *arg);

void grid_markdown(struct text *out, const struct grid *g);
void grid_html(struct text *out, const struct grid *g);
void grid_terminal(const struct terminal_style *p, const struct grid *g);
#endif
