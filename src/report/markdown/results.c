/* SPDX-License-Identifier: Apache-2.0 */
/* The section "Results" of REPORT.md: tables by target, curves, grids. */
#include "report/markdown/markdown.h"
#include "report/tables/grid.h"
#include "report/text/format.h"

static void add_row(struct text *out, const struct view_group *g, const struct view_row *row)
{
	text_addf(out, "| %s |", verdict_name(row->j->verdict));
	markdown_cell(out, row->title);
	markdown_cell(out, row->figure);
	markdown_cell(out, row->expected);
	markdown_cell(out, row->share);
	if (g->clock)
		markdown_cell(out, row->clock);
	if (g->power)
		markdown_cell(out, row->power);
	if (g->temperature)
		markdown_cell(out, row->temperature);
	markdown_cell(out, view_why(row));
	text_add(out, "\n");
}

static void add_folds(struct text *out, const struct view *v, size_t group, bool above)
{
	for (size_t i = 0; i < v->fold_count; i++) {
		const struct view_fold *f = &v->folds[i];

		if (f->group != group || view_fold_above(f) != above)
			continue;
		text_addf(out, "\n**%s**: ", verdict_name(f->verdict));
		markdown_text(out, text_str(&f->cases));
		text_add(out, f->reason[0] ? ": " : "");
		markdown_text(out, f->reason);
		text_add(out, "\n");
	}
}

static void add_curve(struct text *out, const struct curve *c, size_t index)
{
	struct text doubt = {0};
	char file[32], one[96];

	text_add(out, "\n#### ");
	markdown_text(out, c->title);
	text_add(out, "\n\n");
	for (size_t i = 0; i < c->level_count; i++) {
		curve_level_text(one, sizeof(one), &c->level[i]);
		text_add(out, "- ");
		markdown_text(out, one);
		text_add(out, "\n");
	}
	for (size_t i = 0; i < c->fit_count; i++) {
		struct text fit = {0};

		curve_fit_text(&fit, &c->fit[i]);
		text_add(out, "- ");
		markdown_text(out, text_str(&fit));
		text_add(out, "\n");
		text_release(&fit);
	}
	curve_file(file, sizeof(file), index);
	text_addf(out, "\n![curve](%s)\n\n| size |", file);
	for (size_t i = 0; i < c->series_count; i++)
		markdown_cell(out, c->series[i].name);
	text_add(out, "\n| ---: |");
	for (size_t i = 0; i < c->series_count; i++)
		text_add(out, " ---: |");
	text_add(out, "\n");
	for (size_t k = 0; k < c->size_count; k++) {
		format_bytes(one, sizeof(one), c->size[k]);
		text_add(out, "|");
		markdown_cell(out, one);
		for (size_t i = 0; i < c->series_count; i++) {
			curve_cell(one, sizeof(one), &c->series[i], c->size[k]);
			markdown_cell(out, one);
		}
		text_add(out, "\n");
	}
	curve_doubt_text(&doubt, c);
	if (doubt.size) {
		text_add(out, "\n");
		markdown_text(out, text_str(&doubt));
		text_add(out, ".\n");
	}
	text_release(&doubt);
}

static void add_group(struct text *out, const struct view *v, size_t index)
{
	const struct view_group *group = &v->groups[index];

	text_add(out, "\n### ");
	markdown_text(out, group->name);
	text_add(out, "\n");
	add_folds(out, v, index, true);
	if (group->tabled)
		text_addf(out,
			  "\n| verdict | case | figure | expected | of bound |%s%s%s reason |\n"
			  "| --- | --- | ---: | ---: | ---: |%s%s%s --- |\n",
			  group->clock ? " clock |" : "", group->power ? " power |" : "",
			  group->temperature ? " temp. |" : "", group->clock ? " ---: |" : "",
			  group->power ? " ---: |" : "", group->temperature ? " ---: |" : "");
	for (size_t i = group->first; i < group->first + group->count; i++)
		if (view_tabled(&v->rows[i]))
			add_row(out, group, &v->rows[i]);
	add_folds(out, v, index, false);
	for (size_t i = 0; i < v->curve_count; i++)
		if (v->curves[i].group == index)
			add_curve(out, &v->curves[i], i);
}

static void add_grid(void *arg, const struct grid *g)
{
	grid_markdown(arg, g);
}

void markdown_results(struct text *out, const struct view *v)
{
	struct text signs = {0};

	text_add(out, "\n## Results\n");
	if (v->row_count == v->aside_count)
		text_add(out, v->row_count ? "\nNo case of the suite runs on the requested target.\n"
					   : "\nThe run has no cases.\n");
	for (size_t g = 0; g < v->group_count; g++)
		if (view_group_any(v, g))
			add_group(out, v, g);
	view_signs(&signs, v);
	if (signs.size)
		text_addf(out, "\n%s.\n", text_str(&signs));
	text_release(&signs);
	grid_each(v, false, add_grid, out);
}
