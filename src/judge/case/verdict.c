/* SPDX-License-Identifier: Apache-2.0 */
/* A timed case: how it ended, which conditions it met, then its figure compared with bound, range and
 * ceiling. */
#include "judge/case/verdict.h"
#include "judge/case/gpu_changes.h"
#include "judge/case/collective_choice.h"
#include "judge/peers/isolation.h"
#include "judge/case/numa_placement.h"
#include "judge/case/range.h"
#include <float.h>
#include <math.h>
#include "core/text/text.h"
#include "core/text/units.h"
#include "journal/figure/network_bound.h"

void verdict_band(struct judgement *out, const struct subject *s, const struct band_row *b)
{
	struct range r;

	out->has_band = true;
	out->judged_by = JUDGED_BAND;
	out->low_confidence = b->source.confidence == 1;
	range_of(&r, s, b);
	out->band = (struct band){.low = r.low, .high = r.high, .confidence = b->source.confidence};
	text_copy(out->band.phase, sizeof(out->band.phase), s->phase_name);
	text_copy(out->band.source, sizeof(out->band.source), b->source.text);
	text_copy(out->band.date, sizeof(out->band.date), b->source.date);
	snprintf(out->band.place, sizeof(out->band.place), "%.80s:%d", b->file, b->line);
	basis_text(&b->basis, out->band.basis, sizeof(out->band.basis));
}

static const struct band_row *band_find(struct judgement *out, const struct subject *s, enum band_slot slot)
{
	const struct band_row *tie, *b = expect_band(s->ctx->e, slot, subject_word, s, &tie);

	if (!tie)
		return b;
	finding(out, VERDICT_ERROR, CAUSE_DEFECT, "ranges %.40s and %.40s both match this case (%.60s:%d)",
		b->name, tie->name, b->file, b->line);
	return NULL;
}

enum band_slot verdict_slot(const struct subject *s)
{
	return !strcmp(s->unit, "ns") ? BAND_TIME : BAND_RATE;
}

static void value_text(char *out, size_t size, double value, const char *unit)
{
	if (*unit)
		units_format(out, size, value, unit);
	else
		snprintf(out, size, "%.3f", value);
}

/* Names weak evidence behind a finding. */
static const char *basis_note(const struct band_row *b)
{
	if (!b->basis.cards)
		return "; range from published figures only";
	return b->basis.cards == 1 ? "; range from one card" : "";
}

/* True if the window is good enough for its figure to be used. Only such a figure can fail by a margin. */
static bool trusted(const struct judgement *out, const struct subject *s)
{
	struct judgement alone = {.verdict = VERDICT_PASS};

	verdict_steadiness(&alone, s);
	return out->verdict != VERDICT_UNTRUSTED && alone.verdict != VERDICT_UNTRUSTED;
}

/* True if the figure is so far below its range that it fails: by the share that always fails, or for a
 * headline case by margin or mark. */
static bool far_below(const struct judgement *out, const struct subject *s, const struct band_row *b,
		      const struct range *r, double value, bool headline)
{
	double worse = b->slot == BAND_TIME ? r->high / value : value / r->low;

	if (worse < VERDICT_FAIL_SHARE)
		return !r->lenient;
	return headline && range_class_of(s) && range_fails(r, s, b, value, trusted(out, s));
}

/* Writes "; more than 10 % off fails" and the basis of the range. */
static void margin_text(char *out, size_t size, const struct range *r, const struct band_row *b)
{
	char mark[32];

	if (r->mark > 0) {
		units_format(mark, sizeof(mark), r->mark, b->slot == BAND_TIME ? "ns" : "FLOP/s");
		snprintf(out, size, "; %s or worse fails%s", mark, basis_note(b));
	} else if (r->margin > 0) {
		snprintf(out, size, "; more than %.0f %% off fails%s", 100 * r->margin, basis_note(b));
	} else {
		snprintf(out, size, "%s", basis_note(b));
	}
}

struct held {
	double value;
	enum cause low; /* cause if the value is too low */
	const char *what, *unit, *why;
	bool headline; /* the main figure of the case */
};

/* Compares a value with its range: worse, far worse, or better. */
static void band_hold(struct judgement *out, const struct subject *s, const struct band_row *b,
		      const struct held *is)
{
	bool time = b->slot == BAND_TIME;
	char v[32], l[32], h[32], margin[128];
	struct range r;
	bool fails;

	range_of(&r, s, b);
	value_text(v, sizeof(v), is->value, is->unit);
	value_text(l, sizeof(l), r.low, is->unit);
	value_text(h, sizeof(h), r.high, is->unit);
	if (time ? is->value > r.high : is->value < r.low) {
		fails = far_below(out, s, b, &r, is->value, is->headline);
		out->below_range |= fails && is->headline && range_class_of(s);
		margin_text(margin, sizeof(margin), &r, b);
		finding(out, fails ? VERDICT_FAIL : VERDICT_WARN, is->low, "%s %s, expected %s .. %s%s%s",
			is->what, v, l, h, is->why,
			is->headline && range_class_of(s) ? margin : basis_note(b));
	} else if (time ? is->value < r.low : is->value > r.high) {
		finding(out, VERDICT_WARN, CAUSE_BAND_STALE, "%s %s, %s the expected range of %s .. %s%s",
			is->what, v, time ? "below" : "above", l, h, basis_note(b));
	}
}

/* Compute is judged twice: how well it used the held clock, and which clock was held. */
static void compute_twice(struct judgement *out, const struct subject *s)
{
	const struct band_row *b;
	double clock, flop = bound_flop_per_clock(s);

	if (!(flop > 0) || !record_number(s->phase, "clock_hz", &clock) || !(clock > 0))
		return;
	out->efficiency_held = s->figure / (flop * clock);
	if (out->efficiency_held > VERDICT_ABOVE)
		finding(out, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND,
			"%.3f of the bound at the held clock of %.0f MHz: work or time is miscounted",
			out->efficiency_held, clock / 1e6);
	b = band_find(out, s, BAND_EFFICIENCY);
	if (b) {
		bool alone = !out->has_band;

		if (alone) { /* shown in the figure's unit, at the clock that was held */
			verdict_band(out, s, b);
			out->band.low *= flop * clock;
			out->band.high *= flop * clock;
		}
		band_hold(out, s, b,
			  &(struct held){.value = out->efficiency_held,
					 .low = CAUSE_LOW_EFFICIENCY,
					 .what = "share of the held clock's bound",
					 .unit = "",
					 .why = "",
					 .headline = alone});
	}
	b = band_find(out, s, BAND_CLOCK);
	if (b)
		band_hold(out, s, b,
			  &(struct held){.value = clock,
					 .low = CAUSE_LOW_CLOCK,
					 .what = "held clock",
					 .unit = "Hz",
					 .why = ""});
}

/* Writes how much of a low rate the clock explains, as far as clock measurements show. */
static void at_clock(const struct subject *s, char *out, size_t size)
{
	double clock, flop = *s->type && s->gpu ? bound_flop_per_clock(s) : 0;

	*out = '\0';
	if (flop > 0 && record_number(s->phase, "clock_hz", &clock) && clock > 0)
		snprintf(out, size, " (%.1f %% of the bound at the held clock of %.0f MHz)",
			 100 * s->figure / (flop * clock), clock / 1e6);
}

/* Before a run, assume that every case with a figure will have a good one. */
void verdict_unreferenced(struct judgement *out, const struct subject *s, const char *why)
{
	bool figure = s->ctx->ahead ? *s->field != '\0' : s->has_figure;

	finding(out, figure && s->require != REQUIRE_JUDGED ? VERDICT_MEASURED : VERDICT_UNKNOWN,
		CAUSE_NO_REFERENCE, "%s", why);
}

static void against_band(struct judgement *out, const struct subject *s)
{
	const struct unknown_row *u = expect_unknown(s->ctx->e, subject_word, s);
	struct expected_known known;
	const struct band_row *b;
	char why[80];

	if (u) {
		verdict_unreferenced(out, s, u->why);
		return;
	}
	b = band_find(out, s, verdict_slot(s));
	known = verdict_known(out, s, b);
	if (expected_of(&known).from == EXPECTED_BAND) {
		verdict_band(out, s, b);
		at_clock(s, why, sizeof(why));
		band_hold(out, s, b,
			  &(struct held){.value = s->figure,
					 .low = CAUSE_BELOW_BAND,
					 .what = s->phase_name,
					 .unit = s->unit,
					 .why = why,
					 .headline = true});
		numa_placement_explain(out, s);
	} else {
		verdict_fallback(out, s);
	}
	if (*s->type && s->gpu)
		compute_twice(out, s);
}

/* Light loads hold up to 1 % more than the clock that NVML calls maximum. If clock measurements show this,
 * that much is allowed above the bound. */
static double boost(const struct subject *s)
{
	double clock, maximum = s->gpu ? gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) * 1e6 : 0;

	if (!*s->type || !(maximum > 0) || !record_number(s->phase, "clock_hz", &clock))
		return 1;
	return fmin(fmax(clock / maximum, 1), VERDICT_BOOST);
}

static void against_bound(struct judgement *out, const struct subject *s)
{
	if (out->bound.from == BOUND_NONE || !(out->bound.value > 0))
		return;
	out->share_of_bound = s->figure / out->bound.value;
	if (collective_above_link(s, &out->bound))
		remark(out, CAUSE_ABOVE_LINK);
	if (out->bound.from == BOUND_CEILING || out->share_of_bound <= VERDICT_ABOVE * boost(s))
		return;
	out->judged_by = JUDGED_BOUND;
	finding(out, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND,
		"%.2f of the bound (%.120s): work or time is miscounted", out->share_of_bound,
		out->bound.formula);
}

/* Compares two rounds by their figures. If both were interleaved with their ceiling, compares their shares of
 * it, beyond the scatter of the interleaved measurements. */
static bool differ(const struct subject *a, const struct subject *b, double *share)
{
	struct interleaved_ratio x, y;

	*share = a->figure / b->figure;
	if (!bound_interleaved(a, &x) || !bound_interleaved(b, &y))
		return fabs(1 / *share - 1) > VERDICT_SPREAD_STOP;
	*share = x.ratio / y.ratio;
	return fabs(1 / *share - 1) > VERDICT_SPREAD_STOP && (x.low > y.high || x.high < y.low);
}

/* Rounds of the same case in one run must agree within 5 %. */
static void rounds(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	struct subject other;
	double share;
	size_t i;

	for (i = 0; i < r->case_count && &r->cases[i] != s->c; i++) {
		if (strcmp(r->cases[i].key, s->c->key) || strcmp(r->cases[i].target, s->c->target) ||
		    r->cases[i].together != s->c->together || r->cases[i].lockstep != s->c->lockstep ||
		    !case_sound(&r->cases[i]))
			continue;
		subject_of(&other, s->ctx, &r->cases[i]);
		if (other.has_figure && strcmp(other.phase_name, s->phase_name) == 0 &&
		    differ(&other, s, &share))
			finding(out, VERDICT_WARN, CAUSE_WIDE_SPREAD, "%s %u reached %.1f %% of this figure",
				other.c->round ? "round" : "case",
				other.c->round ? other.c->round : other.c->id, 100 * share);
	}
}

static void figure_take(struct judgement *out, const struct subject *s)
{
	text_copy(out->figure_field, sizeof(out->figure_field), s->field);
	text_copy(out->figure_unit, sizeof(out->figure_unit), s->unit);
	text_copy(out->phase, sizeof(out->phase), s->phase ? s->phase_name : "");
	out->figure = s->figure;
	out->has_figure = s->has_figure;
}

/* True if the figure itself was NaN or infinite. */
static bool figure_lost(const struct subject *s)
{
	const char *names = s->phase && *s->field ? record_text(s->phase, "not_finite") : NULL;
	size_t n = strlen(s->field);

	for (; names && *names; names += strspn(names, ", ")) {
		if (!strncmp(names, s->field, n) && (names[n] == ',' || !names[n]))
			return true;
		names += strcspn(names, ",");
	}
	return false;
}

/* Compares the rate with ranges and ceilings; judges compute twice. */
static void judge_rate(struct judgement *out, const struct subject *s)
{
	figure_take(out, s);
	if (!s->has_figure && figure_lost(s)) {
		finding(out, VERDICT_UNTRUSTED, CAUSE_NAN, "%s is not a finite number", s->field);
		return;
	}
	if (!s->has_figure) {
		if (*s->field && !(out->verdict == VERDICT_FAIL))
			finding(out, VERDICT_ERROR, CAUSE_DEFECT,
				"the case ended normally, but the record has no %s", s->field);
		return;
	}
	if (!isfinite(s->figure) || !(s->figure > 0)) {
		finding(out, VERDICT_UNTRUSTED, CAUSE_NAN, "%s is %g", s->field, s->figure);
		out->has_figure = false;
		return;
	}
	bound_of(s, &out->bound);
	/* Of findings with the same weight the first is shown, so the figure comes before the way it was
	 * measured. */
	against_bound(out, s);
	against_band(out, s);
	if (!s->gpu)
		verdict_ceiling(out, s);
	verdict_steadiness(out, s);
	rounds(out, s);
}

/* Writes one line for a case that passes: the figure, and what it was compared with. */
static void passed(struct judgement *out, const struct subject *s)
{
	char figure[32], low[32], high[32], wide[24] = "";
	double width;

	units_format(figure, sizeof(figure), s->figure, s->unit);
	switch (out->judged_by) {
	case JUDGED_BAND:
		units_format(low, sizeof(low), out->band.low, s->unit);
		units_format(high, sizeof(high), out->band.high, s->unit);
		if (record_number(s->phase, "half_width_share", &width) && width > VERDICT_SPREAD_WARN)
			snprintf(wide, sizeof(wide), ", +/- %.1f %%", 100 * width);
		snprintf(out->reason, sizeof(out->reason), "%s%s, in %s .. %s%s", figure, wide, low, high,
			 out->low_confidence ? " (low confidence)" : "");
		break;
	case JUDGED_CEILING:
		verdict_ceiling_passed(out, s, figure);
		break;
	case JUDGED_RULE:
		snprintf(out->reason, sizeof(out->reason), "%s%sall rules for it are met",
			 s->has_figure ? figure : "", s->has_figure ? "; " : "");
		break;
	case JUDGED_NOTHING:
	case JUDGED_SIBLINGS:
	case JUDGED_HISTORY:
	case JUDGED_BOUND:
	case JUDGED_COUNT:
		snprintf(out->reason, sizeof(out->reason), "%s", figure);
		break;
	}
}

static const char *unjudged(const struct subject *s)
{
	const json_t *layout = json_object_get(s->c->plan, "layout");
	const struct record_case *peak, *disturbed;
	struct network_bound nodes;

	if (!strcmp(s->c->probe, "peak"))
		return "reference value for other cases";
	if (!s->gpu && !s->ctx->ahead && expect_ceiling(s->ctx->e, subject_word, s)) {
		bound_ceiling(s->ctx, s->c, &peak, &disturbed);
		return disturbed
			       ? "other work disturbed the ceiling that would judge this case (probe peak, same "
				 "number of threads): repeat on a quiet machine"
			       : "this run has no usable ceiling with the same number of threads (probe peak)";
	}
	if (s->gpu && !strcmp(s->c->probe, "collective") && network_bound_read(&nodes, layout))
		return "no expected range between nodes: the network differs from site to site";
	if (s->gpu && (!strcmp(s->c->probe, "collective") || !strcmp(s->c->probe, "p2p")))
		return "no expected range for this operation, size, algorithm and number of GPUs";
	if (!strcmp(s->c->phases, "burst"))
		return "a burst; there is no reference for bursts";
	return "no trustworthy reference for this case";
}

void verdict_unjudged(const struct judgement *out, const struct subject *s, char *text, size_t size)
{
	const struct band_row *asks =
		!s->ctx->ahead && choice_unknown(s) ? choice_band(s, verdict_slot(s), NULL) : NULL;
	char least[32];
	size_t used;

	if (asks)
		snprintf(text, size,
			 "expected range %.40s depends on NCCL's choice, which NCCL did not report",
			 asks->name);
	else
		text_copy(text, size, unjudged(s));
	if (!s->ctx->ahead || !(out->least.value > 0))
		return;
	used = strlen(text);
	units_format(least, sizeof(least), out->least.value, s->unit);
	snprintf(text + used, size - used, "; slow below %s, %.2f of the links' bound", least,
		 out->least.share);
}

static void judge_nothing(struct judgement *out, const struct subject *s)
{
	char why[240];

	verdict_unjudged(out, s, why, sizeof(why));
	verdict_unreferenced(out, s, why);
}

static void judge_timed(struct judgement *out, const struct subject *s)
{
	unsigned judging;

	verdict_conditions(out, s);
	judge_rate(out, s);
	verdict_rules(out, s, &judging);
	if (judging && out->judged_by == JUDGED_NOTHING)
		out->judged_by = JUDGED_RULE;
	if (out->judged_by == JUDGED_NOTHING)
		judge_nothing(out, s);
	if (out->verdict == VERDICT_PASS && !*out->reason) {
		passed(out, s);
		if (out->cause == CAUSE_NONE && out->low_confidence)
			out->cause = CAUSE_LOW_CONFIDENCE;
	}
}

/* A job ended normally, and assay has no reference for it. It fails only if its result is wrong. */
static void judge_job(struct judgement *out, const struct subject *s)
{
	out->verdict = s->c->status == STATUS_MISMATCH ? VERDICT_FAIL : VERDICT_MEASURED;
	figure_take(out, s);
	text_copy(out->reason, sizeof(out->reason),
		  *s->c->text ? s->c->text : "a job, measured and not judged");
	if (!subject_trains(s))
		return;
	bound_of(s, &out->bound);
	if (out->bound.value > 0)
		out->share_of_bound = s->figure / out->bound.value;
}

/* The driver says "not supported" for every field: a skip, unless the device is known to have them. */
static bool reading_refused(struct judgement *out, const struct subject *s)
{
	const struct record_case *c = s->c;

	return c->reading && !c->skipped && c->ending == ENDING_DONE && c->status == STATUS_UNSUPPORTED &&
	       c->cause == CAUSE_UNSUPPORTED && verdict_decisive(out, s);
}

void verdict_of(struct judgement *out, const struct subject *s)
{
	*out = (struct judgement){.verdict = VERDICT_PASS};
	if (reading_refused(out, s))
		return;
	*out = (struct judgement){.verdict = VERDICT_PASS};
	if (isolated_case(out, s))
		return;
	changes_lost(out, s);
	if (verdict_ending(out, s))
		changes_xids(out, s);
	else if (s->c->reading)
		verdict_reading(out, s);
	else if (subject_loads(s))
		verdict_load(out, s);
	else if (s->c->job)
		judge_job(out, s);
	else
		judge_timed(out, s);
	if (s->c->reading)
		changes_xids(out, s);
}
