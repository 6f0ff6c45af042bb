/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule_world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pages/pool.h"
#include "engine/schedule/state.h"

enum { TRANSCRIPTS = 16, VOCAB = 64, STOP_ID = 7, FAMILIES = 6, NEVER = INT32_MAX };

#define EXPECT(condition, what)                                                                              \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			return error_set(err, STATUS_MISMATCH, "%s (step %" PRIu64 "): %s", (what),          \
					 w->s->step, #condition);                                            \
	} while (0)

/* A request as its client sees it. */
struct ask {
	uint64_t id, salt, adapter, deadline;
	bool live, begun, cancelled, finished, scores, score_only;
	int32_t prompt, limit, delivered, scored, nan_at, finish_at;
	int32_t truth;	 /* tokens of the text that are known to be right so far, prompt included */
	int32_t *tokens; /* [limit + 1] */
	uint64_t *chain; /* [limit + 1] hash of tokens 0 .. i */
};

/* What the device knows about a place. */
struct seat {
	uint64_t id;
	uint32_t *table;
	int32_t count, last_position, last_token;
};

/* Results of a plan that is not done. */
struct flight {
	struct schedule_result *results;
	int32_t *tokens; /* [places, SCHEDULE_AT_ONCE_MOST] */
};

struct transcript {
	int32_t *tokens, count;
	uint64_t salt, adapter;
};

struct world {
	const struct world_options *o;
	struct schedule *s;
	struct world_report *report;
	uint64_t random, now, next_id;
	size_t byte;
	struct ask *asks; /* [requests_most] by number */
	int64_t submitted, live;
	struct seat *seats;
	struct flight *flights;		 /* [plans_most] by step */
	uint64_t *content;		 /* [pages, page_tokens] */
	uint64_t *write_step, *write_id; /* [pages] */
	struct transcript transcripts[TRANSCRIPTS];
	uint64_t idle;	     /* plans without entries in a row */
	bool planted, quiet; /* quiet: nobody comes until everybody has gone */
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* 0 .. below - 1 */
static uint32_t draw(struct world *w, uint32_t below)
{
	if (w->o->bytes) {
		uint32_t value = 0;

		for (uint32_t range = below - 1; range && w->byte < w->o->size; range >>= 8)
			value = value << 8 | w->o->bytes[w->byte++];
		return value % below;
	}
	w->random += 0x9e3779b97f4a7c15;
	return (mix(w->random) >> 32) * below >> 32;
}

static bool chance(struct world *w, uint32_t of)
{
	return draw(w, of) == of - 1;
}

static bool is_over(const struct world *w)
{
	return w->submitted >= w->o->requests || (w->o->bytes && w->byte >= w->o->size);
}

/* The token at a position, as the model would choose it. */
static int32_t truth_at(struct ask *a, int32_t position)
{
	for (; a->truth <= position; a->truth++) {
		uint64_t before = a->truth ? a->chain[a->truth - 1] : mix(a->salt * 31 + a->adapter + 1);

		if (a->truth >= a->prompt)
			a->tokens[a->truth] = mix(before + 5) % VOCAB;
		a->chain[a->truth] = mix(before ^ mix(a->tokens[a->truth] + 1));
	}
	return a->tokens[position];
}

static uint64_t *content_at(struct world *w, const uint32_t *pages, int32_t position)
{
	int32_t size = w->o->schedule.pages.page_tokens;

	return w->content + (size_t)pages[position / size] * size + position % size;
}

/* ---- clients ---- */

static void free_ask(struct ask *a)
{
	free(a->tokens);
	free(a->chain);
	*a = (struct ask){0};
}

/* A prompt: a family's beginning and a few free tokens, or an earlier conversation and more. Few free tokens
 * have few values, so that prompts are often equal. */
static int32_t make_prompt(struct world *w, struct ask *a, int32_t most)
{
	const struct transcript *t = w->transcripts + draw(w, TRANSCRIPTS);
	int32_t count = 0, family = draw(w, FAMILIES), common = family * 19, rest;
	bool narrow = !chance(w, 3);

	a->salt = chance(w, 8);
	a->adapter = chance(w, 6) ? 1 + draw(w, 2) : 0;
	if (t->tokens && chance(w, 3) && t->count < most) {
		memcpy(a->tokens, t->tokens, t->count * sizeof *a->tokens);
		count = t->count;
		a->salt = t->salt;
		a->adapter = t->adapter;
	} else {
		for (; count < common && count < most; count++)
			a->tokens[count] = (family * 7 + count) % VOCAB;
	}
	rest = draw(w, most + 1 - count);
	if (rest > 24 && !chance(w, 4))
		rest = draw(w, 24);
	for (; rest > 0 || !count; rest--)
		a->tokens[count++] = narrow ? rest % 3 : (int32_t)draw(w, VOCAB);
	return count;
}

static void choose_request(struct world *w, struct ask *a, struct engine_request *q)
{
	int32_t longest = w->o->prompt_most + w->o->text_most, positions, text;

	positions = (w->o->schedule.pages.pages - 1) * w->o->schedule.pages.page_tokens;
	if (longest > positions)
		longest = positions;
	if (longest > w->o->schedule.context)
		longest = w->o->schedule.context;
	a->prompt = make_prompt(w, a, w->o->prompt_most < longest ? w->o->prompt_most : longest - 1);
	text = longest - a->prompt < w->o->text_most ? longest - a->prompt : w->o->text_most;
	text = chance(w, 4) ? text : 1 + (int32_t)draw(w, text);
	a->scores = chance(w, 12);
	a->score_only = a->scores && chance(w, 2);
	a->limit = a->prompt + (a->score_only ? 0 : text);
	a->nan_at = chance(w, 60) ? (int32_t)draw(w, a->limit) : NEVER;
	a->finish_at = -1;
	*q = (struct engine_request){
		.id = a->id,
		.client = chance(w, 2) ? 1 : draw(w, 6),
		.priority = chance(w, 6) ? (int32_t)draw(w, 5) - 2 : 0,
		.adapter = (int32_t)a->adapter - 1,
		.prompt = a->tokens,
		.prompt_count = a->prompt,
		.max_tokens = a->score_only ? -1 : text,
		.prompt_logprobs = a->scores ? 1 : -1,
		.cache_salt = a->salt,
		.deadline_ns = chance(w, 30) ? w->now + draw(w, 2000000000) : 0,
	};
	a->deadline = q->deadline_ns;
}

static enum status submit(struct world *w, struct error *err)
{
	size_t room = w->o->prompt_most + w->o->text_most + SCHEDULE_AT_ONCE_MOST + 2;
	struct engine_request q;
	struct ask a = {
		.id = ++w->next_id,
		.live = true,
		.tokens = calloc(room, sizeof *a.tokens),
		.chain = calloc(room, sizeof *a.chain),
	};
	uint32_t number;
	enum status st;

	if (!a.tokens || !a.chain)
		abort();
	choose_request(w, &a, &q);
	w->submitted++;
	st = schedule_submit(w->s, &q, a.adapter, w->now, &number, err);
	if (st) {
		free_ask(&a);
		/* Ended requests keep their numbers while plans with them are in flight. */
		if (st != STATUS_NO_RESOURCE || w->o->live_most < w->o->schedule.requests_most)
			return st;
		error_clear(err);
		return STATUS_OK;
	}
	EXPECT(!w->asks[number].live, "a number is unique among live requests");
	free_ask(w->asks + number);
	w->asks[number] = a;
	w->live++;
	return STATUS_OK;
}

/* A live request; NONE: the draw met none. */
static uint32_t any_live(struct world *w)
{
	uint32_t number = draw(w, w->o->schedule.requests_most);

	for (uint32_t i = 0; i < 16; i++, number++)
		if (w->asks[number % w->o->schedule.requests_most].live)
			return number % w->o->schedule.requests_most;
	return NONE;
}

static enum status disturb(struct world *w, struct error *err)
{
	uint32_t number = any_live(w);
	struct ask *a = w->asks + number;

	if (number == NONE)
		return STATUS_OK;
	if (chance(w, 3)) {
		EXPECT(schedule_finish(w->s, a->id, a->delivered / 2), "a live request can be finished");
		a->finished = true;
		a->finish_at = a->delivered / 2;
	} else {
		EXPECT(schedule_cancel(w->s, a->id), "a live request can be cancelled");
		a->cancelled = true;
	}
	EXPECT(!schedule_cancel(w->s, a->id), "an ended request cannot be cancelled");
	EXPECT(!schedule_finish(w->s, a->id, 0), "an ended request cannot be finished");
	return STATUS_OK;
}

static enum status clients_act(struct world *w, struct error *err)
{
	int32_t arrivals = chance(w, 12) ? draw(w, 12) : draw(w, 2);
	uint32_t of = w->o->schedule.places < 4 ? 60 : 10;
	enum status st = STATUS_OK;

	if (!w->live || chance(w, 100))
		w->quiet = w->live;
	if (w->quiet)
		arrivals = 0;
	for (int32_t i = 0; !st && i < arrivals && !is_over(w) && w->live < w->o->live_most; i++)
		st = submit(w, err);
	if (!st && chance(w, of))
		st = disturb(w, err);
	return st;
}

/* ---- events ---- */

static void keep_transcript(struct world *w, const struct ask *a)
{
	struct transcript *t = w->transcripts + draw(w, TRANSCRIPTS);
	int32_t count = a->prompt + a->delivered;

	if (count > w->o->prompt_most)
		return;
	free(t->tokens);
	*t = (struct transcript){malloc(count * sizeof *t->tokens), count, a->salt, a->adapter};
	if (!t->tokens)
		abort();
	memcpy(t->tokens, a->tokens, count * sizeof *t->tokens);
}

static bool is_end_right(const struct world *w, const struct ask *a, const struct schedule_event *e)
{
	bool stopped = a->delivered && a->tokens[a->prompt + a->delivered - 1] == STOP_ID;

	switch (e->end) {
	case ENGINE_END_STOP:
		return a->finished ? e->tokens == a->finish_at : stopped && e->tokens == a->delivered;
	case ENGINE_END_LENGTH:
		return !stopped && e->tokens == a->limit - a->prompt && e->tokens == a->delivered;
	case ENGINE_END_CANCELLED:
		return a->cancelled && e->tokens == a->delivered;
	case ENGINE_END_DEADLINE:
		return a->deadline && a->deadline <= w->now && e->tokens == a->delivered;
	case ENGINE_END_FAILED:
		return a->nan_at != NEVER;
	default:
		return false;
	}
}

static enum status take_events(struct world *w, struct error *err)
{
	struct schedule_event e;

	while (schedule_event(w->s, &e)) {
		struct ask *a = w->asks + e.number;

		EXPECT(a->live && a->id == e.id, "each request ends exactly once");
		if (e.kind == SCHEDULE_EVENT_BEGUN) {
			EXPECT(!a->begun, "each request begins once");
			EXPECT(e.cached_tokens >= 0 && e.cached_tokens < a->prompt,
			       "cached tokens are of the prompt");
			a->begun = true;
			continue;
		}
		if (w->o->fault == WORLD_END_LOST && !w->planted && is_over(w)) {
			w->planted = true;
			continue;
		}
		EXPECT(is_end_right(w, a, &e), "a request ends for its reason");
		EXPECT(!a->scores || e.end != ENGINE_END_LENGTH || a->scored == a->prompt - 1,
		       "all of the prompt is scored");
		w->report->ends[e.end]++;
		keep_transcript(w, a);
		a->live = false;
		w->live--;
		if (w->o->fault == WORLD_TWO_ENDS && !w->planted) {
			w->planted = true;
			w->s->requests[e.number].ended_event = true;
			event_add(w->s, e.number);
		}
	}
	return STATUS_OK;
}

/* ---- device ---- */

static double rows_ns(const struct world *w, const struct schedule_entry *e, int32_t rows)
{
	const struct schedule_cost *c = &w->o->schedule.cost;
	double ns = 0;

	for (int32_t i = 0; i < rows; i++)
		ns += c->row_ns + c->depth_ns * (e->first + i);
	return ns;
}

/* Whether a plan before this one may choose several tokens for the request: how many, the host does not know
 * yet. */
static bool is_open(const struct world *w, const struct schedule_plan *plan, const struct request *r)
{
	for (uint64_t step = w->s->done + 1; step < plan->step; step++) {
		const struct schedule_plan *before = w->s->plans + step % w->o->schedule.plans_most;

		for (int32_t i = 0; i < before->count; i++)
			if (before->entries[i].id == r->id && before->entries[i].most > 1)
				return true;
	}
	return false;
}

/* A request has a page for its next row and could decode, but the plan leaves it out. */
static bool leaves_out(const struct world *w, const struct schedule_plan *plan)
{
	for (int32_t i = 0; i < w->s->running; i++) {
		const struct request *r = w->s->requests + w->s->order[i];
		const bool can = !r->score_only && r->planned >= r->prompt &&
				 r->planned == r->planned_known - 1 && r->planned_known < r->limit &&
				 r->planned < r->page_count * w->o->schedule.pages.page_tokens;

		if (can && r->step != plan->step && !is_open(w, plan, r))
			return true;
	}
	return false;
}

static enum status check_plan(struct world *w, const struct schedule_plan *plan, struct error *err)
{
	const struct schedule_options *o = &w->o->schedule;
	double ns = o->cost.step_ns, decode_ns, allowed;
	int32_t rows = 0, logits = 0, outputs = 0, decodes = 0, prefills = 0;

	decode_ns = ns;
	EXPECT(plan->step == w->s->step, "steps are counted");
	EXPECT(plan->count >= 1 && plan->count <= o->places, "entries have places");
	for (int32_t i = 0; i < plan->count; i++) {
		const struct schedule_entry *e = plan->entries + i;
		double own = rows_ns(w, e, e->rows) + e->logits * o->cost.logits_ns;

		EXPECT(e->rows >= 1, "an entry has rows");
		EXPECT(e->most <= 1 || (plan->count == 1 && !w->s->waiting),
		       "several tokens at once if it is alone");
		EXPECT(!e->decodes || (!prefills && e->rows == 1), "decode rows come first");
		EXPECT(e->logits >= e->samples && e->logits_first + e->logits <= e->rows, "logits are rows");
		EXPECT(e->samples || e->first + e->rows == e->known || w->asks[e->number].scores ||
			       ((e->first + e->rows) % o->pages.page_tokens == 0 && e->rows >= o->rows_least),
		       "a piece ends at the end of a page, and is not tiny");
		for (int32_t j = 0; j < i; j++)
			EXPECT(e->place != plan->entries[j].place && e->number != plan->entries[j].number,
			       "one entry for a place and a request");
		decodes += e->decodes;
		prefills += !e->decodes;
		rows += e->rows;
		logits += e->logits;
		outputs += schedule_outputs(e);
		ns += own;
		decode_ns += e->decodes ? own : 0;
	}
	EXPECT(rows == plan->rows && logits == plan->logits && decodes == plan->decodes, "a plan's sums");
	EXPECT(outputs == plan->outputs, "a plan's outputs");
	EXPECT(rows <= o->rows_most && outputs <= o->logits_most, "a plan's limits");
	EXPECT(ns < plan->predicted_ns * 1.0001 + 1 && ns > plan->predicted_ns * 0.9999 - 1,
	       "predicted time");
	EXPECT(!leaves_out(w, plan), "no decode row waits");
	if (prefills && decodes) {
		const struct schedule_entry *e = plan->entries + decodes;

		allowed = decode_ns + rows_ns(w, e, e->rows < o->rows_least ? e->rows : o->rows_least) +
			  e->logits * o->cost.logits_ns;
		EXPECT(ns <= (allowed > o->budget_ns ? allowed : o->budget_ns) + 1,
		       "a step keeps its budget");
	}
	return STATUS_OK;
}

/* The page tables of the device are brought up to date by the elements that have changed. */
static enum status update_seat(struct world *w, const struct schedule_entry *e, struct error *err)
{
	struct seat *seat = w->seats + e->place;

	if (e->begins)
		*seat = (struct seat){.id = e->id, .table = seat->table, .last_position = -1};
	EXPECT(seat->id == e->id, "a place changes its request only with `begins`");
	EXPECT(e->pages_from <= seat->count && e->pages_from <= e->page_count, "no page is left out");
	memcpy(seat->table + e->pages_from, e->pages + e->pages_from,
	       (e->page_count - e->pages_from) * sizeof *seat->table);
	seat->count = e->page_count;
	EXPECT(!memcmp(seat->table, e->pages, e->page_count * sizeof *seat->table),
	       "the device knows all pages");
	return STATUS_OK;
}

/* Whether a position may be written. */
static enum status check_target(struct world *w, const struct schedule_entry *e, int32_t position,
				struct error *err)
{
	uint32_t page = e->pages[position / w->o->schedule.pages.page_tokens];

	EXPECT(position < e->page_count * w->o->schedule.pages.page_tokens, "rows have pages");
	EXPECT(page, "page 0 is not given out");
	EXPECT(pages_references(w->s->pool, page) == 1,
	       "nobody writes into a page that another request holds");
	EXPECT(w->write_id[page] == e->id || w->write_step[page] <= w->s->done,
	       "a page is not given out while a step in flight may write to it");
	return STATUS_OK;
}

static void write_position(struct world *w, const struct schedule_entry *e, int32_t position)
{
	const struct ask *a = w->asks + e->number;
	uint32_t page = e->pages[position / w->o->schedule.pages.page_tokens];

	w->write_id[page] = a->id;
	w->write_step[page] = w->s->step;
	*content_at(w, e->pages, position) = position >= a->nan_at ? 0 : a->chain[position];
}

static enum status run_rows(struct world *w, const struct schedule_entry *e, struct error *err)
{
	struct ask *a = w->asks + e->number;
	struct seat *seat = w->seats + e->place;
	int32_t page = w->o->schedule.pages.page_tokens;

	truth_at(a, e->first + e->rows - 1);
	for (int32_t end = page; end <= e->first; end += page)
		EXPECT(*content_at(w, e->pages, end - 1) == a->chain[end - 1] || end > a->nan_at,
		       "a page holds the tokens of its sequence");
	for (int32_t i = e->first; i < e->first + e->rows; i++) {
		int32_t token = i < e->known ? e->tokens[i] : seat->last_token;

		EXPECT(i < e->known || seat->last_position == i,
		       "a token comes from the host or the last step");
		EXPECT(token == truth_at(a, i), "a row has the right token");
		if (check_target(w, e, i, err))
			return STATUS_MISMATCH;
		EXPECT(!i || i > a->nan_at || *content_at(w, e->pages, i - 1) == a->chain[i - 1],
		       "positions are computed in order");
		write_position(w, e, i);
	}
	return STATUS_OK;
}

static enum status run_entry(struct world *w, const struct schedule_entry *e, struct schedule_result *result,
			     int32_t *tokens, struct error *err)
{
	struct ask *a = w->asks + e->number;
	struct seat *seat = w->seats + e->place;
	int32_t stop = e->most > 1 && chance(w, 3) ? (int32_t)draw(w, e->most) : e->most,
		next = e->first + e->rows;

	*result = (struct schedule_result){.tokens = tokens, .finite = next <= a->nan_at};
	EXPECT(a->live && a->id == e->id, "only live requests are planned");
	if (update_seat(w, e, err) || run_rows(w, e, err))
		return STATUS_MISMATCH;
	EXPECT(next <= a->limit, "no rows beyond the limit");
	while (result->count < stop) {
		EXPECT(next + result->count < a->limit, "no tokens beyond the limit");
		if (result->count) {
			if (check_target(w, e, next + result->count - 1, err))
				return STATUS_MISMATCH;
			write_position(w, e, next + result->count - 1);
		}
		tokens[result->count] = truth_at(a, next + result->count);
		result->finite = next + result->count <= a->nan_at;
		seat->last_position = next + result->count;
		seat->last_token = tokens[result->count++];
		if (seat->last_token == STOP_ID) {
			result->outcome = SCHEDULE_STOPPED;
			break;
		}
	}
	return STATUS_OK;
}

static struct flight *flight_of(struct world *w, uint64_t step)
{
	return w->flights + step % w->o->schedule.plans_most;
}

static enum status run_plan(struct world *w, const struct schedule_plan *plan, struct error *err)
{
	struct flight *f = flight_of(w, plan->step);
	enum status st = check_plan(w, plan, err);

	for (int32_t i = 0; !st && i < plan->count; i++)
		st = run_entry(w, plan->entries + i, f->results + i,
			       f->tokens + (size_t)i * SCHEDULE_AT_ONCE_MOST, err);
	return st;
}

/* What the clients get from one result. */
static enum status deliver(struct world *w, const struct schedule_entry *e, const struct schedule_result *r,
			   const struct ask *before, struct error *err)
{
	struct ask *a = w->asks + e->number;
	bool live = before->live && before->id == e->id;

	EXPECT(r->taken <= r->count && (r->alive || !r->taken), "no tokens after the end");
	EXPECT(!r->alive || live, "only live requests get results");
	if (!r->alive)
		return STATUS_OK;
	EXPECT(!r->taken || e->first + e->rows == a->prompt + a->delivered, "tokens come in order");
	a->delivered += r->taken;
	for (int32_t i = 0; i < e->logits - e->samples; i++)
		EXPECT(a->scores && e->first + e->logits_first + i == a->scored++,
		       "each position is scored once");
	return STATUS_OK;
}

static enum status finish_plan(struct world *w, struct error *err)
{
	struct schedule_plan plan = *schedule_oldest(w->s);
	struct flight *f = flight_of(w, plan.step);
	enum status st;

	w->now += plan.predicted_ns;
	st = schedule_done(w->s, f->results, plan.count, w->now, err);
	for (int32_t i = 0; !st && i < plan.count; i++)
		st = deliver(w, plan.entries + i, f->results + i, w->asks + plan.entries[i].number, err);
	return st ? st : take_events(w, err);
}

/* ---- planted defects ---- */

static void plant(struct world *w)
{
	struct schedule *s = w->s;
	struct request *first = s->running ? s->requests + s->order[0] : NULL;
	struct request *last = s->running ? s->requests + s->order[s->running - 1] : NULL;
	uint32_t number;

	if (w->planted || s->step < 40)
		return;
	switch (w->o->fault) {
	case WORLD_PAGE_LOST:
		s->pool->counts.free--;
		break;
	case WORLD_REFERENCE_LOST:
		if (!first || !first->page_count)
			return;
		s->pool->pages[table_of(s, first)[0]].references++;
		break;
	case WORLD_TWO_WRITERS:
		if (s->running < 2 || first->registered == first->page_count ||
		    last->registered == last->page_count)
			return;
		table_of(s, last)[last->page_count - 1] = table_of(s, first)[first->page_count - 1];
		s->pool->pages[table_of(s, first)[first->page_count - 1]].references++;
		last->sent = 0; /* the device is told */
		break;
	case WORLD_EARLY_REUSE:
		pages_ended(s->pool, s->step);
		return; /* again and again, until such a page is given out */
	case WORLD_SHARED_OVERWRITE:
		for (uint32_t page = 1; page < s->options.pages.pages; page++)
			if (s->pool->pages[page].state == PAGE_REGISTERED)
				w->content[(size_t)page * s->page_tokens + s->page_tokens - 1] = 1;
		break;
	case WORLD_FORGOTTEN:
		for (int32_t class = 0; class < CLASSES; class ++) {
			number = queue_first(s, class);
			if (number == NONE)
				continue;
			queue_remove(s, number);
			w->planted = true;
			return;
		}
		return;
	case WORLD_OVER_BUDGET:
		s->options.budget_ns *= 8;
		break;
	case WORLD_HELD:
		for (int32_t i = 0; i < s->running; i++)
			s->requests[s->order[i]].variable = true;
		return; /* again and again, until one of them can decode and another request makes the plan */
	case WORLD_THRASH:
		if (last)
			request_preempt(s, s->order[s->running - 1], w->now);
		return;
	default: /* planted elsewhere */
		return;
	}
	w->planted = true;
}

/* ---- the run ---- */

static enum status check_cheap(struct world *w, struct error *err)
{
	struct schedule_facts f = schedule_facts(w->s);

	EXPECT(f.pages.free + f.pages.used + f.pages.cached + f.pages.draining == f.pages.pages,
	       "free, used, cached and draining pages are all pages");
	EXPECT(f.submitted - f.ended == (uint64_t)f.running + (uint64_t)f.waiting,
	       "live requests are counted");
	EXPECT(f.running <= w->o->schedule.places, "running requests have places");
	EXPECT(f.recomputed_tokens <= w->o->recompute_most * (double)(f.tokens + f.prompt_tokens) +
					      w->o->prompt_most + w->o->text_most,
	       "recomputation is bounded");
	if (f.running > w->report->running_most)
		w->report->running_most = f.running;
	if (f.in_flight > w->report->in_flight_most)
		w->report->in_flight_most = f.in_flight;
	return STATUS_OK;
}

static enum status step(struct world *w, struct error *err)
{
	const struct schedule_plan *plan;
	enum status st = clients_act(w, err);

	if (!st)
		st = take_events(w, err);
	if (st)
		return st;
	plant(w);
	plan = schedule_plan(w->s, w->now, chance(w, 4) ? 8 : 1);
	if (plan) {
		w->idle = 0;
		st = run_plan(w, plan, err);
	} else {
		EXPECT(w->s->in_flight || !w->live || w->idle++ < 3, "no request waits for ever");
	}
	if (!st && w->s->in_flight > (plan ? w->o->depth : 0))
		st = finish_plan(w, err);
	if (!st)
		st = take_events(w, err);
	if (!st)
		st = check_cheap(w, err);
	if (!st && w->o->check_every && w->s->step % w->o->check_every == 0)
		st = schedule_check(w->s, err);
	w->now += 1000;
	return st;
}

static enum status check_end(struct world *w, struct error *err)
{
	struct schedule_facts f = schedule_facts(w->s);

	EXPECT(!f.running && !f.waiting, "everybody has ended");
	EXPECT(!f.pages.used && !f.pages.draining, "no page is lost");
	EXPECT(f.ended == f.submitted, "each request has ended once");
	return schedule_check(w->s, err);
}

static enum status run(struct world *w, struct error *err)
{
	enum status st = STATUS_OK;
	int64_t steps = 0, most = 2000 + w->o->requests * (int64_t)(w->o->prompt_most + w->o->text_most) * 4;

	while (!st && (!is_over(w) || w->live)) {
		EXPECT(steps++ < most, "no request waits for ever");
		st = step(w, err);
	}
	while (!st && w->s->in_flight)
		st = finish_plan(w, err);
	return st ? st : check_end(w, err);
}

static void open_world(struct world *w)
{
	const struct schedule_options *o = &w->o->schedule;
	size_t pages = o->pages.pages;

	w->asks = calloc(o->requests_most, sizeof *w->asks);
	w->seats = calloc(o->places, sizeof *w->seats);
	w->flights = calloc(o->plans_most, sizeof *w->flights);
	w->content = calloc(pages * o->pages.page_tokens, sizeof *w->content);
	w->write_step = calloc(pages, sizeof *w->write_step);
	w->write_id = calloc(pages, sizeof *w->write_id);
	if (!w->asks || !w->seats || !w->flights || !w->content || !w->write_step || !w->write_id)
		abort();
	for (int32_t i = 0; i < o->places; i++)
		if (!(w->seats[i].table = calloc(pages, sizeof *w->seats[i].table)))
			abort();
	for (int32_t i = 0; i < o->plans_most; i++) {
		w->flights[i].results = calloc(o->places, sizeof *w->flights[i].results);
		w->flights[i].tokens = calloc(o->places * SCHEDULE_AT_ONCE_MOST, sizeof(int32_t));
		if (!w->flights[i].results || !w->flights[i].tokens)
			abort();
	}
}

static void close_world(struct world *w)
{
	for (int32_t i = 0; i < w->o->schedule.requests_most; i++)
		free_ask(w->asks + i);
	for (int32_t i = 0; i < w->o->schedule.places; i++)
		free(w->seats[i].table);
	for (int32_t i = 0; i < w->o->schedule.plans_most; i++) {
		free(w->flights[i].results);
		free(w->flights[i].tokens);
	}
	for (int32_t i = 0; i < TRANSCRIPTS; i++)
		free(w->transcripts[i].tokens);
	free(w->asks);
	free(w->seats);
	free(w->flights);
	free(w->content);
	free(w->write_step);
	free(w->write_id);
	schedule_free(&w->s);
}

enum status world_run(const struct world_options *options, struct world_report *report, struct error *err)
{
	struct world w = {.o = options, .random = options->seed, .now = 1, .report = report};
	enum status st = schedule_create(&w.s, &options->schedule, err);

	*report = (struct world_report){0};
	if (st)
		return st;
	open_world(&w);
	st = run(&w, err);
	report->facts = schedule_facts(w.s);
	report->requests = w.submitted;
	report->now_s = w.now * 1e-9;
	close_world(&w);
	return st;
}

struct world_options world_small(int32_t pages, int32_t places, int32_t depth)
{
	return (struct world_options){
		.schedule =
			{
				.pages = {pages + 1, 16, 11},
				.places = places,
				.requests_most = 512,
				.plans_most = depth + 1,
				.rows_most = places + 128,
				.logits_most = places + 32,
				.context = 1 << 20,
				.cost = {100000, 20000, 10, 5000},
				.budget_ns = 1500000,
				.budget_idle_ns = 4000000,
				.rows_least = 16,
				.bypass_most = 8,
				.pages_ahead = 2,
				.age_ns = 200000000,
			},
		.depth = depth,
		.requests = 1000,
		.live_most = 3 * places + 8,
		.prompt_most = 160,
		.text_most = 64,
		.check_every = 16,
		.recompute_most = 0.5,
		.seed = 1,
	};
}
