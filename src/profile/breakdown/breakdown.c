/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep over the events of each device. The events that cover a moment determine its state. If none do,
 * idle_reason.c finds the reason. Each window gets its part. */
#include "profile/breakdown/breakdown.h"
#include <errno.h>
#include "profile/breakdown/idle_reason.h"

static const struct {
	const char *key, *name;
	bool idle;
} states[] = {
#define X(id, key, name, idle) [BREAKDOWN_##id] = {key, name, idle},
	BREAKDOWN_STATES(X)
#undef X
};

const char *breakdown_key(enum breakdown_state state)
{
	return states[state].key;
}

const char *breakdown_name(enum breakdown_state state)
{
	return states[state].name;
}

uint64_t breakdown_idle_ns(const struct breakdown_device *d)
{
	uint64_t idle_ns = 0;

	for (unsigned i = 0; i < BREAKDOWN_STATE_COUNT; i++)
		idle_ns += states[i].idle ? d->state_ns[i] : 0;
	return idle_ns;
}

uint64_t breakdown_single_ns(const struct breakdown_device *d, enum breakdown_state state)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < BREAKDOWN_BRACKETS; i++)
		ns += d->bracket[i].gaps < BREAKDOWN_AGAIN ? d->bracket[i].state_ns[state] : 0;
	return ns;
}

/* A time at which an event begins or ends to cover the device with a state. */
struct edge {
	uint64_t at_ns;
	int8_t change;
	uint8_t state;
};

/* Counted in addition to the state: copies from pageable memory. */
enum { PAGEABLE = BREAKDOWN_STATE_COUNT, COVERS };

struct sweep {
	struct edge *edge; /* future edges, as a heap with the earliest first */
	size_t edges, room;
	uint32_t cover[COVERS];
	uint64_t at_ns;		/* the sweep has reached this time */
	size_t window, windows; /* window: index into `windows->span` of the current or next window; windows:
				   end of the process's windows */
	uint64_t before_ns[BREAKDOWN_STATE_COUNT]; /* state_ns at the begin of the current window */
	uint32_t correlation;			   /* of the last event */
};

struct sweeping {
	const struct timeline *t;
	const struct nccl *n;
	const struct windows *windows; /* NULL: all time counts */
	struct breakdown *b;
	struct sweep *sweep; /* by device of the breakdown */
	uint32_t *place;     /* by track: index of the device in the breakdown plus one; 0: not known yet */
	struct idle_reason idle;
	uint8_t *is_nccl; /* by name */
	size_t room;
	bool out_of_memory;
};

/* Pushes an edge onto the heap. */
static bool add_edge(struct sweep *s, uint64_t at_ns, int8_t change, unsigned state)
{
	size_t wanted = s->room ? 2 * s->room : 16, at = s->edges;
	struct edge *grown;

	if (s->edges == s->room) {
		grown = realloc(s->edge, wanted * sizeof(*grown));
		if (!grown)
			return false;
		s->edge = grown;
		s->room = wanted;
	}
	for (s->edges++; at && s->edge[(at - 1) / 2].at_ns > at_ns; at = (at - 1) / 2)
		s->edge[at] = s->edge[(at - 1) / 2];
	s->edge[at] = (struct edge){.at_ns = at_ns, .change = change, .state = (uint8_t)state};
	return true;
}

/* Pops the earliest edge and changes the cover. */
static void take_edge(struct sweep *s)
{
	struct edge last = s->edge[--s->edges];
	size_t at = 0;

	s->cover[s->edge[0].state] += (uint32_t)(int32_t)s->edge[0].change;
	for (;;) {
		size_t child = 2 * at + 1;

		child += child + 1 < s->edges && s->edge[child + 1].at_ns < s->edge[child].at_ns;
		if (child >= s->edges || s->edge[child].at_ns >= last.at_ns)
			break;
		s->edge[at] = s->edge[child];
		at = child;
	}
	s->edge[at] = last;
}

/* Covers the time from now to `to_ns` with the state. */
static bool add_cover(struct sweep *s, uint64_t to_ns, unsigned state)
{
	if (to_ns <= s->at_ns)
		return true;
	s->cover[state]++;
	return add_edge(s, to_ns, -1, state);
}

/* Adds a time span with this cover to the totals. */
static void add_moment(struct breakdown_device *d, const uint32_t *cover, uint64_t ns)
{
	bool communicates = cover[BREAKDOWN_COMMUNICATION] || cover[BREAKDOWN_PEER];
	unsigned state = 0;

	while (state < BREAKDOWN_STATE_COUNT && !cover[state])
		state++;
	if (state == BREAKDOWN_STATE_COUNT)
		return;
	d->state_ns[state] += ns;
	d->busy_ns += ns;
	d->data_copy_ns += state == BREAKDOWN_DATA ? ns : 0;
	d->pageable_ns += state == BREAKDOWN_DATA && cover[PAGEABLE] ? ns : 0;
	d->communication_ns += communicates ? ns : 0;
	d->compute_ns += cover[BREAKDOWN_COMPUTE] ? ns : 0;
	d->hidden_ns += communicates && cover[BREAKDOWN_COMPUTE] ? ns : 0;
}

static void begin_windows(struct sweeping *w, size_t place)
{
	struct breakdown_device *d = &w->b->device[place];
	struct sweep *s = &w->sweep[place];

	s->window = w->windows->first[d->process];
	s->windows = w->windows->first[d->process + 1];
	if (w->windows->span[s->window].from_ns < s->at_ns)
		s->at_ns = w->windows->span[s->window].from_ns;
	if (!w->windows->apart)
		return;
	d->windows = s->windows - s->window;
	d->window_ns = calloc(d->windows + 1, sizeof(*d->window_ns));
	w->out_of_memory |= !d->window_ns;
}

/* Index of the device in the breakdown. SIZE_MAX: too many devices, or out of memory. */
static size_t find_place(struct sweeping *w, const struct timeline_event *e)
{
	uint32_t id = w->t->track[e->track].device_id;
	struct breakdown *b = w->b;
	struct breakdown_device *device;
	struct sweep *sweep;
	size_t wanted = w->room ? 2 * w->room : 8;

	for (size_t i = 0; i < b->devices; i++)
		if (b->device[i].process == e->process && b->device[i].device == id)
			return i;
	if (b->devices == TIMELINE_DEVICES_MAX)
		return SIZE_MAX;
	if (b->devices == w->room) {
		device = realloc(b->device, wanted * sizeof(*device));
		b->device = device ? device : b->device;
		sweep = realloc(w->sweep, wanted * sizeof(*sweep));
		w->sweep = sweep ? sweep : w->sweep;
		w->out_of_memory |= !device || !sweep;
		if (w->out_of_memory)
			return SIZE_MAX;
		w->room = wanted;
	}
	b->device[b->devices] = (struct breakdown_device){.process = e->process, .device = id};
	w->sweep[b->devices] = (struct sweep){.at_ns = e->start_ns};
	if (w->windows)
		begin_windows(w, b->devices);
	return b->devices++;
}

static size_t place_of(struct sweeping *w, const struct timeline_event *e)
{
	uint32_t *place = &w->place[e->track];
	size_t found;

	if (*place)
		return *place - 1;
	found = find_place(w, e);
	if (found < SIZE_MAX)
		*place = (uint32_t)found + 1;
	return found;
}

/* A communication kernel waits until all ranks are ready, and communicates from then on. */
static bool add_communication(struct sweeping *w, struct sweep *s, uint32_t event)
{
	const struct nccl_launch *l = nccl_launch_of(w->n, event);
	uint64_t end_ns = w->t->event[event].end_ns, ready_ns = l ? l->ready_ns : s->at_ns;

	if (ready_ns <= s->at_ns)
		return add_cover(s, end_ns, BREAKDOWN_COMMUNICATION);
	if (ready_ns >= end_ns)
		return add_cover(s, end_ns, BREAKDOWN_PEER);
	return add_cover(s, ready_ns, BREAKDOWN_PEER) && add_edge(s, ready_ns, 1, BREAKDOWN_COMMUNICATION) &&
	       add_edge(s, end_ns, -1, BREAKDOWN_COMMUNICATION);
}

static bool add_copy(struct sweeping *w, struct sweep *s, const struct timeline_event *e)
{
	if (!idle_reason_brings(w->t, e))
		return add_cover(s, e->end_ns, BREAKDOWN_COPY);
	return add_cover(s, e->end_ns, BREAKDOWN_DATA) &&
	       (w->t->copy[e->detail].from != TIMELINE_PAGEABLE || add_cover(s, e->end_ns, PAGEABLE));
}

/* Handles an event that begins at the sweep's current time. */
static bool add_event(struct sweeping *w, struct sweep *s, uint32_t event)
{
	const struct timeline_event *e = &w->t->event[event];

	switch ((enum timeline_kind)e->kind) {
	case TIMELINE_KERNEL:
		if (w->is_nccl[e->name])
			return add_communication(w, s, event);
		return add_cover(s, e->end_ns, BREAKDOWN_COMPUTE);
	case TIMELINE_COPY:
		return add_copy(w, s, e);
	case TIMELINE_SET:
		return add_cover(s, e->end_ns, BREAKDOWN_COPY);
	default: /* a graph traced as a whole: its content is unknown */
		return add_cover(s, e->end_ns, BREAKDOWN_COMPUTE);
	}
}

static void end_window(struct sweep *s, struct breakdown_device *d)
{
	size_t window = d->windows - (s->windows - s->window);

	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT && d->window_ns; k++) {
		d->window_ns[window][k] = d->state_ns[k] - s->before_ns[k];
		s->before_ns[k] = d->state_ns[k];
	}
	s->window++;
}

static struct windows_span cut(struct windows_span a, struct windows_span b)
{
	return (struct windows_span){a.from_ns > b.from_ns ? a.from_ns : b.from_ns,
				     a.to_ns < b.to_ns ? a.to_ns : b.to_ns};
}

/* Sets the part of the gap that lies in windows, and the number of windows that it fills. */
static void measure(const struct sweeping *w, const struct sweep *s, struct idle_reason_gap *gap)
{
	struct windows_span all = {gap->from_ns, gap->to_ns};

	gap->counted_ns = w->windows ? 0 : gap->to_ns - gap->from_ns;
	for (size_t i = s->window; i < s->windows && w->windows->span[i].from_ns < gap->to_ns; i++) {
		struct windows_span window = w->windows->span[i], part = cut(all, window);

		gap->counted_ns += part.to_ns > part.from_ns ? part.to_ns - part.from_ns : 0;
		gap->times += part.from_ns == window.from_ns && part.to_ns == window.to_ns;
	}
	gap->times = gap->times ? gap->times : 1;
}

/* Adds a time span to its state. `gap` is NULL if something ran. */
static void add_part(struct sweeping *w, size_t place, struct windows_span part,
		     const struct idle_reason_gap *gap)
{
	struct breakdown_device *d = &w->b->device[place];

	if (part.from_ns >= part.to_ns)
		return;
	d->span_ns += part.to_ns - part.from_ns;
	if (gap)
		idle_reason_explain(&w->idle, d, gap, part);
	else
		add_moment(d, w->sweep[place].cover, part.to_ns - part.from_ns);
}

/* Moves the sweep to that time. Until then the cover does not change, or the gap lasts. Each window gets its
 * part. */
static void pass(struct sweeping *w, size_t place, uint64_t to_ns, const struct idle_reason_gap *gap)
{
	struct sweep *s = &w->sweep[place];
	struct windows_span all = {s->at_ns, to_ns};

	if (!w->windows)
		add_part(w, place, all, gap);
	while (s->window < s->windows && w->windows->span[s->window].from_ns < to_ns) {
		struct windows_span window = w->windows->span[s->window];

		add_part(w, place, cut(all, window), gap);
		if (window.to_ns > to_ns)
			break;
		end_window(s, &w->b->device[place]);
	}
	s->at_ns = to_ns;
}

/* Moves the sweep to that time, or to the end of the last running event if that is earlier. */
static void run_to(struct sweeping *w, size_t place, uint64_t to_ns)
{
	struct sweep *s = &w->sweep[place];

	while (s->edges && s->edge[0].at_ns <= to_ns) {
		pass(w, place, s->edge[0].at_ns, NULL);
		take_edge(s);
	}
	if (s->edges)
		pass(w, place, to_ns, NULL);
}

/* Moves the sweep to that time, at which `next` begins. NULL: there is no later event. */
static void reach(struct sweeping *w, size_t place, uint64_t to_ns, const struct timeline_event *next)
{
	struct sweep *s = &w->sweep[place];
	struct idle_reason_gap gap = {.to_ns = to_ns, .next = next};

	run_to(w, place, to_ns);
	if (s->at_ns >= to_ns)
		return;
	gap.from_ns = s->at_ns;
	gap.same_launch = next && next->correlation && next->correlation == s->correlation;
	measure(w, s, &gap);
	if (gap.counted_ns)
		idle_reason_look(&w->idle, &w->b->device[place], &gap);
	pass(w, place, to_ns, &gap);
}

/* Whether the process has a window. Processes without one are not in the result. */
static bool has_window(const struct sweeping *w, uint16_t process)
{
	return !w->windows || w->windows->first[process] < w->windows->first[process + 1];
}

static void take(struct sweeping *w, uint32_t event)
{
	const struct timeline_event *e = &w->t->event[event];
	size_t place = has_window(w, e->process) ? place_of(w, e) : SIZE_MAX;
	struct sweep *s;

	if (place == SIZE_MAX)
		return;
	s = &w->sweep[place];
	if (w->windows && s->window == s->windows)
		return;
	reach(w, place, e->start_ns, e);
	w->out_of_memory |= !add_event(w, s, event);
	s->correlation = e->correlation;
}

/* Ends the sweep of a device after its last event. */
static void finish(struct sweeping *w, size_t place)
{
	struct sweep *s = &w->sweep[place];

	run_to(w, place, UINT64_MAX);
	if (s->window < s->windows)
		reach(w, place, w->windows->span[s->windows - 1].to_ns, NULL);
	free(s->edge);
}

/* Removes devices of processes without a window. */
static void leave_out(struct breakdown *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->devices; i++) {
		if (b->device[i].span_ns)
			b->device[kept++] = b->device[i];
		else
			free(b->device[i].window_ns);
	}
	b->devices = kept;
}

static bool sweep_all(struct sweeping *w)
{
	const struct timeline *t = w->t;

	w->is_nccl = calloc(t->names + 1, sizeof(*w->is_nccl));
	w->place = calloc(t->tracks + 1, sizeof(*w->place));
	if (!w->is_nccl || !w->place || !idle_reason_begin(&w->idle, t))
		return false;
	for (size_t i = 0; i < t->names; i++)
		w->is_nccl[i] = nccl_is_kernel(t->name[i]);
	for (size_t i = 0; i < t->events && !w->out_of_memory; i++)
		if (timeline_on_device(t->event[i].kind) && t->event[i].track != TIMELINE_NONE)
			take(w, (uint32_t)i);
	for (size_t i = 0; i < w->b->devices; i++)
		finish(w, i);
	if (w->windows)
		leave_out(w->b);
	return !w->out_of_memory;
}

/* Order for display: by rank, then process. */
static int by_rank(const void *a_, const void *b_, void *arg)
{
	const struct timeline *t = arg;
	const struct breakdown_device *a = a_, *b = b_;
	int rank_a = t->process[a->process].rank, rank_b = t->process[b->process].rank;

	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

enum status breakdown_of(struct breakdown *b, const struct timeline *t, const struct nccl *n,
			 const struct windows *windows, struct error *err)
{
	struct sweeping w = {.t = t, .n = n, .windows = windows, .b = b};
	bool made;

	*b = (struct breakdown){0};
	made = sweep_all(&w);
	idle_reason_end(&w.idle);
	free(w.sweep);
	free(w.place);
	free(w.is_nccl);
	if (made && b->devices)
		qsort_r(b->device, b->devices, sizeof(*b->device), by_rank, (void *)(uintptr_t)t);
	if (made)
		return STATUS_OK;
	breakdown_release(b);
	return error_errno(err, ENOMEM, "cannot break down the time of %zu events", t->events);
}

void breakdown_release(struct breakdown *b)
{
	for (size_t i = 0; i < b->devices; i++)
		free(b->device[i].window_ns);
	free(b->device);
	*b = (struct breakdown){0};
}
