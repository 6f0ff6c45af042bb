/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/model/one_text.h"
#include <poll.h>
#include <string.h>

enum { STOPS_MOST = ENGINE_STOPS_MOST, WAIT_MS = 100 };

void one_text_room(struct load_options *o, int64_t positions, int64_t sequences, int64_t vocab)
{
	o->positions = positions;
	o->sequences = sequences;
	o->vocab = vocab;
	o->no_tuning = sequences == 1; /* a single text ends before timing GEMMs pays */
	o->pages = (positions + LOAD_PAGE_TOKENS - 1) / LOAD_PAGE_TOKENS * sequences;
}

struct engine_request one_text_request(const struct one_text *o, const int32_t *prompt, size_t count,
				       int32_t *stop_room)
{
	struct engine_request r = {
		.prompt = prompt,
		.prompt_count = count,
		.adapter = -1,
		.max_tokens = o->tokens,
		.stop = stop_room,
		.sampling = o->sampling,
		.logprobs = o->logprobs ? 0 : -1,
		.prompt_logprobs = -1,
		.grammar = o->grammar,
		.grammar_size = o->grammar ? strlen(o->grammar) : 0,
	};

	for (size_t i = 0; i < o->stops; i++)
		if (o->stop[i] >= 0)
			stop_room[r.stops++] = o->stop[i];
	return r;
}

enum answer_end one_text_end(const struct engine_event *end)
{
	if (end->end == ENGINE_END_REFUSED && end->bad_grammar)
		return ANSWER_REFUSED;
	return end->end == ENGINE_END_LENGTH ? ANSWER_CUT : ANSWER_ENDED;
}

void one_text_wait(const struct engine *e, bool idle)
{
	struct pollfd fd = {.fd = engine_fd(e), .events = POLLIN};

	if (idle && fd.fd >= 0 && engine_facts(e).waiting)
		poll(&fd, 1, WAIT_MS);
}

bool one_text_stops(const struct one_text *o, int32_t id)
{
	for (size_t i = 0; i < o->stops; i++)
		if (o->stop[i] == id)
			return true;
	return false;
}

enum status one_text_error(const struct engine_event *end, struct error *err)
{
	if (end->end == ENGINE_END_REFUSED)
		return error_set(err, STATUS_BAD_INPUT, "%s", end->text);
	if (end->end == ENGINE_END_FAILED)
		return error_set(
			err, STATUS_MISMATCH,
			"the logits of token %d have NaN or infinity, because numbers of the model or adapter "
			"exceed F32; check the model's norms, and whether the adapter comes from a diverged "
			"run",
			end->tokens + 1);
	return STATUS_OK;
}

enum status one_text_step_error(struct engine *e, enum status st, const struct error *why, struct error *err)
{
	const struct load_facts f = load_facts(engine_loaded(e));

	if (f.gpu && (st == STATUS_VENDOR || st == STATUS_LOST))
		return error_set_cause(err, st, why->cause, "%s: %s", f.device, why->text);
	return error_set_cause(err, st, why->cause, "%s", why->text);
}

/* A text that is being generated. */
struct making {
	struct engine *e;
	const struct one_text *o;
	bool (*take)(void *arg, int32_t id, float logprob);
	void *arg;
	struct engine_event end;
	uint64_t tokens;
	bool left; /* nobody wants it any more */
	bool stopped, ended;
};

static void on_token(struct making *m, const struct engine_event *event)
{
	if (m->left || m->stopped)
		return;
	if (one_text_stops(m->o, event->token)) {
		m->stopped = true;
		return;
	}
	m->tokens++;
	m->left = !m->take(m->arg, event->token, event->logprob);
}

static void read_events(struct making *m)
{
	const struct engine_event *event;
	const size_t count = engine_events(m->e, &event);

	for (size_t i = 0; i < count; i++) {
		if (event[i].kind == ENGINE_EVENT_TOKEN)
			on_token(m, &event[i]);
		if (event[i].kind == ENGINE_EVENT_END) {
			m->end = event[i];
			m->ended = true;
		}
	}
}

/* Cancels a text that is not wanted any more, and a long prompt on request. */
static enum status heed_cancel(struct making *m, struct error *err)
{
	if (m->o->cancel && *m->o->cancel && !m->tokens)
		m->left = true;
	return m->left && !m->ended ? engine_cancel(m->e, 0, err) : STATUS_OK;
}

enum status one_text(struct engine *e, const struct one_text *o, const int32_t *prompt, size_t count,
		     bool (*take)(void *arg, int32_t id, float logprob), void *arg, bool *stopped,
		     struct error *err)
{
	struct making m = {.e = e, .o = o, .take = take, .arg = arg};
	int32_t stop[STOPS_MOST];
	const struct engine_request r = one_text_request(o, prompt, count, stop);
	const uint64_t read_before = engine_facts(e).prompt_tokens;
	struct error why = {0};
	enum status st = engine_submit(e, &r, &why);

	while (!st && !m.ended) {
		bool idle;

		read_events(&m);
		st = heed_cancel(&m, &why);
		if (st || m.ended)
			break;
		st = engine_step(e, &idle, &why);
		one_text_wait(e, !st && idle);
	}
	*stopped = m.stopped;
	if (st)
		return one_text_step_error(e, st, &why, err);
	if (m.left && !m.tokens && o->cancel && *o->cancel)
		return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
				       "stopped on request after %llu of %zu tokens of the prompt",
				       (unsigned long long)(engine_facts(e).prompt_tokens - read_before),
				       count);
	return one_text_error(&m.end, err);
}
