/* SPDX-License-Identifier: Apache-2.0 */
#include "report/basis.h"
#include <math.h>
#include "report/words.h"

static const char *confidence(const struct judgement *j)
{
	static const char *const words[] = {"", ", low confidence", ", medium confidence",
					    ", high confidence"};

	if (j->has_band && j->band.confidence > 0 && j->band.confidence <= 3)
		return words[j->band.confidence];
	return j->low_confidence ? words[1] : "";
}

static void band_add(struct text *out, const struct judgement *j)
{
	char range[64];

	text_add(out, j->has_band ? "a band" : "a band of shares");
	if (j->has_band && isfinite(j->band.low) && isfinite(j->band.high)) {
		words_range(range, sizeof(range), j->band.low, j->band.high, j->figure_unit);
		text_addf(out, " of %s", range);
	}
	text_addf(out, "%s%s%s", confidence(j), j->band.basis[0] ? ": " : "", j->band.basis);
	if (j->band.source[0])
		text_addf(out, "; %s%s%s", j->band.source, j->band.date[0] ? ", " : "", j->band.date);
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
		text_addf(out, "this machine's own ceiling of the same run%s", confidence(j));
		return;
	case JUDGED_SIBLINGS:
		text_addf(out, "its siblings in this run%s", confidence(j));
		return;
	case JUDGED_HISTORY:
		text_addf(out, "earlier runs%s", confidence(j));
		return;
	case JUDGED_RULE:
		text_addf(out, "rules for its fields%s", confidence(j));
		return;
	case JUDGED_BOUND:
		text_addf(out, "the bound of its device%s%s", j->bound.formula[0] ? ": " : "",
			  j->bound.formula);
		return;
	}
}
