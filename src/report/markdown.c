/* SPDX-License-Identifier: Apache-2.0 */
/* REPORT.md: what a person reads and a ticket quotes. Foreign text is escaped. */
#include "report/about.h"
#include "report/gap.h"
#include "report/merge.h"
#include "report/nodes.h"
#include "report/report.h"
#include "report/sanity.h"
#include "report/width.h"
#include "report/words.h"
#include "report/scaling.h"

/* Markdown's own marks, HTML's angle brackets and the table's bar get a backslash; control characters become
 * spaces. */
void markdown_text(struct text *out, const char *s)
{
	size_t size;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		if (utf8_is_control(code))
			text_add(out, " ");
		else if (code == 0xfffd)
			text_add(out, "\xef\xbf\xbd");
		else if (code < 0x80 && strchr("\\`*_[]<>|#&~", (int)code))
			text_addf(out, "\\%c", (char)code);
		else
			text_add_bytes(out, s, size);
	}
}

static void md_names(struct text *out, const struct view *v, const char *s)
{
	struct text t = {0};

	names_add(&v->names, &t, s);
	markdown_text(out, text_str(&t));
	text_release(&t);
}

static void cell(struct text *out, const char *s)
{
	text_add(out, " ");
	markdown_text(out, s[0] ? s : WORDS_NONE);
	text_add(out, " |");
}

struct fact_table {
	struct text *out;
};

static void fact_row(void *arg, const char *name, const char *value)
{
	struct fact_table *t = arg;

	text_add(t->out, "|");
	cell(t->out, name);
	cell(t->out, value);
	text_add(t->out, "\n");
}

static void add_head(struct text *out, const struct view *v)
{
	const struct record *r = v->in->record;
	struct text t = {0};

	text_addf(out, "# assay report: %s\n\n**", verdict_name(v->in->judged->verdict));
	markdown_text(out, v->headline);
	text_add(out, "**\n\n");
	view_run_counts(out, v);
	text_add(out, ".\n");
	if (v->aside_count) {
		view_aside(&t, v);
		markdown_text(out, text_str(&t));
		text_add(out, ".\n");
		text_release(&t);
	}
	if (view_stated(&t, v)) {
		text_addf(out, "\n**%s**, ", verdict_name(v->in->judged->stated.verdict));
		markdown_text(out, text_str(&t));
		text_add(out, ".\n");
		text_release(&t);
	}
	if (view_ends_early(&t, r))
		text_addf(out, "\nThe %s.\n", text_str(&t));
	text_release(&t);
}

static void add_todos(struct text *out, const struct view *v)
{
	text_add(out, "\n## What to do\n\n");
	if (!v->todo_count)
		text_add(out, v->row_count ? "Nothing: no case asks for anything.\n" : "Nothing ran.\n");
	for (size_t i = 0; i < v->todo_count; i++) {
		const struct view_todo *t = &v->todos[i];

		text_addf(out, "%zu. **%s**, ", i + 1, verdict_name(t->verdict));
		markdown_text(out, t->target);
		text_add(out, ": ");
		markdown_text(out, t->action[0] ? t->action : "look at the case");
		text_add(out, ". ");
		markdown_text(out, text_str(&t->some));
		text_add(out, ": ");
		markdown_text(out, t->reason[0] ? t->reason : cause_text(t->cause));
		if (t->cause != CAUSE_NONE)
			text_addf(out, " (`%s`)", cause_name(t->cause));
		text_add(out, "\n");
	}
}

static void add_knobs(struct text *out, const struct view *v)
{
	if (v->knob_count)
		text_add(out, "\n## What would buy more\n\n");
	for (size_t i = 0; i < v->knob_count; i++) {
		text_add(out, "- ");
		markdown_text(out, v->knobs[i].target);
		text_add(out, ", **");
		md_names(out, v, v->knobs[i].knob);
		text_add(out, "**: ");
		md_names(out, v, text_str(&v->knobs[i].some));
		text_add(out, "\n");
	}
}

static void add_unjudged(struct text *out, const struct view *v)
{
	if (v->unjudged_count)
		text_add(out, "\n## Not judged, and why\n\n");
	for (size_t i = 0; i < v->unjudged_count; i++) {
		const struct view_unjudged *u = &v->unjudged[i];

		text_addf(out, "- %s, %u case%s: ", verdict_name(u->verdict), u->count,
			  u->count == 1 ? "" : "s");
		markdown_text(out, u->reason);
		text_add(out, " (");
		markdown_text(out, text_str(&u->some));
		text_add(out, ")\n");
	}
}

static void add_machine(struct text *out, const struct view *v)
{
	struct fact_table t = {out};

	text_add(out, "\n## Machine\n\n| what | value |\n| --- | --- |\n");
	about_machine(v, fact_row, &t);
	for (unsigned i = 0; v->in->machine && i < machine_gpu_count(v->in->machine); i++) {
		text_addf(out, "\n### GPU %u\n\n| what | value |\n| --- | --- |\n", i);
		about_gpu(v, machine_gpu(v->in->machine, i), fact_row, &t);
	}
}

static void add_row(struct text *out, const struct view_group *g, const struct view_row *row)
{
	text_addf(out, "| %s |", verdict_name(row->j->verdict));
	cell(out, row->title);
	cell(out, row->figure);
	cell(out, row->expected);
	cell(out, row->share);
	if (g->clock)
		cell(out, row->clock);
	if (g->power)
		cell(out, row->power);
	if (g->temperature)
		cell(out, row->temperature);
	cell(out, view_why(row));
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
		cell(out, c->series[i].name);
	text_add(out, "\n| ---: |");
	for (size_t i = 0; i < c->series_count; i++)
		text_add(out, " ---: |");
	text_add(out, "\n");
	for (size_t k = 0; k < c->size_count; k++) {
		words_bytes(one, sizeof(one), c->size[k]);
		text_add(out, "|");
		cell(out, one);
		for (size_t i = 0; i < c->series_count; i++) {
			curve_cell(one, sizeof(one), &c->series[i], c->size[k]);
			cell(out, one);
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

static void add_matrix(struct text *out, const struct matrix *m)
{
	struct text note = {0};
	char one[32];

	text_add(out, "\n### ");
	markdown_text(out, m->title);
	text_add(out, "\n\n| |");
	for (size_t b = 0; b < m->count; b++)
		text_addf(out, " gpu%u |", m->gpu[b]);
	text_add(out, "\n| --- |");
	for (size_t b = 0; b < m->count; b++)
		text_add(out, " ---: |");
	for (size_t a = 0; a < m->count; a++) {
		text_addf(out, "\n| gpu%u |", m->gpu[a]);
		for (size_t b = 0; b < m->count; b++) {
			matrix_cell(one, sizeof(one), m, a, b);
			cell(out, one);
		}
	}
	matrix_note(&note, m);
	text_add(out, "\n\n");
	markdown_text(out, text_str(&note));
	text_add(out, ".\n");
	text_release(&note);
}

static void add_scaling(struct text *out, const struct scaling_table *t)
{
	struct text note = {0};
	char one[160];

	text_add(out, "\n### Scaling: ");
	markdown_text(out, t->title);
	text_add(out, "\n\n|");
	for (int k = 0; k < SCALING_COLUMN_COUNT; k++)
		text_addf(out, " %s |", scaling_head((enum scaling_column)k));
	text_add(out, "\n|");
	for (int k = 0; k < SCALING_COLUMN_COUNT; k++)
		text_add(out, scaling_right((enum scaling_column)k) ? " ---: |" : " --- |");
	for (size_t i = 0; i < t->count; i++) {
		text_add(out, "\n|");
		for (int k = 0; k < SCALING_COLUMN_COUNT; k++) {
			scaling_cell(one, sizeof(one), t->row[i], (enum scaling_column)k);
			cell(out, one);
		}
	}
	scaling_note(&note, t);
	text_add(out, "\n\n");
	markdown_text(out, text_str(&note));
	text_add(out, ".\n");
	text_release(&note);
}

static void add_results(struct text *out, const struct view *v)
{
	struct scaling_tables scaling;

	text_add(out, "\n## Results\n");
	if (v->row_count == v->aside_count)
		text_add(out, v->row_count ? "\nNo case of the suite is for the target asked for.\n"
					   : "\nThe run has no cases.\n");
	for (size_t g = 0; g < v->group_count; g++)
		if (view_group_any(v, g))
			add_group(out, v, g);
	for (size_t i = 0; i < v->matrix_count; i++)
		add_matrix(out, &v->matrices[i]);
	scaling_collect(&scaling, v);
	for (size_t i = 0; i < scaling.count; i++)
		add_scaling(out, &scaling.table[i]);
}

/* One sentence a device: its best compute and memory case, and what cost most. */
static void add_device_sentence(struct text *out, const struct view *v, const struct view_group *g)
{
	static const struct {
		const char *limit, *lead;
	} kinds[] = {{"compute", "Compute: "}, {"memory", "Memory: "}, {"link", "Host link: "}};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct view_row *row = view_best(v, g, kinds[k].limit);
		struct text largest = {0};

		if (!row)
			continue;
		text_add(out, kinds[k].lead);
		markdown_text(out, row->title);
		text_addf(out, " reaches %s", row->figure);
		if (row->share[0])
			text_addf(out, ", %s of its bound", row->share);
		if (gap_largest(&largest, row)) {
			text_add(out, "; the largest part of the gap is ");
			markdown_text(out, text_str(&largest));
		}
		text_add(out, ".\n");
		text_release(&largest);
	}
}

static void bullet(struct text *out, const char *mark, const char *lead, const char *s)
{
	text_addf(out, "  %s%s", mark, lead);
	markdown_text(out, s);
	text_add(out, "\n");
}

static void add_gap(struct text *out, const struct view *v, const struct view_row *row)
{
	struct gap_step steps[GAP_STEPS_MAX];
	size_t count = gap_steps(row, steps);
	struct text t = {0};

	text_add(out, "- **");
	markdown_text(out, row->title);
	text_add(out, "**: ");
	gap_achieved(&t, v, row);
	markdown_text(out, text_str(&t));
	text_add(out, "\n");
	text_release(&t);
	for (size_t i = 0; i < count; i++) {
		gap_step_text(&t, row, &steps[i]);
		bullet(out, steps[i].kind == GAP_PART ? "  - " : "- ", "", text_str(&t));
		text_release(&t);
	}
	gap_conclusion(&t, row);
	if (t.size)
		bullet(out, "- ", "", text_str(&t));
	text_release(&t);
	for (size_t i = 0; i < row->j->advice_count; i++) {
		text_addf(&t, "%s; evidence: %s; gain: %s", row->j->advice[i].knob,
			  row->j->advice[i].evidence, row->j->advice[i].gain);
		bullet(out, "- ", "knob: ", text_str(&t));
		text_release(&t);
	}
}

/* Without a bound there is no rest that could have gone anywhere. */
static bool has_gap(const struct view_row *row)
{
	return row->headline && row->share[0] && !row->in_matrix;
}

static bool any_gap(const struct view *v, const struct view_group *g)
{
	for (size_t i = g->first; i < g->first + g->count; i++)
		if (has_gap(&v->rows[i]))
			return true;
	return false;
}

void markdown_gaps(struct text *out, const struct view *v)
{
	bool any = false;

	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];

		if (!any_gap(v, group))
			continue;
		if (!any)
			text_add(out, "\n## Where the rest went\n\nEach case begins at the bound at maximum "
				      "clock; a "
				      "factor's signal is never the rate that it explains.\n");
		any = true;
		text_add(out, "\n### ");
		markdown_text(out, group->name);
		text_add(out, "\n\n");
		add_device_sentence(out, v, group);
		text_add(out, "\n");
		for (size_t i = group->first; i < group->first + group->count; i++)
			if (has_gap(&v->rows[i]))
				add_gap(out, v, &v->rows[i]);
	}
}

void markdown_sanity(struct text *out, const struct view *v)
{
	bool any = false;

	for (size_t i = 0; i < v->row_count; i++) {
		struct sanity s;
		char low[64], figure[64];

		if (!sanity_of(v, &v->rows[i], &s))
			continue;
		if (!any)
			text_add(out, "\n## Published sanity bands\n\nWhat published lab guides ask of these "
				      "cases, for "
				      "orientation; the verdicts above do not depend on them.\n\n"
				      "| target | case | here | guide's band | reading |\n| --- | --- | ---: "
				      "| ---: | --- |\n");
		any = true;
		sanity_band_text(low, sizeof(low), &s);
		words_quantity(figure, sizeof(figure), v->rows[i].j->figure, 0, v->rows[i].j->figure_unit);
		text_add(out, "|");
		cell(out, v->rows[i].where);
		cell(out, v->rows[i].title);
		cell(out, figure);
		cell(out, low);
		cell(out, s.reading);
		text_add(out, "\n");
	}
}

static void add_box(struct text *out, const struct view *v, const char *title, char (*lines)[200],
		    size_t count)
{
	if (!count)
		return;
	text_addf(out, "\n## %s\n\n", title);
	for (size_t i = 0; i < count; i++) {
		text_add(out, "- ");
		md_names(out, v, lines[i]);
		text_add(out, "\n");
	}
}

static void add_parts(struct text *out, const struct view *v)
{
	if (!v->part_count)
		return;
	text_add(out, "\n## Parts for a ticket\n\n| PCI address | slot | serial number | verdict | cause | "
		      "evidence |\n"
		      "| --- | --- | --- | --- | --- | --- |\n");
	for (size_t i = 0; i < v->part_count; i++) {
		const struct view_part *p = &v->parts[i];
		struct text evidence = {0};

		text_addf(&evidence, "%s: %s", p->row->title, p->row->reason);
		text_add(out, "|");
		for (int column = 0; column < PART_COLUMNS; column++) {
			char text[160];

			view_part_text(text, sizeof(text), p, column);
			cell(out, text);
		}
		cell(out, verdict_name(p->verdict));
		cell(out, cause_name(p->cause));
		cell(out, text_str(&evidence));
		text_add(out, "\n");
		text_release(&evidence);
	}
}

void markdown_conditions(struct text *out, const struct view *v)
{
	struct fact_table t = {out};

	text_add(out, "\n## Conditions\n\n| what | value |\n| --- | --- |\n");
	about_run(v, fact_row, &t);
	text_add(out, "\n## Versions\n\n| what | version |\n| --- | --- |\n");
	about_software(v, fact_row, &t);
}

static void add_notes(struct text *out, const struct view *v)
{
	markdown_conditions(out, v);
	text_add(out, "\nSustained figures are means over a window after clock, power and rate had settled; "
		      "inputs are "
		      "scaled random numbers unless a case says otherwise. GB = 10⁹ bytes. Low confidence: "
		      "the band that "
		      "judges it rests on few cards. No reference: nothing sound judges it.\n");
	text_add(out, "\n## How to repeat\n\n```\n");
	view_repeat(out, v);
	text_add(out, "\nassay report DIR          # this report again from the run directory, on any "
		      "machine\n```\n");
}

void report_markdown(struct text *out, const struct report_input *in)
{
	struct view v;

	if (view_build(&v, in, NULL)) {
		out->failed = 1;
		return;
	}
	add_head(out, &v);
	add_todos(out, &v);
	add_knobs(out, &v);
	add_unjudged(out, &v);
	nodes_markdown(out, &v);
	add_results(out, &v);
	markdown_gaps(out, &v);
	text_add(out, "\n## Roofline\n\n![roofline](roofline.svg)\n");
	markdown_sanity(out, &v);
	add_parts(out, &v);
	add_box(out, &v, "Could not look", in->judged->could_not_look, in->judged->could_not_look_count);
	add_box(out, &v, "Needs operator input", in->judged->operator_input,
		in->judged->operator_input_count);
	add_machine(out, &v);
	add_notes(out, &v);
	view_release(&v);
}
