/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/agenda.h"
#include <stdlib.h>
#include "core/math/heap.h"

/* A thread's session i is number i * threads + thread of the plan. */
struct agenda {
	const struct load_plan *plan;
	uint64_t begin_ns;
	unsigned thread, threads;
	struct heap due; /* sessions whose next request has a time; the key is the time */
	size_t *next;	 /* [sessions] place in the plan of the request that is next */
	uint32_t sessions;
};

static enum status no_memory(struct error *err, size_t sessions)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "no memory for the order of %zu sessions", sessions);
}

static uint64_t due_after(const struct agenda *a, const struct load_request *r, uint64_t end_ns)
{
	return r->at_ns == LOAD_AFTER ? end_ns + r->think_ns : a->begin_ns + r->at_ns;
}

static void deal(struct agenda *a)
{
	const struct load_request *r = a->plan->request;

	for (size_t i = 0; i < a->plan->count; i++) {
		const uint32_t own = r[i].session / a->threads;

		if (r[i].session % a->threads != a->thread || (i && r[i - 1].session == r[i].session))
			continue;
		a->next[own] = i;
		heap_insert(&a->due, own, due_after(a, &r[i], a->begin_ns));
	}
}

enum status agenda_create(struct agenda **out, const struct load_plan *plan, uint64_t begin_ns,
			  unsigned thread, unsigned threads, struct error *err)
{
	struct agenda *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return no_memory(err, plan->sessions);
	a->plan = plan;
	a->begin_ns = begin_ns;
	a->thread = thread;
	a->threads = threads;
	a->sessions = plan->sessions / threads + 1;
	a->next = calloc(a->sessions, sizeof(*a->next));
	if (!heap_create(&a->due, a->sessions) || !a->next) {
		agenda_destroy(out);
		return no_memory(err, plan->sessions);
	}
	deal(a);
	return STATUS_OK;
}

void agenda_destroy(struct agenda **a)
{
	if (!*a)
		return;
	heap_free(&(*a)->due);
	free((*a)->next);
	free(*a);
	*a = NULL;
}

uint64_t agenda_due(const struct agenda *a)
{
	return heap_first_key(&a->due);
}

const struct load_request *agenda_next(const struct agenda *a)
{
	return a->due.count ? &a->plan->request[a->next[heap_first(&a->due)]] : NULL;
}

bool agenda_take(struct agenda *a, uint64_t now_ns, const struct load_request **request, uint64_t *due_ns)
{
	uint32_t session;

	if (!a->due.count || heap_first_key(&a->due) > now_ns)
		return false;
	session = heap_first(&a->due);
	*request = &a->plan->request[a->next[session]];
	*due_ns = heap_first_key(&a->due);
	heap_remove(&a->due, session);
	return true;
}

/* The place after the rest of a conversation. */
static size_t after_conversation(const struct load_plan *p, size_t at, uint32_t session)
{
	while (at < p->count && p->request[at].session == session && p->request[at].turn)
		at++;
	return at;
}

size_t agenda_answered(struct agenda *a, const struct load_request *request, uint64_t end_ns, bool go_on)
{
	const struct load_plan *p = a->plan;
	const size_t after = (size_t)(request - p->request) + 1;
	const size_t next = go_on ? after : after_conversation(p, after, request->session);
	const uint32_t own = request->session / a->threads;

	if (next < p->count && p->request[next].session == request->session) {
		a->next[own] = next;
		heap_insert(&a->due, own, due_after(a, &p->request[next], end_ns));
	}
	return next - after;
}
