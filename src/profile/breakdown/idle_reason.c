/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/breakdown/idle_reason.h"

bool idle_reason_brings(const struct timeline *t, const struct timeline_event *e)
{
	const struct timeline_copy *c = e->kind == TIMELINE_COPY ? &t->copy[e->detail] : NULL;

	return c && (c->kind == TIMELINE_HOST_TO_DEVICE || c->kind == TIMELINE_HOST_TO_ARRAY) &&
	       c->bytes >= (uint64_t)(c->from == TIMELINE_PAGEABLE ? IDLE_REASON_DATA_PAGEABLE
								   : IDLE_REASON_DATA_BYTES);
}

bool idle_reason_begin(struct idle_reason *i, const struct timeline *t)
{
	*i = (struct idle_reason){.t = t};
	return host_calls_of(&i->calls, t);
}

void idle_reason_end(struct idle_reason *i)
{
	host_calls_release(&i->calls);
}

/* Majority vote over the calls, weighted by time: a gap adds its time to the leading call if it is for that
 * call, and otherwise takes it away. */
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

static bool is_pageable(const struct timeline *t, const struct timeline_event *e)
{
	return t->copy[e->detail].from == TIMELINE_PAGEABLE;
}

/* The part of a gap before the launch, by what the host did. */
struct before {
	uint64_t ns;	    /* length of that part */
	uint64_t silent_ns; /* time in which no thread made a call for long */
	uint64_t memory_ns; /* time in which the launching thread allocated or freed memory */
};

/* If the device ran out of work in a free that waits, all time except the silence is memory allocation. */
static struct before before_launch(struct idle_reason *i, const struct idle_reason_gap *gap,
				   struct windows_span part)
{
	const struct timeline_event *call = gap->call;
	uint64_t launched_ns = call->start_ns < gap->to_ns ? call->start_ns : gap->to_ns;
	struct windows_span whole = {gap->from_ns, launched_ns};
	struct before b = {0};

	part.to_ns = part.to_ns < launched_ns ? part.to_ns : launched_ns;
	if (part.to_ns <= part.from_ns)
		return b;
	b.ns = part.to_ns - part.from_ns;
	b.silent_ns = host_calls_silence(&i->calls, call->process, whole, part, IDLE_REASON_SILENCE_NS);
	b.memory_ns = host_calls_allocating(&i->calls, call->track, part);
	if (b.memory_ns > b.ns - b.silent_ns ||
	    (gap->wait && gap->wait->track == call->track && i->calls.allocates[gap->wait->name]))
		b.memory_ns = b.ns - b.silent_ns;
	return b;
}

/* Before a copy of data, the gap is data loading, except for the time in which the host allocates memory.
 * While a pageable copy is prepared, the time counts for that copy. */
static void explain_data(struct breakdown_device *d, struct breakdown_bracket *b, const struct before *before,
			 uint64_t ns, bool pageable)
{
	d->pageable_ns += pageable ? ns - before->ns : 0;
	add_idle(d, b, BREAKDOWN_ALLOCATION, before->memory_ns);
	add_idle(d, b, BREAKDOWN_DATA, ns - before->memory_ns);
}

/* Until the launch, the device waits for the host: the host was silent, allocated memory or had waited, or
 * else was too slow. After the launch, the device waits for the launch itself. */
static void explain_launch(struct breakdown_device *d, struct breakdown_bracket *b,
			   const struct before *before, uint64_t ns, const struct idle_reason_gap *gap)
{
	bool queued = gap->same_launch || gap->call->end_ns + IDLE_REASON_QUEUED_NS <= gap->from_ns;
	uint64_t left_ns = before->ns - before->silent_ns - before->memory_ns;

	add_idle(d, b, BREAKDOWN_REST, before->silent_ns);
	add_idle(d, b, BREAKDOWN_ALLOCATION, before->memory_ns);
	add_idle(d, b, gap->wait ? BREAKDOWN_SYNC : BREAKDOWN_LAUNCH, left_ns);
	add_idle(d, b, queued ? BREAKDOWN_BETWEEN : BREAKDOWN_LAUNCH, ns - before->ns);
	if (gap->wait && left_ns)
		vote(d, gap->wait->name, left_ns);
}

void idle_reason_look(struct idle_reason *i, struct breakdown_device *d, struct idle_reason_gap *gap)
{
	const struct timeline_event *call = gap->next ? timeline_call(i->t, gap->next) : NULL;

	gap->call = call && call->track != TIMELINE_NONE ? call : NULL;
	if (gap->call && call->start_ns > gap->from_ns)
		gap->wait = host_calls_waiting(&i->calls, call->track, gap->from_ns, call->start_ns);
	d->gaps++;
	d->waits += gap->wait && !idle_reason_brings(i->t, gap->next);
	d->longest_gap_ns = gap->counted_ns > d->longest_gap_ns ? gap->counted_ns : d->longest_gap_ns;
	bracket_of(d, gap->counted_ns)->gaps += gap->times;
}

void idle_reason_explain(struct idle_reason *i, struct breakdown_device *d, const struct idle_reason_gap *gap,
			 struct windows_span part)
{
	struct breakdown_bracket *b = bracket_of(d, gap->counted_ns);
	struct before before = gap->call ? before_launch(i, gap, part) : (struct before){0};
	uint64_t ns = part.to_ns - part.from_ns;

	if (gap->next && idle_reason_brings(i->t, gap->next))
		explain_data(d, b, &before, ns, gap->call && is_pageable(i->t, gap->next));
	else if (gap->call)
		explain_launch(d, b, &before, ns, gap);
	else
		add_idle(d, b, BREAKDOWN_REST, ns);
}
