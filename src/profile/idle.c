/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/idle.h"

enum { HOST_TO_DEVICE = 1, HOST_TO_ARRAY = 3 }; /* CUPTI's */

bool idle_brings(const struct timeline *t, const struct timeline_event *e)
{
	return e->kind == TIMELINE_COPY &&
	       (t->copy[e->detail].kind == HOST_TO_DEVICE || t->copy[e->detail].kind == HOST_TO_ARRAY);
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

void idle_explain(struct idle *i, struct breakdown_device *d, uint64_t from_ns,
		  const struct timeline_event *next)
{
	const struct timeline_event *call = timeline_call(i->t, next), *wait;
	uint64_t gap_ns = next->start_ns - from_ns, late_ns, rest_ns;
	struct breakdown_bracket *b = bracket_of(d, gap_ns);

	d->gaps++;
	b->gaps++;
	d->longest_gap_ns = gap_ns > d->longest_gap_ns ? gap_ns : d->longest_gap_ns;
	if (idle_brings(i->t, next)) {
		add_idle(d, b, BREAKDOWN_DATA, gap_ns);
		return;
	}
	if (!call || call->track == TIMELINE_NONE) {
		add_idle(d, b, BREAKDOWN_REST, gap_ns);
		return;
	}
	/* Until it was launched the host is what the device waits for; from then on, the launch itself. */
	late_ns = call->start_ns > from_ns ? call->start_ns - from_ns : 0;
	late_ns = late_ns < gap_ns ? late_ns : gap_ns;
	rest_ns = host_calls_silence(&i->calls, next->process, from_ns, from_ns + late_ns, IDLE_SILENCE_NS);
	wait = late_ns ? host_calls_waiting(&i->calls, call->track, from_ns, call->start_ns) : NULL;
	add_idle(d, b, BREAKDOWN_REST, rest_ns);
	add_idle(d, b, wait ? BREAKDOWN_SYNC : BREAKDOWN_LAUNCH, late_ns - rest_ns);
	add_idle(d, b, BREAKDOWN_LAUNCH, gap_ns - late_ns);
	d->waits += wait != NULL;
	if (wait)
		vote(d, wait->name, late_ns - rest_ns);
}
