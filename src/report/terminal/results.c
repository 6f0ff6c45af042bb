/* SPDX-License-Identifier: Apache-2.0 */
/* The results on a terminal: one table per target with its own column widths, then curves and grids. */
#include "report/tables/grid.h"
#include "report/tables/nodes.h"
#include "report/terminal/style.h"
#include "core/text/width.h"
#include "report/text/format.h"

enum { TITLE_LEAST = 16, TITLE_WANTED = 28, REASON_LEAST = 24 };

#define CELLS REPORT_COLUMN_REASON /* columns before the reason */

#define X(column, name, head) head,
static const char *const heads[] = {REPORT_COLUMNS(X)};
#undef X
/* The columns that a narrow terminal loses, first to last; a note names them. If the figure finds no room
 * either, it begins the line below the case. */
static const enum report_column drop_order[] = {REPORT_COLUMN_TEMPERATURE, REPORT_COLUMN_POWER,
						REPORT_COLUMN_CLOCK, REPORT_COLUMN_SHARE,
						REPORT_COLUMN_EXPECTED};
enum { DROPS = sizeof(drop_order) / sizeof(drop_order[0]) };

static bool is_shown(const struct terminal_style *p, enum report_column column)
{
	unsigned shown = p->style->shown;

	return (shown ? shown : ~(1U << REPORT_COLUMN_TEMPERATURE)) >> column & 1;
}

static const char *cell(const struct view_row *row, enum report_column column)
{
	switch (column) {
	case REPORT_COLUMN_FIGURE:
		return row->figure;
	case REPORT_COLUMN_EXPECTED:
		return row->expected;
	case REPORT_COLUMN_SHARE:
		return row->share;
	case REPORT_COLUMN_CLOCK:
		return row->clock;
	case REPORT_COLUMN_POWER:
		return row->power;
	case REPORT_COLUMN_TEMPERATURE:
		return row->temperature;
	case REPORT_COLUMN_REASON:
	case REPORT_COLUMN_COUNT:
		break;
	}
	return "";
}

struct layout {
	unsigned title, width[CELLS]; /* 0: not shown */
	bool left_out[CELLS];	      /* has cells, but there is no room */
	bool figure_below;	      /* the line below the case begins with the figure */
	bool reason_beside;	      /* the reason is the last column; false: a line below the case */
	unsigned reason;
};

static unsigned used_by(const struct layout *l)
{
	unsigned used = STYLE_VERDICT + 1 + l->title;

	for (int i = 0; i < CELLS; i++)
		used += l->width[i] ? l->width[i] + 2 : 0;
	return used;
}

/* Measures the width of every column of a group's table. */
static void measure_cells(struct layout *l, const struct terminal_style *p, const struct view *v,
			  const struct view_group *group)
{
	for (size_t i = group->first; i < group->first + group->count; i++) {
		const struct view_row *row = &v->rows[i];
		unsigned title = width_of(row->title);

		if (!view_tabled(row))
			continue;
		l->title = title > l->title ? title : l->title;
		for (enum report_column k = 0; k < CELLS; k++) {
			unsigned w = is_shown(p, k) ? width_of(cell(row, k)) : 0;

			l->width[k] = w > l->width[k] ? w : l->width[k];
		}
	}
	for (enum report_column k = 0; k < CELLS; k++)
		if (l->width[k] && l->width[k] < width_of(heads[k]))
			l->width[k] = width_of(heads[k]);
}

/* Chooses the columns and their widths. The title gets the room that the other columns leave. */
static struct layout lay_out(const struct terminal_style *p, const struct view *v,
			     const struct view_group *group)
{
	const unsigned columns = p->columns;
	struct layout l = {.title = TITLE_LEAST};
	unsigned wanted;

	measure_cells(&l, p, v, group);
	wanted = l.title;
	l.title = wanted < TITLE_WANTED ? wanted : TITLE_WANTED;
	for (int i = 0; i < DROPS && used_by(&l) > columns; i++) {
		l.left_out[drop_order[i]] = l.width[drop_order[i]] > 0;
		l.width[drop_order[i]] = 0;
	}
	l.title = TITLE_LEAST;
	if (used_by(&l) > columns)
		l.figure_below = l.width[REPORT_COLUMN_FIGURE] > 0;
	if (l.figure_below)
		l.width[REPORT_COLUMN_FIGURE] = 0;
	if (columns > used_by(&l))
		l.title += columns - used_by(&l);
	l.title = l.title > wanted ? wanted : l.title;
	if (is_shown(p, REPORT_COLUMN_REASON) && columns >= used_by(&l) + 2 + 2 * REASON_LEAST) {
		l.reason_beside = true;
		l.reason = columns - used_by(&l) - 2;
	}
	return l;
}

static void add_heads(const struct terminal_style *p, const struct layout *l)
{
	style_code(p, "\033[2m");
	width_add(p->out, "verdict", STYLE_VERDICT + 1, WIDTH_LEFT);
	width_add(p->out, "case", l->title, WIDTH_LEFT);
	for (enum report_column k = 0; k < CELLS; k++) {
		if (!l->width[k])
			continue;
		text_add(p->out, "  ");
		width_add(p->out, heads[k], l->width[k], WIDTH_RIGHT);
	}
	if (l->reason_beside)
		text_add(p->out, "  reason");
	style_code(p, "\033[0m");
	text_add(p->out, "\n");
}

static bool has_cells(const struct layout *l, const struct view_row *row)
{
	for (enum report_column k = 0; k < CELLS; k++)
		if (l->width[k] && cell(row, k)[0])
			return true;
	return false;
}

/* `taken`: the columns that the title takes from the empty part of its figure's cell. */
static void add_cells(const struct terminal_style *p, const struct layout *l, const struct view_row *row,
		      unsigned taken, bool pad)
{
	int last = -1;

	for (enum report_column k = 0; k < CELLS; k++)
		if (l->width[k] && cell(row, k)[0])
			last = (int)k;
	for (enum report_column k = 0; (int)k <= last; k++) {
		if (!l->width[k])
			continue;
		text_add(p->out, "  ");
		width_add(p->out, cell(row, k), l->width[k] - (k == REPORT_COLUMN_FIGURE ? taken : 0),
			  WIDTH_RIGHT);
	}
	for (int k = last + 1; pad && k < CELLS; k++)
		if (l->width[k])
			text_addf(p->out, "%*s", (int)l->width[k] + 2, "");
}

/* Appends the title and the cells. A title that is too wide for its column has a line of its own, and the
 * cells follow on the next line; it wraps only if it is wider than the terminal. */
static void add_case(const struct terminal_style *p, const struct layout *l, const struct view_row *row,
		     bool pad)
{
	unsigned wide = width_of(row->title), figure = width_of(row->figure), taken = 0;

	if (wide > l->title && l->width[REPORT_COLUMN_FIGURE] &&
	    wide - l->title <= l->width[REPORT_COLUMN_FIGURE] - figure)
		taken = wide - l->title;
	if (wide > l->title + taken) {
		width_wrap(p->out, row->title, p->columns, STYLE_VERDICT + 1, STYLE_VERDICT + 3);
		if (!has_cells(l, row) && !pad)
			return;
		text_addf(p->out, "\n%*s", (int)(STYLE_VERDICT + 1 + l->title), "");
	} else {
		width_add(p->out, row->title, l->title + taken, WIDTH_LEFT);
	}
	add_cells(p, l, row, taken, pad);
}

static void add_row(const struct terminal_style *p, const struct layout *l, const struct view_row *row)
{
	bool figure_below = l->figure_below;
	const char *why =
		(row->why[0] && !l->reason_beside) || !is_shown(p, REPORT_COLUMN_REASON) ? "" : view_why(row);

	style_verdict(p, row->j->verdict, STYLE_VERDICT);
	text_add(p->out, " ");
	add_case(p, l, row, l->reason_beside && why[0]);
	if (l->reason_beside && why[0]) {
		text_add(p->out, "  ");
		width_wrap(p->out, why, p->columns, used_by(l) + 2, used_by(l) + 2);
	}
	text_add(p->out, "\n");
	if (figure_below || (!l->reason_beside && why[0])) {
		text_addf(p->out, "%*s", STYLE_VERDICT + 1, "");
		style_code(p, "\033[2m");
		if (figure_below)
			text_addf(p->out, "%s%s", row->figure, why[0] ? "; " : "");
		width_wrap(p->out, why, p->columns,
			   STYLE_VERDICT + 1 + (figure_below ? width_of(row->figure) + 2 : 0),
			   STYLE_VERDICT + 1);
		style_code(p, "\033[0m");
		text_add(p->out, "\n");
	}
}

static void add_folds(const struct terminal_style *p, const struct view *v, size_t group, bool above)
{
	for (size_t i = 0; i < v->fold_count; i++) {
		const struct view_fold *f = &v->folds[i];
		struct text line = {0};

		if (f->group != group || view_fold_above(f) != above)
			continue;
		text_addf(&line, f->reason[0] ? "%s: %s" : "%s", text_str(&f->cases), f->reason);
		style_line(p, f->verdict, text_str(&line));
		text_release(&line);
	}
}

/* Appends the levels of a curve, or its points if no levels were found. */
static void add_curve(const struct terminal_style *p, const struct curve *c)
{
	struct text line = {0};
	char one[96], bytes[32];

	text_addf(&line, "%s: ", c->title);
	for (size_t i = 0; i < c->level_count; i++) {
		curve_level_text(one, sizeof(one), &c->level[i]);
		text_addf(&line, "%s%s", i ? "; " : "", one);
	}
	for (size_t i = 0; i < c->fit_count; i++) {
		text_add(&line, i ? "; " : "");
		curve_fit_text(&line, &c->fit[i]);
	}
	for (size_t i = 0; i < c->series_count && !c->level_count && !c->fit_count; i++) {
		const struct curve_series *s = &c->series[i];

		text_addf(&line, "%s%s", i ? "; " : "", s->name);
		for (size_t k = 0; k < s->count; k++) {
			format_bytes(bytes, sizeof(bytes), s->point[k].bytes);
			curve_cell(one, sizeof(one), s, s->point[k].bytes);
			text_addf(&line, "%s %s %s", k ? "," : "", bytes, one);
		}
	}
	if (c->doubtful)
		text_addf(&line, " (%u point%s not trusted)", c->doubtful,
			  c->doubtful == 1 ? " is" : "s are");
	text_addf(p->out, "%*s", STYLE_VERDICT + 1, "");
	width_wrap(p->out, text_str(&line), p->columns, STYLE_VERDICT + 1, STYLE_VERDICT + 1);
	text_add(p->out, "\n");
	text_release(&line);
}

/* True for a target that needs no attention in a run of many nodes: its counts are enough. */
static bool is_quiet(const struct view *v, const struct view_group *group)
{
	return nodes_many(v) && view_group_quiet(group);
}

static void add_quiet(const struct terminal_style *p, const struct view_group *group)
{
	struct text line = {0};

	text_addf(&line, "%s: ", group->name);
	view_counts(&line, group->verdicts, group->asked);
	style_line(p, group->worst, text_str(&line));
	text_release(&line);
}

static void add_group(const struct terminal_style *p, const struct layout *l, const struct view *v,
		      size_t index)
{
	const struct view_group *group = &v->groups[index];

	if (!view_group_any(v, index))
		return;
	if (is_quiet(v, group)) {
		add_quiet(p, group);
		return;
	}
	style_title(p, group->name);
	add_folds(p, v, index, true);
	if (group->tabled)
		add_heads(p, l);
	for (size_t i = group->first; i < group->first + group->count; i++)
		if (view_tabled(&v->rows[i]))
			add_row(p, l, &v->rows[i]);
	for (size_t i = 0; i < v->curve_count; i++)
		if (v->curves[i].group == index)
			add_curve(p, &v->curves[i]);
	add_folds(p, v, index, false);
}

static void add_muted(const struct terminal_style *p, const char *text)
{
	text_add(p->out, "\n");
	style_code(p, "\033[2m");
	width_wrap(p->out, text, p->columns, 0, 2);
	style_code(p, "\033[0m");
	text_add(p->out, "\n");
}

static void add_signs(const struct terminal_style *p, const struct view *v)
{
	struct text line = {0};

	view_signs(&line, v);
	if (line.size)
		add_muted(p, text_str(&line));
	text_release(&line);
}

/* Names the columns that some table had no room for. */
static void add_left_out(const struct terminal_style *p, const bool left_out[CELLS])
{
	struct text line = {0};

	for (int i = 0; i < DROPS; i++)
		if (left_out[drop_order[i]])
			text_addf(&line, "%s%s", line.size ? ", " : "", heads[drop_order[i]]);
	if (line.size) {
		text_addf(&line, ": left out at %u columns; a wider terminal or --columns shows them",
			  p->columns);
		add_muted(p, text_str(&line));
	}
	text_release(&line);
}

static void add_grid(void *arg, const struct grid *g)
{
	grid_terminal(arg, g);
}

void terminal_results(const struct terminal_style *p, const struct view *v)
{
	bool left_out[CELLS] = {false};

	for (size_t g = 0; g < v->group_count; g++) {
		const struct layout l = lay_out(p, v, &v->groups[g]);

		add_group(p, &l, v, g);
		for (enum report_column k = 0; k < CELLS; k++)
			left_out[k] |= l.left_out[k];
	}
	add_signs(p, v);
	grid_each(v, true, add_grid, (void *)p);
	add_left_out(p, left_out);
}
