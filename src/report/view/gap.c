/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/gap.h"
#include <math.h>
#include "judge/expect/expect.h"
#include "report/text/format.h"

static enum gap_kind kind_of(const struct factor *f)
{
	if (!f->present)
		return GAP_ABSENT;
	return f->shown_only || !isfinite(f->value) || f->value <= 0 ? GAP_PART : GAP_FACTOR;
}

bool gap_shown(const struct view_row *row)
{
	return (row->headline || (row->c->job && row->j->gap_count)) && row->j->share_of_bound > 0 &&
	       isfinite(row->j->share_of_bound) && !row->in_matrix;
}

const char *gap_begins(const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].headline)
			return "Each breakdown starts at the bound at maximum clock";
	return "The breakdown starts at the time that the step's FLOP would take at the rate of a large GEMM, measured before the first step";
}

size_t gap_steps(const struct view_row *row, struct gap_step steps[GAP_STEPS_MAX])
{
	const struct judgement *j = row->j;
	double at = j->bound.value;
	size_t count = 0;
	bool any = false;

	if (!j->has_figure || j->bound.from == BOUND_NONE || !(at > 0) || !isfinite(at) ||
	    !isfinite(j->figure))
		return 0;
	for (size_t i = 0; i < j->gap_count && count < GAP_STEPS_MAX - 1; i++) {
		const struct factor *f = &j->gap[i];
		double before = at;

		if (kind_of(f) == GAP_FACTOR) {
			at *= f->value;
			any = true;
		}
		steps[count++] = (struct gap_step){.kind = kind_of(f),
						   .name = f->name,
						   .signal = f->signal,
						   .value = f->value,
						   .before = before,
						   .after = at};
	}
	if (!any)
		return 0;
	steps[count++] = (struct gap_step){.kind = GAP_RESIDUAL,
					   .name = "unexplained",
					   .signal = "",
					   .value = j->figure / at,
					   .before = at,
					   .after = j->figure};
	return count;
}

double gap_datasheet(const struct report_input *in, const struct gpu *gpu, const char *limit)
{
	const struct sku *sku = in->expectations && gpu ? expect_sku(in->expectations, gpu) : NULL;
	const struct sku_value *value = NULL;

	if (sku && !strncmp(limit, "compute.", 8))
		value = sku_datasheet(sku, limit + 8);
	else if (sku && !strcmp(limit, "memory"))
		value = &sku->fact[SKU_memory_bandwidth];
	return value && value->present ? value->value : 0;
}

void gap_achieved(struct text *out, const struct view *v, const struct view_row *row)
{
	const struct judgement *j = row->j;
	const struct gpu *gpu;
	char name[256], text[64];
	double datasheet;

	view_target_name(name, sizeof(name), v, row->c, &gpu);
	text_addf(out, "%s", row->figure[0] ? row->figure : "no figure");
	if (row->phase)
		text_addf(out, " (%s)", row->phase->name);
	if (j->share_of_bound > 0 && j->bound.value > 0 && !row->share[0]) {
		format_quantity(text, sizeof(text), j->bound.value, 0, j->figure_unit);
		text_addf(out, ", compared with %s%s%s%s, which is not a bound", text,
			  j->bound.formula[0] ? " (" : "", j->bound.formula, j->bound.formula[0] ? ")" : "");
	} else if (j->share_of_bound > 0 && j->bound.value > 0) {
		format_share(text, sizeof(text), j->share_of_bound);
		text_addf(out, ", %s of ", text);
		format_quantity(text, sizeof(text), j->bound.value, 0, j->figure_unit);
		text_addf(out, "%s%s%s%s", text, j->bound.formula[0] ? " (" : "", j->bound.formula,
			  j->bound.formula[0] ? ")" : "");
		if (row->over[0])
			text_addf(out, ": %s", row->over);
	}
	if (j->verdict == VERDICT_UNTRUSTED || j->verdict == VERDICT_ERROR)
		text_addf(out, "; %s: %s", verdict_name(j->verdict), row->reason);
	datasheet = gap_datasheet(v->in, gpu, row->c->limit);
	if (datasheet > 0 && j->has_figure && isfinite(j->figure)) {
		format_share(text, sizeof(text), j->figure / datasheet);
		text_addf(out, "; %s%s of the datasheet's ",
			  strncmp(row->c->limit, "compute", 7) ? "" : "MFU ", text);
		format_quantity(text, sizeof(text), datasheet, 0, j->figure_unit);
		text_add(out, text);
	}
	if (j->efficiency_held > 0) {
		format_share(text, sizeof(text), j->efficiency_held);
		text_addf(out, "; %s at the measured clock", text);
	}
}

void gap_step_text(struct text *out, const struct view_row *row, const struct gap_step *step)
{
	double loss = step->before - step->after;
	char cost[48];

	switch (step->kind) {
	case GAP_ABSENT:
		text_addf(out,
			  "%s: no signal on this machine; its cost is part of the unexplained factor%s%s%s",
			  step->name, step->signal[0] ? " (" : "", step->signal, step->signal[0] ? ")" : "");
		return;
	case GAP_PART:
		text_addf(out, "of which %s", step->name);
		if (isfinite(step->value) && step->value > 0)
			text_addf(out, " %.3f", step->value);
		break;
	case GAP_FACTOR:
	case GAP_RESIDUAL:
		format_quantity(cost, sizeof(cost), fabs(loss), step->before, row->j->figure_unit);
		if (fabs(step->value - 1) < 0.0005)
			text_addf(out, "%s ×%.3f, costs nothing", step->name, step->value);
		else
			text_addf(out, "%s ×%.3f, %s %s", step->name, step->value,
				  loss >= 0 ? "costs" : "gives", cost);
		break;
	}
	if (step->signal[0])
		text_addf(out, " (%s)", step->signal);
}

void gap_conclusion(struct text *out, const struct view_row *row)
{
	struct gap_step steps[GAP_STEPS_MAX];
	size_t count = gap_steps(row, steps);
	char share[24];

	if (!count)
		return;
	if (row->j->has_explained_share) {
		format_share(share, sizeof(share), fmax(row->j->explained_share, 0));
		text_addf(out, "signals account for %s of the gap to the bound", share);
		format_share(share, sizeof(share), row->j->assumed_share);
		if (row->j->assumed_share > row->j->explained_share)
			text_addf(out, ", or for %s with assumed factors", share);
		return;
	}
	format_share(share, sizeof(share), fabs(steps[count - 1].value - 1));
	if (row->j->explained)
		text_addf(out, "explained: the factors reproduce the measurement within %s", share);
	else
		text_addf(out, "not explained: %s %s", share,
			  fabs(steps[count - 1].value - 1) > 0.03
				  ? "has no measured cause"
				  : "remains, and a factor has no signal here");
}

bool gap_largest(struct text *out, const struct view_row *row)
{
	struct gap_step steps[GAP_STEPS_MAX];
	size_t count = gap_steps(row, steps), worst = 0;
	char share[24];

	if (!count)
		return false;
	for (size_t i = 0; i < count; i++)
		if ((steps[i].kind == GAP_FACTOR || steps[i].kind == GAP_RESIDUAL) &&
		    (steps[worst].kind == GAP_PART || steps[worst].kind == GAP_ABSENT ||
		     steps[i].value < steps[worst].value))
			worst = i;
	if (steps[worst].value > 0.9995)
		return false;
	format_share(share, sizeof(share), 1 - steps[worst].value);
	text_addf(out, "%s (%s)", steps[worst].name, share);
	return true;
}
