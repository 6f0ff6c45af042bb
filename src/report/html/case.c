/* SPDX-License-Identifier: Apache-2.0 */
/* The details of one headline case on the page: figure, waterfall from the bound to the figure, settings to
 * try. The bars are CSS, so they fit any width. */
#include <math.h>
#include "report/text/basis.h"
#include "report/view/gap.h"
#include "report/html/html.h"
#include "report/text/format.h"

static void bar(struct text *out, double from, double to)
{
	double left = from < to ? from : to, width = fabs(to - from);

	left = left < 0 ? 0 : left > 1 ? 1 : left;
	width = left + width > 1 ? 1 - left : width;
	text_addf(out,
		  "<span class=\"track\"><span class=\"bar\" style=\"--a:%.2f%%;--w:%.2f%%\"></span></span>",
		  100 * left, 100 * width);
}

static void end_step(struct text *out, const char *name, double value, double scale, const char *unit)
{
	char shown[48];

	format_quantity(shown, sizeof(shown), value, scale, unit);
	text_addf(out, "<div class=\"step end\"><span class=\"name\">%s</span>", name);
	bar(out, 0, value / scale);
	text_addf(out, "<span class=\"cost\">%s</span></div>\n", shown);
}

static void add_step(struct text *out, const struct gap_step *s, double scale, const char *unit)
{
	static const char *const classes[] = {"", " part", " part", " odd"};
	double loss = s->before - s->after;
	char cost[48];

	text_addf(out, "<div class=\"step%s\"><span class=\"name\">", classes[s->kind]);
	if (s->kind == GAP_PART)
		text_add(out, "of which ");
	html_add(out, s->name);
	text_add(out, "</span>");
	if (s->kind == GAP_FACTOR || s->kind == GAP_RESIDUAL) {
		bool nothing = fabs(s->value - 1) < 0.0005;

		bar(out, s->after / scale, nothing ? s->after / scale : s->before / scale);
		format_quantity(cost, sizeof(cost), fabs(loss), scale, unit);
		if (nothing)
			text_addf(out, "<span class=\"cost\">×%.3f</span>", s->value);
		else
			text_addf(out, "<span class=\"cost\">×%.3f · %s%s</span>", s->value,
				  loss >= 0 ? "−" : "+", cost);
	} else {
		text_add(out, "<span class=\"signal\">");
		html_add(out, s->signal);
		text_add(out, "</span>");
		if (s->kind == GAP_PART && isfinite(s->value) && s->value > 0)
			text_addf(out, "<span class=\"cost muted\">%.3f</span>", s->value);
		else
			text_addf(out, "<span class=\"cost muted\">%s</span>",
				  s->kind == GAP_ABSENT ? "no signal" : "");
	}
	if (s->signal[0] && s->kind == GAP_FACTOR) {
		text_add(out, "<span class=\"signal\">");
		html_add(out, s->signal);
		text_add(out, "</span>");
	}
	text_add(out, "</div>\n");
}

static void waterfall(struct text *out, const struct view_row *row)
{
	struct gap_step steps[GAP_STEPS_MAX];
	size_t count = gap_steps(row, steps);
	double scale = row->j->bound.value;
	struct text conclusion = {0};

	if (!count)
		return;
	if (row->j->figure > scale)
		scale = row->j->figure;
	text_add(out, "<div class=\"fall\">\n");
	end_step(out, "bound", row->j->bound.value, scale, row->j->figure_unit);
	for (size_t i = 0; i < count; i++)
		add_step(out, &steps[i], scale, row->j->figure_unit);
	end_step(out, "measured", row->j->figure, scale, row->j->figure_unit);
	text_add(out, "</div>\n<p class=\"muted\">");
	gap_conclusion(&conclusion, row);
	html_add(out, text_str(&conclusion));
	text_add(out, ".</p>\n");
	text_release(&conclusion);
}

static void knobs(struct text *out, const struct view *v, const struct judgement *j)
{
	for (size_t i = 0; i < j->advice_count; i++) {
		text_add(out, "<div class=\"knob\"><b>");
		html_names(out, v, j->advice[i].knob);
		text_add(out, "</b><br>gain: ");
		html_names(out, v, j->advice[i].gain);
		text_add(out, "<br><span class=\"muted\">evidence: ");
		html_names(out, v, j->advice[i].evidence);
		text_add(out, "</span></div>\n");
	}
}

void html_case(struct text *out, const struct view *v, const struct view_row *row, bool open)
{
	struct text t = {0};

	text_add(out, "<details id=\"");
	html_case_id(out, "gap", row);
	text_addf(out, "\"%s><summary>", open ? " open" : "");
	text_add(out, "<b>");
	html_add(out, row->title);
	text_addf(out, "</b><span class=\"num\">%s</span>", row->figure);
	if (row->share[0])
		text_addf(out, "<span class=\"muted\">%s of bound</span>", row->share);
	html_verdict(out, row->j->verdict);
	text_add(out, "</summary>\n<p>");
	gap_achieved(&t, v, row);
	html_add(out, text_str(&t));
	text_add(out, ".</p>\n");
	text_release(&t);
	if (row->reason[0]) {
		text_add(out, "<p>");
		html_add(out, row->reason);
		text_add(out, ".</p>\n");
	}
	basis_add(&t, row->j);
	if (t.size) {
		text_add(out, "<p class=\"muted\">compared with ");
		html_names(out, v, text_str(&t));
		text_add(out, "</p>\n");
	}
	text_release(&t);
	waterfall(out, row);
	knobs(out, v, row->j);
	html_telemetry(out, v, row);
	text_add(out, "</details>\n");
}
