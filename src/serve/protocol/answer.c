/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/answer.h"

#include <time.h>

#include "core/math/random.h"

static const struct answer_form *const forms[] = {
	[PROTOCOL_CHAT] = &answer_form_chat,
	[PROTOCOL_COMPLETION] = &answer_form_completion,
	[PROTOCOL_RESPONSES] = &answer_form_responses,
	[PROTOCOL_MESSAGES] = &answer_form_messages,
};

static void begin_stream(struct answer *a)
{
	if (a->streaming)
		return;
	a->streaming = true;
	a->form->begin(a);
}

static void keep_part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	struct answer_call *grown;

	if (kind == PART_TEXT)
		text_add_bytes(&c->text, text, size);
	else if (kind == PART_THOUGHT)
		text_add_bytes(&c->thought, text, size);
	else if (kind == PART_ARGUMENTS && c->call_count)
		text_add_bytes(&c->calls[c->call_count - 1].arguments, text, size);
	if (kind != PART_CALL)
		return;
	grown = realloc(c->calls, (c->call_count + 1) * sizeof(*grown));
	if (!grown)
		return;
	c->calls = grown;
	c->calls[c->call_count++] = (struct answer_call){.name = strndup(text, size)};
}

/* In /v1/responses, log probabilities belong to the text. Those of thoughts and calls have no place. */
static void place_logprobs(struct choice *c, enum part_kind kind)
{
	const struct text *entries = &c->logprobs.entries;

	if (kind != PART_TEXT) {
		answer_clear_logprobs(&c->logprobs);
	} else if (c->logprobs.count) {
		text_add(&c->text_logprobs, c->text_logprobs.size ? "," : "");
		text_add_bytes(&c->text_logprobs, text_str(entries), entries->size);
	}
}

static void stream_part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	struct answer *a = c->answer;

	if (!a->request->stream || a->failed)
		return;
	begin_stream(a);
	c->begun = true;
	a->form->part(c, kind, text, size);
}

static void on_part(void *arg, enum part_kind kind, const char *text, size_t size)
{
	struct choice *c = arg;
	struct answer *a = c->answer;

	if (a->keep || kind == PART_CALL)
		keep_part(c, kind, text, size);
	if (a->request->protocol == PROTOCOL_RESPONSES)
		place_logprobs(c, kind);
	stream_part(c, kind, text, size);
	if (a->request->protocol == PROTOCOL_RESPONSES)
		answer_clear_logprobs(&c->logprobs);
}

static enum status begin_choice(struct answer *a, size_t index, struct error *err)
{
	struct choice *c = &a->choices[index];
	enum status st;

	*c = (struct choice){.answer = a, .index = index, .prompt = index / a->request->n};
	st = stream_begin(&c->stream, a->prompter, a->request, on_part, c, err);
	if (a->request->echo) {
		const struct text *t = &a->request->prompt_text[c->prompt];

		if (!a->request->stream)
			text_add_bytes(&c->text, text_str(t), t->size);
	}
	return st;
}

static void release_choice(struct choice *c)
{
	stream_release(&c->stream);
	text_release(&c->prefix);
	text_release(&c->text);
	text_release(&c->thought);
	for (size_t i = 0; i < c->call_count; i++) {
		free(c->calls[i].name);
		text_release(&c->calls[i].arguments);
	}
	free(c->calls);
	text_release(&c->logprobs.entries);
	text_release(&c->logprobs.values);
	text_release(&c->logprobs.tops);
	text_release(&c->logprobs.offsets);
	text_release(&c->text_logprobs);
}

/* Begins all choices, on failure too, so that each can be released. */
static enum status begin_choices(struct answer *a, struct error *err)
{
	enum status st = STATUS_OK, one;

	for (size_t i = 0; i < a->count; i++) {
		one = begin_choice(a, i, err);
		if (!st)
			st = one;
	}
	return st;
}

enum status answer_create(struct answer **out, struct request *r, const struct prompter *p, uint64_t now_ns,
			  struct error *err)
{
	struct answer *a = calloc(1, sizeof(*a));
	char hex[33] = "0";
	enum status st;

	*out = NULL;
	if (a) {
		a->count = a->live = r->prompt_count * r->n;
		a->choices = calloc(a->count, sizeof(*a->choices));
	}
	if (!a || !a->choices) {
		free(a);
		request_destroy(&r);
		return error_set(err, STATUS_NO_RESOURCE, "an answer");
	}
	a->request = r;
	a->prompter = p;
	a->form = forms[r->protocol];
	a->created = (int64_t)time(NULL);
	a->began_ns = now_ns;
	a->keep = !r->stream || r->protocol == PROTOCOL_RESPONSES;
	random_hex(hex, sizeof(hex));
	snprintf(a->id, sizeof(a->id), "%s%s", a->form->id_prefix, hex);
	st = begin_choices(a, err);
	if (st)
		answer_destroy(&a);
	*out = a;
	return st;
}

void answer_destroy(struct answer **a_)
{
	struct answer *a = *a_;

	*a_ = NULL;
	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++)
		release_choice(&a->choices[i]);
	free(a->choices);
	text_release(&a->out);
	request_destroy(&a->request);
	free(a);
}

void answer_restart(struct answer *a)
{
	struct api_error e = {0};
	struct error err = {0};

	for (size_t i = 0; i < a->count; i++)
		release_choice(&a->choices[i]);
	a->live = a->count;
	a->first_ns = 0;
	if (begin_choices(a, &err)) {
		api_from(&e, "", &err);
		answer_fail(a, &e);
	}
}

void answer_engine_request(const struct choice *c, int64_t context, struct engine_request *out)
{
	const struct request *r = c->answer->request;

	*out = r->engine;
	out->prompt = r->prompts[c->prompt].ids;
	out->prompt_count = r->prompts[c->prompt].count;
	if (r->own_length && context && out->max_tokens > context - (int64_t)out->prompt_count)
		out->max_tokens = context - (int64_t)out->prompt_count;
	/* the answers of one request differ; the first is the one that n = 1 gives */
	out->sampling.seed += c->index % r->n;
}

struct answer_usage answer_usage(const struct answer *a)
{
	struct answer_usage u = {0};

	for (size_t i = 0; i < a->request->prompt_count; i++)
		u.prompt += (int64_t)a->request->prompts[i].count;
	for (size_t i = 0; i < a->count; i++) {
		u.tokens += a->choices[i].tokens;
		u.thought += a->choices[i].thought_tokens;
		if (!(i % a->request->n))
			u.cached += a->choices[i].cached_tokens;
	}
	return u;
}

void answer_add_usage(struct text *out, const struct answer_usage *u)
{
	text_addf(out,
		  "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
		  "\"prompt_tokens_details\":{\"cached_tokens\":%lld},"
		  "\"completion_tokens_details\":{\"reasoning_tokens\":%lld}}",
		  (long long)u->prompt, (long long)u->tokens, (long long)(u->prompt + u->tokens),
		  (long long)u->cached, (long long)u->thought);
}

void answer_add_chunk_usage(struct text *out, const struct answer *a)
{
	struct answer_usage u;

	if (a->request->usage_always) {
		u = answer_usage(a);
		text_add(out, ",");
		answer_add_usage(out, &u);
	} else if (a->request->include_usage) {
		text_add(out, ",\"usage\":null");
	}
}

void answer_call_id(char out[64], const struct choice *c, size_t call)
{
	const char *hex = c->answer->id + strlen(c->answer->form->id_prefix);

	snprintf(out, 64, "call_%.16s%zu_%zu", hex, c->index, call);
}

static void finish_choice(struct choice *c, const char *reason)
{
	struct answer *a = c->answer;

	if (c->finished || a->failed)
		return;
	stream_end(&c->stream);
	c->reason = c->call_count && !c->stream.calls.cut && strcmp(reason, "length") != 0 ? "tool_calls"
											   : reason;
	c->finished = true;
	if (!a->request->stream)
		return;
	begin_stream(a);
	a->form->choice_end(c);
}

static void finish(struct answer *a)
{
	if (a->live || a->failed || a->complete)
		return;
	if (a->request->stream) {
		a->form->end(a);
	} else {
		a->form->whole(a);
		a->http = 200;
	}
	a->complete = true;
}

static void note_logprob(struct choice *c, const struct engine_event *e)
{
	const struct request *r = c->answer->request;

	if (r->engine.logprobs < 0)
		return;
	if (r->protocol == PROTOCOL_COMPLETION)
		answer_note_completion_logprob(c, e);
	else
		answer_note_chat_logprob(c, e);
}

static bool on_token(struct choice *c, const struct engine_event *e, uint64_t now_ns)
{
	struct answer *a = c->answer;
	bool more;

	a->last_ns = c->last_ns = now_ns;
	if (!a->first_ns)
		a->first_ns = now_ns;
	c->tokens++;
	c->thought_tokens += stream_thinks(&c->stream);
	note_logprob(c, e);
	more = stream_token(&c->stream, e->token);
	if (a->request->protocol == PROTOCOL_RESPONSES && stream_in_thought(&c->stream))
		answer_clear_logprobs(&c->logprobs);
	if (!more) {
		c->stop = c->stream.stop;
		finish_choice(c, "stop");
	}
	return !more;
}

/* Errors of the engine for this request. */
static void on_bad_end(struct choice *c, const struct engine_event *e)
{
	struct api_error err = {0};

	if (e->end == ENGINE_END_REFUSED)
		api_wrong(&err, request_refused_field(c->answer->request, e->text), "%s",
			  *e->text ? e->text : "the engine refused the request");
	else if (e->end == ENGINE_END_DEADLINE)
		api_fail(&err, 503, "deadline", "the request did not end within its time limit");
	else if (e->end == ENGINE_END_CANCELLED)
		api_fail(&err, 503, "cancelled", "the server cancelled the request");
	else
		api_fail(&err, 500, "engine_failed", "%s", *e->text ? e->text : "the engine failed");
	answer_fail(c->answer, &err);
}

static void on_end(struct choice *c, const struct engine_event *e)
{
	struct answer *a = c->answer;

	if (c->ended)
		return;
	c->ended = true;
	c->prompt_tokens = e->prompt_tokens;
	c->cached_tokens = e->cached_tokens;
	a->live--;
	if (!c->finished && (e->end == ENGINE_END_STOP || e->end == ENGINE_END_LENGTH))
		finish_choice(c, e->end == ENGINE_END_STOP ? "stop" : "length");
	else if (!c->finished)
		on_bad_end(c, e);
	finish(a);
}

bool answer_event(struct choice *c, const struct engine_event *e, uint64_t now_ns)
{
	if (e->kind != ENGINE_EVENT_BEGUN)
		answer_note_first_token(c);
	if (e->kind == ENGINE_EVENT_END)
		on_end(c, e);
	else if (c->answer->failed || c->finished)
		return false;
	else if (e->kind == ENGINE_EVENT_TOKEN)
		return on_token(c, e, now_ns);
	else if (e->kind == ENGINE_EVENT_PROMPT)
		answer_note_completion_logprob(c, e);
	return false;
}

void answer_fail(struct answer *a, const struct api_error *e)
{
	if (a->failed || a->complete)
		return;
	a->failed = a->complete = true;
	if (a->streaming) {
		a->form->error(a, e);
		return;
	}
	a->http = e->http;
	a->retry_s = e->retry_s;
	a->out.size = 0;
	if (a->request->protocol == PROTOCOL_MESSAGES)
		api_error_body_messages(&a->out, e);
	else
		api_error_body(&a->out, e);
}
