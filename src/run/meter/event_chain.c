/* SPDX-License-Identifier: Apache-2.0 */
#include "run/meter/event_chain.h"
#include <math.h>
#include "kernel/timing/spin.h"

enum {
	MARKS = 32,	  /* events in a row, to measure the time of one */
	TRIES = 3,	  /* the shortest counts: a delay of the host between two events makes them longer */
	HOLD_NS = 200000, /* keeps the device busy while the host enqueues the events */
};

/* Enqueues the events after a kernel that lasts longer than the host needs for all of them, so that no event
 * waits for the host. */
static enum status try_mark(struct event_chain *c, double *ns, struct error *err)
{
	struct gpu_kernel *spin;
	enum status st = gpu_kernel(c->device, &spin, "spin", "spin", err);

	if (!st)
		st = gpu_launch_1d(spin, c->stream, 1, 32, 0, &(struct spin_args){HOLD_NS}, err);
	for (unsigned i = 0; i <= MARKS && !st; i++)
		st = gpu_event_record(c->event[i], c->stream, err);
	if (!st)
		st = gpu_event_wait(c->event[MARKS], err);
	if (!st)
		st = gpu_event_elapsed_ns(c->event[0], c->event[MARKS], ns, err);
	return st;
}

static enum status time_mark(struct event_chain *c, struct error *err)
{
	double ns, least = INFINITY;
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < TRIES && !st; i++) {
		st = try_mark(c, &ns, err);
		if (!st)
			least = fmin(least, ns);
	}
	if (!st)
		c->mark_ns = least / MARKS;
	return st;
}

enum status event_chain_ready(struct event_chain *c, struct error *err)
{
	enum status st = STATUS_OK;

	if (c->ready)
		return STATUS_OK;
	for (unsigned i = 0; i <= METER_SINGLES && !st; i++)
		if (!c->event[i])
			st = gpu_event_create(c->device, &c->event[i], err);
	if (!st)
		st = time_mark(c, err);
	c->ready = !st;
	return st;
}

static enum status mark(struct event_chain *c, uint64_t k, bool captured, struct error *err)
{
	return captured ? gpu_event_record_captured(c->event[k], c->stream, err)
			: gpu_event_record(c->event[k], c->stream, err);
}

enum status event_chain_put(struct event_chain *c, uint64_t count, bool captured, event_chain_link *put,
			    void *arg, struct error *err)
{
	enum status st = mark(c, 0, captured, err);

	for (uint64_t k = 0; k < count && !st; k++) {
		st = put(arg, err);
		/* only now: the work after the event was either enqueued before the device reached the event,
		 * or not */
		c->starved[k] = !st && !captured && gpu_event_done(c->event[k]);
		if (!st)
			st = mark(c, k + 1, captured, err);
	}
	return st;
}

enum status event_chain_read(const struct event_chain *c, uint64_t count, const struct gpu_event *origin,
			     struct window *w, struct error *err)
{
	enum status st = STATUS_OK;

	w->has_mark = true;
	w->mark_ns = c->mark_ns;
	for (uint64_t k = 0; k < count && !st; k++) {
		size_t before = w->count;
		double ns, end_ns;

		st = gpu_event_elapsed_ns(c->event[k], c->event[k + 1], &ns, err);
		if (!st)
			st = gpu_event_elapsed_ns(origin, c->event[k + 1], &end_ns, err);
		if (st)
			return st;
		window_add(w, ns, end_ns, 1);
		if (w->count > before)
			w->sample[before].starved = c->starved[k];
	}
	return st;
}

void event_chain_graph_drop(struct event_chain *c)
{
	gpu_graph_destroy(&c->graph);
	c->graph_count = 0;
}

void event_chain_release(struct event_chain *c)
{
	event_chain_graph_drop(c);
	for (unsigned i = 0; i <= METER_SINGLES; i++)
		gpu_event_destroy(&c->event[i]);
	c->ready = false;
}
