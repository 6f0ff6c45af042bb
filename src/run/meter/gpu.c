/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU meter. It puts device events around batches and keeps many batches in flight, so the device never
 * waits for the host. A sample lasts from the event before its batch to the event after it. In a row of
 * samples, the event after one is the event before the next, so no time between samples is lost. For very
 * short iterations the launches would be measured instead, so a batch of them is captured into a graph and
 * replayed. docs/explanation/methods/gpu-memory-and-links.md, "Timing on a GPU".
 */
#include <errno.h>
#include "gpu/device/gpu.h"
#include "run/meter/meter.h"
#include "run/meter/event_chain.h"
#include "run/meter/nvlink.h"
#include "run/meter/clock_ramp.h"
#include "run/worker/fault_injection.h"

enum {
	DEPTH = 32,
	/* shorter iterations are replayed, because a launch costs the host 2 to 5 us */
	GRAPH_BELOW_NS = 20000,
	GRAPH_BATCH_MAX = 20000, /* largest number of nodes of a graph; a longer batch is several replays */
	LOOK_NS = 10000,	 /* between two looks at a device that works with other ranks */
};

struct flight {
	struct gpu_event *from, *to; /* lent from the ring */
	uint64_t batch;
};

struct meter_gpu {
	struct meter base;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_event *origin; /* begin of the window on the device */
	struct gpu_event
		/* a ring: one more event than samples in flight, and one for a new start */
		*event[DEPTH + 2];
	unsigned event_next;
	struct gpu_event *last; /* the newest event with no work enqueued after it; NULL: begin a new row */
	struct flight flight[DEPTH];
	unsigned flight_first, flight_count;
	struct gpu_graph *graph;
	uint64_t graph_batch; /* iterations in the graph */
	bool graph_refused;
	struct event_chain chain; /* for single iterations */
	enum launch launch;
	bool together;	     /* with other ranks: a row of samples begins when all of them have begun */
	double iteration_ns; /* of the newest measured sample; 0: none */
	struct gpu_stamps *stamps, *ramp_stamps;
	struct meter_nvml nvml;
	bool link_read; /* the link was read in this window, or is not wanted */
	struct meter_nvlink nvlink;
	struct fault_injection_busy *busy; /* NULL unless a test planted the fault */
};

static struct meter_gpu *gpu_of(struct meter *m)
{
	return (struct meter_gpu *)m;
}

static enum status enqueue(struct meter_gpu *g, bool check, struct error *err)
{
	struct meter *m = &g->base;
	enum status st = m->engine->enqueue(m->state, m->next, err);

	if (!st && check && m->engine->enqueue_check)
		st = m->engine->enqueue_check(m->state, m->next, err);
	m->next++;
	return st;
}

static enum status ramp(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);

	return meter_ramp(g->device, g->stream, &g->ramp_stamps, m->clock, limit_ns, reached, err);
}

static void graph_drop(struct meter_gpu *g)
{
	gpu_graph_destroy(&g->graph);
	g->graph_batch = 0;
	event_chain_graph_drop(&g->chain);
}

static enum status begin(struct meter *m, struct window *w, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	enum status st = gpu_synchronize(g->device, err);

	graph_drop(g); /* a variant may have been selected since the last window */
	g->last = NULL;
	m->window = w;
	if (!st && w->stamp && !g->stamps)
		st = gpu_stamps_create(g->device, &g->stamps, err);
	g->link_read = !w->link;
	if (w->link)
		(void)meter_nvml_open(&g->nvml);
	meter_nvlink_begin(&g->nvlink, &g->nvml, w);
	w->t0_ns = clock_now_ns(m->clock);
	if (!st && w->stamp)
		st = gpu_stamps_enqueue(g->stamps, 0, g->stream, err);
	return st ? st : gpu_event_record(g->origin, g->stream, err);
}

/* With other ranks, the device may wait for a rank that has failed. Then this must not wait for the device.
 */
static enum status await_event(struct meter_gpu *g, const struct gpu_event *e, struct error *err)
{
	struct team *t = g->base.bench->team;
	struct error why = {0};

	if (!g->together)
		return gpu_event_wait(e, err);
	team_at(t->board, TEAM_OP_WAIT);
	while (!gpu_event_done(e)) {
		if (team_left(t, &why))
			return error_set_cause(err, why.status, why.cause, "%s", why.text);
		clock_sleep_ns(clock_monotonic(), LOOK_NS);
	}
	team_at(t->board, TEAM_OP_ENQUEUE);
	return gpu_event_wait(e, err);
}

static enum status once(struct meter *m, double *ns, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	uint64_t t0;
	enum status st = gpu_synchronize(g->device, err);

	if (st)
		return st;
	t0 = clock_now_ns(m->clock);
	st = enqueue(g, false, err);
	if (!st && g->together)
		st = gpu_event_record(g->origin, g->stream, err);
	if (!st)
		st = g->together ? await_event(g, g->origin, err) : gpu_stream_wait(g->stream, err);
	*ns = (double)(clock_now_ns(m->clock) - t0);
	return st;
}

/* Waits for the oldest sample and appends it. */
static enum status land(struct meter_gpu *g, struct error *err)
{
	const struct flight *f = &g->flight[g->flight_first];
	double ns = 0, end_ns = 0;
	enum status st = await_event(g, f->to, err);

	if (!st)
		st = gpu_event_elapsed_ns(f->from, f->to, &ns, err);
	if (!st)
		st = gpu_event_elapsed_ns(g->origin, f->to, &end_ns, err);
	if (st)
		return st;
	window_add(g->base.window, ns, end_ns, f->batch);
	g->iteration_ns = ns / (double)f->batch;
	g->flight_first = (g->flight_first + 1) % DEPTH;
	g->flight_count--;
	return STATUS_OK;
}

static enum status land_what_is_done(struct meter_gpu *g, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st && g->flight_count && gpu_event_done(g->flight[g->flight_first].to))
		st = land(g, err);
	return st;
}

/* Enqueues a new event. The ring has DEPTH + 2 events, so none in use is taken again. */
static enum status mark(struct meter_gpu *g, struct gpu_event **out, struct error *err)
{
	*out = g->event[g->event_next];
	g->event_next = (g->event_next + 1) % (DEPTH + 2);
	return gpu_event_record(*out, g->stream, err);
}

/* Enqueues this many iterations on the stream. `captured`: the stream is being captured. */
typedef enum status put_iterations(struct meter_gpu *g, uint64_t count, bool captured, struct error *err);

static enum status put_batch(struct meter_gpu *g, uint64_t count, bool captured, struct error *err)
{
	enum status st = STATUS_OK;

	(void)captured;
	for (uint64_t i = 0; i < count && !st; i++)
		st = enqueue(g, false, err);
	return st;
}

/* Captures `count` iterations with `put`. If an engine cannot be captured, all later iterations are enqueued
 * directly. */
static enum status capture(struct meter_gpu *g, uint64_t count, put_iterations *put, struct gpu_graph **graph,
			   uint64_t *in_graph, struct error *err)
{
	struct error own = {0};
	enum status st = gpu_capture_begin(g->stream, &own), ended;

	if (!st) {
		st = put(g, count, true, &own);
		ended = gpu_capture_end(g->stream, graph, &own);
		st = st ? st : ended;
	}
	if (st &&
	    /* a graph was requested, so nothing else is valid */
	    (st == STATUS_LOST || g->launch == LAUNCH_GRAPH)) {
		*err = own;
		return st;
	}
	g->graph_refused = st != STATUS_OK;
	if (st)
		graph_drop(g);
	else
		*in_graph = count;
	return STATUS_OK;
}

/* Ranks that work together must decide alike, so their own times do not count. */
static bool wants_graph(const struct meter_gpu *g, uint64_t batch)
{
	if (g->base.window->check || g->graph_refused || g->launch == LAUNCH_STREAM)
		return false;
	return g->launch == LAUNCH_GRAPH ||
	       (batch > 1 && g->iteration_ns > 0 && g->iteration_ns < GRAPH_BELOW_NS);
}

static enum status enqueue_batch(struct meter_gpu *g, uint64_t batch, struct error *err)
{
	uint64_t done = 0;
	enum status st = STATUS_OK;

	for (; g->graph && !st && batch - done >= g->graph_batch; done += g->graph_batch) {
		st = gpu_graph_launch(g->graph, g->stream, err);
		g->base.next += g->graph_batch;
	}
	for (; done < batch && !st; done++)
		st = enqueue(g, g->base.window->check, err);
	return st;
}

/* Once per window, after some copies and with others in flight, because an idle link reduces its speed. */
static void read_link(struct meter_gpu *g)
{
	struct window *w = g->base.window;

	if (g->link_read || !w->count || !g->flight_count)
		return;
	g->link_read = true;
	w->has_link = meter_nvml_link(&g->nvml, &w->link_gen, &w->link_width);
}

static enum status sample(struct meter *m, uint64_t batch, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	struct flight f = {.batch = batch};
	enum status st = fault_injection_busy_start(g->busy, err);

	if (!st && wants_graph(g, batch) && !g->graph && !g->flight_count) {
		st = capture(g, batch < GRAPH_BATCH_MAX ? batch : GRAPH_BATCH_MAX, put_batch, &g->graph,
			     &g->graph_batch, err);
		g->last = NULL;
	}
	if (!st && !g->last && g->together)
		/* an untimed iteration, which ends when all ranks have reached it */
		st = enqueue(g, false, err);
	if (!st && !g->last)
		st = mark(g, &g->last, err);
	f.from = g->last;
	if (!st)
		st = enqueue_batch(g, batch, err);
	if (!st)
		st = mark(g, &f.to, err);
	if (st)
		return st;
	g->last = f.to;
	g->flight[(g->flight_first + g->flight_count++) % DEPTH] = f;
	read_link(g);
	if (g->flight_count == DEPTH)
		st = land(g, err);
	return st ? st : land_what_is_done(g, err);
}

/* -- single iterations -- */

static enum status put_one(void *arg, struct error *err)
{
	return enqueue(arg, false, err);
}

/* With other ranks, an untimed iteration comes first. It ends when all ranks have reached it. */
static enum status put_singles(struct meter_gpu *g, uint64_t count, bool captured, struct error *err)
{
	enum status st = g->together ? enqueue(g, false, err) : STATUS_OK;

	return st ? st : event_chain_put(&g->chain, count, captured, put_one, g, err);
}

static enum status replay_singles(struct meter_gpu *g, uint64_t count, struct error *err)
{
	struct event_chain *c = &g->chain;
	enum status st = STATUS_OK;

	if (c->graph_count != count) {
		event_chain_graph_drop(c);
		st = capture(g, count, put_singles, &c->graph, &c->graph_count, err);
	} else {
		g->base.next += count + g->together;
	}
	if (!st && !c->graph)
		return put_singles(g, count, false, err);
	return st ? st : gpu_graph_launch(c->graph, g->stream, err);
}

static enum status singles(struct meter *m, uint64_t count, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	struct gpu_event *done;
	enum status st = event_chain_ready(&g->chain, err);

	if (!st)
		st = fault_injection_busy_start(g->busy, err);
	if (!st)
		st = wants_graph(g, count) ? replay_singles(g, count, err)
					   : put_singles(g, count, false, err);
	if (!st)
		st = mark(g, &done, err);
	if (!st)
		st = await_event(g, done, err);
	return st ? st : event_chain_read(&g->chain, count, g->origin, m->window, err);
}

/* -- iterations under hardware counters -- */

static enum status counted(struct meter *m, uint64_t count, meter_mark *mark_range, void *arg,
			   struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	enum status st = STATUS_OK;

	/* uses a graph if a timed window would use one */
	if (wants_graph(g, count) && !g->graph)
		st = capture(g, count < GRAPH_BATCH_MAX ? count : GRAPH_BATCH_MAX, put_batch, &g->graph,
			     &g->graph_batch, err);
	if (!st)
		st = gpu_stream_wait(g->stream, err);
	if (st)
		return st;
	mark_range(arg, true);
	st = enqueue_batch(g, count, err);
	if (!st)
		st = gpu_stream_wait(g->stream, err);
	mark_range(arg, false);
	return st;
}

static enum status drain(struct meter *m, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	enum status st = STATUS_OK;

	while (!st && g->flight_count)
		st = land(g, err);
	fault_injection_busy_stop(g->busy);
	g->last = NULL; /* the device becomes idle, so the next sample begins a new row */
	graph_drop(g);
	return st;
}

static enum status held_clock(struct meter_gpu *g, struct window *w, struct error *err)
{
	struct gpu_clock clock;
	struct error why = {0};
	enum status st = gpu_stamps_read(g->stamps, &clock, &why);

	if (st == STATUS_UNAVAILABLE) /* other work uses the SMs: the clock is absent, the time is valid */
		return STATUS_OK;
	if (st) {
		*err = why;
		return st;
	}
	w->has_clock = true;
	w->clock_hz = clock.hz_mean;
	w->clock_spread_share = (clock.hz_max - clock.hz_min) / clock.hz_mean;
	return STATUS_OK;
}

static enum status end(struct meter *m, struct error *err)
{
	struct meter_gpu *g = gpu_of(m);
	struct window *w = m->window;
	enum status st = w->stamp ? gpu_stamps_enqueue(g->stamps, 1, g->stream, err) : STATUS_OK;

	if (!st)
		st = drain(m, err);
	if (!st)
		st = gpu_stream_wait(g->stream, err);
	w->t1_ns = clock_now_ns(m->clock);
	if (!st && w->stamp)
		st = held_clock(g, w, err);
	if (!st)
		meter_nvlink_end(&g->nvlink, &g->nvml, w, g->base.bench->gpu);
	m->window = NULL;
	return st;
}

static enum status state(struct meter *m, struct meter_state *out, struct error *err)
{
	(void)err; /* a value that cannot be read is absent */
	meter_nvml_read(&gpu_of(m)->nvml, out);
	return STATUS_OK;
}

static void destroy(struct meter *m)
{
	struct meter_gpu *g = gpu_of(m);

	graph_drop(g);
	fault_injection_busy_destroy(&g->busy);
	for (unsigned i = 0; i < DEPTH + 2; i++)
		gpu_event_destroy(&g->event[i]);
	gpu_event_destroy(&g->origin);
	event_chain_release(&g->chain);
	gpu_stamps_destroy(&g->stamps);
	gpu_stamps_destroy(&g->ramp_stamps);
	meter_nvml_close(&g->nvml);
	free(g);
}

static const struct meter_ops ops = {
	.name = "gpu",
	.in_row = true,
	.once = once,
	.ramp = ramp,
	.begin = begin,
	.sample = sample,
	.singles = singles,
	.counted = counted,
	.drain = drain,
	.end = end,
	.state = state,
	.destroy = destroy,
};

static enum launch launch_of(const struct meter_spec *spec, bool together)
{
	enum launch launch = spec->engine->launch ? spec->engine->launch(spec->opts) : LAUNCH_AUTO;

	if (spec->engine->plain || (together && launch == LAUNCH_AUTO))
		return LAUNCH_STREAM;
	return launch;
}

enum status meter_gpu_create(struct meter **out, const struct meter_spec *spec, struct error *err)
{
	const struct gpu *facts = machine_gpu(spec->bench->machine, spec->bench->gpu);
	struct meter_gpu *g = calloc(1, sizeof(*g));
	enum status st;

	*out = NULL;
	if (!g)
		return error_errno(err, ENOMEM, "a meter");
	g->together = spec->bench->team && spec->bench->team->size > 1;
	g->launch = launch_of(spec, g->together);
	g->base = (struct meter){
		.ops = &ops,
		.engine = spec->engine,
		.state = spec->state,
		.bench = spec->bench,
		.clock = spec->clock,
		.depth = DEPTH,
	};
	g->device = spec->bench->device;
	g->stream = spec->bench->stream[0];
	g->chain = (struct event_chain){.device = g->device, .stream = g->stream};
	if (facts)
		meter_nvml_name(&g->nvml, facts->pci, spec->board);
	st = gpu_event_create(g->device, &g->origin, err);
	if (!st)
		st = fault_injection_busy_create(&g->busy, g->device, spec->bench->gpu, err);
	for (unsigned i = 0; i < DEPTH + 2 && !st; i++)
		st = gpu_event_create(g->device, &g->event[i], err);
	if (st)
		destroy(&g->base);
	else
		*out = &g->base;
	return st;
}
