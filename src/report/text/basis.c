/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/basis.h"
#include <math.h>
#include "report/text/format.h"

const char *basis_confidence(const struct judgement *j)
{
	const char *word = j->has_band ? confidence_name(j->band.confidence) : "";

	return !word[0] && j->low_confidence ? confidence_name(CONFIDENCE_LOW) : word;
}

static void confidence_add(struct text *out, const struct judgement *j)
{
	const char *word = basis_confidence(j);

	if (word[0])
		text_addf(out, ", %s confidence", word);
}

static void band_add(struct text *out, const struct judgement *j)
{
	char range[64];

	text_add(out, j->has_band ? "an expected range" : "an expected range of shares");
	if (j->has_band && isfinite(j->band.low) && isfinite(j->band.high)) {
		format_range(range, sizeof(range), j->band.low, j->band.high, j->figure_unit);
		text_addf(out, " of %s", range);
	}
	confidence_add(out, j);
	text_addf(out, "%s%s", j->band.basis[0] ? ": " : "", j->band.basis);
	if (j->band.source[0])
		text_addf(out, "; %s%s%s", j->band.source, j->band.date[0] ? ", " : "", j->band.date);
}

static void fallback_add(struct text *out, const struct fallback_expectation *l)
{
	text_addf(out, "%s%.2f, %s confidence: %s%s%s",
		  l->from == EXPECTED_GROUP ? "; expected share of the rate on fewer nodes: at least "
					    : "; expected share of it: at least ",
		  l->share, confidence_name(l->confidence), l->source, *l->date ? ", " : "", l->date);
}

void basis_add(struct text *out, const struct judgement *j)
{
	switch (j->judged_by) {
	case JUDGED_NOTHING:
	case JUDGED_COUNT:
		return;
	case JUDGED_BAND:
		band_add(out, j);
		return;
	case JUDGED_CEILING:
		text_add(out, "this machine's ceiling, measured in the same run");
		confidence_add(out, j);
		return;
	case JUDGED_SIBLINGS:
		text_add(out, "its siblings in this run");
		confidence_add(out, j);
		return;
	case JUDGED_HISTORY:
		text_add(out, "earlier runs");
		confidence_add(out, j);
		return;
	case JUDGED_RULE:
		text_add(out, "rules for its values");
		confidence_add(out, j);
		return;
	case JUDGED_BOUND:
		if (j->bound.from == BOUND_NONE)
			text_add(out, "the same case on fewer nodes");
		else
			text_addf(out, "the bound of its device%s%s", j->bound.formula[0] ? ": " : "",
				  j->bound.formula);
		if (j->least.value > 0 && j->figure < j->least.value)
			fallback_add(out, &j->least);
		return;
	}
}
