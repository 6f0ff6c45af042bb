/* SPDX-License-Identifier: Apache-2.0 */
/* The table on a terminal: headline, rows by target, what to do, what nobody could see. */
#include "report/nodes.h"
#include "report/report.h"
#include "report/view.h"
#include "report/width.h"
#include "report/words.h"
#include "report/scaling.h"

enum { COLUMNS_LEAST = 24, TITLE_LEAST = 16, TITLE_WANTED = 28, VERDICT_WIDTH = 9, REASON_LEAST = 24 };

/* SGR codes; colour is never the only sign: the word is always there. */
static const char *colour_of(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_PASS:
		return "\033[32m";
	case VERDICT_WARN:
	case VERDICT_UNTRUSTED:
		return "\033[33m";
	case VERDICT_FAIL:
	case VERDICT_ERROR:
		return "\033[1;31m";
	case VERDICT_MEASURED:
		return "\033[36m";
	case VERDICT_UNKNOWN:
		return "\033[35m";
	case VERDICT_SKIP:
	case VERDICT_COUNT:
		break;
	}
	return "\033[2m";
}

struct paint {
	struct text *out;
	const struct report_style *style;
	unsigned columns;
};

static void sgr(const struct paint *p, const char *code)
{
	if (p->style->colour)
		text_add(p->out, code);
}

static void add_verdict(const struct paint *p, enum verdict verdict, unsigned width)
{
	sgr(p, colour_of(verdict));
	width_add(p->out, verdict_name(verdict), width, WIDTH_LEFT);
	sgr(p, "\033[0m");
}

enum column { COLUMN_FIGURE, COLUMN_EXPECTED, COLUMN_SHARE, COLUMN_CLOCK, COLUMN_POWER, COLUMN_COUNT };

static const char *const heads[] = {"figure", "expected", "of bound", "clock", "power"};
/* What a narrow terminal loses, first to last; a note names it. The figure then stands on a line of its own.
 */
static const enum column drop_order[] = {COLUMN_POWER, COLUMN_CLOCK, COLUMN_SHARE, COLUMN_EXPECTED};
enum { DROPS = sizeof(drop_order) / sizeof(drop_order[0]) };

static const char *cell(const struct view_row *row, enum column column)
{
	switch (column) {
	case COLUMN_FIGURE:
		return row->figure;
	case COLUMN_EXPECTED:
		return row->expected;
	case COLUMN_SHARE:
		return row->share;
	case COLUMN_CLOCK:
		return row->clock;
	case COLUMN_POWER:
		return row->power;
	case COLUMN_COUNT:
		break;
	}
	return "";
}

struct layout {
	unsigned title, width[COLUMN_COUNT]; /* 0: not shown */
	bool left_out[COLUMN_COUNT];	     /* has cells, but found no room */
	bool reason_beside;		     /* a last column of its own; else a line below */
	unsigned reason;
};

static unsigned used_by(const struct layout *l)
{
	unsigned used = VERDICT_WIDTH + 1 + l->title;

	for (int i = 0; i < COLUMN_COUNT; i++)
		used += l->width[i] ? l->width[i] + 2 : 0;
	return used;
}

/* What each column of a group's table takes. */
static void measure_cells(struct layout *l, const struct view *v, const struct view_group *group)
{
	for (size_t i = group->first; i < group->first + group->count; i++) {
		const struct view_row *row = &v->rows[i];
		unsigned title = width_of(row->title);

		if (!view_tabled(row))
			continue;
		l->title = title > l->title ? title : l->title;
		for (enum column k = 0; k < COLUMN_COUNT; k++) {
			unsigned w = width_of(cell(row, k));

			l->width[k] = w > l->width[k] ? w : l->width[k];
		}
	}
	for (enum column k = 0; k < COLUMN_COUNT; k++)
		if (l->width[k] && l->width[k] < width_of(heads[k]))
			l->width[k] = width_of(heads[k]);
}

/* The title has what the others leave. */
static struct layout lay_out(const struct view *v, const struct view_group *group, unsigned columns)
{
	struct layout l = {.title = TITLE_LEAST};
	unsigned wanted;

	measure_cells(&l, v, group);
	wanted = l.title;
	l.title = wanted < TITLE_WANTED ? wanted : TITLE_WANTED;
	for (int i = 0; i < DROPS && used_by(&l) > columns; i++) {
		l.left_out[drop_order[i]] = l.width[drop_order[i]] > 0;
		l.width[drop_order[i]] = 0;
	}
	l.title = TITLE_LEAST;
	if (used_by(&l) > columns)
		l.width[COLUMN_FIGURE] = 0; /* the line below then begins with it */
	if (columns > used_by(&l))
		l.title += columns - used_by(&l);
	l.title = l.title > wanted ? wanted : l.title;
	if (columns >= used_by(&l) + 2 + 2 * REASON_LEAST) {
		l.reason_beside = true;
		l.reason = columns - used_by(&l) - 2;
	}
	return l;
}

static void add_heads(const struct paint *p, const struct layout *l)
{
	sgr(p, "\033[2m");
	width_add(p->out, "verdict", VERDICT_WIDTH + 1, WIDTH_LEFT);
	width_add(p->out, "case", l->title, WIDTH_LEFT);
	for (enum column k = 0; k < COLUMN_COUNT; k++) {
		if (!l->width[k])
			continue;
		text_add(p->out, "  ");
		width_add(p->out, heads[k], l->width[k], WIDTH_RIGHT);
	}
	if (l->reason_beside)
		text_add(p->out, "  reason");
	sgr(p, "\033[0m");
	text_add(p->out, "\n");
}

/* `taken`: how far the title reaches into the room that its figure leaves. */
static void add_cells(const struct paint *p, const struct layout *l, const struct view_row *row,
		      unsigned taken, bool pad)
{
	int last = -1;

	for (enum column k = 0; k < COLUMN_COUNT; k++)
		if (l->width[k] && cell(row, k)[0])
			last = (int)k;
	for (enum column k = 0; (int)k <= last; k++) {
		if (!l->width[k])
			continue;
		text_add(p->out, "  ");
		width_add(p->out, cell(row, k), l->width[k] - (k == COLUMN_FIGURE ? taken : 0), WIDTH_RIGHT);
	}
	for (int k = last + 1; pad && k < COLUMN_COUNT; k++)
		if (l->width[k])
			text_addf(p->out, "%*s", (int)l->width[k] + 2, "");
}

/* The title and its cells; a title that finds no room ends on a line of its own. */
static void add_case(const struct paint *p, const struct layout *l, const struct view_row *row, bool pad)
{
	unsigned wide = width_of(row->title), figure = width_of(row->figure), taken = 0;
	size_t fits = strlen(row->title);
	struct text begin = {0};

	if (wide > l->title && l->width[COLUMN_FIGURE] && wide - l->title <= l->width[COLUMN_FIGURE] - figure)
		taken = wide - l->title;
	else
		fits = width_fit(row->title, l->title);
	text_add_bytes(&begin, row->title, fits);
	width_add(p->out, text_str(&begin), l->title + taken, WIDTH_LEFT);
	text_release(&begin);
	add_cells(p, l, row, taken, pad);
	fits += strspn(row->title + fits, " ");
	if (!row->title[fits])
		return;
	text_addf(p->out, "\n%*s", VERDICT_WIDTH + 3, "");
	width_wrap(p->out, row->title + fits, p->columns, VERDICT_WIDTH + 3, VERDICT_WIDTH + 3);
}

static void add_row(const struct paint *p, const struct layout *l, const struct view_row *row)
{
	bool figure_below = !l->width[COLUMN_FIGURE];
	const char *why = row->why[0] && !l->reason_beside ? "" : view_why(row);

	add_verdict(p, row->j->verdict, VERDICT_WIDTH);
	text_add(p->out, " ");
	add_case(p, l, row, l->reason_beside && why[0]);
	if (l->reason_beside && why[0]) {
		text_add(p->out, "  ");
		width_wrap(p->out, why, p->columns, used_by(l) + 2, used_by(l) + 2);
	}
	text_add(p->out, "\n");
	if (figure_below || (!l->reason_beside && why[0])) {
		text_addf(p->out, "%*s", VERDICT_WIDTH + 1, "");
		sgr(p, "\033[2m");
		if (figure_below)
			text_addf(p->out, "%s%s", row->figure, why[0] ? "; " : "");
		width_wrap(p->out, why, p->columns,
			   VERDICT_WIDTH + 1 + (figure_below ? width_of(row->figure) + 2 : 0),
			   VERDICT_WIDTH + 1);
		sgr(p, "\033[0m");
		text_add(p->out, "\n");
	}
}

/* A verdict and a sentence that wraps beside it. */
static void add_line(const struct paint *p, enum verdict verdict, const char *s)
{
	add_verdict(p, verdict, VERDICT_WIDTH);
	text_add(p->out, " ");
	width_wrap(p->out, s, p->columns, VERDICT_WIDTH + 1, VERDICT_WIDTH + 1);
	text_add(p->out, "\n");
}

static void add_folds(const struct paint *p, const struct view *v, size_t group, bool above)
{
	for (size_t i = 0; i < v->fold_count; i++) {
		const struct view_fold *f = &v->folds[i];
		struct text line = {0};

		if (f->group != group || view_fold_above(f) != above)
			continue;
		text_addf(&line, f->reason[0] ? "%s: %s" : "%s", text_str(&f->cases), f->reason);
		add_line(p, f->verdict, text_str(&line));
		text_release(&line);
	}
}

static void add_title(const struct paint *p, const char *title)
{
	text_add(p->out, "\n");
	sgr(p, "\033[1m");
	width_wrap(p->out, title, p->columns, 0, 0);
	sgr(p, "\033[0m");
	text_add(p->out, "\n");
}

/* The levels of a curve; where none were found, its points. */
static void add_curve(const struct paint *p, const struct curve *c)
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
			words_bytes(bytes, sizeof(bytes), s->point[k].bytes);
			curve_cell(one, sizeof(one), s, s->point[k].bytes);
			text_addf(&line, "%s %s %s", k ? "," : "", bytes, one);
		}
	}
	if (c->doubtful)
		text_addf(&line, " (%u of its points not trusted)", c->doubtful);
	text_addf(p->out, "%*s", VERDICT_WIDTH + 1, "");
	width_wrap(p->out, text_str(&line), p->columns, VERDICT_WIDTH + 1, VERDICT_WIDTH + 1);
	text_add(p->out, "\n");
	text_release(&line);
}

static void add_group(const struct paint *p, const struct layout *l, const struct view *v, size_t index)
{
	const struct view_group *group = &v->groups[index];

	if (!view_group_any(v, index))
		return;
	add_title(p, group->name);
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

/* Rows send, columns receive. */
static void add_matrix(const struct paint *p, const struct matrix *m)
{
	struct text note = {0};
	char one[32];
	unsigned width = 6;

	for (size_t a = 0; a < m->count; a++)
		for (size_t b = 0; b < m->count; b++) {
			matrix_cell(one, sizeof(one), m, a, b);
			width = width_of(one) > width ? width_of(one) : width;
		}
	add_title(p, m->title);
	text_addf(p->out, "%-6s", "");
	for (size_t b = 0; b < m->count; b++) {
		snprintf(one, sizeof(one), "gpu%u", m->gpu[b]);
		text_add(p->out, " ");
		width_add(p->out, one, width, WIDTH_RIGHT);
	}
	for (size_t a = 0; a < m->count; a++) {
		text_addf(p->out, "\ngpu%-3u", m->gpu[a]);
		for (size_t b = 0; b < m->count; b++) {
			matrix_cell(one, sizeof(one), m, a, b);
			text_add(p->out, " ");
			width_add(p->out, one, width, WIDTH_RIGHT);
		}
	}
	matrix_note(&note, m);
	text_add(p->out, "\n");
	width_wrap(p->out, text_str(&note), p->columns, 0, 0);
	text_add(p->out, "\n");
	text_release(&note);
}

/* Which columns some table had no room for. */
static void add_left_out(const struct paint *p, const bool left_out[COLUMN_COUNT])
{
	struct text line = {0};

	for (int i = 0; i < DROPS; i++)
		if (left_out[drop_order[i]])
			text_addf(&line, "%s%s", line.size ? ", " : "", heads[drop_order[i]]);
	if (line.size) {
		text_addf(&line, ": left out at %u columns; a wider terminal shows them", p->columns);
		text_add(p->out, "\n");
		sgr(p, "\033[2m");
		width_wrap(p->out, text_str(&line), p->columns, 0, 2);
		sgr(p, "\033[0m");
		text_add(p->out, "\n");
	}
	text_release(&line);
}

static void add_unjudged(const struct paint *p, const struct view *v)
{
	if (v->unjudged_count)
		add_title(p, "not judged, and why");
	for (size_t i = 0; i < v->unjudged_count; i++) {
		const struct view_unjudged *u = &v->unjudged[i];
		struct text line = {0};

		text_addf(&line, "%s (%u: %s)", u->reason, u->count, text_str(&u->some));
		add_line(p, u->verdict, text_str(&line));
		text_release(&line);
	}
}

static void add_todos(const struct paint *p, const struct view *v)
{
	if (!v->todo_count)
		return;
	add_title(p, "what to do");
	for (size_t i = 0; i < v->todo_count; i++) {
		const struct view_todo *t = &v->todos[i];
		const char *action = t->action[0]   ? t->action
				     : t->reason[0] ? t->reason
						    : cause_text(t->cause);
		struct text line = {0};

		text_addf(&line, "%s: %s (%s", t->target, action[0] ? action : "look at the case",
			  text_str(&t->some));
		text_addf(&line, t->cause != CAUSE_NONE ? "; %s)" : "%s)",
			  t->cause != CAUSE_NONE ? cause_name(t->cause) : "");
		add_line(p, t->verdict, text_str(&line));
		text_release(&line);
	}
}

/* The knobs that cases which stand well could still turn: one line each. */
static void add_knobs(const struct paint *p, const struct view *v)
{
	if (v->knob_count)
		add_title(p, "what would buy more");
	for (size_t i = 0; i < v->knob_count; i++) {
		const struct view_knob *k = &v->knobs[i];
		struct text line = {0};

		text_addf(&line, "%s, ", k->target);
		names_add(&v->names, &line, k->knob);
		text_add(&line, ": ");
		names_add(&v->names, &line, text_str(&k->some));
		width_wrap(p->out, text_str(&line), p->columns, 0, 2);
		text_add(p->out, "\n");
		text_release(&line);
	}
}

static void add_box(const struct paint *p, const struct view *v, const char *title, char (*lines)[200],
		    size_t count)
{
	if (!count)
		return;
	add_title(p, title);
	for (size_t i = 0; i < count; i++) {
		struct text line = {0};

		names_add(&v->names, &line, lines[i]);
		text_add(p->out, "  - ");
		width_wrap(p->out, text_str(&line), p->columns, 4, 4);
		text_add(p->out, "\n");
		text_release(&line);
	}
}

static void add_node(void *arg, enum verdict verdict, const char *const *cells)
{
	const struct paint *p = arg;
	struct text line = {0};

	text_addf(&line, "%s: %s; %s; GPUs %s; clock: %s", cells[0], cells[1], cells[2], cells[3], cells[4]);
	add_line(p, verdict, text_str(&line));
	text_release(&line);
}

struct differences {
	const struct paint *p;
	unsigned harmless; /* counted: the other forms have them */
};

static void add_difference(void *arg, enum verdict verdict, const char *const *cells)
{
	struct differences *d = arg;
	const struct paint *p = d->p;
	struct text line = {0};

	if (verdict != VERDICT_WARN) {
		d->harmless++;
		return;
	}
	text_addf(&line, "%s: %s, but %s%s%s", cells[0], cells[1], cells[2], *cells[3] ? ": " : "", cells[3]);
	add_line(p, verdict, text_str(&line));
	text_release(&line);
}

static void add_nodes(struct paint *p, const struct view *v)
{
	struct differences d = {.p = p};
	struct text line = {0};

	if (!nodes_any(v))
		return;
	add_title(p, "nodes");
	nodes_each(v, add_node, p);
	if (v->in->judged->difference_count)
		add_title(p, "where nodes differ");
	nodes_each_difference(v, add_difference, &d);
	if (d.harmless) {
		text_addf(&line, "%u more fact%s, of which no harm is known: REPORT.md has them", d.harmless,
			  d.harmless == 1 ? "" : "s");
		add_line(p, VERDICT_MEASURED, text_str(&line));
	}
	text_release(&line);
}

static void add_head(const struct paint *p, const struct view *v)
{
	const struct record *r = v->in->record;
	struct text line = {0};

	add_verdict(p, v->in->judged->verdict, width_of(verdict_name(v->in->judged->verdict)));
	text_add(p->out, "  ");
	text_add(&line, v->headline);
	sgr(p, "\033[1m");
	width_wrap(p->out, text_str(&line), p->columns, width_of(verdict_name(v->in->judged->verdict)) + 2,
		   2);
	sgr(p, "\033[0m");
	text_add(p->out, "\n");
	text_release(&line);
	view_run_counts(&line, v);
	if (v->aside_count)
		text_add(&line, "; ");
	view_aside(&line, v);
	width_wrap(p->out, text_str(&line), p->columns, 0, 2);
	text_add(p->out, "\n");
	text_release(&line);
	if (view_stated(&line, v))
		add_line(p, v->in->judged->stated.verdict, text_str(&line));
	text_release(&line);
	text_add(&line, "the ");
	if (view_ends_early(&line, r)) {
		width_wrap(p->out, text_str(&line), p->columns, 0, 2);
		text_add(p->out, "\n");
	}
	text_release(&line);
}

void report_terminal(struct text *out, const struct report_input *in, const struct report_style *style)
{
	unsigned columns = style->columns < COLUMNS_LEAST ? COLUMNS_LEAST : style->columns;
	struct paint p = {.out = out, .style = style, .columns = columns};
	bool left_out[COLUMN_COUNT] = {false};
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	add_head(&p, &v);
	add_nodes(&p, &v);
	for (size_t g = 0; g < v.group_count; g++) {
		const struct layout l = lay_out(&v, &v.groups[g], columns);

		add_group(&p, &l, &v, g);
		for (enum column k = 0; k < COLUMN_COUNT; k++)
			left_out[k] |= l.left_out[k];
	}
	for (size_t i = 0; i < v.matrix_count; i++)
		add_matrix(&p, &v.matrices[i]);
	terminal_scaling(p.out, &v, columns);
	add_left_out(&p, left_out);
	add_todos(&p, &v);
	add_knobs(&p, &v);
	add_unjudged(&p, &v);
	add_box(&p, &v, "could not look", in->judged->could_not_look, in->judged->could_not_look_count);
	add_box(&p, &v, "needs operator input", in->judged->operator_input, in->judged->operator_input_count);
	view_release(&v);
}
