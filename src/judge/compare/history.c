/* SPDX-License-Identifier: Apache-2.0 */
/* One machine over time: compares the later runs (the marked ones, or only the last) with the median of the
 * earlier ones, using the noise of both. */
#include "judge/compare/compare.h"
#include <math.h>
#include "core/math/stats.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"

enum { ROUNDS_MAX = 64 };
#define NOISE_DEFAULT 0.02 /* if there are fewer than three repeats */
#define NOISE_RAW 0.05	   /* for a rate whose clock is not fixed or not known, such as under a power cap */
#define LOST_NOTED 0.03	   /* share of the CPU time; a larger loss counts against a figure */
#define LOST_MOST 0.95

struct side {
	const struct record_case *c;
	const struct judgement *j;
	double figure, clock, width; /* clock 0: not measured */
	double ratio, threads,
		lost; /* share of its interleaved ceiling; 0: none. lost: share of the CPU time */
	bool steady;  /* training: the rate comes from the steady steps only
			 (docs/explanation/methods/training.md, "Steady steps") */
};

/* The comparable rounds of all runs of one side. */
struct sides {
	struct side at[ROUNDS_MAX];
	size_t count, runs;
};

bool compare_same_measurement(const struct record_case *a, const struct record_case *b)
{
	return !strcmp(a->key, b->key) && !strcmp(a->where, b->where) && a->together == b->together;
}

static bool repeats_one_before(const struct record *r, const struct record_case *c)
{
	for (const struct record_case *before = r->cases; before < c; before++)
		if (compare_same_measurement(before, c))
			return true;
	return false;
}

static void side_fill(struct side *out, const struct compare_run *run, size_t at)
{
	const struct record_phase *p;
	double share = 1;

	*out = (struct side){.c = &run->record->cases[at], .j = &run->judged->of_case[at], .threads = 1};
	out->figure = out->j->figure;
	p = record_phase(out->c, out->j->phase);
	if (!p)
		return;
	out->steady = record_number(p, "steady_steps", &share);
	share = 1;
	if (!record_number(p, "clock_hz", &out->clock))
		out->clock = 0;
	if (!record_number(p, "half_width_share", &out->width))
		out->width = 0;
	if (!record_number(p, "ceiling_ratio", &out->ratio))
		out->ratio = 0;
	if (record_number(p, "cpu_share", &share))
		out->lost = fmax(1 - share, 0);
	if (!record_number(p, "threads", &out->threads) || out->threads < 1)
		out->threads = 1;
}

/* Finds the case of this run that is the same measurement as `same`: alone or together with others, as that
 * one. The first comparable one counts, else the last. */
static bool side_find(struct side *out, const struct compare_run *run, const struct record_case *same)
{
	size_t i;

	*out = (struct side){0};
	for (i = 0; i < run->record->case_count; i++) {
		if (!compare_same_measurement(&run->record->cases[i], same))
			continue;
		side_fill(out, run, i);
		if (compare_fit(out->j))
			return true;
	}
	return out->c != NULL;
}

/* True if it is the same quantity as the case of the last run. */
static bool alike(const struct side *one, const struct side *lead)
{
	return compare_fit(one->j) && !strcmp(one->j->phase, lead->j->phase) &&
	       !strcmp(one->j->figure_unit, lead->j->figure_unit) && one->steady == lead->steady;
}

/* Adds the rounds of this measurement in the run: every round if the clock is not fixed, else the first. */
static void rounds_add(struct sides *to, const struct compare_run *run, const struct side *lead, bool all)
{
	size_t before = to->count, i;
	struct side one;

	for (i = 0; i < run->record->case_count && to->count < ROUNDS_MAX; i++) {
		if (!compare_same_measurement(&run->record->cases[i], lead->c))
			continue;
		side_fill(&one, run, i);
		if (!alike(&one, lead) || one.j->superseded)
			continue;
		to->at[to->count++] = one;
		if (!all)
			break;
	}
	to->runs += to->count > before;
}

/* Two-sided 95 % bound for one more value, from the spread of n values, as a share of their mean. */
static double between(const double *x, size_t n)
{
	struct stats s = stats_of(x, n);

	return s.mean > 0 ? stats_t95(n - 1) * s.stddev / s.mean * sqrt(1 + 1.0 / (double)n) : 0;
}

static void changed(struct compare_row *r)
{
	double deciding = r->has_normalised && fabs(r->normalised) > r->noise ? r->normalised : r->raw;
	bool by_work = !r->has_normalised || fabs(r->normalised) > r->noise;
	bool better = r->lower_is_better ? deciding < 0 : deciding > 0;

	if (fabs(r->raw) <= r->noise_raw && !(r->has_normalised && fabs(r->normalised) > r->noise))
		r->change = COMPARE_SAME;
	else if (by_work)
		r->change = better ? COMPARE_FASTER : COMPARE_SLOWER;
	else
		r->change = better ? COMPARE_FASTER_CLOCK : COMPARE_SLOWER_CLOCK;
}

/* A GPU's clock is measured inside the window. A CPU's adds run after it, when a core may have left the clock
 * it had. */
static bool clock_of_window(const struct record_case *c)
{
	return !strncmp(c->target, "gpu", 3);
}

enum quantity { FIGURE, CLOCKED, RATIO, WIDTH };

/* Reads a quantity of each round. False: a round does not have it. */
static bool values(double *x, const struct sides *s, enum quantity what)
{
	bool whole = s->count > 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct side *one = &s->at[i];

		x[i] = what == FIGURE	? one->figure
		       : what == WIDTH	? one->width
		       : what == RATIO	? one->ratio
		       : one->clock > 0 ? one->figure / one->clock
					: 0;
		whole = whole && x[i] > 0;
	}
	return whole;
}

static double most(const struct sides *s, enum quantity what)
{
	double x[ROUNDS_MAX], top = 0;

	values(x, s, what);
	for (size_t i = 0; i < s->count; i++)
		top = fmax(top, x[i]);
	return top;
}

/* Computes after / before - 1 of the medians. False: a round does not have the quantity. */
static bool ratio_of(const struct sides *before, const struct sides *after, enum quantity what, double *out)
{
	double x[ROUNDS_MAX], y[ROUNDS_MAX];

	if (!values(x, before, what) || !values(y, after, what))
		return false;
	*out = stats_median(y, after->count) / stats_median(x, before->count) - 1;
	return true;
}

static double squares(const struct sides *s, enum quantity what)
{
	double x[ROUNDS_MAX];
	struct stats logs;

	values(x, s, what);
	for (size_t i = 0; i < s->count; i++)
		x[i] = log(x[i]);
	logs = stats_of(x, s->count);
	return s->count > 1 ? logs.stddev * logs.stddev * (double)(s->count - 1) : 0;
}

/* The widest interval of the interleaved ratios, as a share. */
static double ratio_width(const struct sides *s)
{
	double low, high, width = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct record_phase *p = record_phase(s->at[i].c, s->at[i].j->phase);

		if (record_number(p, "ceiling_ratio_low", &low) &&
		    record_number(p, "ceiling_ratio_high", &high))
			width = fmax(width, (high - low) / 2 / s->at[i].ratio);
	}
	return width;
}

/* Cost that other work may have caused. Threads wait for each other at barriers, so the loss of one thread is
 * a loss of all. */
static double cost_of_others(const struct sides *s)
{
	double cost = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].lost > LOST_NOTED)
			cost = fmax(cost, -log(1 - fmin(s->at[i].threads * s->at[i].lost, LOST_MOST)));
	return cost;
}

/* Independent widths add by their squares. hypot() would need a newer glibc than the program requires. */
static double both_widths(double a, double b)
{
	return sqrt(a * a + b * b);
}

/* Fills the inputs of compare_drift, and the noise within the runs. */
static void row_floats(struct compare_row *r, const struct sides *before, const struct sides *after)
{
	size_t rounds = before->count + after->count;
	double width;

	r->has_normalised = ratio_of(before, after, RATIO, &r->normalised);
	r->runs_before = (unsigned)before->runs;
	r->runs_after = (unsigned)after->runs;
	r->degrees = (unsigned)(rounds - 2);
	r->lost = fmax(cost_of_others(before), cost_of_others(after));
	if (r->degrees) {
		r->scatter = sqrt((squares(before, FIGURE) + squares(after, FIGURE)) / r->degrees);
		if (r->has_normalised)
			r->scatter_normalised =
				sqrt((squares(before, RATIO) + squares(after, RATIO)) / r->degrees);
	}
	r->noise_raw = fmax(r->noise, NOISE_RAW);
	r->noise = r->noise_raw;
	if (r->has_normalised) {
		width = both_widths(ratio_width(before), ratio_width(after));
		r->noise = fmax(width, NOISE_RAW);
	}
}

static void row_compute(struct compare_row *r, const struct sides *before, const struct sides *after)
{
	double x[ROUNDS_MAX], y[ROUNDS_MAX];
	size_t n = before->count;

	values(x, before, FIGURE);
	values(y, after, FIGURE);
	r->baselines = (unsigned)n;
	r->before = stats_median(x, n);
	r->after = stats_median(y, after->count);
	r->raw = r->after / r->before - 1;
	r->noise = both_widths(most(before, WIDTH), most(after, WIDTH));
	if (r->floats) {
		row_floats(r, before, after);
		return;
	}
	r->has_normalised = clock_of_window(after->at[0].c) &&
			    (!strcmp(r->unit, "FLOP/s") || !strcmp(r->unit, "OP/s")) &&
			    ratio_of(before, after, CLOCKED, &r->normalised);
	if (n >= 3) {
		r->noise_raw = fmax(r->noise, between(x, n));
		values(x, before, CLOCKED);
		r->noise = r->has_normalised ? fmax(r->noise, between(x, n)) : r->noise_raw;
	} else {
		r->noise = fmax(r->noise, NOISE_DEFAULT);
		r->noise_raw = r->has_normalised || !clock_of_window(after->at[0].c)
				       ? fmax(r->noise, NOISE_RAW)
				       : r->noise;
		r->noise = r->has_normalised ? r->noise : r->noise_raw;
	}
	changed(r);
}

/* True if a reference judged the case. A bound can only refuse a figure, so a case under its bound was not
 * judged. */
static bool was_judged(const struct judgement *j)
{
	bool verdict = j->verdict == VERDICT_PASS || j->verdict == VERDICT_WARN || j->verdict == VERDICT_FAIL;

	return verdict && j->judged_by != JUDGED_NOTHING && j->judged_by != JUDGED_BOUND;
}

bool compare_is_after(const struct compare_run *runs, size_t count, size_t i)
{
	for (size_t k = 0; k < count; k++)
		if (runs[k].after)
			return runs[i].after;
	return i + 1 == count;
}

/* Of several later runs the most severe verdict counts. */
static void verdict_after(struct compare_row *r, const struct judgement *j)
{
	if (verdict_weight(j->verdict) > verdict_weight(r->verdict_after))
		r->verdict_after = j->verdict;
	r->fails_otherwise =
		r->fails_otherwise || (j->verdict == VERDICT_FAIL &&
				       (j->judged_by != JUDGED_CEILING || j->cause != CAUSE_BELOW_CEILING));
}

/* Collects both sides of the row. False: no earlier run has the case. */
static bool sides_fill(struct compare_row *r, const struct compare_run *runs, size_t count,
		       const struct side *lead, struct sides *before, struct sides *after)
{
	bool partner = false;
	struct side one;

	for (size_t i = 0; i < count; i++) {
		struct sides *to = compare_is_after(runs, count, i) ? after : before;

		if (!side_find(&one, &runs[i], lead->c))
			continue;
		rounds_add(to, &runs[i], lead, r->floats);
		if (to == after) {
			verdict_after(r, one.j);
			continue;
		}
		partner = true;
		r->verdict_before = one.j->verdict;
		if (compare_fit(one.j) && one.steady != lead->steady)
			snprintf(
				r->why, sizeof(r->why),
				"one rate comes from the steady steps, the other (of an earlier version) from all steps");
		else if (!alike(&one, lead))
			snprintf(r->why, sizeof(r->why), "before: %.180s", one.j->reason);
	}
	return partner;
}

static void row_fill(struct compare_row *r, const struct compare_run *runs, size_t count,
		     const struct side *lead, bool *partner)
{
	struct sides before = {.count = 0}, after = {.count = 0};

	*r = (struct compare_row){
		.c = lead->c,
		.key = lead->c->key,
		.target = lead->c->where,
		.change = COMPARE_NOT_COMPARABLE,
		.verdict_after = lead->j->verdict,
		.floats = compare_floats(runs[count - 1].record, lead->c),
		.judged = was_judged(lead->j),
	};
	text_copy(r->unit, sizeof(r->unit), lead->j->figure_unit);
	text_copy(r->phase, sizeof(r->phase), lead->j->phase);
	r->lower_is_better = !strcmp(r->unit, "ns");
	*partner = sides_fill(r, runs, count, lead, &before, &after);
	if (!after.count)
		snprintf(r->why, sizeof(r->why), "after: %.180s", lead->j->reason);
	else if (before.count)
		row_compute(r, &before, &after);
}

enum status compare_case(struct compare_row *out, const struct compare_run *runs, size_t count,
			 const struct record_case *c, struct error *err)
{
	struct comparison one = {.row = out, .row_count = 1};
	struct side lead;
	bool partner;

	*out = (struct compare_row){.c = c, .change = COMPARE_NOT_COMPARABLE};
	if (!side_find(&lead, &runs[count - 1], c))
		return STATUS_OK;
	row_fill(out, runs, count, &lead, &partner);
	return compare_drift(&one, err);
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
	struct side lead;
	bool partner;
	size_t i;

	for (i = 0; i < last->record->case_count; i++) {
		const struct record_case *c = &last->record->cases[i];

		/* Of repeats of a case, side_find takes the first comparable one. */
		if (!side_find(&lead, last, c) || c->skipped || repeats_one_before(last->record, c))
			continue;
		if (c->job && !strcmp(c->probe, "load")) {
			if (compare_load(out, runs, count, c, err))
				return STATUS_NO_RESOURCE;
			continue;
		}
		if (c->reading && lead.j->verdict != VERDICT_FAIL)
			continue;
		grown = expect_grow(out->row, out->row_count, sizeof(*grown), err);
		if (!grown)
			return STATUS_NO_RESOURCE;
		out->row = grown;
		row_fill(&grown[out->row_count], runs, count, &lead, &partner);
		out->row_count += partner;
	}
	out->only_after = without_partner(last, &runs[0]);
	out->only_before = without_partner(&runs[0], last);
	return compare_drift(out, err);
}
