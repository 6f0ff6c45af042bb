/* SPDX-License-Identifier: Apache-2.0 */
/* The table on a terminal: headline, rows by target, what to do, what nobody could see. */
#include "report/report.h"
#include "report/view.h"
#include "report/width.h"
#include "report/words.h"

enum { COLUMNS_LEAST = 24, TITLE_LEAST = 16, TITLE_MOST = 48, VERDICT_WIDTH = 9, REASON_LEAST = 24 };

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

/* Columns after the title. The later a column stands in `drop_order`, the sooner a narrow terminal loses it.
 */
enum column { COLUMN_FIGURE, COLUMN_EXPECTED, COLUMN_SHARE, COLUMN_CLOCK, COLUMN_POWER, COLUMN_COUNT };

static const char *const heads[] = {"figure", "expected", "of bound", "clock", "power"};
static const enum column drop_order[] = {COLUMN_POWER, COLUMN_CLOCK, COLUMN_SHARE, COLUMN_EXPECTED};

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
	unsigned title, width[COLUMN_COUNT]; /* 0: dropped */
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

static struct layout lay_out(const struct view *v, unsigned columns)
{
	struct layout l = {.title = TITLE_LEAST};
	unsigned wanted = TITLE_LEAST;

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];
		unsigned title = width_of(row->title);

		if (row->c->skipped || !row->figure[0])
			continue;
		wanted = title > wanted ? title : wanted;
		for (enum column k = 0; k < COLUMN_COUNT; k++) {
			unsigned w = width_of(cell(row, k));

			l.width[k] = w > l.width[k] ? w : l.width[k];
		}
	}
	for (enum column k = 0; k < COLUMN_COUNT; k++)
		if (l.width[k] && l.width[k] < width_of(heads[k]))
			l.width[k] = width_of(heads[k]);
	wanted = wanted > TITLE_MOST ? TITLE_MOST : wanted;
	for (size_t i = 0; i < sizeof(drop_order) / sizeof(drop_order[0]); i++)
		if (used_by(&l) - l.title + (wanted < 28 ? wanted : 28) > columns)
			l.width[drop_order[i]] = 0;
	if (used_by(&l) > columns)
		l.width[COLUMN_FIGURE] = 0; /* the line below then begins with it */
	l.title = columns > used_by(&l) - l.title ? columns - (used_by(&l) - l.title) : TITLE_LEAST;
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

/* The line below a row is for what deserves it: what did not pass, what has a figure people look at, and what
 * has none. */
static bool wants_reason(const struct view_row *row)
{
	return row->reason[0] &&
	       (row->j->verdict != VERDICT_PASS || row->headline || row->j->cause != CAUSE_NONE);
}

static void add_cells(const struct paint *p, const struct layout *l, const struct view_row *row)
{
	int last = -1;

	for (enum column k = 0; k < COLUMN_COUNT; k++)
		if (l->width[k] && cell(row, k)[0])
			last = (int)k;
	for (enum column k = 0; (int)k <= last; k++) {
		if (!l->width[k])
			continue;
		text_add(p->out, "  ");
		width_add(p->out, cell(row, k), l->width[k], WIDTH_RIGHT);
	}
	for (int k = last + 1; l->reason_beside && k < COLUMN_COUNT; k++)
		if (l->width[k])
			text_addf(p->out, "%*s", (int)l->width[k] + 2, "");
}

static void add_row(const struct paint *p, const struct layout *l, const struct view_row *row)
{
	bool figure_below = !l->width[COLUMN_FIGURE] && row->figure[0];

	add_verdict(p, row->j->verdict, VERDICT_WIDTH);
	text_add(p->out, " ");
	if (!row->figure[0] && !l->reason_beside) { /* a reading: its words follow its name */
		struct text line = {0};

		text_addf(&line, row->reason[0] ? "%s: %s" : "%s", row->title, row->reason);
		width_wrap(p->out, text_str(&line), p->columns, VERDICT_WIDTH + 1, VERDICT_WIDTH + 1);
		text_add(p->out, "\n");
		text_release(&line);
		return;
	}
	width_add(p->out, row->title, l->title, WIDTH_LEFT);
	add_cells(p, l, row);
	if (l->reason_beside && row->reason[0]) {
		text_add(p->out, "  ");
		width_wrap(p->out, row->reason, p->columns, used_by(l) + 2, used_by(l) + 2);
	}
	text_add(p->out, "\n");
	if (figure_below || (!l->reason_beside && wants_reason(row))) {
		text_addf(p->out, "%*s", VERDICT_WIDTH + 1, "");
		sgr(p, "\033[2m");
		if (figure_below)
			text_addf(p->out, "%s%s", row->figure, wants_reason(row) ? "; " : "");
		if (wants_reason(row))
			width_wrap(p->out, row->reason, p->columns,
				   VERDICT_WIDTH + 1 + (figure_below ? width_of(row->figure) + 2 : 0),
				   VERDICT_WIDTH + 1);
		sgr(p, "\033[0m");
		text_add(p->out, "\n");
	}
}

/* Skipped cases share a line with those of the same reason: "skip  3 cases: no such hardware on this
 * machine". */
static void add_skips(const struct paint *p, const struct view *v, const struct view_group *g)
{
	for (size_t i = g->first; i < g->first + g->count; i++) {
		const struct view_row *row = &v->rows[i];
		struct text line = {0};
		unsigned same = 0;
		bool seen = false;

		if (!row->c->skipped || row->j->verdict != VERDICT_SKIP)
			continue;
		for (size_t k = g->first; k < i && !seen; k++)
			seen = v->rows[k].c->skipped && !strcmp(v->rows[k].reason, row->reason);
		if (seen)
			continue;
		for (size_t k = i; k < g->first + g->count; k++)
			if (v->rows[k].c->skipped && !strcmp(v->rows[k].reason, row->reason))
				text_addf(&line, "%s%s", same++ ? "; " : "", v->rows[k].title);
		if (row->reason[0])
			text_addf(&line, ": %s", row->reason);
		add_verdict(p, VERDICT_SKIP, VERDICT_WIDTH);
		text_add(p->out, " ");
		width_wrap(p->out, text_str(&line), p->columns, VERDICT_WIDTH + 1, VERDICT_WIDTH + 1);
		text_add(p->out, "\n");
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
		add_verdict(p, t->verdict, VERDICT_WIDTH);
		text_add(p->out, " ");
		width_wrap(p->out, text_str(&line), p->columns, VERDICT_WIDTH + 1, VERDICT_WIDTH + 1);
		text_add(p->out, "\n");
		text_release(&line);
	}
}

static bool same_knob(const struct view_row *a, size_t i, const struct view_row *b, size_t k)
{
	return !strcmp(a->c->target, b->c->target) && !strcmp(a->j->advice[i].knob, b->j->advice[k].knob);
}

static bool knob_before(const struct view *v, size_t row, size_t advice)
{
	for (size_t i = 0; i <= row; i++)
		for (size_t k = 0; k < v->rows[i].j->advice_count; k++) {
			if (i == row && k == advice)
				return false;
			if (same_knob(&v->rows[row], advice, &v->rows[i], k))
				return true;
		}
	return false;
}

/* One line a knob: the cases it is for, each with its gain. */
static void add_knob(const struct paint *p, const struct view *v, size_t row, size_t advice)
{
	const struct view_row *first = &v->rows[row];
	struct text line = {0};
	const char *between = ": ";

	text_addf(&line, "%s, ", first->c->target);
	names_add(&v->names, &line, first->j->advice[advice].knob);
	for (size_t i = row; i < v->row_count; i++)
		for (size_t k = 0; k < v->rows[i].j->advice_count; k++) {
			if (!same_knob(first, advice, &v->rows[i], k))
				continue;
			text_addf(&line, "%s%s (%s)", between, v->rows[i].title,
				  v->rows[i].j->advice[k].gain);
			between = "; ";
		}
	width_wrap(p->out, text_str(&line), p->columns, 0, 2);
	text_add(p->out, "\n");
	text_release(&line);
}

/* The knobs that cases which stand well could still turn. */
static void add_advice(const struct paint *p, const struct view *v)
{
	bool any = false;

	for (size_t i = 0; i < v->row_count; i++)
		for (size_t k = 0; k < v->rows[i].j->advice_count; k++) {
			if (knob_before(v, i, k))
				continue;
			if (!any)
				add_title(p, "what would buy more");
			any = true;
			add_knob(p, v, i, k);
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
	view_counts(&line, v->verdicts, v->row_count);
	width_wrap(p->out, text_str(&line), p->columns, 0, 2);
	text_add(p->out, "\n");
	if (!r->closed || r->cut_bytes) {
		width_wrap(p->out, "the record ends before the run did: what was written until then is shown",
			   p->columns, 0, 2);
		text_add(p->out, "\n");
	}
	text_release(&line);
}

void report_terminal(struct text *out, const struct report_input *in, const struct report_style *style)
{
	unsigned columns = style->columns < COLUMNS_LEAST ? COLUMNS_LEAST : style->columns;
	struct paint p = {.out = out, .style = style, .columns = columns};
	struct layout l;
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	l = lay_out(&v, columns);
	add_head(&p, &v);
	for (size_t g = 0; g < v.group_count; g++) {
		const struct view_group *group = &v.groups[g];

		add_title(&p, group->name);
		if (group->count > group->verdicts[VERDICT_SKIP])
			add_heads(&p, &l);
		for (size_t i = group->first; i < group->first + group->count; i++)
			if (!v.rows[i].c->skipped || v.rows[i].j->verdict != VERDICT_SKIP)
				add_row(&p, &l, &v.rows[i]);
		add_skips(&p, &v, group);
	}
	add_todos(&p, &v);
	add_advice(&p, &v);
	add_box(&p, &v, "could not look", in->judged->could_not_look, in->judged->could_not_look_count);
	add_box(&p, &v, "needs operator input", in->judged->operator_input, in->judged->operator_input_count);
	view_release(&v);
}
