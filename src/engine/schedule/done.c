/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a step: tokens, pages for the cache, and ends. */
#include "engine/schedule/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool append_tokens(struct request *r, const int32_t *tokens, int32_t count)
{
	if (r->known + count > r->capacity) {
		int64_t capacity = r->capacity + r->capacity / 2 + 256;
		int32_t *grown;

		if (capacity > r->limit)
			capacity = r->limit;
		grown = realloc(r->tokens, capacity * sizeof *grown);
		if (!grown)
			return false;
		r->tokens = grown;
		r->capacity = capacity;
	}
	if (count)
		memcpy(r->tokens + r->known, tokens, count * sizeof *tokens);
	r->known += count;
	return true;
}

/* Full pages enter the pool's index. If an equal page is there already, the request uses that one from now
 * on. */
static void register_pages(struct schedule *s, uint32_t number)
{
	struct request *r = s->requests + number;
	uint32_t *table = table_of(s, r);

	while ((r->registered + 1) * s->page_tokens <= r->computed) {
		int32_t i = r->registered++;
		const int32_t *tokens = r->tokens + (size_t)i * s->page_tokens;
		uint32_t old = table[i];

		table[i] = pages_register(s->pool, old, i ? table[i - 1] : 0, &r->key, tokens,
					  r->in_flight ? r->step : 0);
		queue_wake(s, old);
		if (table[i] == old)
			continue;
		if (r->sent > i)
			r->sent = i;
		if ((i + 2) * s->page_tokens <= r->announced)
			pages_announce(s->pool, table[i + 1], table[i], &r->key, tokens + s->page_tokens,
				       number);
	}
}

/* Counts computed positions, and keeps full pages for the cache. */
static void take_positions(struct schedule *s, uint32_t number, const struct schedule_entry *e, int32_t rows)
{
	struct request *r = s->requests + number;
	int32_t end = e->first + rows, again = (r->reached < end ? r->reached : end) - e->first;

	if (again > 0)
		s->facts.recomputed_tokens += again;
	if (r->reached < r->prompt && end > r->reached)
		s->facts.prompt_tokens += (end < r->prompt ? end : r->prompt) - r->reached;
	if (end > r->reached)
		r->reached = end;
	r->computed = end;
	if (e->most > 1) {
		r->planned = end;
		r->planned_known = r->known;
		r->variable = false;
	}
	register_pages(s, number);
}

static bool is_count_valid(const struct schedule_entry *e, const struct schedule_result *result)
{
	if (e->most > 1)
		return result->count >= 0 && result->count <= e->most;
	return result->count == e->most;
}

static void take_result(struct schedule *s, const struct schedule_entry *e, struct schedule_result *result)
{
	struct request *r = s->requests + e->number;
	int32_t rows = e->most > 1 ? result->count : e->rows;

	if (result->finite && result->outcome == SCHEDULE_FORBIDDEN) {
		request_end(s, e->number, ENGINE_END_REFUSED,
			    "logit_bias forbids every token that can follow the text");
		return;
	}
	if (result->finite && result->outcome == SCHEDULE_LIMITED) {
		request_end(
			s, e->number, ENGINE_END_REFUSED,
			"the grammar is too ambiguous after this text: its states exceed a limit; make it "
			"simpler, for example with fewer repetitions within repetitions");
		return;
	}
	if (!result->finite || result->outcome == SCHEDULE_FAILED) {
		request_end(s, e->number, ENGINE_END_FAILED,
			    result->finite ? "no token can follow: every token is excluded"
					   : "the model computed NaN or infinity for this request");
		return;
	}
	if (!is_count_valid(e, result)) {
		request_end(s, e->number, ENGINE_END_FAILED, "a step gave a wrong number of tokens");
		return;
	}
	if (!append_tokens(r, result->tokens, result->count)) {
		request_end(s, e->number, ENGINE_END_FAILED, "no memory for the tokens of the text");
		return;
	}
	result->taken = result->count;
	s->clients[r->client].served += result->count;
	s->facts.tokens += result->count;
	if (r->scores && e->first + e->rows > r->scored)
		r->scored = e->first + e->rows < r->prompt - 1 ? e->first + e->rows : r->prompt - 1;
	if (r->state == REQUEST_RUNNING)
		take_positions(s, e->number, e, rows);
	if (result->outcome == SCHEDULE_STOPPED && result->count)
		request_end(s, e->number, ENGINE_END_STOP, "");
	else if (r->score_only ? e->first + e->rows == r->prompt : r->known == r->limit)
		request_end(s, e->number, ENGINE_END_LENGTH, "");
}

enum status schedule_done(struct schedule *s, struct schedule_result *results, int32_t count, uint64_t now,
			  struct error *err)
{
	const struct schedule_plan *plan = schedule_oldest(s);

	if (!plan)
		return error_set(err, STATUS_BUG, "results of a step came, but no step is in flight");
	if (count != plan->count)
		return error_set(err, STATUS_BUG,
				 "step %" PRIu64 " has %" PRId32 " entries, but %" PRId32 " results came",
				 plan->step, plan->count, count);
	for (int32_t i = 0; i < count; i++) {
		const struct schedule_entry *e = plan->entries + i;
		struct request *r = s->requests + e->number;

		r->in_flight--;
		results[i].taken = 0;
		results[i].alive = is_live(r);
		if (results[i].alive)
			take_result(s, e, results + i);
		request_settle(s, e->number);
	}
	s->done++;
	s->in_flight--;
	s->facts.steps++;
	pages_ended(s->pool, s->done);
	request_expire(s, now);
	return STATUS_OK;
}
