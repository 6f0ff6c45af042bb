/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/breakdown/host_calls.h"

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof((list)[0]))

/* cudaMallocAsync and the like are not included: they allocate from a pool in stream order, and nothing waits
 * for them. */
static bool is_allocating(const char *name)
{
	static const char *const calls[] = {
		"cudaMalloc",  "cudaFree",  "cudaHostAlloc",  "cudaHostRegister",  "cudaHostUnregister",
		"cuMemAlloc",  "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "cuMemHostUnregister",
		"cuMemCreate", "cuMemMap",  "cuMemUnmap",     "cuMemRelease",	   "cuMemSetAccess"};

	return IS_ONE_OF(name, calls) && !strstr(name, "Async");
}

static bool is_waiting(const char *name)
{
	static const char *const frees[] = {"cudaFree", "cuMemFree"}, *const copies[] = {"cudaMemcpy",
											 "cuMemcpy"};

	if (IS_ONE_OF(name, frees) && !strstr(name, "Async"))
		return true;
	if (IS_ONE_OF(name, copies)) /* not the calls that add a copy to a graph */
		return !strstr(name, "Async");
	return strstr(name, "Synchronize");
}

bool *host_calls_that_wait(const struct timeline *t)
{
	bool *waits = calloc(t->names + 1, sizeof(*waits));

	for (size_t i = 0; waits && i < t->names; i++)
		waits[i] = is_waiting(t->name[i]);
	return waits;
}

static bool is_call(const struct timeline_event *e)
{
	return e->kind == TIMELINE_RUNTIME || e->kind == TIMELINE_DRIVER;
}

/* Collects the thread's outermost calls. */
static uint32_t take_thread(struct host_calls *h, const struct timeline_track *track, uint32_t at)
{
	uint64_t until_ns = 0;

	for (uint32_t i = 0; i < track->count; i++) {
		uint32_t index = h->t->by_track[track->first + i];
		const struct timeline_event *e = &h->t->event[index];

		if (!is_call(e) || e->end_ns <= until_ns)
			continue;
		h->call[at++] = index;
		until_ns = e->end_ns;
	}
	return at;
}

/* Merges the calls of each process into time spans; calls that touch become one span. */
static void take_spans(struct host_calls *h)
{
	const struct timeline *t = h->t;
	size_t at = 0;

	for (size_t i = 0; i < t->events; i++)
		if (is_call(&t->event[i]))
			h->span_count[t->event[i].process]++;
	for (size_t p = 0; p < t->processes; p++) {
		h->span_first[p] = at;
		at += h->span_count[p];
		h->span_count[p] = 0;
	}
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];
		struct host_span *next;

		if (!is_call(e))
			continue;
		next = h->span + h->span_first[e->process] + h->span_count[e->process];
		if (h->span_count[e->process] && e->start_ns <= next[-1].end_ns) {
			next[-1].end_ns = e->end_ns > next[-1].end_ns ? e->end_ns : next[-1].end_ns;
			continue;
		}
		*next = (struct host_span){e->start_ns, e->end_ns};
		h->span_count[e->process]++;
	}
}

static int by_process(const void *a_, const void *b_, void *arg)
{
	const struct timeline *t = arg;
	uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;

	if (t->event[a].process != t->event[b].process)
		return t->event[a].process < t->event[b].process ? -1 : 1;
	return (a > b) - (a < b);
}

/* Collects the waiting calls by process and start. */
static void take_waits(struct host_calls *h, uint32_t calls)
{
	const struct timeline *t = h->t;
	size_t waits = 0;

	for (uint32_t i = 0; i < calls; i++)
		if (h->waits[t->event[h->call[i]].name])
			h->wait[waits++] = h->call[i];
	if (waits)
		qsort_r(h->wait, waits, sizeof(*h->wait), by_process, (void *)(uintptr_t)t);
	for (size_t i = 0; i < waits; i++) {
		const struct timeline_event *e = &t->event[h->wait[i]];
		bool first = !h->wait_first[e->process + 1u];

		h->wait_first[e->process + 1u] = i + 1;
		h->last_wait[i] = first || e->end_ns > t->event[h->last_wait[i - 1]].end_ns
					  ? h->wait[i]
					  : h->last_wait[i - 1];
	}
	for (size_t p = 1; p <= t->processes; p++)
		if (!h->wait_first[p])
			h->wait_first[p] = h->wait_first[p - 1];
}

bool host_calls_of(struct host_calls *h, const struct timeline *t)
{
	size_t calls = 0;
	uint32_t at = 0;

	*h = (struct host_calls){.t = t};
	for (size_t i = 0; i < t->events; i++)
		calls += is_call(&t->event[i]);
	h->call = calloc(calls + 1, sizeof(*h->call));
	h->first = calloc(t->tracks + 1, sizeof(*h->first));
	h->span = calloc(calls + 1, sizeof(*h->span));
	h->span_first = calloc(t->processes + 1, sizeof(*h->span_first));
	h->span_count = calloc(t->processes + 1, sizeof(*h->span_count));
	h->wait = calloc(calls + 1, sizeof(*h->wait));
	h->last_wait = calloc(calls + 1, sizeof(*h->last_wait));
	h->wait_first = calloc(t->processes + 1, sizeof(*h->wait_first));
	h->waits = host_calls_that_wait(t);
	h->allocates = calloc(t->names + 1, sizeof(*h->allocates));
	if (!h->call || !h->first || !h->span || !h->span_first || !h->span_count || !h->wait ||
	    !h->last_wait || !h->wait_first || !h->waits || !h->allocates) {
		host_calls_release(h);
		return false;
	}
	for (size_t i = 0; i < t->names; i++)
		h->allocates[i] = is_allocating(t->name[i]);
	for (size_t i = 0; i < t->tracks; i++) {
		h->first[i] = at;
		at = t->track[i].device ? at : take_thread(h, &t->track[i], at);
	}
	h->first[t->tracks] = at;
	take_waits(h, at);
	take_spans(h);
	return true;
}

void host_calls_release(struct host_calls *h)
{
	free(h->call);
	free(h->first);
	free(h->span);
	free(h->span_first);
	free(h->span_count);
	free(h->wait);
	free(h->last_wait);
	free(h->wait_first);
	free(h->waits);
	free(h->allocates);
	*h = (struct host_calls){0};
}

/* Index of the thread's first call that ends after that time; the index after its last call if none does. */
static uint32_t place_after(const struct host_calls *h, uint32_t track, uint64_t at_ns)
{
	uint32_t low = h->first[track], high = h->first[track + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->t->event[h->call[middle]].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The thread's first call that ends after that time; NULL: none. */
static const struct timeline_event *first_after(const struct host_calls *h, uint32_t track, uint64_t at_ns)
{
	uint32_t place = place_after(h, track, at_ns);

	return place < h->first[track + 1] ? &h->t->event[h->call[place]] : NULL;
}

/* Among the process's waits that had begun by then, the one that ends last. NULL: none was still running. */
static const struct timeline_event *any_waiting(const struct host_calls *h, uint16_t process, uint64_t at_ns)
{
	size_t first = h->wait_first[process], low = first, high = h->wait_first[process + 1u];
	const struct timeline_event *last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (h->t->event[h->wait[middle]].start_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	last = low > first ? &h->t->event[h->last_wait[low - 1]] : NULL;
	return last && last->end_ns > at_ns ? last : NULL;
}

const struct timeline_event *host_calls_waiting(const struct host_calls *h, uint32_t track, uint64_t at_ns,
						uint64_t until_ns)
{
	const struct timeline_event *own = first_after(h, track, at_ns);

	if (own && own->start_ns < until_ns)
		return own->start_ns <= at_ns && h->waits[own->name] ? own : NULL;
	return any_waiting(h, h->t->track[track].process, at_ns);
}

static uint64_t common_ns(struct windows_span a, struct windows_span b)
{
	uint64_t from_ns = a.from_ns > b.from_ns ? a.from_ns : b.from_ns;
	uint64_t to_ns = a.to_ns < b.to_ns ? a.to_ns : b.to_ns;

	return to_ns > from_ns ? to_ns - from_ns : 0;
}

uint64_t host_calls_silence(const struct host_calls *h, uint16_t process, struct windows_span whole,
			    struct windows_span part, uint64_t least_ns)
{
	const struct host_span *span = h->span + h->span_first[process];
	size_t low = 0, high = h->span_count[process];
	struct windows_span silence = {.from_ns = whole.from_ns};
	uint64_t silent_ns = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (span[middle].end_ns <= part.from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && span[low - 1].end_ns > whole.from_ns)
		silence.from_ns = span[low - 1].end_ns;
	for (size_t i = low; silence.from_ns < part.to_ns; i++) {
		bool any = i < h->span_count[process] && span[i].start_ns < whole.to_ns;

		silence.to_ns = any ? span[i].start_ns : whole.to_ns;
		if (silence.to_ns > silence.from_ns && silence.to_ns - silence.from_ns >= least_ns)
			silent_ns += common_ns(silence, part);
		if (!any)
			break;
		silence.from_ns = span[i].end_ns;
	}
	return silent_ns;
}

uint64_t host_calls_allocating(const struct host_calls *h, uint32_t track, struct windows_span part)
{
	uint64_t ns = 0;

	for (uint32_t i = place_after(h, track, part.from_ns); i < h->first[track + 1]; i++) {
		const struct timeline_event *e = &h->t->event[h->call[i]];

		if (e->start_ns >= part.to_ns)
			break;
		if (h->allocates[e->name])
			ns += common_ns((struct windows_span){e->start_ns, e->end_ns}, part);
	}
	return ns;
}
