/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles of single iterations: a batch's mean hides the slow one in it. METHODS "Single iterations". */
#include "run/phases.h"
#include <errno.h>
#include "core/stats.h"

void timing_single_values(struct timing *t, const struct window *w, struct result *r)
{
	double *ns;
	struct stats s;

	if (!w->count || window_mean_ns(w, 0, w->count) < PHASE_SINGLE_FROM_NS)
		return;
	for (size_t i = 0; i < w->count; i++)
		if (w->sample[i].batch != 1)
			return;
	ns = malloc(w->count * sizeof(*ns));
	if (!ns)
		return; /* absent */
	for (size_t i = 0; i < w->count; i++)
		ns[i] = w->sample[i].ns;
	s = stats_of(ns, w->count);
	result_f64(r, &field_iteration_ns_p50, s.median);
	result_f64(r, &field_iteration_ns_p99, s.p99);
	result_u64(r, &field_iteration_samples, w->count);
	t->single = true;
	free(ns);
}

/* Iterations one by one until there are enough or the time is spent: at least one. */
static enum status run_single(struct timing *t, struct window *w, struct error *err)
{
	struct meter *m = t->meter;
	double least_ns = PHASE_SINGLE_S * 1e9, asked_ns = 0;
	enum status st = m->ops->begin(m, w, err);

	for (unsigned i = 0; !st && i < PHASE_SINGLE_MOST && asked_ns < least_ns; i++) {
		if (timing_stopped(t))
			return timing_cancelled(err);
		st = m->ops->sample(m, 1, err);
		asked_ns += t->iteration_ns;
	}
	return st ? st : m->ops->end(m, err);
}

enum status phase_single(struct timing *t, struct error *err)
{
	struct window w = timing_window(t);
	struct result *r;
	enum status st;

	if (t->single || !(t->iteration_ns >= PHASE_SINGLE_FROM_NS))
		return STATUS_OK;
	r = result_create();
	if (!r)
		return error_errno(err, ENOMEM, "%s: percentiles of its iterations", t->c->key);
	st = timing_at(t, "single", err);
	if (!st)
		st = run_single(t, &w, err);
	if (!st) {
		timing_single_values(t, &w, r);
		timing_wait_values(&w, r);
		st = timing_phase(t, "single", w.t0_ns, w.t1_ns, err);
	}
	if (!st)
		st = timing_samples(t, "single", &w, err);
	if (!st && t->single)
		st = timing_result(t, "sustained", r, err);
	result_destroy(r);
	return st;
}
