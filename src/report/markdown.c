/* SPDX-License-Identifier: Apache-2.0 */
/* REPORT.md: what a person reads and a ticket quotes. Foreign text is escaped. */
#include "report/about.h"
#include "report/gap.h"
#include "report/merge.h"
#include "report/report.h"
#include "report/sanity.h"
#include "report/width.h"
#include "report/words.h"

/* Markdown's own marks, HTML's angle brackets and the table's bar get a backslash; control characters become
 * spaces. */
void markdown_text(struct text *out, const char *s)
{
	size_t size;

	for (uint32_t code; (code = width_decode(s, &size)) || size; s += size) {
		if (width_is_control(code))
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

	text_addf(out, "# assay report: %s\n\n**", verdict_name(v->in->judged->verdict));
	markdown_text(out, v->headline);
	text_add(out, "**\n\n");
	view_counts(out, v->verdicts, v->row_count);
	text_add(out, ".\n");
	if (!r->closed || r->cut_bytes)
		text_add(out,
			 "\nThe record ends before the run did: what was written until then is shown.\n");
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

static void add_row(struct text *out, const struct view_row *row)
{
	text_addf(out, "| %s |", verdict_name(row->j->verdict));
	cell(out, row->title);
	cell(out, row->figure);
	cell(out, row->expected);
	cell(out, row->share);
	cell(out, row->clock);
	cell(out, row->power);
	cell(out, row->temperature);
	cell(out, row->reason);
	text_add(out, "\n");
}

static void add_results(struct text *out, const struct view *v)
{
	text_add(out, "\n## Results\n");
	if (!v->row_count)
		text_add(out, "\nThe run has no cases.\n");
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];

		text_add(out, "\n### ");
		markdown_text(out, group->name);
		text_add(out, "\n\n| verdict | case | figure | expected | of bound | clock | power | temp. | "
			      "reason |\n"
			      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
		for (size_t i = group->first; i < group->first + group->count; i++)
			add_row(out, &v->rows[i]);
	}
}

static const struct view_row *best_of(const struct view *v, const struct view_group *g, const char *limit)
{
	const struct view_row *best = NULL;

	for (size_t i = g->first; i < g->first + g->count; i++) {
		const struct view_row *row = &v->rows[i];

		if (row->headline && !strncmp(row->c->limit, limit, strlen(limit)) &&
		    (!best || row->j->figure > best->j->figure))
			best = row;
	}
	return best;
}

/* One sentence a device: its best compute and memory case, and what cost most. */
static void add_device_sentence(struct text *out, const struct view *v, const struct view_group *g)
{
	static const struct {
		const char *limit, *lead;
	} kinds[] = {{"compute", "Compute: "}, {"memory", "Memory: "}, {"link", "Host link: "}};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct view_row *row = best_of(v, g, kinds[k].limit);
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

static bool has_headline(const struct view *v, const struct view_group *g)
{
	for (size_t i = g->first; i < g->first + g->count; i++)
		if (v->rows[i].headline)
			return true;
	return false;
}

void markdown_gaps(struct text *out, const struct view *v)
{
	bool any = false;

	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];

		if (!has_headline(v, group))
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
			if (v->rows[i].headline)
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
		cell(out, v->rows[i].c->target);
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
		cell(out, p->gpu->pci);
		cell(out, p->gpu->slot);
		cell(out, p->serial);
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
		      "scaled random numbers unless a case says otherwise. GB = 10⁹ bytes.\n");
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
