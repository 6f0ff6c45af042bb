/* SPDX-License-Identifier: Apache-2.0 */
/* The report on a terminal: headline, results by target, what to do, what could not be checked. */
#include "report/tables/nodes.h"
#include "report/terminal/style.h"
#include "core/text/width.h"

enum { COLUMNS_LEAST = 24 };

static void add_unjudged(const struct terminal_style *p, const struct view *v)
{
	if (v->unjudged_count)
		style_title(p, "not judged, and why");
	for (size_t i = 0; i < v->unjudged_count; i++) {
		const struct view_unjudged *u = &v->unjudged[i];
		struct text line = {0};

		text_addf(&line, "%s (%u: %s)", u->reason, u->count, text_str(&u->some));
		style_line(p, u->verdict, text_str(&line));
		text_release(&line);
	}
}

static void add_todos(const struct terminal_style *p, const struct view *v)
{
	if (!v->todo_count)
		return;
	style_title(p, "what to do");
	for (size_t i = 0; i < v->todo_count; i++) {
		const struct view_todo *t = &v->todos[i];
		const char *action = t->action[0]   ? t->action
				     : t->reason[0] ? t->reason
						    : cause_text(t->cause);
		struct text line = {0};

		if (t->spread.joined)
			continue;
		text_addf(&line, "%s: %s (%s", t->spread.where, action[0] ? action : "look at the case",
			  text_str(&t->some));
		text_addf(&line, t->cause != CAUSE_NONE ? "; %s)" : "%s)",
			  t->cause != CAUSE_NONE ? cause_name(t->cause) : "");
		style_line(p, t->verdict, text_str(&line));
		text_release(&line);
	}
}

/* Settings that could improve a figure: one line each. */
static void add_knobs(const struct terminal_style *p, const struct view *v)
{
	if (v->knob_count)
		style_title(p, "settings that could improve a figure");
	for (size_t i = 0; i < v->knob_count; i++) {
		const struct view_knob *k = &v->knobs[i];
		struct text line = {0};

		if (k->spread.joined)
			continue;
		text_addf(&line, "%s, ", k->spread.where);
		pseudonym_map_add(&v->names, &line, k->knob);
		text_add(&line, ": ");
		pseudonym_map_add(&v->names, &line, text_str(&k->some));
		width_wrap(p->out, text_str(&line), p->columns, 0, 2);
		text_add(p->out, "\n");
		text_release(&line);
	}
}

static void add_box(const struct terminal_style *p, const struct view *v, const char *title,
		    char (*lines)[200], size_t count)
{
	if (!count)
		return;
	style_title(p, title);
	for (size_t i = 0; i < count; i++) {
		struct text line = {0};

		pseudonym_map_add(&v->names, &line, lines[i]);
		text_add(p->out, "  - ");
		width_wrap(p->out, text_str(&line), p->columns, 4, 4);
		text_add(p->out, "\n");
		text_release(&line);
	}
}

/* The nodes of the run. In a run of many nodes only incomplete nodes have a line; one line counts the others.
 */
struct attendance {
	const struct terminal_style *p;
	unsigned whole;
	bool brief;
};

static void add_node(void *arg, enum verdict verdict, const char *const *cells)
{
	struct attendance *a = arg;
	struct text line = {0};

	a->whole += verdict != VERDICT_WARN;
	if (a->brief && verdict != VERDICT_WARN)
		return;
	text_addf(&line, "%s: %s; %s; GPUs %s; clock: %s", cells[0], cells[1], cells[2], cells[3], cells[4]);
	style_line(a->p, verdict, text_str(&line));
	text_release(&line);
}

struct differences {
	const struct terminal_style *p;
	unsigned harmless; /* only counted here; the other report formats list them */
};

static void add_difference(void *arg, enum verdict verdict, const char *const *cells)
{
	struct differences *d = arg;
	const struct terminal_style *p = d->p;
	struct text line = {0};

	if (verdict != VERDICT_WARN) {
		d->harmless++;
		return;
	}
	text_addf(&line, "%s: %s, but %s%s%s", cells[0], cells[1], cells[2], *cells[3] ? ": " : "", cells[3]);
	style_line(p, verdict, text_str(&line));
	text_release(&line);
}

static void add_nodes(struct terminal_style *p, const struct view *v)
{
	struct attendance a = {.p = p, .brief = nodes_many(v)};
	struct differences d = {.p = p};
	struct text line = {0};

	if (!nodes_any(v))
		return;
	style_title(p, "nodes");
	nodes_each(v, add_node, &a);
	if (a.brief) {
		text_addf(&line, "%u of %zu nodes are whole; REPORT.md has a row per node", a.whole,
			  v->in->record->node_count);
		style_line(p, VERDICT_MEASURED, text_str(&line));
		text_release(&line);
	}
	if (v->in->judged->difference_count)
		style_title(p, "where nodes differ");
	nodes_each_difference(v, add_difference, &d);
	if (d.harmless) {
		text_addf(&line, "%u more fact%s without known harm; REPORT.md lists them", d.harmless,
			  d.harmless == 1 ? " differs" : "s differ");
		style_line(p, VERDICT_MEASURED, text_str(&line));
	}
	text_release(&line);
}

static void add_head(const struct terminal_style *p, const struct view *v)
{
	const struct record *r = v->in->record;
	struct text line = {0};

	style_verdict(p, v->in->judged->verdict, width_of(verdict_name(v->in->judged->verdict)));
	text_add(p->out, "  ");
	text_add(&line, v->headline);
	style_code(p, "\033[1m");
	width_wrap(p->out, text_str(&line), p->columns, width_of(verdict_name(v->in->judged->verdict)) + 2,
		   2);
	style_code(p, "\033[0m");
	text_add(p->out, "\n");
	text_release(&line);
	view_run_counts(&line, v);
	view_aside(&line, v, "; ");
	width_wrap(p->out, text_str(&line), p->columns, 0, 2);
	text_add(p->out, "\n");
	text_release(&line);
	if (view_stated(&line, v))
		style_line(p, v->in->judged->stated.verdict, text_str(&line));
	text_release(&line);
	if (view_rebooted(&line, v)) {
		width_wrap(p->out, text_str(&line), p->columns, 0, 2);
		text_add(p->out, "\n");
	}
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
	struct terminal_style p = {.out = out, .style = style, .columns = columns};
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	add_head(&p, &v);
	add_nodes(&p, &v);
	terminal_results(&p, &v);
	add_todos(&p, &v);
	add_knobs(&p, &v);
	add_unjudged(&p, &v);
	add_box(&p, &v, "could not be checked", in->judged->could_not_look, in->judged->could_not_look_count);
	add_box(&p, &v, "needs operator input", in->judged->operator_input, in->judged->operator_input_count);
	view_release(&v);
}
