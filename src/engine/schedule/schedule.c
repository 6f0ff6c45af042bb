/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of the scheduler, and requests as they come and go. */
#include "engine/schedule/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT_MOST = 1 << 30, TEXT_FIRST = 256 };

static enum status check_range(const char *name, int64_t value, int64_t least, int64_t most,
			       struct error *err)
{
	if (value >= least && value <= most)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "scheduler: %s is %" PRId64 ", but must be from %" PRId64 " to %" PRId64, name,
			 value, least, most);
}

static enum status check_cost(const char *name, double value, struct error *err)
{
	if (value >= 0 && isfinite(value))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "scheduler: %s is %g, but must be a time of at least 0", name,
			 value);
}

static enum status check_options(const struct schedule_options *o, struct error *err)
{
	int32_t page = o->pages.page_tokens;
	enum status st = check_range("places", o->places, 1, SCHEDULE_PLACES_MOST, err);

	if (!st)
		st = check_range("requests_most", o->requests_most, o->places, SCHEDULE_REQUESTS_MOST, err);
	if (!st)
		st = check_range("plans_most", o->plans_most, 1, SCHEDULE_PLANS_MOST, err);
	if (!st)
		st = check_range("rows_most", o->rows_most, o->places + page, INT32_MAX, err);
	if (!st)
		st = check_range("logits_most", o->logits_most, o->places + page, INT32_MAX, err);
	if (!st)
		st = check_range("context", o->context, 2, CONTEXT_MOST, err);
	if (!st && o->rows_least)
		st = check_range("rows_least", o->rows_least, page, o->rows_most, err);
	if (!st)
		st = check_range("mixed_rows", o->mixed_rows, 0, o->rows_most, err);
	if (!st)
		st = check_range("backlog_rows", o->backlog_rows, 0, INT32_MAX, err);
	if (!st)
		st = check_range("backlog_every", o->backlog_every, 0, INT32_MAX, err);
	if (!st)
		st = check_range("mixed_prompt_rows", o->mixed_prompt_rows, 0, o->rows_most, err);
	if (!st)
		st = check_range("mixed_few", o->mixed_few, 0, INT32_MAX, err);
	if (!st)
		st = check_range("rows_together", o->rows_together, 0, o->rows_most, err);
	if (!st)
		st = check_range("bypass_most", o->bypass_most, 0, INT32_MAX, err);
	if (!st)
		st = check_range("pages_ahead", o->pages_ahead, 0, INT32_MAX, err);
	if (!st && o->age_ns > INT64_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "scheduler: age_ns is too large");
	if (!st)
		st = check_cost("step_ns", o->cost.step_ns, err);
	if (!st)
		st = check_cost("row_ns", o->cost.row_ns, err);
	if (!st)
		st = check_cost("depth_ns", o->cost.depth_ns, err);
	if (!st)
		st = check_cost("logits_ns", o->cost.logits_ns, err);
	if (!st)
		st = check_cost("budget_ns", o->budget_ns, err);
	if (!st)
		st = check_cost("budget_idle_ns", o->budget_idle_ns, err);
	if (!st)
		st = check_cost("budget_backlog_ns", o->budget_backlog_ns, err);
	return st;
}

static bool allocate(struct schedule *s)
{
	const struct schedule_options *o = &s->options;
	size_t requests = o->requests_most, places = o->places, plans = o->plans_most;

	s->requests = calloc(requests, sizeof *s->requests);
	s->nodes = calloc(requests, sizeof *s->nodes);
	s->clients = calloc(requests, sizeof *s->clients);
	s->queues = calloc(requests, sizeof *s->queues);
	s->queue_nodes = calloc(requests, sizeof *s->queue_nodes);
	s->ids = calloc(s->id_mask + 1, sizeof *s->ids);
	s->client_ids = calloc(s->id_mask + 1, sizeof *s->client_ids);
	s->waiters = calloc(o->pages.pages, sizeof *s->waiters);
	s->order = calloc(places, sizeof *s->order);
	s->place_free = calloc(places, sizeof *s->place_free);
	s->tables = calloc(places * s->table_pages, sizeof *s->tables);
	s->plans = calloc(plans, sizeof *s->plans);
	s->entries = calloc(plans * places, sizeof *s->entries);
	return heap_create(&s->deadlines, requests) && heap_create(&s->ages, requests) && s->requests &&
	       s->nodes && s->clients && s->queues && s->queue_nodes && s->ids && s->client_ids &&
	       s->waiters && s->order && s->place_free && s->tables && s->plans && s->entries;
}

static void set_empty(struct schedule *s)
{
	const struct schedule_options *o = &s->options;

	s->request_free = s->client_free = s->queue_free = NONE;
	s->event_first = s->event_last = NONE;
	for (uint32_t i = o->requests_most; i-- > 0;) {
		s->requests[i].free_next = s->request_free;
		s->requests[i].place = NONE;
		s->clients[i].next = s->client_free;
		s->queues[i].next = s->queue_free;
		s->request_free = s->client_free = s->queue_free = i;
	}
	for (uint32_t i = 0; i <= s->id_mask; i++)
		s->ids[i] = s->client_ids[i] = NONE;
	for (int64_t i = 0; i < o->pages.pages; i++)
		s->waiters[i] = NONE;
	for (int32_t i = 0; i < CLASSES; i++)
		s->classes[i] = (struct class){NONE, NONE};
	for (int32_t i = o->places; i-- > 0;)
		s->place_free[s->places_free++] = i;
	for (int32_t i = 0; i < o->plans_most; i++)
		s->plans[i].entries = s->entries + (size_t)i * o->places;
}

static int32_t at_most(int32_t rows, int32_t most)
{
	return rows < most ? rows : most;
}

void schedule_mixed_on_gpu(struct schedule_options *o)
{
	o->mixed_rows = at_most(768, o->rows_most);
	o->mixed_few = 40;
	o->mixed_prompt_rows = at_most(1024, o->rows_most);
	o->rows_together = at_most(128, o->rows_most); /* a tile of the GEMMs */
	o->backlog_every = 100;
}

enum status schedule_create(struct schedule **out, const struct schedule_options *options, struct error *err)
{
	struct schedule *s;
	struct pages *pool;
	enum status st;
	int64_t positions;

	*out = NULL;
	st = pages_create(&pool, &options->pages, err);
	if (st)
		return st;
	st = check_options(options, err);
	s = st ? NULL : calloc(1, sizeof *s);
	if (!s) {
		pages_free(&pool);
		return st ? st : error_set(err, STATUS_NO_RESOURCE, "no memory for the scheduler");
	}
	s->options = *options;
	s->backlog_saved = (int64_t)options->backlog_every * BACKLOGS_SAVED;
	s->pool = pool;
	s->page_tokens = options->pages.page_tokens;
	if (!s->options.rows_least)
		s->options.rows_least = s->page_tokens;
	if (!s->options.pages_ahead)
		s->options.pages_ahead = 4;
	positions = (options->pages.pages - 1) * s->page_tokens;
	s->longest = positions < options->context ? positions : options->context;
	s->table_pages = pages_for(s, s->longest);
	s->id_mask = 1;
	while (s->id_mask < (uint32_t)options->requests_most)
		s->id_mask = 2 * s->id_mask + 1;
	if (!allocate(s)) {
		schedule_free(&s);
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a scheduler of %" PRId32 " requests",
				 options->requests_most);
	}
	set_empty(s);
	*out = s;
	return STATUS_OK;
}

void schedule_free(struct schedule **schedule)
{
	struct schedule *s = *schedule;

	if (!s)
		return;
	for (int32_t i = 0; s->requests && i < s->options.requests_most; i++)
		free(s->requests[i].tokens);
	heap_free(&s->deadlines);
	heap_free(&s->ages);
	pages_free(&s->pool);
	free(s->requests);
	free(s->nodes);
	free(s->clients);
	free(s->queues);
	free(s->queue_nodes);
	free(s->ids);
	free(s->client_ids);
	free(s->waiters);
	free(s->order);
	free(s->place_free);
	free(s->tables);
	free(s->plans);
	free(s->entries);
	free(s);
	*schedule = NULL;
}

void schedule_set_cost(struct schedule *s, const struct schedule_cost *cost)
{
	s->options.cost = *cost;
}

uint32_t *schedule_id_bucket(const struct schedule *s, uint64_t id)
{
	id = (id ^ s->options.pages.seed) * 0x9e3779b97f4a7c15;
	return s->ids + (id >> 32 & s->id_mask);
}

static uint32_t find_id(const struct schedule *s, uint64_t id)
{
	uint32_t number = *schedule_id_bucket(s, id);

	while (number != NONE && s->requests[number].id != id)
		number = s->requests[number].id_next;
	return number;
}

/* The limit of prompt and text together. */
static enum status limit_of(const struct schedule *s, const struct engine_request *q, int32_t *limit,
			    struct error *err)
{
	int64_t prompt = q->prompt_count, longest = s->longest, text = q->max_tokens;
	bool context = s->longest == s->options.context;
	const char *of = context ? "the model's context" : "the KV cache";

	if (q->prompt_count > (size_t)longest || (!text && prompt == longest))
		return error_set(err, STATUS_BAD_INPUT,
				 "the prompt has %zu tokens, but %s has room for %" PRId64
				 " tokens of prompt and text: shorten the prompt",
				 q->prompt_count, of, longest);
	if (text > longest - prompt)
		return error_set(err, STATUS_BAD_INPUT,
				 "the prompt has %" PRId64 " tokens and max_tokens is %" PRId64
				 ", but %s has room for %" PRId64
				 " tokens: lower max_tokens or shorten the prompt",
				 prompt, text, of, longest);
	*limit = text < 0 ? prompt : text ? prompt + text : longest;
	return STATUS_OK;
}

static enum status check_request(const struct schedule *s, const struct engine_request *q, struct error *err)
{
	if (!q->prompt_count)
		return error_set(err, STATUS_BAD_INPUT, "the prompt is empty: it needs at least 1 token");
	if (q->priority < ENGINE_PRIORITY_FIRST || q->priority > ENGINE_PRIORITY_LAST)
		return error_set(err, STATUS_BAD_INPUT, "priority is %" PRId32 ", but must be from %d to %d",
				 q->priority, ENGINE_PRIORITY_FIRST, ENGINE_PRIORITY_LAST);
	if (q->max_tokens < -1)
		return error_set(err, STATUS_BAD_INPUT, "max_tokens is %" PRId64 ", but must be -1 or more",
				 q->max_tokens);
	if (find_id(s, q->id) != NONE)
		return error_set(err, STATUS_BAD_INPUT,
				 "a request with the id %" PRIu64 " is running already", q->id);
	if (s->request_free == NONE)
		return error_set(err, STATUS_NO_RESOURCE,
				 "the queue is full: %" PRId32
				 " requests are waiting or running; try again later",
				 s->options.requests_most);
	return STATUS_OK;
}

static void enter(struct schedule *s, uint32_t number, const struct engine_request *q)
{
	struct request *r = s->requests + number;
	uint32_t *bucket = schedule_id_bucket(s, q->id);

	r->id_next = *bucket;
	*bucket = number;
	client_enter(s, r, q->client);
	if (q->deadline_ns)
		heap_insert(&s->deadlines, number, q->deadline_ns);
	queue_insert(s, number);
	s->waiting++;
	s->facts.submitted++;
}

enum status schedule_submit(struct schedule *s, const struct engine_request *q, uint64_t adapter_load,
			    uint64_t now, uint32_t *number, struct error *err)
{
	enum status st = check_request(s, q, err);
	struct request *r;
	int32_t limit = 0, prompt, capacity, *tokens;

	if (!st)
		st = limit_of(s, q, &limit, err);
	if (st)
		return st;
	prompt = q->prompt_count;
	capacity = limit - prompt < TEXT_FIRST ? limit : prompt + TEXT_FIRST;
	tokens = malloc(capacity * sizeof *tokens);
	if (!tokens)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a prompt of %" PRId32 " tokens",
				 prompt);
	memcpy(tokens, q->prompt, prompt * sizeof *tokens);
	*number = s->request_free;
	r = s->requests + *number;
	s->request_free = r->free_next;
	*r = (struct request){
		.id = q->id,
		.deadline = q->deadline_ns,
		.arrival = s->arrivals++,
		.key = {q->cache_salt, adapter_load},
		.priority = q->priority,
		.class = q->priority - ENGINE_PRIORITY_FIRST + 1,
		.scores = q->prompt_logprobs >= 0,
		.score_only = q->max_tokens < 0,
		.prompt = prompt,
		.limit = limit,
		.known = prompt,
		.planned_known = prompt,
		.tokens = tokens,
		.capacity = capacity,
		.place = NONE,
		.since = now,
		.short_pages = -1,
		.text = "",
	};
	enter(s, *number, q);
	return STATUS_OK;
}

bool schedule_cancel(struct schedule *s, uint64_t id)
{
	uint32_t number = find_id(s, id);

	if (number == NONE)
		return false;
	request_end(s, number, ENGINE_END_CANCELLED, "");
	return true;
}

bool schedule_finish(struct schedule *s, uint64_t id, int64_t tokens)
{
	uint32_t number = find_id(s, id);
	struct request *r;

	if (number == NONE)
		return false;
	r = s->requests + number;
	request_end(s, number, ENGINE_END_STOP, "");
	if (tokens >= 0 && tokens < r->text_tokens)
		r->text_tokens = tokens;
	return true;
}

uint64_t schedule_wake(const struct schedule *s)
{
	return heap_first_key(&s->deadlines);
}

struct schedule_facts schedule_facts(const struct schedule *s)
{
	struct schedule_facts facts = s->facts;

	facts.running = s->running;
	facts.waiting = s->waiting;
	facts.in_flight = s->in_flight;
	facts.pages = pages_counts(s->pool);
	return facts;
}
