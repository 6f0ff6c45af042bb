/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a step: tokens, scores and ends of its requests. */
#include "engine/internal.h"

/* The outcome of a row without a token. */
static enum schedule_outcome outcome_without(const struct running *run, const struct sample_result *r)
{
	if (r->status == SAMPLE_EMPTY && run->limited)
		return SCHEDULE_LIMITED;
	return r->status == SAMPLE_EMPTY && run->biases && !run->stuck ? SCHEDULE_FORBIDDEN : SCHEDULE_FAILED;
}

/* The outcome of the row that sampled. */
static enum schedule_outcome outcome_of(const struct running *run, const struct schedule_entry *entry,
					const struct sample_result *r)
{
	const int64_t made = entry->first + entry->rows - run->prompt + 1;
	enum grammar_accepted accepted = GRAMMAR_ACCEPTED;

	if (r->status != SAMPLE_OK)
		return outcome_without(run, r);
	if (run->grammar)
		accepted = grammar_accept(run->grammar, r->id);
	if (accepted == GRAMMAR_FAILED)
		return SCHEDULE_LIMITED;
	if (accepted == GRAMMAR_REFUSED)
		return SCHEDULE_FAILED;
	if (accepted == GRAMMAR_ENDED)
		return SCHEDULE_STOPPED;
	return made > run->min_tokens && running_stops(run, r->id) ? SCHEDULE_STOPPED : SCHEDULE_CONTINUES;
}

static bool finite_of(const struct sample_result *r, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		if (r[i].status == SAMPLE_NOT_FINITE)
			return false;
	return true;
}

static enum status add_token(struct engine *e, const struct running *run, enum engine_event_kind kind,
			     const struct sample_result *r, int32_t tops, struct error *err)
{
	struct engine_event event = {.kind = kind, .id = run->id, .token = r->id, .logprob = r->logprob};

	event.tops = tops < 0 ? 0 : tops < r->tops ? tops : r->tops;
	for (int32_t i = 0; i < event.tops; i++)
		event.top[i] = (struct engine_logprob){.id = r->top_id[i], .logprob = r->top_logprob[i]};
	return outbox_add(e, &event, err);
}

/* Fills the result that the scheduler gets, and notes what the events need after the plan is gone. */
static void read_entry(struct engine *e, int32_t i, const struct schedule_entry *entry,
		       const struct sample_result *r)
{
	const int32_t outputs = schedule_outputs(entry);
	const struct sample_result *last = r + outputs - 1;

	e->settled[i] = (struct settled){
		.number = entry->number, .scored = entry->logits - entry->samples, .result = r};
	e->results[i] = (struct schedule_result){.finite = finite_of(r, outputs)};
	if (!entry->samples)
		return;
	e->results[i].tokens = &last->id;
	e->results[i].count = 1;
	e->results[i].outcome = outcome_of(&e->running[entry->number], entry, last);
}

/* Events of an entry's scores and token. */
static enum status add_entry_events(struct engine *e, int32_t i, struct error *err)
{
	const struct settled *s = &e->settled[i];
	const struct running *run = &e->running[s->number];
	enum status st = STATUS_OK;

	for (int32_t k = 0; !st && e->results[i].alive && k < s->scored; k++)
		st = add_token(e, run, ENGINE_EVENT_PROMPT, &s->result[k], run->prompt_logprobs, err);
	if (!st && e->results[i].taken)
		st = add_token(e, run, ENGINE_EVENT_TOKEN, &s->result[s->scored], run->logprobs, err);
	return st;
}

enum status results_settle(struct engine *e, const struct schedule_plan *plan, const struct sample_result *r,
			   struct error *err)
{
	const int32_t count = plan->count;
	enum status st;

	for (int32_t i = 0; i < count; i++) {
		read_entry(e, i, &plan->entries[i], r);
		r += schedule_outputs(&plan->entries[i]);
	}
	st = schedule_done(e->schedule, e->results, count, now_ns(), err);
	for (int32_t i = 0; !st && i < count; i++)
		st = add_entry_events(e, i, err);
	return st ? st : outbox_pass(e, err);
}

enum status results_drop(struct engine *e, const struct schedule_plan *plan, struct error *err)
{
	const int32_t count = plan->count;
	enum status st;

	for (int32_t i = 0; i < count; i++)
		e->results[i] = (struct schedule_result){0};
	st = schedule_done(e->schedule, e->results, count, now_ns(), err);
	return st ? st : outbox_pass(e, err);
}
