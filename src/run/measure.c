/* SPDX-License-Identifier: Apache-2.0 */
#include "run/measure.h"
#include <errno.h>
#include "run/device.h"
#include "run/phases.h"

/* One timed case on its way; what is set is released at its end. */
struct running {
	struct measure *w;
	const struct bench_case *c;
	struct bench bench;
	unsigned cpus[DEVICE_CPUS];
	void *state;
	bool prepared; /* prepare was called, well or not */
	struct timing timing;
};

static enum status emit_once(const struct running *r, struct error *err)
{
	return timing_result(&r->timing, "once", r->bench.out, err);
}

static enum status prepare(struct running *r, struct error *err)
{
	const struct engine *e = r->c->engine;
	uint64_t t0 = clock_now_ns(r->w->clock);
	struct meter_spec spec = {.engine = e, .opts = r->c->opts, .bench = &r->bench, .clock = r->w->clock};
	enum status st = timing_at(&r->timing, "prepare", err);

	if (!st)
		st = device_open(r->w, r->c, &r->bench, r->cpus, err);
	if (st)
		return st;
	r->bench.search_s = timing_search_s(r->c);
	r->bench.stop = r->w->stop;
	r->bench.out = result_create();
	r->state = calloc(1, e->state_size ? e->state_size : 1);
	if (!r->state || !r->bench.out)
		return error_errno(err, ENOMEM, "%s: its state", r->c->key);
	r->prepared = true;
	st = e->prepare(r->state, &r->bench, r->c->opts, err);
	if (st)
		return st;
	spec.state = r->state;
	st = device_meter(&r->timing.meter, r->c, &spec, err);
	if (st)
		return st;
	r->timing.listing_s = result_get(r->bench.out, &field_listing_s, 0);
	if (!r->bench.device)
		r->timing.threads = (unsigned)result_get(r->bench.out, &field_threads, r->bench.threads);
	return timing_phase(&r->timing, "prepare", t0, clock_now_ns(r->w->clock), err);
}

/* What is judged: beside its ceiling where there is one, since both then meet the same clock and neighbours.
 */
static enum status time_headline(struct running *r, struct error *err)
{
	enum status st;

	if (phase_turns_apply(r->c, r->w->machine))
		return phase_turns(&r->timing, &r->bench, err);
	st = phase_settle(&r->timing, err);
	return st ? st : phase_sustained(&r->timing, err);
}

/* Phases on the first variant; `ready` between the checks and the first spin. */
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
	if (!st && r->c->phases == PHASES_HEADLINE)
		st = phase_single(t, err);
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
	variants = e->variants && e->select ? e->variants(r->state) : 0;
	if (variants)
		st = e->select(r->state, 0, &r->timing.variant, err);
	if (!st)
		st = time_phases(r, err);
	if (!st && variants > 1)
		st = phase_search(&r->timing, variants, err);
	if (!st && variants > 1)
		st = timing_verify(&r->timing, err); /* what the pairs left */
	if (!st && p->finish)
		st = p->finish(r->state, r->bench.out, err);
	return st ? st : emit_once(r, err);
}

static enum status run_reading(struct running *r, struct error *err)
{
	enum status st;

	r->bench.out = result_create();
	if (!r->bench.out)
		return error_errno(err, ENOMEM, "%s: its values", r->c->key);
	st = r->c->probe->observe(r->w->machine, &r->c->target, r->c->opts, r->bench.out, err);
	return st ? st : emit_once(r, err);
}

static void release(struct running *r)
{
	meter_destroy(&r->timing.meter);
	if (r->prepared)
		r->c->engine->release(r->state);
	free(r->state);
	result_destroy(r->bench.out);
	timing_release(&r->timing);
}

enum status measure_case(struct measure *w, const struct bench_case *c, struct error *err)
{
	struct running *r = calloc(1, sizeof(*r));
	enum status st;

	if (!r)
		return error_errno(err, ENOMEM, "%s", c->key);
	r->w = w;
	r->c = c;
	r->timing.c = c;
	r->timing.w = w;
	st = c->probe->kind == PROBE_READING ? run_reading(r, err) : run_timed(r, err);
	release(r);
	free(r);
	return st;
}

void measure_release(struct measure *w)
{
	device_close(w);
}
