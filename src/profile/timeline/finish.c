/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/build.h"
#include <dlfcn.h>
#include <errno.h>

/* By start; of events with equal starts, the enclosing one first. */
static int by_start(const void *a_, const void *b_)
{
	const struct timeline_event *a = a_, *b = b_;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* Groups the events by track, in their order. */
static bool index_tracks(struct timeline *t)
{
	uint32_t first = 0;

	t->by_track = calloc(t->events + 1, sizeof(*t->by_track));
	if (!t->by_track)
		return false;
	for (size_t i = 0; i < t->events; i++)
		if (t->event[i].track != TIMELINE_NONE)
			t->track[t->event[i].track].count++;
	for (size_t i = 0; i < t->tracks; i++) {
		t->track[i].first = first;
		first += t->track[i].count;
		t->track[i].count = 0;
	}
	for (size_t i = 0; i < t->events; i++) {
		struct timeline_track *track =
			t->event[i].track != TIMELINE_NONE ? &t->track[t->event[i].track] : NULL;

		if (track)
			t->by_track[track->first + track->count++] = (uint32_t)i;
	}
	return true;
}

static bool is_call(const struct timeline_event *e)
{
	return (e->kind == TIMELINE_RUNTIME || e->kind == TIMELINE_DRIVER) && e->correlation;
}

/* By process and correlation; of equal correlations, the outermost call (a runtime call) first. */
static int by_correlation(const void *a_, const void *b_, void *arg)
{
	const struct timeline *t = arg;
	const struct timeline_event *a = &t->event[*(const uint32_t *)a_],
				    *b = &t->event[*(const uint32_t *)b_];

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool index_calls(struct timeline *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->events; i++)
		count += is_call(&t->event[i]);
	t->call = calloc(count + 1, sizeof(*t->call));
	if (!t->call)
		return false;
	for (size_t i = 0; i < t->events; i++)
		if (is_call(&t->event[i]))
			t->call[t->calls++] = (uint32_t)i;
	qsort_r(t->call, t->calls, sizeof(*t->call), by_correlation, t);
	return true;
}

/* Demangles C++ names if libstdc++ is available. */
static void demangle(struct timeline *t)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
	char *(*demangled)(const char *name, char *buffer, size_t *size, int *status);
	int status;

	if (!found)
		return;
	memcpy(&demangled, &found, sizeof(demangled));
	for (size_t i = 0; i < t->names; i++) {
		char *plain =
			strncmp(t->name[i], "_Z", 2) ? NULL : demangled(t->name[i], NULL, NULL, &status);

		if (!plain)
			continue;
		free(t->name[i]);
		t->name[i] = plain;
	}
}

enum status build_finish(struct build *b, struct error *err)
{
	struct timeline *t = b->t;

	for (size_t i = 0; i < t->events; i++)
		if (t->event[i].end_ns > t->end_ns)
			t->end_ns = t->event[i].end_ns;
	if (t->events)
		qsort(t->event, t->events, sizeof(*t->event), by_start);
	t->start_ns = t->events ? t->event[0].start_ns : 0;
	if (b->out_of_memory || !index_tracks(t) || !index_calls(t))
		return error_errno(err, ENOMEM, "cannot sort a timeline of %zu events", t->events);
	demangle(t);
	return STATUS_OK;
}
