/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the stream's time: an event is recorded where another kind of work begins, and the times are read
 * after the device has passed all events. */
#include <stdlib.h>
#include "model/gpu/internal.h"

struct mark {
	struct gpu_event *event;
	int what;
};

struct gpu_times {
	struct mark *mark;
	size_t count, room; /* events are reused */
};

enum status gpu_times_create(struct gpu_times **out, struct error *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? STATUS_OK
		    : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for times");
}

void gpu_times_release(struct gpu_times **out)
{
	struct gpu_times *t = *out;

	if (!t)
		return;
	for (size_t i = 0; i < t->room; i++)
		gpu_event_destroy(&t->mark[i].event);
	free(t->mark);
	free(t);
	*out = NULL;
}

static enum status grow(struct gpu_times *t, struct gpu_device *d, struct error *err)
{
	const size_t room = t->room ? 2 * t->room : 64;
	struct mark *more = realloc(t->mark, room * sizeof(*more));
	enum status st = STATUS_OK;

	if (!more)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for times");
	t->mark = more;
	while (!st && t->room < room) {
		t->mark[t->room] = (struct mark){0};
		st = gpu_event_create(d, &t->mark[t->room].event, err);
		t->room += !st;
	}
	return st;
}

enum status gpu_times_mark(struct gpu_times *t, const struct gpu_state *g, int what, struct error *err)
{
	enum status st = STATUS_OK;

	if (t->count && t->mark[t->count - 1].what == what)
		return STATUS_OK;
	if (t->count == t->room)
		st = grow(t, g->device, err);
	if (!st)
		st = gpu_event_record(t->mark[t->count].event, g->stream, err);
	if (!st)
		t->mark[t->count++].what = what;
	return st;
}

int gpu_times_now(const struct gpu_times *t)
{
	return t->count ? t->mark[t->count - 1].what : -1;
}

void gpu_times_clear(struct gpu_times *t)
{
	if (t)
		t->count = 0;
}

enum status gpu_times_read(struct gpu_times *t, double *s, int whats, struct error *err)
{
	enum status st = t->count ? gpu_event_wait(t->mark[t->count - 1].event, err) : STATUS_OK;

	for (int i = 0; i < whats; i++)
		s[i] = 0;
	for (size_t i = 0; !st && i + 1 < t->count; i++) {
		double ns = 0;

		st = gpu_event_elapsed_ns(t->mark[i].event, t->mark[i + 1].event, &ns, err);
		if (t->mark[i].what >= 0 && t->mark[i].what < whats)
			s[t->mark[i].what] += ns * 1e-9;
	}
	t->count = 0;
	return st;
}
