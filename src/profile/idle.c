/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/idle.h"

bool idle_brings(const struct timeline *t, const struct timeline_event *e)
{
	const struct timeline_copy *c = e->kind == TIMELINE_COPY ? &t->copy[e->detail] : NULL;

	return c && (c->kind == TIMELINE_HOST_TO_DEVICE || c->kind == TIMELINE_HOST_TO_ARRAY) &&
	       c->bytes >= (uint64_t)(c->from == TIMELINE_PAGEABLE ? IDLE_DATA_PAGEABLE : IDLE_DATA_BYTES);
}

bool idle_begin(struct idle *i, const struct timeline *t)
{
	*i = (struct idle){.t = t};
	return host_calls_of(&i->calls, t);
}

void idle_end(struct idle *i)
{
	host_calls_release(&i->calls);
}

/* A vote: each gap adds its time to the call that it is for, or takes it from another one. */
static void vote(struct breakdown_device *d, uint32_t call, uint64_t ns)
{
	if (d->waited_in == call) {
		d->waited_in_ns += ns;
	} else if (d->waited_in_ns >= ns) {
		d->waited_in_ns -= ns;
	} else {
		d->waited_in = call;
		d->waited_in_ns = ns - d->waited_in_ns;
	}
}

static struct breakdown_bracket *bracket_of(struct breakdown_device *d, uint64_t gap_ns)
{
	unsigned bits = 0;

	while (gap_ns >>= 1)
		bits++;
	return &d->bracket[bits / 2];
}

static void add_idle(struct breakdown_device *d, struct breakdown_bracket *b, enum breakdown_state reason,
		     uint64_t ns)
{
	d->state_ns[reason] += ns;
	b->state_ns[reason] += ns;
}

/* What of [from, from + late) the launching thread spent with memory: in calls that allocate, or, where a
 * free that waits made the device run dry, all but the time in which the host made no call. */
static uint64_t allocating_ns(struct idle *i, uint64_t from_ns, uint64_t late_ns,
			      const struct timeline_event *call, const struct timeline_event *wait,
			      uint64_t silent_ns)
{
	uint64_t ns = host_calls_allocating(&i->calls, call->track, from_ns, from_ns + late_ns);

	if (wait && wait->track == call->track && i->calls.allocates[wait->name])
		return late_ns - silent_ns;
	return ns < late_ns - silent_ns ? ns : late_ns - silent_ns;
}

/* The host was late: it was silent, in calls that allocate, or it had waited; else it was too slow. */
static void explain_late(struct idle *i, struct breakdown_device *d, struct breakdown_bracket *b,
			 uint64_t from_ns, uint64_t late_ns, const struct timeline_event *call)
{
	uint64_t silent_ns =
		host_calls_silence(&i->calls, call->process, from_ns, from_ns + late_ns, IDLE_SILENCE_NS);
	const struct timeline_event *wait =
		late_ns ? host_calls_waiting(&i->calls, call->track, from_ns, call->start_ns) : NULL;
	uint64_t memory_ns = allocating_ns(i, from_ns, late_ns, call, wait, silent_ns);
	uint64_t left_ns = late_ns - silent_ns - memory_ns;

	add_idle(d, b, BREAKDOWN_REST, silent_ns);
	add_idle(d, b, BREAKDOWN_ALLOCATION, memory_ns);
	add_idle(d, b, wait ? BREAKDOWN_SYNC : BREAKDOWN_LAUNCH, left_ns);
	d->waits += wait != NULL;
	if (wait && left_ns)
		vote(d, wait->name, left_ns);
}

/* How much of the gap lay before the launch's call. */
static uint64_t late_of(struct windows_span gap, const struct timeline_event *call)
{
	uint64_t gap_ns = gap.to_ns - gap.from_ns;
	uint64_t late_ns = call->start_ns > gap.from_ns ? call->start_ns - gap.from_ns : 0;

	return late_ns < gap_ns ? late_ns : gap_ns;
}

static bool is_pageable(const struct timeline *t, const struct timeline_event *e)
{
	return t->copy[e->detail].from == TIMELINE_PAGEABLE;
}

/* Before a copy of data the device waits for data, but for what the host does with memory; while a pageable
 * one is prepared, for the copy. */
static void explain_data(struct idle *i, struct breakdown_device *d, struct breakdown_bracket *b,
			 struct windows_span gap, const struct timeline_event *next)
{
	const struct timeline_event *call = timeline_call(i->t, next), *wait;
	uint64_t memory_ns = 0, late_ns, silent_ns;

	if (call && call->track != TIMELINE_NONE) {
		late_ns = late_of(gap, call);
		silent_ns = host_calls_silence(&i->calls, call->process, gap.from_ns, gap.from_ns + late_ns,
					       IDLE_SILENCE_NS);
		wait = late_ns ? host_calls_waiting(&i->calls, call->track, gap.from_ns, call->start_ns)
			       : NULL;
		memory_ns = allocating_ns(i, gap.from_ns, late_ns, call, wait, silent_ns);
		if (is_pageable(i->t, next))
			d->pageable_ns += gap.to_ns - gap.from_ns - late_ns;
	}
	add_idle(d, b, BREAKDOWN_ALLOCATION, memory_ns);
	add_idle(d, b, BREAKDOWN_DATA, gap.to_ns - gap.from_ns - memory_ns);
}

void idle_explain(struct idle *i, struct breakdown_device *d, struct windows_span gap,
		  const struct timeline_event *next, bool same_launch)
{
	const struct timeline_event *call = next ? timeline_call(i->t, next) : NULL;
	uint64_t gap_ns = gap.to_ns - gap.from_ns, late_ns;
	struct breakdown_bracket *b = bracket_of(d, gap_ns);
	bool queued;

	d->gaps++;
	b->gaps++;
	d->longest_gap_ns = gap_ns > d->longest_gap_ns ? gap_ns : d->longest_gap_ns;
	if (next && idle_brings(i->t, next)) {
		explain_data(i, d, b, gap, next);
		return;
	}
	if (!call || call->track == TIMELINE_NONE) {
		add_idle(d, b, BREAKDOWN_REST, gap_ns);
		return;
	}
	/* Until it was launched the host is what the device waits for; from then on, the launch itself. */
	late_ns = late_of(gap, call);
	queued = same_launch || call->end_ns + IDLE_QUEUED_NS <= gap.from_ns;
	explain_late(i, d, b, gap.from_ns, late_ns, call);
	add_idle(d, b, queued ? BREAKDOWN_BETWEEN : BREAKDOWN_LAUNCH, gap_ns - late_ns);
}
