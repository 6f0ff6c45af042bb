/* SPDX-License-Identifier: Apache-2.0 */
/* REPORT.md: the report as a text that people read and quote in tickets. Foreign text is escaped. */
#include "report/markdown/markdown.h"
#include "report/view/about.h"
#include "report/tables/nodes.h"
#include "report/report.h"
#include "report/view/guide_bands.h"
#include "report/load/load.h"
#include "report/training/training.h"
#include "report/serving/serving.h"
#include "core/text/width.h"
#include "report/text/format.h"

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

	pseudonym_map_add(&v->names, &t, s);
	markdown_text(out, text_str(&t));
	text_release(&t);
}

void markdown_cell(struct text *out, const char *s)
{
	text_add(out, " ");
	markdown_text(out, s[0] ? s : FORMAT_NONE);
	text_add(out, " |");
}

struct fact_table {
	struct text *out;
};

static void fact_row(void *arg, const char *name, const char *value)
{
	struct fact_table *t = arg;

	text_add(t->out, "|");
	markdown_cell(t->out, name);
	markdown_cell(t->out, value);
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
	view_aside(&t, v, "");
	if (t.size) {
		markdown_text(out, text_str(&t));
		text_add(out, ".\n");
	}
	text_release(&t);
	if (view_stated(&t, v)) {
		text_addf(out, "\n**%s**, ", verdict_name(v->in->judged->stated.verdict));
		markdown_text(out, text_str(&t));
		text_add(out, ".\n");
		text_release(&t);
	}
	if (view_ends_early(&t, r))
		text_addf(out, "\nThe %s.\n", text_str(&t));
	text_release(&t);
	if (view_rebooted(&t, v)) {
		text_add(out, "\n");
		markdown_text(out, text_str(&t));
		text_add(out, ".\n");
	}
	text_release(&t);
}

static void add_todos(struct text *out, const struct view *v)
{
	unsigned number = 0;

	text_add(out, "\n## What to do\n\n");
	if (!v->todo_count)
		text_add(out, v->row_count ? "Nothing: no case needs attention.\n" : "No case ran.\n");
	for (size_t i = 0; i < v->todo_count; i++) {
		const struct view_todo *t = &v->todos[i];

		if (t->spread.joined)
			continue;
		text_addf(out, "%u. **%s**, ", ++number, verdict_name(t->verdict));
		markdown_text(out, t->spread.where);
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
		text_add(out, "\n## Settings that could improve a figure\n\n");
	for (size_t i = 0; i < v->knob_count; i++) {
		if (v->knobs[i].spread.joined)
			continue;
		text_add(out, "- ");
		markdown_text(out, v->knobs[i].spread.where);
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

void markdown_sanity(struct text *out, const struct view *v)
{
	bool any = false;

	for (size_t i = 0; i < v->row_count; i++) {
		struct guide_band s;
		char low[64], figure[64];

		if (!guide_bands_of(v, &v->rows[i], &s))
			continue;
		if (!any)
			text_add(
				out,
				"\n## Published sanity ranges\n\nRanges that published lab guides give for these cases, for orientation. The verdicts above do not depend on them.\n\n"
				"| target | case | here | guide's range | reading |\n| --- | --- | ---: "
				"| ---: | --- |\n");
		any = true;
		guide_bands_band_text(low, sizeof(low), &s);
		format_quantity(figure, sizeof(figure), v->rows[i].j->figure, 0, v->rows[i].j->figure_unit);
		text_add(out, "|");
		markdown_cell(out, v->rows[i].where);
		markdown_cell(out, v->rows[i].title);
		markdown_cell(out, figure);
		markdown_cell(out, low);
		markdown_cell(out, s.reading);
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
			markdown_cell(out, text);
		}
		markdown_cell(out, verdict_name(p->verdict));
		markdown_cell(out, cause_name(p->cause));
		markdown_cell(out, text_str(&evidence));
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
	text_add(
		out,
		"\nSustained figures are means over a window that begins after clock, power and rate have settled. Inputs are scaled random numbers unless a case says otherwise. GB = 10⁹ bytes.");
	text_add(out, view_low_confidence(v));
	text_add(out, " No reference: assay has no sound expectation for the case.\n");
	text_add(out, "\n## How to repeat\n\n```\n");
	view_repeat(out, v);
	text_add(
		out,
		"\nassay report DIR          # renders this report again from the run directory, on any machine\n```\n");
}

/* Names the files of a load test's charts. */
static void add_charts(struct text *out, const struct view *v)
{
	struct load_chart charts[LOAD_CHARTS];
	const size_t count = load_charts(charts, v);

	text_add(out, count ? "\n## Charts\n" : "");
	for (size_t i = 0; i < count; i++) {
		text_addf(out, "\n![%s](%s)\n\n", charts[i].title, charts[i].file);
		markdown_text(out, charts[i].caption);
		text_add(out, "\n");
		load_chart_release(&charts[i]);
	}
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
	markdown_results(out, &v);
	if (load_case(&v))
		add_charts(out, &v);
	else
		markdown_gaps(out, &v);
	if (!training_case(&v) && !serving_case(&v) && !load_case(&v))
		text_add(out, "\n## Roofline\n\n![roofline](roofline.svg)\n");
	markdown_sanity(out, &v);
	add_parts(out, &v);
	add_box(out, &v, "Could not be checked", in->judged->could_not_look,
		in->judged->could_not_look_count);
	add_box(out, &v, "Needs operator input", in->judged->operator_input,
		in->judged->operator_input_count);
	add_machine(out, &v);
	add_notes(out, &v);
	view_release(&v);
}
