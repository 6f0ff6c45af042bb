/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/grid.h"
#include "report/tables/attention.h"
#include "report/tables/collective_scaling.h"
#include "report/tables/energy.h"
#include "report/tables/unit_use.h"
#include "report/tables/gemm.h"
#include "report/tables/rank_spread.h"
#include "report/tables/scaling.h"
#include "report/tables/single_iterations.h"
#include "report/load/load.h"
#include "report/training/training.h"
#include "report/serving/serving.h"
#include "report/view/view.h"
#include "report/tables/collective_ways.h"

void grid_release(struct grid *g)
{
	for (size_t i = 0; i < g->cells; i++)
		free(g->cell[i]);
	free(g->cell);
	for (size_t i = 0; i < g->hints; i++)
		free(g->hint[i].text);
	free(g->hint);
	free(g->place);
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

void grid_hint(struct grid *g, const char *s)
{
	void *more = g->cells ? realloc(g->hint, (g->hints + 1) * sizeof(*g->hint)) : NULL;

	if (!more) {
		g->failed = true;
		return;
	}
	g->hint = more;
	g->hint[g->hints].cell = g->cells - 1;
	g->hint[g->hints].text = strdup(s);
	if (g->hint[g->hints].text)
		g->hints++;
	else
		g->failed = true;
}

void grid_place(struct grid *g, const struct view_row *row)
{
	void *more = g->cells ? realloc(g->place, (g->places + 1) * sizeof(*g->place)) : NULL;

	if (!more) {
		g->failed = true;
		return;
	}
	g->place = more;
	g->place[g->places].cell = g->cells - 1;
	g->place[g->places++].row = row;
}

size_t grid_rows(const struct grid *g)
{
	return g->columns ? g->cells / g->columns : 0;
}

const char *grid_at(const struct grid *g, size_t row, size_t column)
{
	return g->cell[row * g->columns + column];
}

static void show(struct grid *g, grid_visit *visit, void *arg)
{
	if (g->cells || g->failed)
		visit(arg, g);
	grid_release(g);
}

void grid_each(const struct view *v, bool brief, grid_visit *visit, void *arg)
{
	struct scaling_tables scaling;
	struct grid g = {0};

	for (size_t i = 0; i < v->matrix_count; i++) {
		matrix_grid(&g, &v->matrices[i]);
		show(&g, visit, arg);
	}
	for (size_t i = 0; i < v->in->judged->way_count; i++) {
		if (!ways_lead(v, i))
			continue;
		ways_grid(&g, v, i);
		show(&g, visit, arg);
	}
	scaling_collect(&scaling, v);
	for (size_t i = 0; i < scaling.count; i++) {
		scaling_grid(&g, &scaling.table[i]);
		show(&g, visit, arg);
	}
	for (size_t i = 0; i < v->row_count; i++) {
		if (!collective_scaling_lead(v, i) || (brief && !collective_scaling_brief(v, i)))
			continue;
		collective_scaling_grid(&g, v, i);
		show(&g, visit, arg);
	}
	(void)gemm_grid(&g, v);
	show(&g, visit, arg);
	(void)attention_grid(&g, v);
	show(&g, visit, arg);
	(void)unit_use_grid(&g, v);
	show(&g, visit, arg);
	(void)unit_use_advice_grid(&g, v);
	show(&g, visit, arg);
	(void)energy_grid(&g, v);
	show(&g, visit, arg);
	(void)single_iterations_grid(&g, v);
	show(&g, visit, arg);
	ranks_grid(&g, v, brief);
	show(&g, visit, arg);
	(void)training_grid(&g, v);
	show(&g, visit, arg);
	(void)training_parts_grid(&g, v);
	show(&g, visit, arg);
	(void)training_steps_grid(&g, v);
	show(&g, visit, arg);
	(void)serving_grid(&g, v);
	show(&g, visit, arg);
	(void)serving_engines_grid(&g, v);
	show(&g, visit, arg);
	(void)serving_memory_grid(&g, v);
	show(&g, visit, arg);
	load_grids(v, visit, arg);
}
