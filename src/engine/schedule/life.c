/* SPDX-License-Identifier: Apache-2.0 */
/* Places, pages and ends of requests, and the events about them. */
#include "engine/schedule/state.h"

#include <stdlib.h>

/* The step after which nothing of the request runs on the device. */
static uint64_t last_step(const struct request *r)
{
	return r->in_flight ? r->step : 0;
}

/* Gives all pages back. `failed`: what it computed does not stay in the cache. */
static void drop_pages(struct schedule *s, struct request *r, bool failed)
{
	uint32_t *table = table_of(s, r);

	for (int32_t i = r->page_count; i-- > 0;) {
		queue_wake(s, table[i]);
		if (failed && i >= r->hits)
			pages_discard(s->pool, table[i], last_step(r));
		else
			pages_release(s->pool, table[i], last_step(r));
	}
	r->page_count = r->hits = r->registered = r->sent = r->announced = 0;
	r->computed = r->planned = 0;
}

void order_enter(struct schedule *s, uint32_t number)
{
	int32_t i = s->running++;

	for (; i && ranks_before(s->requests + number, s->requests + s->order[i - 1]); i--)
		s->order[i] = s->order[i - 1];
	s->order[i] = number;
}

void order_leave(struct schedule *s, uint32_t number)
{
	int32_t i = s->running;

	while (s->order[--i] != number)
		;
	for (s->running--; i < s->running; i++)
		s->order[i] = s->order[i + 1];
}

static void leave_place(struct schedule *s, struct request *r)
{
	s->place_free[s->places_free++] = r->place;
	r->place = NONE;
}

void request_preempt(struct schedule *s, uint32_t number, uint64_t now)
{
	struct request *r = s->requests + number;

	order_leave(s, number);
	heap_remove(&s->ages, number);
	r->state = REQUEST_PREEMPTED;
	r->preemptions++;
	r->since = now;
	r->short_pages = -1;
	s->waiting++;
	s->facts.preemptions++;
	drop_pages(s, r, false);
	request_settle(s, number);
}

void request_settle(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;

	if (r->in_flight)
		return;
	if (r->state == REQUEST_PREEMPTED) {
		leave_place(s, r);
		queue_insert(s, number);
	} else if (r->state == REQUEST_ENDED) {
		if (r->place != NONE)
			leave_place(s, r);
		if (!r->ended_event) {
			r->state = REQUEST_FREE;
			r->free_next = s->request_free;
			s->request_free = number;
		}
	}
}

static void forget_id(struct schedule *s, uint32_t number)
{
	uint32_t *link = schedule_id_bucket(s, s->requests[number].id);

	while (*link != number)
		link = &s->requests[*link].id_next;
	*link = s->requests[number].id_next;
}

void request_end(struct schedule *s, uint32_t number, enum engine_end end, const char *text)
{
	struct request *r = s->requests + number;

	if (r->state == REQUEST_RUNNING) {
		order_leave(s, number);
		heap_remove(&s->ages, number);
		drop_pages(s, r, end == ENGINE_END_FAILED);
	} else {
		s->waiting--;
	}
	if (r->state == REQUEST_WAITING)
		queue_remove(s, number);
	if (r->state == REQUEST_PARKED)
		queue_unpark(s, number);
	r->state = REQUEST_ENDED;
	r->end = end;
	r->text = text;
	r->text_tokens = r->known - r->prompt;
	heap_remove(&s->deadlines, number);
	forget_id(s, number);
	client_leave(s, r);
	free(r->tokens);
	r->tokens = NULL;
	s->facts.ended++;
	r->ended_event = true;
	event_add(s, number);
	request_settle(s, number);
}

void request_expire(struct schedule *s, uint64_t now)
{
	while (heap_first_key(&s->deadlines) <= now)
		request_end(s, heap_first(&s->deadlines), ENGINE_END_DEADLINE, "");
}

void event_add(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;

	if (r->listed)
		return;
	r->listed = true;
	r->event_next = NONE;
	if (s->event_last == NONE)
		s->event_first = number;
	else
		s->requests[s->event_last].event_next = number;
	s->event_last = number;
}

bool schedule_event(struct schedule *s, struct schedule_event *event)
{
	uint32_t number = s->event_first;
	struct request *r = s->requests + number;

	if (number == NONE)
		return false;
	*event = (struct schedule_event){
		.kind = r->begun_event ? SCHEDULE_EVENT_BEGUN : SCHEDULE_EVENT_ENDED,
		.id = r->id,
		.number = number,
		.prompt_tokens = r->prompt,
		.cached_tokens = r->cached,
		.end = r->end,
		.text = r->state == REQUEST_ENDED ? r->text : "",
		.tokens = r->text_tokens,
		.preemptions = r->preemptions,
	};
	if (r->begun_event)
		r->begun_event = false;
	else
		r->ended_event = false;
	if (r->ended_event)
		return true;
	s->event_first = r->event_next;
	if (s->event_first == NONE)
		s->event_last = NONE;
	r->listed = false;
	if (r->state == REQUEST_ENDED)
		request_settle(s, number);
	return true;
}
