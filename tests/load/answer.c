/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "load/answer.h"

static bool fault_is(const struct answer *a, enum stub_fault f)
{
	return a->plan.fault == f;
}

static bool closes(const struct answer *a)
{
	return a->request.close || fault_is(a, STUB_FAULT_HTTP10);
}

static enum answer_next finish(struct answer *a, const char *end, enum answer_next next)
{
	a->end = end;
	return next;
}

bool answer_lost(const struct answer *a, uint32_t token)
{
	uint32_t count = fault_is(a, STUB_FAULT_LOST_TOKENS) ? (uint32_t)a->plan.value
							     : fault_is(a, STUB_FAULT_BAD_JSON);

	return token >= a->plan.at && token - a->plan.at < count;
}

/* Tokens in the next event. */
static uint32_t group(const struct answer *a)
{
	uint32_t most = a->plan.tokens - a->next,
		 count = fault_is(a, STUB_FAULT_MULTI) ? (uint32_t)a->plan.value : 1;

	if (!count)
		count = 1;
	return count < most ? count : most;
}

/* An event is due when its last token is. */
static void schedule(struct answer *a)
{
	uint32_t count = group(a);

	for (uint32_t i = a->next; i < a->next + count; i++)
		a->token_due_ns += stub_plan_gap_ns(a->options, &a->plan, a->key, i);
	a->due_ns = a->token_due_ns;
	if (!a->first_due_ns)
		a->first_due_ns = a->token_due_ns;
}

static void advance(struct answer *a, uint32_t count)
{
	a->last_due_ns = a->token_due_ns;
	a->next += count;
	if (a->next < a->plan.tokens)
		schedule(a);
}

static void start_tokens(struct answer *a, uint64_t base_ns)
{
	a->token_due_ns = base_ns;
	a->stage = STAGE_TOKENS;
	if (!a->request.stream) {
		for (uint32_t i = 0; i < a->plan.tokens; i++)
			a->token_due_ns += stub_plan_gap_ns(a->options, &a->plan, a->key, i);
		a->due_ns = a->first_due_ns = a->token_due_ns;
		a->stage = STAGE_WHOLE;
		return;
	}
	schedule(a);
	if (a->options->role_ns < a->due_ns - base_ns) {
		a->due_ns = base_ns + a->options->role_ns;
		a->stage = STAGE_ROLE;
	}
}

static void forget(struct answer *a)
{
	struct answer fresh = {.held = a->held, .times = a->times, .after = a->after};

	fresh.held.size = fresh.times.size = fresh.after.size = 0;
	*a = fresh;
}

void answer_begin(struct answer *a, const struct stub_options *o, const struct request *r, const char *body,
		  uint64_t number, uint64_t received_ns)
{
	forget(a);
	a->options = o;
	a->request = *r;
	a->number = number;
	a->key = o->by_content ? stub_hash(body, r->body) : number;
	a->received_ns = received_ns;
	a->keep_times = o->truth != NULL;
	a->plan = stub_plan_make(o, a->key, r->max_tokens, r->stream, r->usage);
	event_shape_make(&a->shape, o->model, number, r->chat);
	a->shape.chunked =
		r->stream && !fault_is(a, STUB_FAULT_CONTENT_LENGTH) && !fault_is(a, STUB_FAULT_HTTP10);
	a->due_ns = received_ns;
	switch (a->plan.fault) {
	case STUB_FAULT_HANG:
		a->stage = STAGE_NEVER;
		a->due_ns = UINT64_MAX;
		break;
	case STUB_FAULT_GARBAGE:
	case STUB_FAULT_REDIRECT:
	case STUB_FAULT_LIMITED:
	case STUB_FAULT_UNAVAILABLE:
		a->stage = STAGE_REPLY;
		break;
	case STUB_FAULT_SLOW_HEADERS:
		a->stage = STAGE_HEADER;
		break;
	case STUB_FAULT_HUGE:
		a->plan.tokens = 1;
		a->plan.at = 0;
		start_tokens(a, received_ns);
		break;
	default:
		if (fault_is(a, STUB_FAULT_SPLIT))
			a->shape.letter = "\xC3\xA9"; /* e with acute: two bytes */
		start_tokens(a, received_ns);
	}
}

/* ---- the whole answer, in one or at the end of a stream ---- */

static const struct usage *report_usage(struct answer *a)
{
	if (!a->request.usage || fault_is(a, STUB_FAULT_NO_USAGE))
		return NULL;
	a->usage = (struct usage){.prompt_tokens = a->request.prompt_tokens,
				  .completion_tokens = a->plan.tokens};
	if (fault_is(a, STUB_FAULT_WRONG_USAGE))
		a->usage.completion_tokens = (uint64_t)llround(a->plan.tokens * a->plan.value);
	if (fault_is(a, STUB_FAULT_CACHED)) {
		a->usage.cached_tokens = (uint64_t)a->plan.value;
		if (a->usage.cached_tokens > a->usage.prompt_tokens)
			a->usage.cached_tokens = a->usage.prompt_tokens;
	}
	a->usage_sent = true;
	return &a->usage;
}

static enum answer_next add_ending(struct answer *a, struct buf *out)
{
	const struct usage *u = report_usage(a);

	if (!fault_is(a, STUB_FAULT_NO_FINISH)) {
		event_add_finish(&a->shape, out);
		a->finish_sent = true;
	}
	if (u)
		event_add_usage(&a->shape, out, u);
	if (!fault_is(a, STUB_FAULT_NO_DONE)) {
		event_add_done(&a->shape, out);
		a->done_sent = true;
	}
	event_add_last_chunk(&a->shape, out);
	return finish(a, "complete", closes(a) ? ANSWER_CLOSES : ANSWER_DONE);
}

/* Bytes of the stream without a fault, for Content-Length. */
static size_t stream_size(const struct answer *a)
{
	struct answer copy = *a;
	struct buf all = {0};
	size_t size;

	event_add_role(&a->shape, &all);
	for (uint32_t i = 0; i < a->plan.tokens; i++)
		event_add_tokens(&a->shape, &all, i, 1);
	add_ending(&copy, &all);
	size = all.size;
	buf_release(&all);
	return size;
}

static void add_body(struct answer *a, struct buf *out)
{
	event_add_body_begin(&a->shape, out);
	for (uint32_t i = 0; i < a->plan.tokens; i++)
		if (!fault_is(a, STUB_FAULT_LOST_TOKENS) || !answer_lost(a, i))
			event_add_words(&a->shape, out, i, 1);
	event_add_body_end(&a->shape, out, !fault_is(a, STUB_FAULT_NO_FINISH), report_usage(a));
	if (fault_is(a, STUB_FAULT_BAD_JSON))
		out->size -= 2;
}

static void add_header(const struct answer *a, struct buf *out, uint64_t length)
{
	bool old = fault_is(a, STUB_FAULT_HTTP10);

	buf_addf(out, "HTTP/1.%d 200 OK\r\nContent-Type: %s\r\n", old ? 0 : 1,
		 a->request.stream ? "text/event-stream; charset=utf-8" : "application/json");
	if (a->shape.chunked)
		buf_adds(out, "Transfer-Encoding: chunked\r\n");
	else if (!old)
		buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
	if (closes(a))
		buf_adds(out, "Connection: close\r\n");
	buf_adds(out, "\r\n");
}

static void add_start(struct answer *a, struct buf *out)
{
	if (!a->head_built)
		add_header(a, out, a->shape.chunked ? 0 : stream_size(a));
	if (!a->role_built)
		event_add_role(&a->shape, out);
	a->head_built = a->role_built = true;
	a->status = 200;
}

static enum answer_next step_huge_whole(struct answer *a, struct buf *out)
{
	struct buf begin = {0};

	event_add_body_begin(&a->shape, &begin);
	event_add_body_end(&a->shape, &a->after, true, report_usage(a));
	a->fill = (uint64_t)a->plan.value;
	add_header(a, out, begin.size + a->fill + a->after.size);
	buf_add(out, begin.data, begin.size);
	buf_release(&begin);
	return ANSWER_DONE;
}

static enum answer_next step_whole(struct answer *a, struct buf *out)
{
	struct buf body = {0};
	enum answer_next next = closes(a) ? ANSWER_CLOSES : ANSWER_DONE;
	bool cut = fault_is(a, STUB_FAULT_RESET) || fault_is(a, STUB_FAULT_EARLY_CLOSE);

	a->status = 200;
	if (fault_is(a, STUB_FAULT_HUGE)) {
		step_huge_whole(a, out);
	} else {
		add_body(a, &body);
		if (!a->head_built)
			add_header(a, out, body.size);
		buf_add(out, body.data, cut ? body.size / 2 : body.size);
		buf_release(&body);
	}
	a->head_built = true;
	if (cut) {
		a->usage_sent = false;
		return fault_is(a, STUB_FAULT_RESET) ? finish(a, "reset", ANSWER_RESETS)
						     : finish(a, "closed", ANSWER_CLOSES);
	}
	a->finish_sent = !fault_is(a, STUB_FAULT_NO_FINISH);
	a->last_due_ns = a->token_due_ns;
	a->next = a->plan.tokens;
	for (uint32_t i = 0; i < a->plan.tokens; i++)
		a->lost_count += answer_lost(a, i);
	if (fault_is(a, STUB_FAULT_BAD_JSON)) { /* nothing of it can be read */
		a->lost_count = a->plan.tokens;
		a->usage_sent = a->finish_sent = false;
	}
	a->sent = a->plan.tokens - a->lost_count;
	return finish(a, "complete", next);
}

/* ---- answers that are none ---- */

static enum answer_next step_reply(struct answer *a, struct buf *out)
{
	static const char busy[] =
		"{\"error\":{\"message\":\"planted refusal\",\"type\":\"overloaded\",\"code\":null}}";
	char fields[160] = "";
	int value = (int)a->plan.value;

	if (fault_is(a, STUB_FAULT_GARBAGE)) {
		buf_adds(out, "\x16\x03\x01 this is not HTTP\n\n");
		return finish(a, "garbage", ANSWER_CLOSES);
	}
	if (fault_is(a, STUB_FAULT_REDIRECT)) {
		a->status = 302;
		snprintf(fields, sizeof(fields), "Location: http://127.0.0.1:%d%s\r\n", value,
			 a->request.path);
	} else {
		a->status = fault_is(a, STUB_FAULT_LIMITED) ? 429 : 503;
		if (value || a->status == 429)
			snprintf(fields, sizeof(fields), "Retry-After: %d\r\n", value);
	}
	event_add_response(out, a->status, fields, "application/json", a->status == 302 ? "" : busy,
			   a->request.close);
	a->head_built = true;
	return finish(a, "status", a->request.close ? ANSWER_CLOSES : ANSWER_DONE);
}

/* ---- pieces ---- */

static void hold_header(struct answer *a)
{
	struct buf body = {0};

	if (!a->request.stream)
		add_body(a, &body);
	add_header(a, &a->held, body.size);
	buf_release(&body);
	for (size_t i = 0; i <= ANSWER_PIECES; i++)
		a->cut[i] = a->held.size * i / ANSWER_PIECES;
}

static enum answer_next step_header(struct answer *a, struct buf *out)
{
	uint64_t whole_ns = (uint64_t)(a->plan.value * 1e9);

	if (!a->piece)
		hold_header(a);
	buf_add(out, a->held.data + a->cut[a->piece], a->cut[a->piece + 1] - a->cut[a->piece]);
	a->piece++;
	a->due_ns = a->received_ns + whole_ns * a->piece / (ANSWER_PIECES - 1);
	if (a->piece == ANSWER_PIECES) {
		a->head_built = true;
		a->status = 200;
		start_tokens(a, a->received_ns + whole_ns);
	}
	return ANSWER_WAITS;
}

static uint64_t piece_gap_ns(const struct answer *a)
{
	uint64_t gap = a->options->itl_ns / 8;

	return gap < 200000 ? 200000 : gap > 5000000 ? 5000000 : gap;
}

static void add_piece(struct answer *a, struct buf *out)
{
	size_t begun = event_begin(&a->shape, out);

	buf_add(out, a->held.data + a->cut[a->piece], a->cut[a->piece + 1] - a->cut[a->piece]);
	event_end(&a->shape, out, begun);
	a->piece++;
}

static void start_pieces(struct answer *a, struct buf *out)
{
	struct event_shape bare = a->shape;

	bare.chunked = false;
	a->held.size = 0;
	event_add_tokens(&bare, &a->held, a->next, 1);
	a->cut[0] = 0;
	a->cut[1] = 3;					     /* in "data:" */
	a->cut[2] = event_letter_at(&a->shape, a->next) + 1; /* in the letter */
	a->cut[3] = a->held.size - 1;			     /* between the two ends of line */
	a->cut[4] = a->held.size;
	a->piece = 0;
	add_piece(a, out);
	a->stage = STAGE_PIECES;
}

/* ---- tokens of a stream ---- */

static void add_token(struct answer *a, struct buf *out, uint32_t count)
{
	event_add_tokens(&a->shape, out, a->next, count);
	a->sent += count;
	a->events++;
}

static enum answer_next close_early(struct answer *a, struct buf *out)
{
	size_t begun = out->size, head;

	head = event_begin(&a->shape, out) - begun;
	out->size = begun;
	event_add_tokens(&a->shape, out, a->next, 1);
	out->size = begun + head + event_letter_at(&a->shape, a->next) + 1;
	return finish(a, "closed", ANSWER_CLOSES);
}

static enum answer_next add_error(struct answer *a, struct buf *out)
{
	event_add_error(&a->shape, out);
	event_add_done(&a->shape, out);
	event_add_last_chunk(&a->shape, out);
	a->done_sent = true;
	return finish(a, "error_event", a->request.close ? ANSWER_CLOSES : ANSWER_DONE);
}

static enum answer_next add_huge(struct answer *a, struct buf *out)
{
	a->fill = (uint64_t)a->plan.value;
	event_add_huge(&a->shape, out, &a->after, a->fill);
	a->sent = a->events = 1;
	advance(a, 1);
	return add_ending(a, &a->after);
}

static void lose_token(struct answer *a, struct buf *out)
{
	if (fault_is(a, STUB_FAULT_BAD_JSON))
		event_add_broken(&a->shape, out, a->next);
	a->lost_count++;
}

/* The event at a->next. WAITS: go on. */
static enum answer_next one_event(struct answer *a, struct buf *out)
{
	bool here = a->next == a->plan.at;
	uint32_t count = group(a);

	if (fault_is(a, STUB_FAULT_RESET) && here)
		return finish(a, "reset", ANSWER_RESETS);
	if (fault_is(a, STUB_FAULT_EARLY_CLOSE) && here)
		return close_early(a, out);
	if (fault_is(a, STUB_FAULT_ERROR_EVENT) && here)
		return add_error(a, out);
	if (fault_is(a, STUB_FAULT_HUGE))
		return add_huge(a, out);
	if (fault_is(a, STUB_FAULT_SPLIT)) {
		start_pieces(a, out);
		return ANSWER_WAITS;
	}
	if (answer_lost(a, a->next))
		lose_token(a, out);
	else
		add_token(a, out, count);
	if (fault_is(a, STUB_FAULT_DUPLICATE) && here) {
		event_add_tokens(&a->shape, out, a->next, 1);
		a->events++;
		a->duplicated = true;
	}
	advance(a, count);
	return ANSWER_WAITS;
}

static enum answer_next step_tokens(struct answer *a, struct buf *out, uint64_t now_ns)
{
	size_t begun = out->size;
	enum answer_next next;

	add_start(a, out);
	while (a->next < a->plan.tokens && a->token_due_ns <= now_ns &&
	       out->size - begun < ANSWER_STEP_BYTES) {
		next = one_event(a, out);
		if (next != ANSWER_WAITS)
			return next;
		if (a->stage == STAGE_PIECES) {
			a->due_ns = now_ns + piece_gap_ns(a);
			return ANSWER_WAITS;
		}
	}
	return a->next < a->plan.tokens ? ANSWER_WAITS : add_ending(a, out);
}

static enum answer_next step_pieces(struct answer *a, struct buf *out, uint64_t now_ns)
{
	add_piece(a, out);
	a->due_ns = now_ns + piece_gap_ns(a);
	if (a->piece < ANSWER_PIECES)
		return ANSWER_WAITS;
	a->sent++;
	a->events++;
	a->stage = STAGE_TOKENS;
	advance(a, 1);
	return a->next < a->plan.tokens ? ANSWER_WAITS : add_ending(a, out);
}

enum answer_next answer_step(struct answer *a, struct buf *out, uint64_t now_ns)
{
	switch (a->stage) {
	case STAGE_REPLY:
		return step_reply(a, out);
	case STAGE_HEADER:
		return step_header(a, out);
	case STAGE_ROLE:
		add_start(a, out);
		a->stage = STAGE_TOKENS;
		a->due_ns = a->token_due_ns;
		return ANSWER_WAITS;
	case STAGE_TOKENS:
		return step_tokens(a, out, now_ns);
	case STAGE_PIECES:
		return step_pieces(a, out, now_ns);
	case STAGE_WHOLE:
		return step_whole(a, out);
	case STAGE_NEVER:
		break;
	}
	return ANSWER_WAITS;
}

void answer_stamp(struct answer *a, uint64_t now_ns)
{
	const uint64_t never = 0;

	if (a->head_built && !a->header_ns)
		a->header_ns = now_ns;
	if (a->role_built && a->shape.chat && !a->role_ns)
		a->role_ns = now_ns;
	for (; a->stamped < a->next; a->stamped++)
		if (a->keep_times)
			buf_add(&a->times, answer_lost(a, a->stamped) ? &never : &now_ns, sizeof(now_ns));
}

void answer_release(struct answer *a)
{
	buf_release(&a->held);
	buf_release(&a->times);
	buf_release(&a->after);
}
