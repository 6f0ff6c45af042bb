/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/peers/siblings.h"
#include <math.h>
#include "core/math/stats.h"

enum { GROUP_MAX = 1024 };

double siblings_deviation(const double *x, size_t count, size_t i, double *limit)
{
	double others[GROUP_MAX], away[GROUP_MAX], median, mad;
	size_t j, n = 0;

	*limit = SIBLINGS_FLAG;
	if (count > GROUP_MAX)
		count = GROUP_MAX;
	for (j = 0; j < count; j++)
		if (j != i)
			others[n++] = x[j];
	if (n < 2 || i >= count)
		return 0;
	median = stats_median(others, n);
	if (!(median > 0))
		return 0;
	for (j = 0; j < n; j++)
		away[j] = fabs(others[j] - median);
	mad = stats_median(away, n);
	*limit = fmax(SIBLINGS_FLAG, 3 * mad / median);
	return x[i] / median - 1;
}

struct siblings_limit siblings_limit_of(const char *probe, const char *limit)
{
	if (strcmp(limit, "latency"))
		return (struct siblings_limit){SIBLINGS_FLAG, SIBLINGS_FAIL};
	if (!strcmp(probe, "dispatch") || !strcmp(probe, "link"))
		return (struct siblings_limit){0.30, 1.0};
	if (!strcmp(probe, "memory") || !strcmp(probe, "p2p"))
		return (struct siblings_limit){0.10, 0.30};
	return (struct siblings_limit){SIBLINGS_FLAG, SIBLINGS_FAIL};
}

struct group {
	struct subject subject[GROUP_MAX];
	size_t index[GROUP_MAX];  /* index of the case */
	double figure[GROUP_MAX]; /* rate or time; with at_clock: rate over the held clock */
	size_t count;
	bool at_clock;
};

static bool alike(const struct subject *a, const struct subject *b)
{
	return !strcmp(a->c->key, b->c->key) && !strcmp(a->kind, b->kind) && a->sku == b->sku &&
	       a->c->together == b->c->together && a->c->lockstep == b->c->lockstep &&
	       !strcmp(a->phase_name, b->phase_name);
}

static bool sound(const struct subject *s)
{
	return !s->c->reading && !record_is_isolation(s->c) && s->gpu && case_sound(s->c) && s->has_figure &&
	       isfinite(s->figure) && s->figure > 0;
}

/* Pairs of GPUs are judged in gpu_pairs.c. */
static bool fit(const struct subject *s)
{
	return s->gpu_count == 1 && sound(s);
}

/* Rate of a burst of compute over its clock; 0: no such burst, or its clock is not known. */
static double held_rate(const struct subject *s)
{
	double hz;

	return !strcmp(s->phase_name, "burst") && !strncmp(s->c->limit, "compute.", 8) &&
			       record_number(s->phase, "clock_hz", &hz) && hz > 0
		       ? s->figure / hz
		       : 0;
}

static void at_clock(struct group *g)
{
	double held[GROUP_MAX];

	for (size_t i = 0; i < g->count; i++)
		if (!((held[i] = held_rate(&g->subject[i])) > 0))
			return;
	memcpy(g->figure, held, g->count * sizeof(held[0]));
	g->at_clock = true;
}

/* Collects the first measurement of each target. Repeats are looked up separately. */
static void group_fill(struct group *g, const struct judge_context *ctx, const struct subject *lead)
{
	const struct record *r = ctx->record;
	struct subject s;
	size_t i, j;

	g->count = 0;
	g->at_clock = false;
	for (i = 0; i < r->case_count && g->count < GROUP_MAX; i++) {
		if (strcmp(r->cases[i].key,
			   lead->c->key)) /* cheaper than subject_of, which matters in runs with many nodes */
			continue;
		subject_of(&s, ctx, &r->cases[i]);
		if (!fit(&s) || !alike(&s, lead))
			continue;
		for (j = 0; j < g->count && strcmp(g->subject[j].c->where, s.c->where);)
			j++;
		if (j < g->count)
			continue;
		g->subject[g->count] = s;
		g->index[g->count] = i;
		g->figure[g->count++] = s.figure;
	}
	at_clock(g);
}

static bool seen_again(const struct judge_context *ctx, const struct subject *s, double median, double limit,
		       bool slower, bool at_clock)
{
	const struct record *r = ctx->record;
	struct subject other;
	size_t i;

	for (i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		double x;

		if (c == s->c || strcmp(c->where, s->c->where) || strcmp(c->key, s->c->key))
			continue;
		subject_of(&other, ctx, c);
		if (!sound(&other))
			continue;
		x = at_clock ? held_rate(&other) : other.figure;
		if (slower ? x > 0 && x < median * (1 - limit) : x > median * (1 + limit))
			return true;
	}
	return false;
}

bool siblings_confirm(const struct judge_context *ctx, const struct subject *s, double median, double limit,
		      bool slower)
{
	return seen_again(ctx, s, median, limit, slower, false);
}

static double hotter_by(const struct group *g, size_t i)
{
	double t[GROUP_MAX], own;
	size_t j, n = 0;

	if (!subject_number(&g->subject[i], "temperature_c", &own))
		return 0;
	for (j = 0; j < g->count; j++)
		if (j != i && subject_number(&g->subject[j], "temperature_c", &t[n]))
			n++;
	return n ? own - stats_median(t, n) : 0;
}

void siblings_pass(struct judgement *out, const struct subject *s, double off, size_t others)
{
	if (out->judged_by != JUDGED_NOTHING || out->cause != CAUSE_NO_REFERENCE ||
	    (out->verdict != VERDICT_UNKNOWN && out->verdict != VERDICT_MEASURED) ||
	    expect_unknown(s->ctx->e, subject_word, s))
		return;
	out->verdict = VERDICT_PASS;
	out->judged_by = JUDGED_SIBLINGS;
	out->cause = CAUSE_LOW_CONFIDENCE;
	out->low_confidence = true;
	snprintf(out->reason, sizeof(out->reason),
		 "%+.1f %% from the median of %zu siblings; there is no expected range", 100 * off, others);
}

static void judge_one(struct judgement *out, const struct judge_context *ctx, const struct group *g, size_t i)
{
	const struct subject *s = &g->subject[i];
	double limit, off = siblings_deviation(g->figure, g->count, i, &limit), reasons = 0,
		      hotter = hotter_by(g, i);
	double median = g->figure[i] / (1 + off);
	struct siblings_limit limits = siblings_limit_of(s->c->probe, s->c->limit);
	bool rate = strcmp(s->unit, "ns") != 0, worse, hot;
	enum verdict verdict;
	char heat[48] = "";

	limit = fmax(limit, limits.flag);
	worse = rate ? off < -limit : off > limit;

	if (!worse) {
		siblings_pass(out, s, off, g->count - 1);
		return;
	}
	hot = subject_number(s, "clock_reasons_or", &reasons) && ((unsigned)reasons & 0x60) != 0;
	if (hotter >= 1)
		snprintf(heat, sizeof(heat), "; hotter by %.0f C", hotter);
	out->judged_by = JUDGED_SIBLINGS;
	verdict = fabs(off) > limits.fail || hot || seen_again(ctx, s, median, limit, rate, g->at_clock)
			  ? VERDICT_FAIL
			  : VERDICT_WARN;
	finding(out, verdict, CAUSE_SIBLING_OUTLIER,
		"%s (%s): %+.1f %% from the median of its %zu siblings%s, beyond %.1f %%%s%s", s->c->where,
		s->gpu->pci, 100 * off, g->count - 1, g->at_clock ? " at the held clocks" : "", 100 * limit,
		hot ? "; slowed down because of its temperature (thermal_sw)" : "", heat);
}

void siblings_judge(struct judgement *out, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;
	struct group *g = calloc(1, sizeof(*g));
	struct subject lead;
	size_t i, k;

	for (i = 0; g && i < r->case_count; i++) {
		subject_of(&lead, ctx, &r->cases[i]);
		if (!fit(&lead))
			continue;
		group_fill(g, ctx, &lead);
		for (k = 0; k < g->count && g->index[k] != i;)
			k++;
		if (g->count >= SIBLINGS_MIN && k < g->count)
			judge_one(&out[i], ctx, g, k);
	}
	free(g);
}
