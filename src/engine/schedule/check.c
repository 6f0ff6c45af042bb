/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the state of the scheduler with itself and with its page pool. */
#include "engine/schedule/state.h"

#include <inttypes.h>
#include <stdlib.h>

#define EXPECT(condition, what, number)                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			return error_set(err, STATUS_MISMATCH,                                               \
					 "scheduler: " what " %" PRIu32 ": %s does not hold",                \
					 (uint32_t)(number), #condition);                                    \
	} while (0)

/* What is counted over all requests. */
struct census {
	int32_t running, waiting, queued, parked, places, live;
	int64_t *references; /* [pages] by page tables */
	int32_t *in_flight;  /* [requests_most] by plans */
};

static enum status check_lengths(const struct schedule *s, const struct request *r, uint32_t number,
				 struct error *err)
{
	EXPECT(r->known >= r->prompt && r->known <= r->planned_known, "request", number);
	EXPECT(r->planned_known <= r->limit && r->limit <= s->longest, "request", number);
	EXPECT(r->known <= r->capacity, "request", number);
	EXPECT(r->computed <= r->planned && r->planned <= r->planned_known, "request", number);
	EXPECT(r->computed <= r->known, "request", number);
	EXPECT(r->scored <= r->planned_scored, "request", number);
	EXPECT(r->in_flight || r->computed == r->planned, "request", number);
	EXPECT(r->in_flight || r->known == r->planned_known, "request", number);
	return STATUS_OK;
}

/* Pages of a running request. Those that it may still write are its own. */
static enum status check_pages(const struct schedule *s, uint32_t number, struct census *c, struct error *err)
{
	const struct request *r = s->requests + number;
	const uint32_t *table = table_of(s, r);

	EXPECT(r->page_count <= s->table_pages, "request", number);
	EXPECT(r->page_count >= pages_for(s, r->planned), "request", number);
	EXPECT(r->registered == r->computed / s->page_tokens, "request", number);
	EXPECT(r->hits <= r->registered, "request", number);
	for (int32_t i = 0; i < r->page_count; i++) {
		EXPECT(table[i] && table[i] < s->options.pages.pages, "request", number);
		EXPECT(i < r->registered || pages_references(s->pool, table[i]) == 1, "request", number);
		c->references[table[i]]++;
	}
	return STATUS_OK;
}

static enum status check_request_state(const struct schedule *s, uint32_t number, struct census *c,
				       struct error *err)
{
	const struct request *r = s->requests + number;

	EXPECT(r->in_flight == c->in_flight[number], "request", number);
	c->places += r->place != NONE;
	c->live += is_live(r);
	if (r->state == REQUEST_FREE)
		return STATUS_OK;
	if (r->state == REQUEST_ENDED) {
		EXPECT(r->ended_event || r->in_flight, "request", number);
		return STATUS_OK;
	}
	c->running += r->state == REQUEST_RUNNING;
	c->queued += r->state == REQUEST_WAITING;
	c->parked += r->state == REQUEST_PARKED;
	c->waiting += r->state != REQUEST_RUNNING;
	EXPECT(!r->deadline || heap_contains(&s->deadlines, number), "request", number);
	EXPECT(r->state == REQUEST_RUNNING ||
		       heap_contains(&s->ages, number) ==
			       (r->state == REQUEST_WAITING && r->class && s->options.age_ns),
	       "request", number);
	if (r->state == REQUEST_RUNNING) {
		EXPECT(r->place != NONE, "request", number);
		return check_lengths(s, r, number, err) ? STATUS_MISMATCH : check_pages(s, number, c, err);
	}
	EXPECT(!r->page_count, "request", number);
	EXPECT(r->state == REQUEST_PREEMPTED ? r->place != NONE && r->in_flight : r->place == NONE, "request",
	       number);
	return STATUS_OK;
}

static enum status check_order(const struct schedule *s, struct error *err)
{
	for (int32_t i = 0; i < s->running; i++) {
		EXPECT(s->requests[s->order[i]].state == REQUEST_RUNNING, "request", s->order[i]);
		EXPECT(!i || ranks_before(s->requests + s->order[i - 1], s->requests + s->order[i]),
		       "request", s->order[i]);
	}
	return STATUS_OK;
}

/* Requests of a treap that belong there; -1: one does not. */
static int64_t count_requests(const struct schedule *s, uint32_t root, int32_t class, uint32_t queue)
{
	const struct request *r = s->requests + root;
	int64_t left, right;

	if (root == NONE)
		return 0;
	if (r->state != REQUEST_WAITING || r->class != class || r->queue != queue)
		return -1;
	left = count_requests(s, s->nodes[root].left, class, queue);
	right = count_requests(s, s->nodes[root].right, class, queue);
	return left < 0 || right < 0 ? -1 : left + right + 1;
}

static int64_t count_queues(const struct schedule *s, uint32_t root, int32_t class)
{
	const struct queue *q = s->queues + root;
	int64_t own, left, right;

	if (root == NONE)
		return 0;
	own = count_requests(s, q->root, class, root);
	left = count_queues(s, s->queue_nodes[root].left, class);
	right = count_queues(s, s->queue_nodes[root].right, class);
	if (own != q->count || !own || q->class != class || left < 0 || right < 0)
		return -1;
	return left + right + own;
}

static enum status check_queues(const struct schedule *s, const struct census *c, struct error *err)
{
	int64_t queued = 0, parked = 0;

	for (int32_t class = 0; class < CLASSES; class ++) {
		int64_t first = count_requests(s, s->classes[class].first, class, NONE);
		int64_t queues = count_queues(s, s->classes[class].queues, class);

		EXPECT(first >= 0 && queues >= 0, "class", class);
		queued += first + queues;
	}
	EXPECT(queued == c->queued, "queues", 0);
	for (uint32_t page = 0; page < s->options.pages.pages; page++)
		for (uint32_t i = s->waiters[page]; i != NONE; i = s->requests[i].parked_next) {
			EXPECT(s->requests[i].state == REQUEST_PARKED, "request", i);
			EXPECT(s->requests[i].waits_page == page, "request", i);
			EXPECT(++parked <= s->parked, "request", i);
		}
	EXPECT(parked == c->parked && parked == s->parked, "parked", 0);
	return STATUS_OK;
}

static enum status check_all(const struct schedule *s, struct census *c, struct error *err)
{
	for (uint64_t step = s->done + 1; step <= s->step; step++) {
		const struct schedule_plan *plan = s->plans + step % s->options.plans_most;

		EXPECT(plan->step == step, "step", step);
		for (int32_t i = 0; i < plan->count; i++)
			c->in_flight[plan->entries[i].number]++;
	}
	for (int32_t i = 0; i < s->options.requests_most; i++)
		if (check_request_state(s, i, c, err))
			return STATUS_MISMATCH;
	EXPECT(s->step - s->done == (uint64_t)s->in_flight, "step", s->step);
	EXPECT(c->running == s->running, "running", s->running);
	EXPECT(c->waiting == s->waiting, "waiting", s->waiting);
	EXPECT(c->places + s->places_free == s->options.places, "places", s->places_free);
	EXPECT(s->facts.submitted - s->facts.ended == (uint64_t)c->live, "live", c->live);
	for (uint32_t page = 1; page < s->options.pages.pages; page++)
		EXPECT(c->references[page] == pages_references(s->pool, page), "page", page);
	if (check_order(s, err) || check_queues(s, c, err))
		return STATUS_MISMATCH;
	return pages_check(s->pool, err);
}

enum status schedule_check(const struct schedule *s, struct error *err)
{
	struct census c = {
		.references = calloc(s->options.pages.pages, sizeof *c.references),
		.in_flight = calloc(s->options.requests_most, sizeof *c.in_flight),
	};
	enum status st = STATUS_NO_RESOURCE;

	if (c.references && c.in_flight)
		st = check_all(s, &c, err);
	else
		error_set(err, st, "no memory to check the scheduler");
	free(c.references);
	free(c.in_flight);
	return st;
}
