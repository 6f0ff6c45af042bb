/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/measure.h"
#include <errno.h>
#include "run/timing/phases.h"
#include "run/worker/ranks.h"

/* One timed case in progress. Its end releases everything that is set. */
struct running {
	struct measure *w;
	const struct bench_case *c;
	struct rank_case part; /* rank 0's part */
	struct timing timing;
};

static enum status emit_once(const struct running *r, struct error *err)
{
	return timing_result(&r->timing, "once", r->part.bench.out, err);
}

static enum status prepare(struct running *r, struct error *err)
{
	uint64_t t0 = clock_now_ns(r->w->clock);
	const struct bench *b = &r->part.bench;
	enum status st = timing_at(&r->timing, "prepare", err);

	if (!st)
		st = ranks_prepare(&r->part, err);
	if (st)
		return st;
	r->timing.meter = r->part.meter;
	r->timing.listing_s = result_get(b->out, &field_listing_s, 0);
	if (!b->device)
		r->timing.threads = (unsigned)result_get(b->out, &field_threads, b->threads);
	return timing_phase(&r->timing, "prepare", t0, clock_now_ns(r->w->clock), err);
}

/* Runs the judged phases. A case with a ceiling runs interleaved with it, so that both see the same clock and
 * neighbours. */
static enum status time_headline(struct running *r, struct error *err)
{
	enum status st;

	if (phase_interleave_applies(r->c, r->w->machine))
		return phase_interleave(&r->timing, &r->part.bench, err);
	st = phase_settle(&r->timing, err);
	return st ? st : phase_sustained(&r->timing, err);
}

/* Runs the phases of the first variant. `ready` is emitted after the checks and before the first spin. */
static enum status time_phases(struct running *r, struct error *err)
{
	struct timing *t = &r->timing;
	json_t *ready;
	enum status st = phase_cold(t, err);

	if (!st)
		st = timing_verify(t, err);
	if (st)
		return st;
	ready = json_pack("{s:i}", "case", (int)r->c->id);
	st = r->w->emit.event(r->w->emit.arg, "ready", ready, err);
	json_decref(ready);
	if (!st)
		st = phase_ramp(t, err);
	if (!st)
		st = phase_burst(t, err);
	if (!st && r->c->phases == PHASES_HEADLINE)
		st = time_headline(r, err);
	if (!st)
		st = phase_single(t, err);
	if (!st)
		st = phase_counted(t, err);
	return st ? st : timing_verify(t, err);
}

static enum status run_timed(struct running *r, struct error *err)
{
	const struct engine *e = r->c->engine;
	const struct probe *p = r->c->probe;
	unsigned variants;
	enum status st;

	r->timing.work = p->work(r->w->machine, &r->c->target, r->c->opts);
	st = timing_init(&r->timing, err);
	if (!st)
		st = prepare(r, err);
	if (st)
		return st;
	variants = e->variants && e->select ? e->variants(r->part.state) : 0;
	if (variants)
		st = ranks_select(&r->part, 0, &r->timing.variant, err);
	if (!st)
		st = time_phases(r, err);
	if (!st && variants > 1)
		st = phase_search(&r->timing, variants, err);
	if (!st && variants > 1)
		st = timing_verify(&r->timing, err); /* checks the results after the pairs */
	if (!st)
		st = ranks_finish(&r->part, err);
	return st ? st : emit_once(r, err);
}

static enum status run_reading(struct running *r, struct error *err)
{
	enum status st;

	r->part.bench.out = result_create();
	if (!r->part.bench.out)
		return error_errno(err, ENOMEM, "%s: its values", r->c->key);
	st = r->c->probe->observe(r->w->machine, &r->c->target, r->c->opts, r->part.bench.out, err);
	return st ? st : emit_once(r, err);
}

static void release(struct running *r, enum status st, const struct error *why)
{
	ranks_release(&r->part, st, why);
	timing_release(&r->timing);
}

enum status measure_case(struct measure *w, const struct bench_case *c, struct error *err)
{
	struct running *r;
	enum status st;

	if (c->team && w->team && w->team->rank)
		return ranks_follow(w, c, err);
	r = calloc(1, sizeof(*r));
	if (!r)
		return error_errno(err, ENOMEM, "%s", c->key);
	r->w = w;
	r->c = c;
	r->part.w = w;
	r->part.c = c;
	r->timing.c = c;
	r->timing.w = w;
	r->timing.part = &r->part;
	st = c->probe->kind == PROBE_READING ? run_reading(r, err) : run_timed(r, err);
	release(r, st, err);
	free(r);
	return st;
}

void measure_release(struct measure *w)
{
	ranks_home(w);
	device_close(w);
}
