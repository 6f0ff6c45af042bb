/* SPDX-License-Identifier: Apache-2.0 */
/* One machine over time: the last run against the median of those before, with the noise of both. */
#include "judge/compare.h"
#include <math.h>
#include "core/stats.h"
#include "core/text.h"
#include "judge/expect.h"

enum { BASELINES_MAX = 64 };
#define NOISE_DEFAULT 0.02 /* where fewer than three repeats tell */
#define NOISE_RAW 0.05	   /* of a rate whose clock floats: under a power cap, or unseen */

struct side {
	const struct record_case *c;
	const struct judgement *j;
	double figure, clock, width; /* clock 0: no stamps */
};

static bool same_measurement(const struct record_case *a, const struct record_case *b)
{
	return !strcmp(a->key, b->key) && !strcmp(a->where, b->where) && a->together == b->together;
}

static bool repeats_one_before(const struct record *r, const struct record_case *c)
{
	for (const struct record_case *before = r->cases; before < c; before++)
		if (same_measurement(before, c))
			return true;
	return false;
}

/* The case of this run that is the same measurement as `same`: alone, or together with others, as that one
 * was. The first that is fit, else the last. */
static bool side_find(struct side *out, const struct compare_run *run, const struct record_case *same)
{
	const struct record_phase *p;
	size_t i;

	*out = (struct side){0};
	for (i = 0; i < run->record->case_count; i++) {
		const struct record_case *c = &run->record->cases[i];

		if (!same_measurement(c, same))
			continue;
		out->c = c;
		out->j = &run->judged->of_case[i];
		out->figure = out->j->figure;
		p = record_phase(c, out->j->phase);
		if (p && !record_number(p, "clock_hz", &out->clock))
			out->clock = 0;
		if (p && !record_number(p, "half_width_share", &out->width))
			out->width = 0;
		if (compare_fit(out->j))
			return true;
	}
	return out->c != NULL;
}

/* Two-sided 95 % bound of one more value, from the spread of n: share of their mean. */
static double between(const double *x, size_t n)
{
	struct stats s = stats_of(x, n);

	return s.mean > 0 ? stats_t95(n - 1) * s.stddev / s.mean * sqrt(1 + 1.0 / (double)n) : 0;
}

static void changed(struct compare_row *r, bool lower_is_better)
{
	double deciding = r->has_normalised && fabs(r->normalised) > r->noise ? r->normalised : r->raw;
	bool by_work = !r->has_normalised || fabs(r->normalised) > r->noise;
	bool better = lower_is_better ? deciding < 0 : deciding > 0;

	if (fabs(r->raw) <= r->noise_raw && !(r->has_normalised && fabs(r->normalised) > r->noise))
		r->change = COMPARE_SAME;
	else if (by_work)
		r->change = better ? COMPARE_FASTER : COMPARE_SLOWER;
	else
		r->change = better ? COMPARE_FASTER_CLOCK : COMPARE_SLOWER_CLOCK;
}

/* A GPU is stamped inside the window. A CPU's adds run after it, when a core may have left the clock it had.
 */
static bool clock_of_window(const struct record_case *c)
{
	return !strncmp(c->target, "gpu", 3);
}

static void row_compute(struct compare_row *r, const struct side *before, size_t n, const struct side *after)
{
	double figure[BASELINES_MAX], clocked[BASELINES_MAX], width = 0, base_clocked;
	bool clocks = after->clock > 0;
	size_t i;

	for (i = 0; i < n; i++) {
		figure[i] = before[i].figure;
		clocks = clocks && before[i].clock > 0;
		clocked[i] = before[i].clock > 0 ? before[i].figure / before[i].clock : 0;
		width = fmax(width, before[i].width);
	}
	r->baselines = (unsigned)n;
	r->before = stats_median(figure, n);
	r->after = after->figure;
	r->raw = r->after / r->before - 1;
	r->noise = sqrt(width * width + after->width * after->width);
	r->has_normalised = clocks && clock_of_window(after->c) &&
			    (!strcmp(r->unit, "FLOP/s") || !strcmp(r->unit, "OP/s"));
	if (n >= 3) {
		r->noise_raw = fmax(r->noise, between(figure, n));
		r->noise = r->has_normalised ? fmax(r->noise, between(clocked, n)) : r->noise_raw;
	} else {
		r->noise = fmax(r->noise, NOISE_DEFAULT);
		r->noise_raw = r->has_normalised || !clock_of_window(after->c) ? fmax(r->noise, NOISE_RAW)
									       : r->noise;
		r->noise = r->has_normalised ? r->noise : r->noise_raw;
	}
	if (r->has_normalised) {
		base_clocked = stats_median(clocked, n);
		r->normalised = r->after / after->clock / base_clocked - 1;
	}
	changed(r, !strcmp(r->unit, "ns"));
}

/* A bound refuses and passes nothing: what is only under it was not judged. */
static bool was_judged(const struct judgement *j)
{
	bool verdict = j->verdict == VERDICT_PASS || j->verdict == VERDICT_WARN || j->verdict == VERDICT_FAIL;

	return verdict && j->judged_by != JUDGED_NOTHING && j->judged_by != JUDGED_BOUND;
}

static void row_fill(struct compare_row *r, const struct compare_run *runs, size_t count,
		     const struct side *after, size_t *partners)
{
	struct side before[BASELINES_MAX], one;
	size_t i, n = 0;

	*r = (struct compare_row){
		.c = after->c,
		.key = after->c->key,
		.target = after->c->where,
		.change = COMPARE_NOT_COMPARABLE,
	};
	text_copy(r->unit, sizeof(r->unit), after->j->figure_unit);
	text_copy(r->phase, sizeof(r->phase), after->j->phase);
	r->verdict_after = after->j->verdict;
	r->judged = was_judged(after->j);
	*partners = 0;
	for (i = 0; i + 1 < count && n < BASELINES_MAX; i++) {
		if (!side_find(&one, &runs[i], after->c))
			continue;
		++*partners;
		r->verdict_before = one.j->verdict;
		if (compare_fit(one.j) && !strcmp(one.j->phase, after->j->phase) &&
		    !strcmp(one.j->figure_unit, after->j->figure_unit))
			before[n++] = one;
		else
			snprintf(r->why, sizeof(r->why), "before: %.180s", one.j->reason);
	}
	if (!compare_fit(after->j))
		snprintf(r->why, sizeof(r->why), "after: %.180s", after->j->reason);
	else if (n)
		row_compute(r, before, n, after);
}

static size_t without_partner(const struct compare_run *a, const struct compare_run *b)
{
	struct side one;
	size_t i, n = 0;

	for (i = 0; i < a->record->case_count; i++)
		n += !side_find(&one, b, &a->record->cases[i]);
	return n;
}

enum status compare_history(struct comparison *out, const struct compare_run *runs, size_t count,
			    struct error *err)
{
	const struct compare_run *last = &runs[count - 1];
	struct compare_row *grown;
	struct side after;
	size_t i, partners;

	for (i = 0; i < last->record->case_count; i++) {
		const struct record_case *c = &last->record->cases[i];

		/* Repeats of a case: side_find takes the first that is fit. */
		if (!side_find(&after, last, c) || c->skipped || repeats_one_before(last->record, c))
			continue;
		if (c->reading && after.j->verdict != VERDICT_FAIL)
			continue;
		grown = expect_grow(out->row, out->row_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		out->row = grown;
		row_fill(&grown[out->row_count], runs, count, &after, &partners);
		out->row_count += partners > 0;
	}
	out->only_after = without_partner(last, &runs[0]);
	out->only_before = without_partner(&runs[0], last);
	return STATUS_OK;
}
