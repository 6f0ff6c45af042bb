/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting requests become running ones, with a place and the pages of all tokens known so far. */
#include "engine/schedule/state.h"

enum admission { ADMITTED, PARKED, TOO_FEW_PAGES };

/* A running request that a waiting one may preempt: its priority is lower, and it has not aged past the
 * waiting one. The last such request in the order; NONE: none. */
static uint32_t victim_of(const struct schedule *s, const struct request *r, int32_t *pages)
{
	uint32_t victim = NONE;

	*pages = 0;
	for (int32_t i = s->running; i-- > 0;) {
		const struct request *v = s->requests + s->order[i];

		if (v->class <= r->class)
			break;
		if (v->priority <= r->priority)
			continue;
		if (victim == NONE)
			victim = s->order[i];
		*pages += v->page_count;
	}
	return victim;
}

/* Pages of the prompt that a lookup may take from the cache. The last token is always computed, and so are
 * positions whose logits are still to be scored. */
static int32_t pages_wanted(const struct schedule *s, const struct request *r)
{
	int32_t positions = r->known - 1;

	if (r->scores && r->scored < r->prompt - 1 && r->scored < positions)
		positions = r->scored;
	return positions / s->page_tokens;
}

/* Pages that must be available before the request may take those that it lacks. */
static int64_t pages_gate(const struct schedule *s, const struct request *r, int32_t lacking)
{
	if (!s->running)
		return lacking;
	if (r->preemptions)
		return lacking + (int64_t)s->options.pages_ahead * (s->running + 1);
	return lacking + (pages_for(s, r->limit) > pages_for(s, r->known));
}

/* Preempts requests of lower priority if that can make enough pages available. Pages that plans in flight
 * still use come later. */
static bool make_available(struct schedule *s, const struct request *r, int64_t gate, uint64_t now)
{
	int32_t theirs;
	uint32_t victim = victim_of(s, r, &theirs);
	int64_t coming = pages_counts(s->pool).draining;

	if (pages_available(s->pool) + coming + theirs < gate)
		return false;
	while (pages_available(s->pool) + coming < gate && victim != NONE) {
		request_preempt(s, victim, now);
		victim = victim_of(s, r, &theirs);
		coming = pages_counts(s->pool).draining;
	}
	return pages_available(s->pool) >= gate;
}

static void take_pages(struct schedule *s, uint32_t number, int32_t count)
{
	struct request *r = s->requests + number;
	uint32_t *table = table_of(s, r);

	while (r->page_count < count) {
		int32_t i = r->page_count++;

		table[i] = pages_take(s->pool);
		if ((i + 1) * s->page_tokens <= r->known)
			pages_announce(s->pool, table[i], i ? table[i - 1] : 0, &r->key,
				       r->tokens + (size_t)i * s->page_tokens, number);
	}
	r->announced = r->known;
}

/* The client pays for prompt tokens that are neither cached nor paid already. */
static void charge_prompt(struct schedule *s, struct request *r, int32_t found)
{
	int32_t from = found > r->charged ? found : r->charged;

	if (from < r->prompt)
		s->clients[r->client].served += r->prompt - from;
	r->charged = r->prompt;
}

static void begin(struct schedule *s, uint32_t number, int32_t found, uint64_t now)
{
	struct request *r = s->requests + number;

	queue_remove(s, number);
	r->state = REQUEST_RUNNING;
	r->begins = true;
	r->starved = r->variable = false;
	s->waiting--;
	r->since = now;
	order_enter(s, number);
	queue_age_later(s, number);
	if (s->clients[r->client].served > s->served)
		s->served = s->clients[r->client].served;
	charge_prompt(s, r, found);
	if (found > r->reached)
		r->reached = found;
	if (r->begun)
		return;
	r->begun = r->begun_event = true;
	r->cached = found < r->prompt ? found : r->prompt;
	s->facts.cached_tokens += r->cached;
	event_add(s, number);
}

/* Whether the request should wait for the page that another one computes. The owner must not come later in
 * priority, and the number of attempts is bounded, so that nobody waits for ever. */
static bool should_park(const struct schedule *s, const struct request *r, const struct pages_next *next)
{
	return next->page && !r->preemptions && r->parks < PARKS_MOST && s->parked < s->options.places &&
	       s->requests[next->owner].class <= r->class;
}

/* Forgets the place that was tried. */
static void withdraw(struct schedule *s, struct request *r, int32_t hits)
{
	const uint32_t *table = table_of(s, r);

	while (hits-- > 0)
		pages_release(s->pool, table[hits], 0);
	s->place_free[s->places_free++] = r->place;
	r->place = NONE;
}

static enum admission try_admit(struct schedule *s, uint32_t number, uint64_t now, int32_t *looked)
{
	struct request *r = s->requests + number;
	int32_t wanted = pages_wanted(s, r), hits, all = pages_for(s, r->known);
	struct pages_next next;
	int64_t gate;

	r->place = s->place_free[--s->places_free];
	hits = pages_find(s->pool, &r->key, r->tokens, wanted, table_of(s, r), &next);
	*looked += hits + 1;
	if (should_park(s, r, &next)) {
		withdraw(s, r, hits);
		queue_park(s, number, next.page);
		return PARKED;
	}
	gate = pages_gate(s, r, all - hits);
	if (pages_available(s->pool) < gate && !make_available(s, r, gate, now)) {
		withdraw(s, r, hits);
		r->short_pages = pages_available(s->pool);
		r->short_step = s->step;
		return TOO_FEW_PAGES;
	}
	r->page_count = r->hits = r->registered = hits;
	r->computed = r->planned = hits * s->page_tokens;
	r->planned_known = r->known;
	r->planned_scored = r->scored;
	r->sent = 0;
	take_pages(s, number, all);
	begin(s, number, hits * s->page_tokens, now);
	return ADMITTED;
}

/* A lookup costs time, so a request that lacked pages is not tried again before there are more. */
static bool worth_trying(const struct schedule *s, const struct request *r)
{
	return !s->running || r->short_pages < 0 || pages_available(s->pool) > r->short_pages ||
	       s->step - r->short_step >= RETRY_STEPS;
}

/* A free place, if need be that of a request of lower priority. */
static bool find_place(struct schedule *s, const struct request *r, uint64_t now)
{
	int32_t pages;
	uint32_t victim;

	if (s->places_free)
		return true;
	if (s->running < s->options.places) /* places become free when plans in flight are done */
		return false;
	victim = victim_of(s, r, &pages);
	if (victim != NONE)
		request_preempt(s, victim, now);
	return s->places_free;
}

/* Requests of one class that lack pages, set aside while later ones are looked at. */
struct held {
	uint32_t numbers[HELD_MOST];
	int32_t count;
};

/* Someone passes those that are held. False: one of them may not be passed again. */
static bool may_pass(const struct schedule *s, const struct held *h)
{
	for (int32_t i = 0; i < h->count; i++)
		if (s->requests[h->numbers[i]].bypassed >= s->options.bypass_most)
			return false;
	return true;
}

static void count_bypass(const struct schedule *s, const struct held *h)
{
	for (int32_t i = 0; i < h->count; i++)
		s->requests[h->numbers[i]].bypassed++;
}

/* Sets a request aside. False: nobody may pass it. */
static bool hold(struct schedule *s, struct held *h, uint32_t number)
{
	if (s->requests[number].queue == NONE || h->count == HELD_MOST)
		return false;
	queue_remove(s, number);
	h->numbers[h->count++] = number;
	return may_pass(s, h);
}

/* Admits requests of one class. False: nobody of a later class may be admitted either. */
static bool admit_class(struct schedule *s, int32_t class, uint64_t now, int32_t *looked)
{
	struct held held = {.count = 0};
	uint32_t number;
	bool open = true;

	while (open && (number = queue_first(s, class)) != NONE) {
		struct request *r = s->requests + number;
		enum admission result = TOO_FEW_PAGES;

		open = *looked < LOOKED_MOST && find_place(s, r, now);
		if (!open)
			break;
		if (worth_trying(s, r))
			result = try_admit(s, number, now, looked);
		if (result == ADMITTED)
			count_bypass(s, &held);
		open = result == TOO_FEW_PAGES ? hold(s, &held, number) : may_pass(s, &held);
	}
	for (int32_t i = 0; i < held.count; i++)
		queue_insert(s, held.numbers[i]);
	return open && !held.count;
}

void schedule_admit(struct schedule *s, uint64_t now)
{
	int32_t looked = 0;

	for (int32_t class = 0; class < CLASSES; class ++)
		if (!admit_class(s, class, now, &looked))
			break;
}
