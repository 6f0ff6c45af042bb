/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sweep over a device's events, or over their parts in windows: those that touch are a cluster, whose
 * moments are told apart by what covers them; between two clusters nothing ran, and idle.c says why.
 */
#include "profile/breakdown.h"
#include <errno.h>
#include "profile/idle.h"

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

/* Where the cover of a moment by events of one state changes. */
struct edge {
	uint64_t at_ns;
	int8_t change;
	uint8_t state;
};

/* Covers a moment beside its state: a copy from pageable memory. */
enum { PAGEABLE = BREAKDOWN_STATE_COUNT, COVERS };

struct sweep {
	struct edge *edge;
	size_t edges, room;
	uint64_t until_ns;	/* the furthest end of the cluster */
	size_t window, windows; /* that it is in; behind its process's last. In `windows->span` */
	uint64_t before_ns[BREAKDOWN_STATE_COUNT]; /* what the windows before it had */
	uint32_t correlation;			   /* of the last event */
	uint32_t *over;				   /* indices to events that reach beyond their window */
	size_t overs, over_room;
};

struct sweeping {
	const struct timeline *t;
	const struct nccl *n;
	const struct windows *windows; /* NULL: everything counts */
	struct breakdown *b;
	struct sweep *sweep; /* by device of the breakdown */
	struct idle idle;
	uint8_t *is_nccl; /* by name */
	size_t room;
	bool out_of_memory;
};

static bool add_edge(struct sweep *s, uint64_t at_ns, int8_t change, unsigned state)
{
	size_t wanted = s->room ? 2 * s->room : 256;
	struct edge *grown;

	if (s->edges == s->room) {
		grown = realloc(s->edge, wanted * sizeof(*grown));
		if (!grown)
			return false;
		s->edge = grown;
		s->room = wanted;
	}
	s->edge[s->edges++] = (struct edge){.at_ns = at_ns, .change = change, .state = (uint8_t)state};
	return true;
}

static bool add_span(struct sweep *s, uint64_t from_ns, uint64_t to_ns, unsigned state)
{
	return from_ns >= to_ns || (add_edge(s, from_ns, 1, state) && add_edge(s, to_ns, -1, state));
}

static int by_time(const void *a_, const void *b_)
{
	const struct edge *a = a_, *b = b_;

	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

/* So long this was covered. */
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

static void end_cluster(struct sweep *s, struct breakdown_device *d)
{
	uint32_t cover[COVERS] = {0};

	if (s->edges)
		qsort(s->edge, s->edges, sizeof(*s->edge), by_time);
	for (size_t i = 0; i < s->edges; i++) {
		if (i)
			add_moment(d, cover, s->edge[i].at_ns - s->edge[i - 1].at_ns);
		cover[s->edge[i].state] += (uint32_t)(int32_t)s->edge[i].change;
	}
	s->edges = 0;
}

static void begin_windows(struct sweeping *w, size_t place)
{
	struct breakdown_device *d = &w->b->device[place];
	struct sweep *s = &w->sweep[place];

	s->window = w->windows->first[d->process];
	s->windows = w->windows->first[d->process + 1];
	s->until_ns = s->window < s->windows ? w->windows->span[s->window].from_ns : 0;
	if (!w->windows->apart)
		return;
	d->windows = s->windows - s->window;
	d->window_ns = calloc(d->windows + 1, sizeof(*d->window_ns));
	w->out_of_memory |= !d->window_ns;
}

/* The device's place in the breakdown; SIZE_MAX: one too many, or no memory. */
static size_t place_of(struct sweeping *w, const struct timeline_event *e)
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
	w->sweep[b->devices] = (struct sweep){.until_ns = e->start_ns};
	if (w->windows)
		begin_windows(w, b->devices);
	return b->devices++;
}

static bool add_communication(struct sweeping *w, struct sweep *s, uint32_t event, struct windows_span cut)
{
	const struct nccl_launch *l = nccl_launch_of(w->n, event);
	uint64_t ready_ns = l && l->ready_ns > cut.from_ns ? l->ready_ns : cut.from_ns;

	ready_ns = ready_ns < cut.to_ns ? ready_ns : cut.to_ns;
	return add_span(s, cut.from_ns, ready_ns, BREAKDOWN_PEER) &&
	       add_span(s, ready_ns, cut.to_ns, BREAKDOWN_COMMUNICATION);
}

static bool add_copy(struct sweeping *w, struct sweep *s, const struct timeline_event *e,
		     struct windows_span cut)
{
	if (!idle_brings(w->t, e))
		return add_span(s, cut.from_ns, cut.to_ns, BREAKDOWN_COPY);
	return add_span(s, cut.from_ns, cut.to_ns, BREAKDOWN_DATA) &&
	       (w->t->copy[e->detail].from != TIMELINE_PAGEABLE ||
		add_span(s, cut.from_ns, cut.to_ns, PAGEABLE));
}

/* The part of it that counts. */
static bool add_event(struct sweeping *w, struct sweep *s, uint32_t event, struct windows_span cut)
{
	const struct timeline_event *e = &w->t->event[event];

	switch ((enum timeline_kind)e->kind) {
	case TIMELINE_KERNEL:
		if (w->is_nccl[e->name])
			return add_communication(w, s, event, cut);
		return add_span(s, cut.from_ns, cut.to_ns, BREAKDOWN_COMPUTE);
	case TIMELINE_COPY:
		return add_copy(w, s, e, cut);
	case TIMELINE_SET:
		return add_span(s, cut.from_ns, cut.to_ns, BREAKDOWN_COPY);
	default: /* a graph as a whole: what it holds is not told */
		return add_span(s, cut.from_ns, cut.to_ns, BREAKDOWN_COMPUTE);
	}
}

/* So far all has ended: what ran is told apart, and the device was idle until then. */
static void reach(struct sweeping *w, size_t place, uint64_t to_ns, const struct timeline_event *next)
{
	struct sweep *s = &w->sweep[place];

	if (to_ns <= s->until_ns)
		return;
	end_cluster(s, &w->b->device[place]);
	idle_explain(&w->idle, &w->b->device[place], (struct windows_span){s->until_ns, to_ns}, next,
		     next && next->correlation && next->correlation == s->correlation);
	w->b->device[place].span_ns += to_ns - s->until_ns;
	s->until_ns = to_ns;
}

static void put(struct sweeping *w, size_t place, uint32_t event, struct windows_span cut)
{
	const struct timeline_event *e = &w->t->event[event];
	struct sweep *s = &w->sweep[place];

	reach(w, place, cut.from_ns, e);
	w->out_of_memory |= !add_event(w, s, event, cut);
	s->correlation = e->correlation;
	w->b->device[place].span_ns += cut.to_ns > s->until_ns ? cut.to_ns - s->until_ns : 0;
	s->until_ns = cut.to_ns > s->until_ns ? cut.to_ns : s->until_ns;
}

static bool remember_over(struct sweep *s, uint32_t event)
{
	size_t wanted = s->over_room ? 2 * s->over_room : 16;
	uint32_t *grown;

	if (s->overs == s->over_room) {
		grown = realloc(s->over, wanted * sizeof(*grown));
		if (!grown)
			return false;
		s->over = grown;
		s->over_room = wanted;
	}
	s->over[s->overs++] = event;
	return true;
}

/* Its part in the window that the device is in; what lies beyond waits for the next one. */
static void put_in_window(struct sweeping *w, size_t place, uint32_t event)
{
	const struct timeline_event *e = &w->t->event[event];
	struct sweep *s = &w->sweep[place];
	struct windows_span cut = w->windows->span[s->window];

	w->out_of_memory |= e->end_ns > cut.to_ns && !remember_over(s, event);
	if (e->end_ns <= cut.from_ns)
		return;
	cut.from_ns = e->start_ns > cut.from_ns ? e->start_ns : cut.from_ns;
	cut.to_ns = e->end_ns < cut.to_ns ? e->end_ns : cut.to_ns;
	put(w, place, event, cut);
}

static void end_window(struct sweep *s, struct breakdown_device *d)
{
	size_t window = d->windows - (s->windows - s->window);

	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT && d->window_ns; k++) {
		d->window_ns[window][k] = d->state_ns[k] - s->before_ns[k];
		s->before_ns[k] = d->state_ns[k];
	}
}

/* Ends the window, begins the next one, with what reaches into it. */
static void next_window(struct sweeping *w, size_t place, const struct timeline_event *next)
{
	struct sweep *s = &w->sweep[place];
	size_t overs = s->overs;

	reach(w, place, w->windows->span[s->window].to_ns, next);
	end_cluster(s, &w->b->device[place]);
	end_window(s, &w->b->device[place]);
	if (++s->window == s->windows)
		return;
	s->until_ns = w->windows->span[s->window].from_ns;
	s->overs = 0;
	for (size_t i = 0; i < overs && !w->out_of_memory;
	     i++) /* none is put before it was read: at most `overs` are */
		put_in_window(w, place, s->over[i]);
}

/* Processes without a window take no place. */
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
	if (!w->windows) {
		put(w, place, event, (struct windows_span){e->start_ns, e->end_ns});
		return;
	}
	while (s->window < s->windows && e->start_ns >= w->windows->span[s->window].to_ns)
		next_window(w, place, e);
	if (s->window < s->windows)
		put_in_window(w, place, event);
}

/* What is left when no event comes any more. */
static void finish(struct sweeping *w, size_t place)
{
	struct sweep *s = &w->sweep[place];

	while (s->window < s->windows)
		next_window(w, place, NULL);
	end_cluster(s, &w->b->device[place]);
	free(s->edge);
	free(s->over);
}

/* Devices of processes without a window say nothing. */
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
	if (!w->is_nccl || !idle_begin(&w->idle, t))
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

/* As people count them: by rank, then process. */
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
	idle_end(&w.idle);
	free(w.sweep);
	free(w.is_nccl);
	if (made && b->devices)
		qsort_r(b->device, b->devices, sizeof(*b->device), by_rank, (void *)(uintptr_t)t);
	if (made)
		return STATUS_OK;
	breakdown_release(b);
	return error_errno(err, ENOMEM, "where the time of %zu events went", t->events);
}

void breakdown_release(struct breakdown *b)
{
	for (size_t i = 0; i < b->devices; i++)
		free(b->device[i].window_ns);
	free(b->device);
	*b = (struct breakdown){0};
}
