/* SPDX-License-Identifier: Apache-2.0 */
/* The section of results on the page. Each target has its findings without a figure first, then its table,
 * then its curves. */
#include <math.h>
#include "report/html/html.h"
#include "report/view/gap.h"
#include "report/tables/nodes.h"
#include "report/tables/grid.h"

/* Appends a cell. The page's script sorts by `value` if it is finite. `label` names the cell on a narrow
 * screen, where the table becomes a list. */
static void number_cell(struct text *out, const char *label, const char *shown, double value)
{
	text_addf(out, "<td class=\"num\" data-l=\"%s\"", label);
	if (shown[0] && isfinite(value))
		text_addf(out, " data-v=\"%.9g\"", value);
	text_add(out, ">");
	html_add(out, shown);
	text_add(out, "</td>");
}

/* The share of the bound with a small bar, whose length is --w. */
static void share_cell(struct text *out, const struct view_row *row)
{
	double share = row->j->share_of_bound;

	if (!row->share[0] || !isfinite(share)) {
		number_cell(out, "of bound", row->share, share);
		return;
	}
	text_addf(out, "<td class=\"num share%s\" data-l=\"of bound\" data-v=\"%.9g\" style=\"--w:%.1f%%\">",
		  share > 1.0005 ? " over" : "", share, 100 * fmin(share, 1));
	html_add(out, row->share);
	text_add(out, "</td>");
}

static void add_row(struct text *out, const struct view_group *g, const struct view_row *row)
{
	const struct judgement *j = row->j;
	double clock = 0, power = 0, temperature = 0;

	view_number(row, "clock_hz", &clock);
	view_number(row, "power_w", &power);
	view_number(row, "temperature_c", &temperature);
	text_add(out, "<tr id=\"");
	html_case_id(out, "case", row);
	text_addf(out, "\"><td data-v=\"%u\">", view_badness(j->verdict));
	html_verdict(out, j->verdict);
	text_add(out, "</td><td>");
	html_case_link(out, gap_shown(row) ? "gap" : "case", row);
	text_add(out, "</td>");
	number_cell(out, "", row->figure, j->figure);
	number_cell(out, "expected", row->expected, j->has_band ? j->band.low : j->bound.value);
	share_cell(out, row);
	if (g->clock)
		number_cell(out, "clock", row->clock, clock);
	if (g->power)
		number_cell(out, "power", row->power, power);
	if (g->temperature)
		number_cell(out, "", row->temperature, temperature);
	html_element(out, "td", view_why(row));
	text_add(out, "</tr>\n");
}

/* The titles of a fold as the places of its cases. Those that it only counts have an empty place. */
static void add_fold_cases(struct text *out, const struct view *v, size_t fold)
{
	const struct view_group *g = &v->groups[v->folds[fold].group];
	unsigned named = 0;

	for (size_t i = g->first; i < g->first + g->count; i++) {
		if (v->rows[i].fold != fold + 1)
			continue;
		text_add(out, named && named < VIEW_FOLD_CASES ? "; " : "");
		html_case_place(out, &v->rows[i], named < VIEW_FOLD_CASES ? v->rows[i].title : "");
		named++;
	}
	if (named > VIEW_FOLD_CASES)
		text_addf(out, "; and %u more", named - VIEW_FOLD_CASES);
}

static void add_folds(struct text *out, const struct view *v, size_t group, bool above)
{
	bool any = false;

	for (size_t i = 0; i < v->fold_count; i++) {
		const struct view_fold *f = &v->folds[i];

		if (f->group != group || view_fold_above(f) != above)
			continue;
		text_add(out, any ? "<li><span>" : "<ol class=\"todo\">\n<li><span>");
		any = true;
		html_verdict(out, f->verdict);
		text_add(out, "</span><span>");
		add_fold_cases(out, v, i);
		text_add(out, f->reason[0] ? ": " : "");
		text_add(out, "<span class=\"muted\">");
		html_add(out, f->reason);
		text_add(out, "</span></span></li>\n");
	}
	text_add(out, any ? "</ol>\n" : "");
}

static void add_table(struct text *out, const struct view *v, const struct view_group *group)
{
	text_add(
		out,
		"<div class=\"wide\"><table class=\"results\"><thead><tr><th scope=\"col\">verdict</th><th scope=\"col\">case</th><th "
		"class=\"num\" scope=\"col\">figure</th><th class=\"num\" scope=\"col\">expected</th><th class=\"num\" scope=\"col\">of bound</th>");
	text_add(out, group->clock ? "<th class=\"num\" scope=\"col\">clock</th>" : "");
	text_add(out, group->power ? "<th class=\"num\" scope=\"col\">power</th>" : "");
	text_add(out, group->temperature ? "<th class=\"num\" scope=\"col\">temp.</th>" : "");
	text_add(out, "<th scope=\"col\">reason</th></tr></thead><tbody>\n");
	for (size_t i = group->first; i < group->first + group->count; i++)
		if (view_tabled(&v->rows[i]))
			add_row(out, group, &v->rows[i]);
	text_add(out, "</tbody></table></div>\n");
}

static void add_grid(void *arg, const struct grid *g)
{
	grid_html(arg, g);
}

/* Begins a target. In a run of many nodes each target unfolds, and the targets that need attention are open.
 */
static void add_name(struct text *out, const struct view *v, const struct view_group *group)
{
	struct text counts = {0};

	if (!nodes_many(v)) {
		html_element(out, "h3", group->name);
		text_add(out, "\n");
		return;
	}
	text_addf(out, "<details class=\"group\"%s><summary>", view_group_quiet(group) ? "" : " open");
	html_element(out, "b", group->name);
	view_counts(&counts, group->verdicts, group->asked);
	text_addf(out, "<span class=\"muted\">%s</span>", text_str(&counts));
	html_verdict(out, group->worst);
	text_add(out, "</summary>\n");
	text_release(&counts);
}

void html_results(struct text *out, const struct view *v)
{
	struct text signs = {0};

	text_add(out, "<section id=\"results\"><h2>Results</h2>\n");
	if (v->row_count == v->aside_count)
		text_addf(out, "<p>%s</p>\n",
			  v->row_count ? "No case of the suite runs on the requested target."
				       : "The run has no cases.");
	for (size_t g = 0; g < v->group_count; g++) {
		if (!view_group_any(v, g))
			continue;
		text_add(out, nodes_many(v) ? "" : "<div class=\"group\">\n");
		add_name(out, v, &v->groups[g]);
		add_folds(out, v, g, true);
		if (v->groups[g].tabled)
			add_table(out, v, &v->groups[g]);
		add_folds(out, v, g, false);
		for (size_t i = 0; i < v->curve_count; i++)
			if (v->curves[i].group == g)
				html_curve(out, &v->curves[i]);
		text_add(out, nodes_many(v) ? "</details>\n" : "</div>\n");
	}
	view_signs(&signs, v);
	if (signs.size)
		text_addf(out, "<p class=\"muted\">%s.</p>\n", text_str(&signs));
	text_release(&signs);
	grid_each(v, false, add_grid, out);
	text_add(out, "</section>\n");
}
