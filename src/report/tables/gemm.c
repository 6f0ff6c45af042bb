/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/gemm.h"
#include <math.h>
#include "report/text/format.h"

static bool fits(const struct view_row *row, const char *probe)
{
	double rate;

	return !strcmp(row->c->probe, probe) && !row->aside && !row->j->superseded &&
	       view_number(row, "flop_rate", &rate) && rate > 0;
}

static bool attends(const struct view *v, const struct view_row *row)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (fits(&v->rows[i], "attention") && !strcmp(v->rows[i].where, row->where))
			return true;
	return false;
}

static void add_row(struct grid *g, const struct view_row *row)
{
	double rate = (double)NAN, ns = (double)NAN;
	char one[48];

	view_number(row, "flop_rate", &rate);
	view_number(row, "time_ns_mean", &ns);
	grid_cell(g, row->title);
	format_quantity(one, sizeof(one), rate, 0, "FLOPS");
	grid_cell(g, one);
	format_share(one, sizeof(one), row->j->share_of_bound > 0 ? row->j->share_of_bound : (double)NAN);
	grid_cell(g, one);
	format_share(one, sizeof(one), row->j->efficiency_held > 0 ? row->j->efficiency_held : (double)NAN);
	grid_cell(g, one);
	format_quantity(one, sizeof(one), ns * 1e-9, 0, "s");
	grid_cell(g, one);
}

bool gemm_grid(struct grid *g, const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		if (!fits(&v->rows[i], "gemm") || !attends(v, &v->rows[i]))
			continue;
		if (!g->columns) {
			text_add(&g->title, "GEMM");
			grid_column(g, "case", false);
			grid_column(g, "rate", true);
			grid_column(g, "efficiency", true);
			grid_column(g, "at the measured clock", true);
			grid_column(g, "latency", true);
		}
		add_row(g, &v->rows[i]);
	}
	if (g->columns)
		text_add(
			&g->note,
			"Efficiency: share of the bound at the maximum clock. Latency: mean time per GEMM in the judged window, one after another");
	return g->columns;
}
