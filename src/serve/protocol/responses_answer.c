/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of /v1/responses: output items (reasoning, message, function_call) and their events. */
#include "serve/protocol/answer.h"
#include "serve/protocol/json_out.h"

static void event(struct answer *a, const char *name)
{
	text_addf(&a->out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%llu", name, name,
		  (unsigned long long)a->sequence++);
}

static void end_event(struct answer *a)
{
	text_add(&a->out, "}\n\n");
}

static void item_id(char out[64], const struct answer *a, enum part_kind kind, uint64_t index)
{
	const char *prefix = kind == PART_CALL ? "fc" : kind == PART_THOUGHT ? "rs" : "msg";

	snprintf(out, 64, "%s_%.24s%llu", prefix, a->id + strlen(a->form->id_prefix),
		 (unsigned long long)index);
}

static void add_text_part(struct text *out, const struct choice *c)
{
	text_addf(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[%s],\"text\":",
		  text_str(&c->text_logprobs));
	json_out_bytes(out, text_str(&c->text), c->text.size);
	text_add(out, "}");
}

static bool was_cut(const struct choice *c)
{
	return c->reason && !strcmp(c->reason, "length");
}

/* One item. Unless it is in progress, it has its contents. */
static void add_item(struct text *out, const struct choice *c, enum part_kind kind, uint64_t index,
		     size_t call, const char *status)
{
	const bool done = strcmp(status, "in_progress") != 0;
	char id[64], call_id[64];

	item_id(id, c->answer, kind, index);
	if (kind == PART_CALL) {
		const struct answer_call *k = &c->calls[call];

		answer_call_id(call_id, c, call);
		text_addf(
			out,
			"{\"type\":\"function_call\",\"id\":\"%s\",\"call_id\":\"%s\",\"status\":\"%s\",\"name\":",
			id, call_id, status);
		json_out_text(out, k->name);
		text_add(out, ",\"arguments\":");
		json_out_bytes(out, text_str(&k->arguments), done ? k->arguments.size : 0);
	} else if (kind == PART_THOUGHT) {
		text_addf(out, "{\"type\":\"reasoning\",\"id\":\"%s\",\"summary\":[],\"content\":[", id);
		if (done) {
			text_add(out, "{\"type\":\"reasoning_text\",\"text\":");
			json_out_bytes(out, text_str(&c->thought), c->thought.size);
			text_add(out, "}");
		}
		text_addf(out, "],\"status\":\"%s\"", status);
	} else {
		text_addf(
			out,
			"{\"type\":\"message\",\"id\":\"%s\",\"role\":\"assistant\",\"status\":\"%s\",\"content\":[",
			id, status);
		if (done)
			add_text_part(out, c);
		text_add(out, "]");
	}
	text_add(out, "}");
}

/* The limit of tokens cut the last item; those before it came to their end. */
static const char *item_status(const struct choice *c, bool last)
{
	return last && was_cut(c) ? "incomplete" : "completed";
}

static void add_output(struct text *out, const struct choice *c)
{
	bool text = c->text.size || (!c->call_count && !c->thought.size);
	uint64_t index = 0;

	if (c->thought.size)
		add_item(out, c, PART_THOUGHT, index++, 0, item_status(c, !text && !c->call_count));
	if (text) {
		text_add(out, index ? "," : "");
		add_item(out, c, PART_TEXT, index++, 0, item_status(c, !c->call_count));
	}
	for (size_t i = 0; i < c->call_count; i++) {
		text_add(out, index ? "," : "");
		add_item(out, c, PART_CALL, index++, i, item_status(c, i + 1 == c->call_count));
	}
}

/* A member of the request, or another value if it is absent or null. */
static void repeat(struct text *out, const struct answer *a, const char *name, const char *other)
{
	const json_t *value = json_object_get(a->request->body, name);

	text_addf(out, ",\"%s\":", name);
	if (value && !json_is_null(value))
		json_out_value(out, value);
	else
		text_add(out, other);
}

static void repeat_number(struct text *out, const struct answer *a, const char *name, float used)
{
	char number[32];

	snprintf(number, sizeof(number), "%.7g", (double)used);
	repeat(out, a, name, number);
}

static void add_response(struct text *out, const struct answer *a, const char *status)
{
	const struct choice *c = &a->choices[0];
	bool cut = was_cut(c), done = strcmp(status, "in_progress") != 0;
	struct answer_usage u = answer_usage(a);

	text_addf(
		out,
		"{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",\"error\":null,",
		a->id, (long long)a->created, cut ? "incomplete" : status);
	text_addf(out, "\"incomplete_details\":%s,\"model\":",
		  cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
	json_out_text(out, a->request->model);
	text_add(out, ",\"output\":[");
	if (done)
		add_output(out, c);
	text_add(out, "],\"store\":false,\"previous_response_id\":null");
	repeat(out, a, "instructions", "null");
	repeat(out, a, "max_output_tokens", "null");
	repeat(out, a, "metadata", "{}");
	repeat(out, a, "parallel_tool_calls", "true");
	repeat_number(out, a, "temperature", a->request->engine.sampling.temperature);
	repeat(out, a, "top_logprobs", "0");
	repeat_number(out, a, "top_p", a->request->engine.sampling.top_p);
	repeat(out, a, "text", "{\"format\":{\"type\":\"text\"}}");
	repeat(out, a, "tools", "[]");
	repeat(out, a, "tool_choice", "\"auto\"");
	repeat(out, a, "truncation", "\"disabled\"");
	if (done)
		text_addf(
			out,
			",\"usage\":{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld},"
			"\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
			"\"total_tokens\":%lld}",
			(long long)u.prompt, (long long)u.cached, (long long)u.tokens, (long long)u.thought,
			(long long)(u.prompt + u.tokens));
	text_add(out, done ? "}" : ",\"usage\":null}");
}

static void response_event(struct answer *a, const char *name, const char *status)
{
	event(a, name);
	text_add(&a->out, ",\"response\":");
	add_response(&a->out, a, status);
	end_event(a);
}

static void begin(struct answer *a)
{
	response_event(a, "response.created", "in_progress");
	response_event(a, "response.in_progress", "in_progress");
}

/* The members that name the open item's place. */
static void add_place(const struct choice *c)
{
	char id[64];

	item_id(id, c->answer, c->block_kind, c->block - 1);
	text_addf(&c->answer->out, ",\"output_index\":%llu,\"item_id\":\"%s\"",
		  (unsigned long long)c->block - 1, id);
}

static void open_item(struct choice *c, enum part_kind kind)
{
	struct answer *a = c->answer;

	c->block = ++a->blocks;
	c->block_kind = kind;
	c->block_call = c->call_count - 1;
	event(a, "response.output_item.added");
	text_addf(&a->out, ",\"output_index\":%llu,\"item\":", (unsigned long long)c->block - 1);
	add_item(&a->out, c, kind, c->block - 1, c->block_call, "in_progress");
	end_event(a);
	if (kind != PART_TEXT)
		return;
	event(a, "response.content_part.added");
	add_place(c);
	text_add(&a->out,
		 ",\"content_index\":0,\"part\":{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],"
		 "\"text\":\"\"}");
	end_event(a);
}

static void done_text(struct choice *c, const char *name, const char *member, const struct text *text)
{
	event(c->answer, name);
	add_place(c);
	text_addf(&c->answer->out, "%s,\"%s\":", c->block_kind == PART_CALL ? "" : ",\"content_index\":0",
		  member);
	json_out_bytes(&c->answer->out, text_str(text), text->size);
	if (c->block_kind == PART_TEXT)
		text_addf(&c->answer->out, ",\"logprobs\":[%s]", text_str(&c->text_logprobs));
	end_event(c->answer);
}

static void close_item(struct choice *c)
{
	struct answer *a = c->answer;

	if (!c->block)
		return;
	if (c->block_kind == PART_CALL) {
		done_text(c, "response.function_call_arguments.done", "arguments",
			  &c->calls[c->block_call].arguments);
	} else if (c->block_kind == PART_THOUGHT) {
		done_text(c, "response.reasoning_text.done", "text", &c->thought);
	} else {
		done_text(c, "response.output_text.done", "text", &c->text);
		event(a, "response.content_part.done");
		add_place(c);
		text_add(&a->out, ",\"content_index\":0,\"part\":");
		add_text_part(&a->out, c);
		end_event(a);
	}
	event(a, "response.output_item.done");
	text_addf(&a->out, ",\"output_index\":%llu,\"item\":", (unsigned long long)c->block - 1);
	add_item(&a->out, c, c->block_kind, c->block - 1, c->block_call, item_status(c, true));
	end_event(a);
	c->block = 0;
}

static void part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	static const char *const names[] = {[PART_TEXT] = "response.output_text.delta",
					    [PART_THOUGHT] = "response.reasoning_text.delta",
					    [PART_ARGUMENTS] = "response.function_call_arguments.delta"};
	struct answer *a = c->answer;

	if (kind != PART_ARGUMENTS && (kind == PART_CALL || !c->block || c->block_kind != kind)) {
		close_item(c);
		open_item(c, kind);
	}
	if (kind == PART_CALL)
		return;
	event(a, names[kind]);
	add_place(c);
	text_addf(&a->out, "%s,\"delta\":\"", kind == PART_ARGUMENTS ? "" : ",\"content_index\":0");
	json_out_escaped(&a->out, text, size);
	text_add(&a->out, "\"");
	if (kind == PART_TEXT)
		text_addf(&a->out, ",\"logprobs\":[%s]", text_str(&c->logprobs.entries));
	end_event(a);
}

static void choice_end(struct choice *c)
{
	close_item(c);
}

static void end(struct answer *a)
{
	response_event(a, was_cut(&a->choices[0]) ? "response.incomplete" : "response.completed",
		       "completed");
}

static void error(struct answer *a, const struct api_error *e)
{
	event(a, "error");
	text_add(&a->out, ",\"code\":");
	json_out_text(&a->out, e->code ? e->code : e->type);
	text_add(&a->out, ",\"message\":");
	json_out_text(&a->out, e->message);
	text_add(&a->out, ",\"param\":null");
	end_event(a);
}

static void whole(struct answer *a)
{
	add_response(&a->out, a, "completed");
}

const struct answer_form answer_form_responses = {
	.id_prefix = "resp_",
	.begin = begin,
	.part = part,
	.choice_end = choice_end,
	.end = end,
	.error = error,
	.whole = whole,
};
