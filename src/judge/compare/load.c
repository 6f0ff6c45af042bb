/* SPDX-License-Identifier: Apache-2.0 */
/* Load tests over time: medians, the tail of the time to first token, and rates of the later runs with those
 * of the earlier ones. docs/explanation/methods/comparing.md, "Load tests". */
#include <math.h>
#include "core/math/stats.h"
#include "core/text/text.h"
#include "judge/compare/compare.h"
#include "judge/expect/expect.h"

enum { RUNS_MOST = 64, BETWEEN_LEAST = 3 };
/* What runs of one server differ by at least, although the intervals within the runs are narrower. The same
 * values as for other cases: with GPUs, and on CPUs. */
static const double drift_gpu = 0.02, drift_cpu = 0.05, z95 = 1.96;

/* A figure to compare. `exact`: a share of requests, which drifts only with what is compared. */
static const struct figure_row {
	const char *field, *shown, *unit;
	bool lower, exact;
} rows[] = {
	{"ttft_p50_s", "TTFT, median", "s", true, false},
	{"ttft_p99_s", "TTFT, P99", "s", true, false},
	{"tpot_p50_s", "TPOT, median", "s", true, false},
	{"itl_p50_s", "ITL, median", "s", true, false},
	{"e2e_p50_s", "E2E, median", "s", true, false},
	{"output_tokens_per_s", "output tokens/s", "1/s", false, false},
	{"completed_rate", "complete answers/s", "1/s", false, false},
	{"slo_share", "attainment", "share", false, true},
};

/* A figure with its 95 % interval. */
struct estimate {
	double value, low, high;
};

/* The runs of one side. */
struct side {
	const struct record_case *c[RUNS_MOST];
	size_t count;
};

static bool read_number(const struct record_case *c, const char *name, double *out)
{
	const struct record_phase *p = record_phase(c, "once");

	return p && record_number(p, name, out) && isfinite(*out);
}

/* Name of the end of an interval: "ttft_p50_low_s", "slo_share_low". */
static void end_name(char *out, size_t size, const char *field, const char *end)
{
	const size_t n = strlen(field);

	if (n > 2 && !strcmp(field + n - 2, "_s") && strcmp(field, "output_tokens_per_s") != 0)
		snprintf(out, size, "%.*s_%s_s", (int)n - 2, field, end);
	else
		snprintf(out, size, "%s_%s", field, end);
}

/* A rate without an interval has that of a Poisson process. */
static bool estimate_of(struct estimate *out, const struct record_case *c, const char *field)
{
	char low[64], high[64];
	double answered;

	end_name(low, sizeof(low), field, "low");
	end_name(high, sizeof(high), field, "high");
	if (!read_number(c, field, &out->value))
		return false;
	if (read_number(c, low, &out->low) && read_number(c, high, &out->high))
		return true;
	if (strcmp(field, "completed_rate") != 0 || !read_number(c, "answered", &answered) || !(answered > 0))
		return false;
	out->low = out->value * fmax(0, 1 - z95 / sqrt(answered));
	out->high = out->value * (1 + z95 / sqrt(answered));
	return true;
}

/* Medians over the runs of the side. *spread: 95 % bound for one more run, as a share; 0: fewer than three
 * runs. False: a run lacks the figure. */
static bool pool(struct estimate *out, double *spread, const struct side *s, const char *field)
{
	double value[RUNS_MOST] = {0}, low[RUNS_MOST] = {0}, high[RUNS_MOST] = {0};
	const size_t n = s->count;
	struct stats of;

	for (size_t i = 0; i < n; i++) {
		struct estimate one;

		if (!estimate_of(&one, s->c[i], field))
			return false;
		value[i] = one.value;
		low[i] = one.low;
		high[i] = one.high;
	}
	*out = (struct estimate){stats_median(value, n), stats_median(low, n), stats_median(high, n)};
	*spread = 0;
	if (n < BETWEEN_LEAST)
		return true;
	of = stats_of(value, n);
	if (of.mean > 0)
		*spread = stats_t95(n - 1) * of.stddev / of.mean * sqrt(1 + 1.0 / (double)n);
	return true;
}

/* A change counts if the intervals do not overlap, and if it is larger than the drift between runs. */
static void decide(struct compare_row *r, const struct estimate *before, const struct estimate *after,
		   double drift)
{
	const bool apart = after->low > before->high || after->high < before->low;
	const double widths = (before->high - before->low + after->high - after->low) / 2 / before->value;

	r->before = before->value;
	r->after = after->value;
	r->raw = after->value / before->value - 1;
	r->noise = r->noise_raw = fmax(widths, drift);
	if (!apart || !(fabs(r->raw) > drift))
		r->change = COMPARE_SAME;
	else
		r->change = (r->raw < 0) == r->lower_is_better ? COMPARE_FASTER : COMPARE_SLOWER;
}

/* Shares are comparable if they are shares of the same limits. */
static bool same_limits(const struct record_case *a, const struct record_case *b)
{
	static const char *const members[] = {"name", "ttft_s", "tpot_s", "e2e_s"};
	const struct record_phase *p = record_phase(a, "once"), *q = record_phase(b, "once");
	const json_t *x = json_array_get(json_object_get(p ? p->values : NULL, "slo"), 0);
	const json_t *y = json_array_get(json_object_get(q ? q->values : NULL, "slo"), 0);

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const json_t *one = json_object_get(x, members[i]), *other = json_object_get(y, members[i]);

		if ((one || other) && !json_equal(one, other))
			return false;
	}
	return x && y;
}

static bool limits_alike(const struct side *before, const struct side *after)
{
	for (size_t i = 0; i < before->count; i++)
		if (!same_limits(before->c[i], after->c[0]))
			return false;
	for (size_t i = 1; i < after->count; i++)
		if (!same_limits(after->c[i], after->c[0]))
			return false;
	return true;
}

/* What is known of both sides before any figure. */
struct pairing {
	struct side before, after;
	enum verdict verdict_before, verdict_after;
	bool partner; /* an earlier run has the same load */
	bool gpus;
	char why[200];
};

static const struct record_case *find(const struct compare_run *run, const struct record_case *same,
				      size_t *at)
{
	for (size_t i = 0; i < run->record->case_count; i++) {
		const struct record_case *c = &run->record->cases[i];

		if (strcmp(c->key, same->key) != 0 || strcmp(c->where, same->where) != 0)
			continue;
		*at = i;
		return c;
	}
	return NULL;
}

static void pair_up(struct pairing *p, const struct compare_run *runs, size_t count,
		    const struct record_case *same)
{
	*p = (struct pairing){.gpus = json_array_size(json_object_get(same->plan, "gpus")) > 0};
	for (size_t i = 0; i < count; i++) {
		const bool later = compare_is_after(runs, count, i);
		struct side *to = later ? &p->after : &p->before;
		const struct judgement *j;
		size_t at = 0;
		const struct record_case *c = find(&runs[i], same, &at);

		if (!c)
			continue;
		j = &runs[i].judged->of_case[at];
		p->partner |= !later;
		if (later && verdict_weight(j->verdict) > verdict_weight(p->verdict_after))
			p->verdict_after = j->verdict;
		else if (!later)
			p->verdict_before = j->verdict;
		if (compare_fit(j) && to->count < RUNS_MOST)
			to->c[to->count++] = c;
		else
			snprintf(p->why, sizeof(p->why), "%s: %.180s", later ? "after" : "before", j->reason);
	}
}

static struct compare_row *row_add(struct comparison *out, const struct pairing *p,
				   const struct record_case *c, struct error *err)
{
	struct compare_row *r = expect_push(&out->row, &out->row_count, sizeof(*r), err);

	if (!r)
		return NULL;
	*r = (struct compare_row){.c = c,
				  .key = c->key,
				  .target = c->where,
				  .change = COMPARE_NOT_COMPARABLE,
				  .verdict_before = p->verdict_after,
				  .verdict_after = p->verdict_after,
				  .baselines = (unsigned)p->before.count,
				  .judged = true};
	text_copy(r->phase, sizeof(r->phase), "once");
	return r;
}

static enum status add_figure(struct comparison *out, const struct pairing *p, const struct figure_row *f,
			      const struct record_case *c, struct error *err)
{
	const double least = f->exact ? 0 : p->gpus ? drift_gpu : drift_cpu;
	struct estimate before, after;
	double spread, ignored;
	struct compare_row *r;

	if (!pool(&before, &spread, &p->before, f->field) || !pool(&after, &ignored, &p->after, f->field) ||
	    !(before.value > 0) || (f->exact && !limits_alike(&p->before, &p->after)))
		return STATUS_OK;
	r = row_add(out, p, c, err);
	if (!r)
		return STATUS_NO_RESOURCE;
	r->field = f->field;
	r->shown = f->shown;
	r->lower_is_better = f->lower;
	text_copy(r->unit, sizeof(r->unit), f->unit);
	decide(r, &before, &after, spread > 0 ? spread : least);
	return STATUS_OK;
}

enum status compare_load(struct comparison *out, const struct compare_run *runs, size_t count,
			 const struct record_case *c, struct error *err)
{
	const size_t first = out->row_count;
	enum status st = STATUS_OK;
	struct compare_row *r;
	struct pairing p;

	pair_up(&p, runs, count, c);
	if (!p.partner)
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !st && p.before.count && p.after.count; i++)
		st = add_figure(out, &p, &rows[i], c, err);
	if (!st && out->row_count == first) {
		r = row_add(out, &p, c, err);
		st = r ? STATUS_OK : STATUS_NO_RESOURCE;
		if (r)
			text_copy(r->why, sizeof(r->why),
				  *p.why ? p.why : "the runs have no figure in common");
	}
	if (!st) /* the verdict is that of the run: one row tells it */
		out->row[first].verdict_before = p.verdict_before;
	return st;
}
