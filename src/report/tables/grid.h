/* SPDX-License-Identifier: Apache-2.0 */
/* A table besides those of targets, as texts, so that every rendering lays out the same: matrices of pairs,
 * scaling, single iterations. */
#ifndef REPORT_TABLES_GRID_H
#define REPORT_TABLES_GRID_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/text.h"

struct terminal_style;
struct view;

enum { GRID_COLUMNS = 20 };

struct grid {
	struct text title, note; /* note: below it, without its full stop; "" none */
	const char *style;	 /* the page's class for it; NULL: none */
	bool row_heads;		 /* the first column heads its row */
	size_t brief;		 /* rows on a terminal at most; 0: all */
	bool folded;		 /* on the page: unfolds */
	size_t columns;
	struct {
		char head[32];
		bool right; /* flush right: figures */
	} column[GRID_COLUMNS];
	char **cell; /* by row */
	size_t cells;
	struct {
		size_t cell;
		char *text;
	} * hint; /* by cell, ascending */
	size_t hints;
	bool failed; /* out of memory: what is there is not all */
};

void grid_release(struct grid *g);
void grid_column(struct grid *g, const char *head, bool right);
/* The next cell: row after row, as many a row as there are columns. */
void grid_cell(struct grid *g, const char *s);
/* More about the last cell, at most once a cell: the page shows it where the pointer rests; other forms do
 * not. */
void grid_hint(struct grid *g, const char *s);
size_t grid_rows(const struct grid *g);
const char *grid_at(const struct grid *g, size_t row, size_t column);

/* Every grid of the view, in the order in which reports show them; lent for the call. `brief`: without rows
 * that ask for nobody's attention, where all of them would hide what does. */
typedef void grid_visit(void *arg, const struct grid *g);
void grid_each(const struct view *v, bool brief, grid_visit *visit, void *arg);

void grid_markdown(struct text *out, const struct grid *g);
void grid_html(struct text *out, const struct grid *g);
void grid_terminal(const struct terminal_style *p, const struct grid *g);
#endif
