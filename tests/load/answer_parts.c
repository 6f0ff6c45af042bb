/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include "load/answer_parts.h"

bool answer_fault_is(const struct answer *a, enum stub_fault f)
{
	return a->plan.fault == f;
}

bool answer_closes(const struct answer *a)
{
	return a->request.close || answer_fault_is(a, STUB_FAULT_HTTP10);
}

enum answer_next answer_finish(struct answer *a, const char *end, enum answer_next next)
{
	a->end = end;
	return next;
}

const struct usage *answer_report_usage(struct answer *a)
{
	if (!a->request.usage || answer_fault_is(a, STUB_FAULT_NO_USAGE))
		return NULL;
	a->usage = (struct usage){.prompt_tokens = a->request.prompt_tokens,
				  .completion_tokens = a->plan.tokens};
	if (answer_fault_is(a, STUB_FAULT_WRONG_USAGE))
		a->usage.completion_tokens = (uint64_t)llround(a->plan.tokens * a->plan.value);
	if (answer_fault_is(a, STUB_FAULT_CACHED)) {
		a->usage.cached_tokens = (uint64_t)a->plan.value;
		if (a->usage.cached_tokens > a->usage.prompt_tokens)
			a->usage.cached_tokens = a->usage.prompt_tokens;
	}
	a->usage_sent = true;
	return &a->usage;
}

void answer_add_body(struct answer *a, struct buf *out)
{
	event_add_body_begin(&a->shape, out);
	for (uint32_t i = 0; i < a->plan.tokens; i++)
		if (!answer_fault_is(a, STUB_FAULT_LOST_TOKENS) || !answer_lost(a, i))
			event_add_words(&a->shape, out, i, 1);
	event_add_body_end(&a->shape, out, !answer_fault_is(a, STUB_FAULT_NO_FINISH), answer_report_usage(a));
	if (answer_fault_is(a, STUB_FAULT_BAD_JSON))
		out->size -= 2;
}

void answer_add_header(const struct answer *a, struct buf *out, uint64_t length)
{
	bool old = answer_fault_is(a, STUB_FAULT_HTTP10);

	buf_addf(out, "HTTP/1.%d 200 OK\r\nContent-Type: %s\r\n", old ? 0 : 1,
		 a->request.stream ? "text/event-stream; charset=utf-8" : "application/json");
	if (a->shape.chunked)
		buf_adds(out, "Transfer-Encoding: chunked\r\n");
	else if (!old)
		buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
	if (answer_closes(a))
		buf_adds(out, "Connection: close\r\n");
	buf_adds(out, "\r\n");
}

static enum answer_next step_huge_whole(struct answer *a, struct buf *out)
{
	struct buf begin = {0};

	event_add_body_begin(&a->shape, &begin);
	event_add_body_end(&a->shape, &a->after, true, answer_report_usage(a));
	a->fill = (uint64_t)a->plan.value;
	answer_add_header(a, out, begin.size + a->fill + a->after.size);
	buf_add(out, begin.data, begin.size);
	buf_release(&begin);
	return ANSWER_DONE;
}

enum answer_next answer_step_whole(struct answer *a, struct buf *out)
{
	struct buf body = {0};
	enum answer_next next = answer_closes(a) ? ANSWER_CLOSES : ANSWER_DONE;
	bool cut = answer_fault_is(a, STUB_FAULT_RESET) || answer_fault_is(a, STUB_FAULT_EARLY_CLOSE);

	a->status = 200;
	if (answer_fault_is(a, STUB_FAULT_HUGE)) {
		step_huge_whole(a, out);
	} else {
		answer_add_body(a, &body);
		if (!a->head_built)
			answer_add_header(a, out, body.size);
		buf_add(out, body.data, cut ? body.size / 2 : body.size);
		buf_release(&body);
	}
	a->head_built = true;
	if (cut) {
		a->usage_sent = false;
		return answer_fault_is(a, STUB_FAULT_RESET) ? answer_finish(a, "reset", ANSWER_RESETS)
							    : answer_finish(a, "closed", ANSWER_CLOSES);
	}
	a->finish_sent = !answer_fault_is(a, STUB_FAULT_NO_FINISH);
	a->last_due_ns = a->token_due_ns;
	a->next = a->plan.tokens;
	for (uint32_t i = 0; i < a->plan.tokens; i++)
		a->lost_count += answer_lost(a, i);
	if (answer_fault_is(a, STUB_FAULT_BAD_JSON))
		a->usage_sent = a->finish_sent = false;
	a->sent = a->plan.tokens - a->lost_count;
	return answer_finish(a, "complete", next);
}

/* ---- answers that are none ---- */

enum { HEADER_LINES = 16384 }; /* a megabyte */

enum answer_next answer_step_reply(struct answer *a, struct buf *out)
{
	static const char busy[] =
		"{\"error\":{\"message\":\"planted refusal\",\"type\":\"overloaded\",\"code\":null}}";
	char fields[160] = "";
	int value = (int)a->plan.value;

	if (answer_fault_is(a, STUB_FAULT_GARBAGE)) {
		buf_adds(out, "\x16\x03\x01 this is not HTTP\n\n");
		return answer_finish(a, "garbage", ANSWER_CLOSES);
	}
	if (answer_fault_is(a, STUB_FAULT_ENDLESS_HEADER)) {
		buf_adds(out, "HTTP/1.1 200 OK\r\n");
		for (int i = 0; i < HEADER_LINES; i++)
			buf_adds(out, "X-Filler: 0123456789012345678901234567890123456789012345678901\r\n");
		return answer_finish(a, "garbage", ANSWER_CLOSES);
	}
	if (answer_fault_is(a, STUB_FAULT_REDIRECT)) {
		a->status = 302;
		snprintf(fields, sizeof(fields), "Location: http://127.0.0.1:%d%s\r\n", value,
			 a->request.path);
	} else {
		a->status = answer_fault_is(a, STUB_FAULT_LIMITED) ? 429 : 503;
		if (value || a->status == 429)
			snprintf(fields, sizeof(fields), "Retry-After: %d\r\n", value);
	}
	event_add_response(out, a->status, fields, "application/json", a->status == 302 ? "" : busy,
			   a->request.close);
	a->head_built = true;
	return answer_finish(a, "status", a->request.close ? ANSWER_CLOSES : ANSWER_DONE);
}
