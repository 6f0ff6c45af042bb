/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for the fastest variant. The fastest of many variants was partly lucky (the winner's curse), so the
 * brief timing only nominates it. Its gain is the median of the ratios to the first variant over ABBA pairs,
 * with its interval.
 */
#include "run/timing/phases.h"
#include "run/worker/ranks.h"
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"
#include "core/text/text.h"

enum {
	NOMINATE_NS = 20000000, /* brief timing of each variant */
	TURN_NS = 30000000,	/* one side of a pair, after its warm-up */
	PAIRS_LIMIT_NS = 2000000000,
};
/* A variant whose first two samples exceed the best time by this factor is dropped. */
#define SEARCH_HOPELESS 1.25

static enum status choose(struct timing *t, unsigned variant, struct error *err)
{
	return ranks_select(t->part, variant, &t->variant, err);
}

/* Runs samples for `least_ns`, at least one. None is in flight afterwards. */
static enum status turn(struct timing *t, const struct window *w, double least_ns, struct error *err)
{
	struct meter *m = t->meter;
	double sample_ns = fmax(t->iteration_ns * (double)t->batch, 1);
	enum status st = STATUS_OK;

	for (double asked_ns = 0; !st && asked_ns < least_ns && w->count < w->room; asked_ns += sample_ns) {
		if (timing_stopped(t))
			return timing_cancelled(err);
		st = m->ops->sample(m, t->batch, err);
	}
	return st ? st : m->ops->drain(m, err);
}

/* Median of a brief window, after one sample as warm-up. */
static enum status nominate(struct timing *t, double *median_ns, struct error *err)
{
	struct window w = timing_window(t);
	struct meter *m = t->meter;
	double ns[64];
	size_t count = 0;
	enum status st = m->ops->begin(m, &w, err);

	if (!st)
		st = turn(t, &w, 1, err);
	if (!st)
		st = turn(t, &w, NOMINATE_NS, err);
	if (!st)
		st = m->ops->end(m, err);
	if (st)
		return st;
	for (size_t i = 1; i < w.count && count < sizeof(ns) / sizeof(ns[0]); i++)
		ns[count++] = w.sample[i].ns;
	*median_ns = count ? stats_median(ns, count) : INFINITY;
	return STATUS_OK;
}

/* State of the search. */
struct found {
	/* left: not tried because the time limit was reached */
	unsigned variants, best, tried, dropped, left;
	double first_ns, best_ns;
	char name[96]; /* name of the best; "": its engine has no names */
};

/* Times one sample, and a second one if the first is far slower than the best. Error rates:
 * docs/explanation/methods/measuring.md, "Search". */
static enum status hopeless(struct timing *t, double best_ns, bool *drop, struct error *err)
{
	struct window w = timing_window(t);
	struct meter *m = t->meter;
	enum status st = m->ops->begin(m, &w, err);

	*drop = !st;
	for (unsigned i = 0; !st && *drop && i < 2; i++) {
		st = turn(t, &w, 1, err);
		*drop = !st && w.count == i + 1 && w.sample[i].ns > SEARCH_HOPELESS * best_ns;
	}
	return st ? st : m->ops->end(m, err);
}

static void take_found(struct timing *t, struct found *f, unsigned variant, double ns)
{
	f->tried++;
	if (!variant)
		f->first_ns = ns;
	if (!(ns < f->best_ns))
		return;
	f->best_ns = ns;
	f->best = variant;
	text_copy(f->name, sizeof(f->name), t->variant ? t->variant : "");
}

static enum status tell(struct timing *t, unsigned variant, unsigned variants, struct error *err)
{
	char at[40];

	snprintf(at, sizeof(at), "search %u/%u", variant + 1, variants);
	return timing_at(t, at, err);
}

/* Tries a variant that can run: drops it, or verifies and times it. A wrong result ends the case. */
static enum status try(struct timing *t, struct found *f, unsigned variant, struct error *err)
{
	double ns;
	bool drop = false;
	enum status st = isfinite(f->best_ns) ? hopeless(t, f->best_ns, &drop, err) : STATUS_OK;

	f->dropped += drop;
	if (st || drop)
		return st;
	st = timing_verify(t, err);
	if (!st)
		st = tell(t, variant, f->variants, err);
	if (!st)
		st = nominate(t, &ns, err);
	if (!st)
		take_found(t, f, variant, ns);
	return st;
}

double timing_search_s(const struct bench_case *c)
{
	return c->search_s > 0 ? c->search_s : 0.5e-3 * c->limit_ms;
}

/* Tries every variant until the time limit. A variant that cannot be selected is skipped. */
static enum status search(struct timing *t, struct found *f, struct error *err)
{
	uint64_t t0 = clock_now_ns(t->w->clock);
	double whole = timing_search_s(t->c), budget = 1e9 * (whole - t->listing_s);

	for (unsigned v = 0; v < f->variants; v++) {
		enum status st;

		if (v && whole > 0 && (double)(clock_now_ns(t->w->clock) - t0) > budget) {
			f->left = f->variants - v;
			break;
		}
		st = choose(t, v, NULL);
		if (st == STATUS_LOST)
			return error_set_cause(err, st, CAUSE_GPU_LOST, "the device was lost in the search");
		if (timing_stopped(t))
			st = timing_cancelled(err);
		else
			st = st ? STATUS_OK : try(t, f, v, err);
		if (st) {
			f->left = f->variants - v;
			return st;
		}
	}
	return timing_phase(t, "search", t0, clock_now_ns(t->w->clock), err);
}

struct pairs {
	double ratio[PHASE_PAIRS]; /* time of the first variant over time of the best */
	size_t count;
	struct window w;     /* all turns, in order */
	struct sample *best; /* samples of the best only */
	size_t best_count;
};

/* Selects the variant, warms up and times; *mean_ns is the mean of the turn. `keep`: keeps the samples, which
 * are the best's. */
static enum status take_turn(struct timing *t, struct pairs *p, unsigned variant, bool keep, double *mean_ns,
			     struct error *err)
{
	size_t from;
	enum status st = choose(t, variant, err);

	if (!st)
		/* warm-up: caches and instruction memory still have the other variant */
		st = turn(t, &p->w, 1, err);
	from = p->w.count;
	if (!st)
		st = turn(t, &p->w, TURN_NS, err);
	if (st)
		return st;
	*mean_ns = window_mean_ns(&p->w, from, p->w.count);
	for (size_t i = from; keep && i < p->w.count; i++)
		p->best[p->best_count++] = p->w.sample[i];
	return STATUS_OK;
}

static enum status run_pairs(struct timing *t, struct pairs *p, unsigned best, struct error *err)
{
	struct meter *m = t->meter;
	enum status st = m->ops->begin(m, &p->w, err);

	while (!st && p->count < PHASE_PAIRS) {
		bool best_first = p->count % 2; /* A B, B A, A B ..: drift affects both alike */
		double first_ns = 0, best_ns = 0;

		st = take_turn(t, p, best_first ? best : 0, best_first, best_first ? &best_ns : &first_ns,
			       err);
		if (!st)
			st = take_turn(t, p, best_first ? 0 : best, !best_first,
				       best_first ? &first_ns : &best_ns, err);
		if (st)
			break;
		if (!(best_ns > 0) || !(first_ns > 0)) /* the array of samples is full */
			break;
		p->ratio[p->count++] = first_ns / best_ns;
		if (p->count >= PHASE_PAIRS_MIN && clock_now_ns(t->w->clock) - p->w.t0_ns > PAIRS_LIMIT_NS)
			break;
	}
	return st ? st : m->ops->end(m, err);
}

static void count_values(const struct found *f, struct result *r)
{
	result_u64(r, &field_variants_tried, f->tried);
	result_u64(r, &field_variants_dropped, f->dropped);
	result_u64(r, &field_variants_left, f->left);
}

static enum status report(struct timing *t, struct pairs *p, const struct found *f, struct error *err)
{
	struct window own = p->w;
	struct result *r = result_create();
	double low = 1, high = 1, median = 1; /* the first variant is the best, so both are the same */
	enum status st = STATUS_OK;

	if (!r)
		return error_errno(err, ENOMEM, "the values of the search");
	if (p->count) {
		median = stats_median(p->ratio, p->count);
		stats_median_interval(p->ratio, p->count, &low, &high);
		own.sample = p->best;
		own.count = p->best_count;
		own.has_cpu_time = false; /* these are values of both variants */
		own.has_clock = false;
		timing_values(t, &own, r);
		st = timing_phase(t, "pairs", p->w.t0_ns, p->w.t1_ns, err);
		if (!st)
			st = timing_samples(t, "best", &own, err);
	} else if (t->variant) {
		result_text(r, &field_variant, t->variant);
	}
	count_values(f, r);
	result_f64(r, &field_best_ratio, median);
	result_f64(r, &field_best_ratio_low, low);
	result_f64(r, &field_best_ratio_high, high);
	if (!st)
		st = timing_result(t, "best", r, err);
	result_destroy(r);
	return st;
}

/* After a stop on request: reports the variant nominated so far, which no pairs have confirmed. */
static void report_stopped(struct timing *t, const struct found *f)
{
	struct result *r = f->tried ? result_create() : NULL;

	if (!r)
		return;
	if (*f->name)
		result_text(r, &field_variant, f->name);
	count_values(f, r);
	result_f64(r, &field_nominated_ratio, f->first_ns / f->best_ns);
	timing_result(t, "best", r, NULL); /* the case ends anyway */
	result_destroy(r);
}

enum status phase_search(struct timing *t, unsigned variants, struct error *err)
{
	struct pairs p = {.w = timing_window(t)};
	struct found f = {.variants = variants, .best_ns = INFINITY};
	enum status st = timing_at(t, "search", err);

	if (!st)
		st = search(t, &f, err);
	if (!st) {
		p.best = calloc(t->room, sizeof(*p.best));
		st = p.best ? STATUS_OK : error_errno(err, ENOMEM, "room for %zu samples", t->room);
	}
	if (!st && f.best) {
		st = timing_at(t, "pairs", err);
		if (!st)
			st = run_pairs(t, &p, f.best, err);
	}
	if (st == STATUS_CANCELLED)
		report_stopped(t, &f);
	if (!st)
		/* selects the best again: for its name, and for the verification that follows */
		st = choose(t, f.best, err);
	if (!st)
		st = report(t, &p, &f, err);
	free(p.best);
	return st;
}
