/* SPDX-License-Identifier: Apache-2.0 */
/* The section "Gap to the bound" of REPORT.md. */
#include "report/view/gap.h"
#include "report/markdown/markdown.h"

/* Appends up to three sentences per device: its best compute, memory and link case, each with its largest
 * loss. */
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
		bullet(out, "- ", "setting: ", text_str(&t));
		text_release(&t);
	}
}

static bool any_gap(const struct view *v, const struct view_group *g)
{
	for (size_t i = g->first; i < g->first + g->count; i++)
		if (gap_shown(&v->rows[i]))
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
			text_addf(
				out,
				"\n## Gap to the bound\n\n%s. The signal of a factor is never the rate that the factor explains.\n",
				gap_begins(v));
		any = true;
		text_add(out, "\n### ");
		markdown_text(out, group->name);
		text_add(out, "\n\n");
		add_device_sentence(out, v, group);
		text_add(out, "\n");
		for (size_t i = group->first; i < group->first + group->count; i++)
			if (gap_shown(&v->rows[i]))
				add_gap(out, v, &v->rows[i]);
	}
}
