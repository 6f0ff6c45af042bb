/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for a figure without an expected range: a share of the bound, or what fewer nodes of this run
 * reached. No case passes by it. A figure below it is slow; a figure above it stays without a verdict. */
#include "core/text/text.h"
#include "core/text/units.h"
#include "judge/case/verdict.h"

static struct expected_case as_expected(const struct subject *s)
{
	return (struct expected_case){.key = s->c->key,
				      .limit = s->c->limit,
				      .layout = json_object_get(s->c->plan, "layout"),
				      .rate = s->has_figure ? s->figure : 0};
}

/* The reference from fewer nodes of this run. *best is the case that gives the highest one. */
static double by_groups(const struct subject *s, struct subject *best)
{
	const struct record *r = s->ctx->record;
	const struct expected_case whole = as_expected(s);
	double most = 0, least;

	for (size_t i = 0; whole.layout && i < r->case_count; i++) {
		struct expected_case group;
		struct subject o;

		if (!case_sound(&r->cases[i]) || record_is_isolation(&r->cases[i]))
			continue;
		subject_of(&o, s->ctx, &r->cases[i]);
		group = as_expected(&o);
		least = expected_by_group(&whole, &group);
		if (least > most) {
			most = least;
			*best = o;
		}
	}
	return most;
}

static void fallback_by_share(struct fallback_expectation *l, const struct share_row *row)
{
	l->from = EXPECTED_SHARE;
	l->share = row->share;
	l->confidence = row->source.confidence;
	text_copy(l->source, sizeof(l->source), row->source.text);
	text_copy(l->date, sizeof(l->date), row->source.date);
	snprintf(l->place, sizeof(l->place), "%.80s:%d", row->file, row->line);
}

static void fallback_by_group(struct fallback_expectation *l, const struct subject *group)
{
	char figure[32];

	units_format(figure, sizeof(figure), group->figure, group->unit);
	l->from = EXPECTED_GROUP;
	l->share = EXPECTED_OF_GROUP;
	l->confidence = CONFIDENCE_LOW;
	snprintf(l->source, sizeof(l->source), "%.80s reaches %s in this run", group->c->where, figure);
}

struct expected_known verdict_known(struct judgement *out, const struct subject *s, const struct band_row *b)
{
	bool time = !strcmp(s->unit, "ns"), bound = out->bound.from == BOUND_DEVICE && out->bound.value > 0;
	const struct share_row *row = time || !bound ? NULL : expect_share(s->ctx->e, subject_word, s);
	struct expected_known known = {0};
	struct expected e;
	struct subject group = *s;

	if (b)
		known.band = time ? 1e9 / b->high : b->low;
	if (row)
		known.share = row->share * bound_of_links(s, &out->bound);
	known.group = by_groups(s, &group);
	e = expected_of(&known);
	out->least = (struct fallback_expectation){0};
	if (e.from == EXPECTED_SHARE)
		fallback_by_share(&out->least, row);
	else if (e.from == EXPECTED_GROUP)
		fallback_by_group(&out->least, &group);
	if (e.from != EXPECTED_BAND)
		out->least.value = e.rate;
	return known;
}

void verdict_fallback(struct judgement *out, const struct subject *s)
{
	const struct fallback_expectation *l = &out->least;
	char figure[32], least[32], why[200];

	if (!(s->figure < l->value))
		return;
	units_format(figure, sizeof(figure), s->figure, s->unit);
	units_format(least, sizeof(least), l->value, s->unit);
	if (l->from == EXPECTED_GROUP)
		text_copy(why, sizeof(why), l->source);
	else
		snprintf(why, sizeof(why), "healthy machines reach at least %.2f of the links' bound",
			 l->share);
	out->judged_by = JUDGED_BOUND;
	out->low_confidence = l->confidence == CONFIDENCE_LOW;
	finding(out, s->require == REQUIRE_JUDGED ? VERDICT_UNKNOWN : VERDICT_WARN, CAUSE_BELOW_BOUND,
		"%s, under %s: no expected range fits this case, and %s", figure, least, why);
}
