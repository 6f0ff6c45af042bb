/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles of single iterations, because the mean of a batch hides a slow iteration.
 * docs/explanation/methods/measuring.md, "Single iterations". */
#include "run/timing/phases.h"
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"

static bool all_single(const struct window *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->sample[i].batch != 1)
			return false;
	return w->count > 0;
}

static double starved_share(const struct window *w)
{
	size_t starved = 0;

	for (size_t i = 0; i < w->count; i++)
		starved += w->sample[i].starved;
	return (double)starved / (double)w->count;
}

/* Waiting times of ranks count only if the devices were busy. Otherwise they show that the host launched the
 * ranks one after the other. */
static bool fed(const struct window *w)
{
	return starved_share(w) <= PHASE_SINGLE_STARVED;
}

void timing_single_values(struct timing *t, const char *phase, const struct window *w, struct result *r)
{
	double *ns;
	struct stats s;

	if (strcmp(phase, timing_judged(t)) || !all_single(w))
		return;
	ns = malloc(w->count * sizeof(*ns));
	if (!ns)
		return; /* the values are absent */
	for (size_t i = 0; i < w->count; i++)
		ns[i] = w->sample[i].ns;
	s = stats_of(ns, w->count);
	result_f64(r, &field_iteration_ns_p50, s.median);
	result_f64(r, &field_iteration_ns_p90, s.p90);
	result_f64(r, &field_iteration_ns_p99, s.p99);
	result_f64(r, &field_iteration_ns_max, s.max);
	result_u64(r, &field_iteration_samples, w->count);
	if (w->has_mark) {
		result_f64(r, &field_iteration_mark_ns, w->mark_ns);
		result_f64(r, &field_iteration_starved_share, starved_share(w));
	}
	t->single = true;
	free(ns);
}

bool phase_single_several(const struct target *t, const struct work *w)
{
	return t->ranks > 1 && w->link_bytes > 0;
}

/* Traffic of several ranks always; copies of a pair if latency matters; headline cases if their iterations
 * are so long that the timing events do not matter. */
static bool wanted(const struct timing *t)
{
	bool slow = t->iteration_ns >= PHASE_SINGLE_FROM_NS;

	if (t->single)
		return false;
	if (slow && t->c->phases == PHASES_HEADLINE)
		return true;
	return phase_single_several(&t->c->target, &t->work) ||
	       (t->c->target.kind == TARGET_PAIR && t->work.link_bytes > 0 && !slow);
}

/* Runs single iterations until there are enough or the time is over; at least one. */
static enum status run_single(struct timing *t, struct window *w, struct error *err)
{
	struct meter *m = t->meter;
	uint64_t left = (uint64_t)fmin(PHASE_SINGLE_MOST, fmax(1, PHASE_SINGLE_S * 1e9 / t->iteration_ns));
	uint64_t until = clock_now_ns(t->w->clock) + (uint64_t)(PHASE_SINGLE_S * 1e9);
	enum status st = m->ops->begin(m, w, err);

	/* single iterations may take far longer than in batches, so the time is checked too */
	while (!st && left && (!w->count || clock_now_ns(t->w->clock) < until)) {
		uint64_t now = left < METER_SINGLES ? left : METER_SINGLES;

		if (timing_stopped(t))
			return timing_cancelled(err);
		st = m->ops->singles(m, now, err);
		left -= now;
	}
	return st ? st : m->ops->end(m, err);
}

enum status phase_single(struct timing *t, struct error *err)
{
	struct window w = timing_window(t);
	struct result *r;
	enum status st;

	if (!wanted(t))
		return STATUS_OK;
	r = result_create();
	if (!r)
		return error_errno(err, ENOMEM, "%s: percentiles of its iterations", t->c->key);
	st = timing_at(t, "single", err);
	if (!st)
		st = run_single(t, &w, err);
	if (!st) {
		timing_single_values(t, timing_judged(t), &w, r);
		if (w.count && fed(&w))
			timing_wait_values(&w, r);
		st = timing_phase(t, "single", w.t0_ns, w.t1_ns, err);
	}
	if (!st)
		st = timing_samples(t, "single", &w, err);
	if (!st && t->single)
		st = timing_result(t, timing_judged(t), r, err);
	result_destroy(r);
	return st;
}
