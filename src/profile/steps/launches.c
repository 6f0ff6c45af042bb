/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/steps/launches.h"
#include <stdlib.h>

static unsigned bits_of(uint64_t n)
{
	unsigned bits = 0;

	while (n >>= 1)
		bits++;
	return bits;
}

static uint64_t key_of(unsigned kind, unsigned bits, uint32_t name)
{
	return (uint64_t)kind << 48 | (uint64_t)bits << 40 | name;
}

uint16_t launch_kind(const struct launch *l)
{
	return (uint16_t)(l->key >> 48);
}

uint32_t launch_name(const struct launch *l)
{
	return (uint32_t)l->key;
}

/* Adds a launch; there is room for every event. Returns whether its call was recorded. */
static bool add_on_device(struct launches *l, const struct timeline *t, uint32_t event)
{
	const struct timeline_event *e = &t->event[event], *call = timeline_call(t, e);
	bool kernel = e->kind == TIMELINE_KERNEL || e->kind == TIMELINE_GRAPH;
	bool graph =
		e->kind == TIMELINE_GRAPH ||
		(e->kind == TIMELINE_KERNEL ? t->kernel[e->detail].graph : t->copy[e->detail].graph) != 0;
	uint64_t bytes = kernel ? 0 : t->copy[e->detail].bytes;
	unsigned way = e->kind == TIMELINE_COPY ? t->copy[e->detail].kind : 0;

	l->launch[l->count++] = (struct launch){
		.at_ns = call ? call->start_ns : e->start_ns,
		.start_ns = e->start_ns,
		.ns = kernel ? e->end_ns - e->start_ns : 0,
		.key = graph ? key_of(TIMELINE_GRAPH, 0, 0)
			     : key_of(e->kind, kernel ? 0 : way % 4 * 64 + bits_of(bytes), e->name),
		.event = event,
		.correlation = e->correlation,
		.kernel = kernel || graph,
		.outward = graph || way == TIMELINE_HOST_TO_DEVICE || way == TIMELINE_DEVICE_TO_HOST};
	return call != NULL;
}

static int by_correlation(const void *a_, const void *b_)
{
	const struct launch *a = a_, *b = b_;

	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int by_call(const void *a_, const void *b_)
{
	const struct launch *a = a_, *b = b_;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Merges what one call put on a device, such as the nodes of a graph, into one launch. They lie next to each
 * other. */
static void join(struct launches *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct launch *last = kept ? &l->launch[kept - 1] : NULL;

		if (last && last->correlation && last->correlation == l->launch[i].correlation &&
		    last->key == l->launch[i].key) {
			last->ns += l->launch[i].ns;
			continue;
		}
		l->launch[kept++] = l->launch[i];
	}
	l->count = kept;
}

/* A wait has no time on a device, so it takes the time of the next launch. */
static void place_waits(struct launches *l)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = l->count; i-- > 0;) {
		if (!l->launch[i].start_ns)
			l->launch[i].start_ns = next_ns;
		next_ns = l->launch[i].start_ns;
	}
}

bool launches_of(struct launches *l, const struct timeline *t, uint16_t process, const bool *waits)
{
	bool uncalled = false;
	size_t room = 0;

	*l = (struct launches){0};
	for (size_t i = 0; i < t->events; i++)
		room += t->event[i].process == process;
	l->launch = malloc((room + 1) * sizeof(*l->launch));
	if (!l->launch)
		return false;
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];

		if (e->process != process)
			continue;
		if (timeline_on_device(e->kind) && e->track != TIMELINE_NONE)
			uncalled |= !add_on_device(l, t, (uint32_t)i);
		else if ((e->kind == TIMELINE_RUNTIME || e->kind == TIMELINE_DRIVER) && waits[e->name])
			l->launch[l->count++] = (struct launch){.at_ns = e->start_ns,
								.key = key_of(e->kind, 0, e->name),
								.event = (uint32_t)i,
								.waits = true,
								.outward = true};
	}
	if (uncalled) { /* without calls, other launches may lie between the nodes of a graph */
		qsort(l->launch, l->count, sizeof(*l->launch), by_correlation);
		join(l);
	}
	if (l->count)
		qsort(l->launch, l->count, sizeof(*l->launch), by_call);
	join(l);
	place_waits(l);
	return true;
}
