/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "load/answer_parts.h"

bool answer_lost(const struct answer *a, uint32_t token)
{
	bool here = token >= a->plan.at;

	if (answer_fault_is(a, STUB_FAULT_LOST_TOKENS))
		return here && token - a->plan.at < (uint32_t)a->plan.value;
	/* Of a whole answer that is broken, nothing can be read. */
	return answer_fault_is(a, STUB_FAULT_BAD_JSON) && (token == a->plan.at || !a->request.stream);
}

/* Tokens in the next event. */
static uint32_t group(const struct answer *a)
{
	uint32_t most = a->plan.tokens - a->next,
		 count = answer_fault_is(a, STUB_FAULT_MULTI) ? (uint32_t)a->plan.value : 1;

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
		  uint64_t number, uint64_t received_ns, uint64_t begin_ns)
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
	a->shape.chunked = r->stream && !answer_fault_is(a, STUB_FAULT_CONTENT_LENGTH) &&
			   !answer_fault_is(a, STUB_FAULT_HTTP10);
	a->due_ns = received_ns;
	switch (a->plan.fault) {
	case STUB_FAULT_HANG:
		a->stage = STAGE_NEVER;
		a->due_ns = UINT64_MAX;
		break;
	case STUB_FAULT_GARBAGE:
	case STUB_FAULT_ENDLESS_HEADER:
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
		start_tokens(a, begin_ns);
		break;
	default:
		if (answer_fault_is(a, STUB_FAULT_SPLIT))
			a->shape.letter = "\xC3\xA9"; /* e with acute: two bytes */
		start_tokens(a, begin_ns);
	}
}

/* ---- the stream begins and ends ---- */

static enum answer_next add_ending(struct answer *a, struct buf *out)
{
	const struct usage *u = answer_report_usage(a);

	if (!answer_fault_is(a, STUB_FAULT_NO_FINISH)) {
		event_add_finish(&a->shape, out);
		a->finish_sent = true;
	}
	if (u)
		event_add_usage(&a->shape, out, u);
	if (!answer_fault_is(a, STUB_FAULT_NO_DONE)) {
		event_add_done(&a->shape, out);
		a->done_sent = true;
	}
	event_add_last_chunk(&a->shape, out);
	return answer_finish(a, "complete", answer_closes(a) ? ANSWER_CLOSES : ANSWER_DONE);
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

static void add_start(struct answer *a, struct buf *out)
{
	if (!a->head_built)
		answer_add_header(a, out, a->shape.chunked ? 0 : stream_size(a));
	if (!a->role_built)
		event_add_role(&a->shape, out);
	a->head_built = a->role_built = true;
	a->status = 200;
}

/* ---- pieces ---- */

static void hold_header(struct answer *a)
{
	struct buf body = {0};

	if (!a->request.stream)
		answer_add_body(a, &body);
	answer_add_header(a, &a->held, body.size);
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
	return answer_finish(a, "closed", ANSWER_CLOSES);
}

static enum answer_next add_error(struct answer *a, struct buf *out)
{
	event_add_error(&a->shape, out);
	event_add_done(&a->shape, out);
	event_add_last_chunk(&a->shape, out);
	a->done_sent = true;
	return answer_finish(a, "error_event", a->request.close ? ANSWER_CLOSES : ANSWER_DONE);
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
	if (answer_fault_is(a, STUB_FAULT_BAD_JSON))
		event_add_broken(&a->shape, out, a->next);
	a->lost_count++;
}

/* The event at a->next. WAITS: go on. */
static enum answer_next one_event(struct answer *a, struct buf *out)
{
	bool here = a->next == a->plan.at;
	uint32_t count = group(a);

	if (answer_fault_is(a, STUB_FAULT_RESET) && here)
		return answer_finish(a, "reset", ANSWER_RESETS);
	if (answer_fault_is(a, STUB_FAULT_EARLY_CLOSE) && here)
		return close_early(a, out);
	if (answer_fault_is(a, STUB_FAULT_BAD_CHUNK) && here) {
		buf_adds(out, "zz\r\n");
		return answer_finish(a, "garbage", ANSWER_CLOSES);
	}
	if (answer_fault_is(a, STUB_FAULT_ERROR_EVENT) && here)
		return add_error(a, out);
	if (answer_fault_is(a, STUB_FAULT_HUGE))
		return add_huge(a, out);
	if (answer_fault_is(a, STUB_FAULT_SPLIT)) {
		start_pieces(a, out);
		return ANSWER_WAITS;
	}
	if (answer_lost(a, a->next))
		lose_token(a, out);
	else
		add_token(a, out, count);
	if (answer_fault_is(a, STUB_FAULT_DUPLICATE) && here) {
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
		return answer_step_reply(a, out);
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
		return answer_step_whole(a, out);
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
