/* SPDX-License-Identifier: Apache-2.0 */
#include "report/grid.h"
#include "report/scaling.h"
#include "report/singles.h"
#include "report/view.h"
#include "report/ways.h"

void grid_release(struct grid *g)
{
	for (size_t i = 0; i < g->cells; i++)
		free(g->cell[i]);
	free(g->cell);
	text_release(&g->title);
	text_release(&g->note);
	*g = (struct grid){0};
}

void grid_column(struct grid *g, const char *head, bool right)
{
	if (g->columns == GRID_COLUMNS)
		return;
	text_copy(g->column[g->columns].head, sizeof(g->column[0].head), head);
	g->column[g->columns++].right = right;
}

void grid_cell(struct grid *g, const char *s)
{
	char **more = realloc(g->cell, (g->cells + 1) * sizeof(*more));

	if (!more) {
		g->failed = true;
		return;
	}
	g->cell = more;
	more[g->cells] = strdup(s);
	if (more[g->cells])
		g->cells++;
	else
		g->failed = true;
}

size_t grid_rows(const struct grid *g)
{
	return g->columns ? g->cells / g->columns : 0;
}

const char *grid_at(const struct grid *g, size_t row, size_t column)
{
	return g->cell[row * g->columns + column];
}

void grid_each(const struct view *v, grid_visit *visit, void *arg)
{
	struct scaling_tables scaling;
	struct grid singles = {0};

	for (size_t i = 0; i < v->matrix_count; i++) {
		struct grid g = {0};

		matrix_grid(&g, &v->matrices[i]);
		visit(arg, &g);
		grid_release(&g);
	}
	for (size_t i = 0; i < v->in->judged->way_count; i++) {
		struct grid g = {0};

		if (!ways_lead(v, i))
			continue;
		ways_grid(&g, v, i);
		visit(arg, &g);
		grid_release(&g);
	}
	scaling_collect(&scaling, v);
	for (size_t i = 0; i < scaling.count; i++) {
		struct grid g = {0};

		scaling_grid(&g, &scaling.table[i]);
		visit(arg, &g);
		grid_release(&g);
	}
	if (singles_grid(&singles, v))
		visit(arg, &singles);
	grid_release(&singles);
}
