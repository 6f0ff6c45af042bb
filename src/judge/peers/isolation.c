/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/peers/isolation.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "journal/figure/figure.h"
#include "judge/advice/blas_kernels.h"
#include "judge/case/verdict.h"

bool isolated_case(struct judgement *out, const struct subject *s)
{
	const json_t *follows = json_object_get(s->c->plan, "follows");
	const char *why = json_string_value(json_object_get(follows, "why"));
	bool wrong = s->c->ending == ENDING_DONE && s->c->status == STATUS_MISMATCH;
	char figure[32] = "no figure";

	if (!record_is_isolation(s->c))
		return false;
	out->superseded = true;
	text_copy(out->figure_field, sizeof(out->figure_field), s->field);
	text_copy(out->figure_unit, sizeof(out->figure_unit), s->unit);
	text_copy(out->phase, sizeof(out->phase), s->phase ? s->phase_name : "");
	if (blas_retry_case(out, s) || (!wrong && verdict_ending(out, s)))
		return true;
	out->figure = s->figure;
	out->has_figure = s->has_figure;
	if (s->has_figure)
		units_format(figure, sizeof(figure), s->figure, s->unit);
	finding(out, VERDICT_MEASURED, CAUSE_NONE, "isolation run for case %d, round %d, %.96s: %s%s",
		(int)json_integer_value(json_object_get(follows, "case")),
		(int)json_integer_value(json_object_get(follows, "round")), why ? why : "", figure,
		wrong ? ", wrong data" : "");
	return true;
}

static const char *word(const struct record_phase *p, const char *name)
{
	const char *text = record_text(p, name);

	return text ? text : "";
}

/* Writes "without it 361 GB/s, with it 204 GB/s; ". */
static void figures(const struct record_phase *p, const struct subject *s, char *out, size_t size)
{
	const struct figure *f = figure_of_limit(s->c->limit);
	double with, without;
	char a[32], b[32];

	*out = '\0';
	if (!f || !record_number(p, "isolated_with", &with) || !(with > 0) ||
	    !record_number(p, "isolated_without", &without) || !(without > 0))
		return;
	units_format(a, sizeof(a), f->lower ? 1e9 / without : without, s->unit);
	units_format(b, sizeof(b), f->lower ? 1e9 / with : with, s->unit);
	snprintf(out, size, "without it %s, with it %s; ", a, b);
}

/* Puts the text in front of the present reason, whose end may be cut. */
static void begin_with(struct judgement *out, const char *text)
{
	char old[sizeof(out->reason)];
	size_t used;

	text_copy(old, sizeof(old), *out->reason ? "; " : "");
	text_copy(old + strlen(old), sizeof(old) - strlen(old), out->reason);
	text_copy(out->reason, sizeof(out->reason), text);
	used = strlen(out->reason);
	text_copy(out->reason + used, sizeof(out->reason) - used, old);
}

static enum cause cause_of(const char *kind, const char *of)
{
	if (!strcmp(kind, "pair"))
		return CAUSE_LINK_SLOW;
	return strcmp(of, "node") ? CAUSE_SLOW_RANK : CAUSE_NODE_SLOW;
}

void isolated_explain(struct judgement *out, const struct subject *s)
{
	const struct record_phase *p = record_phase(s->c, "isolated");
	const char *kind = p ? word(p, "isolated") : "";
	bool wrong = p && !strcmp(word(p, "isolated_fault"), "wrong");
	char text[sizeof(out->reason)], with[96], address[64] = "";
	const char *of = p ? word(p, "isolated_of") : "";

	if (!*kind)
		return;
	figures(p, s, with, sizeof(with));
	if (!strcmp(kind, "nobody")) {
		snprintf(text, sizeof(text), "no %s or link found: %.190s",
			 strcmp(of, "gpu") ? "rank, node" : "GPU", word(p, "isolated_why"));
		begin_with(out, text);
		return;
	}
	if (*word(p, "isolated_pci"))
		snprintf(address, sizeof(address), " (%.48s)", word(p, "isolated_pci"));
	snprintf(text, sizeof(text), "%.90s%s is %s: %s%.130s", word(p, "isolated_place"), address,
		 wrong ? "wrong" : "slow", wrong ? "" : with, word(p, "isolated_why"));
	begin_with(out, text);
	if (wrong)
		return;
	if (verdict_weight(out->verdict) < verdict_weight(VERDICT_UNTRUSTED))
		out->verdict = VERDICT_FAIL;
	out->cause = cause_of(kind, of);
}
