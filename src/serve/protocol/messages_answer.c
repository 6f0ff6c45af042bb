/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of Anthropic's /v1/messages: blocks of thinking, text and tool use. */
#include "serve/protocol/answer.h"
#include "serve/protocol/json_out.h"

static void event(struct text *out, const char *name)
{
	text_addf(out, "event: %s\ndata: {\"type\":\"%s\"", name, name);
}

static void end_event(struct text *out)
{
	text_add(out, "}\n\n");
}

static void add_usage(struct text *out, const struct answer *a)
{
	struct answer_usage u = answer_usage(a);

	text_addf(out,
		  "\"usage\":{\"input_tokens\":%lld,\"cache_read_input_tokens\":%lld,\"output_tokens\":%lld}",
		  (long long)(u.prompt - u.cached), (long long)u.cached, (long long)u.tokens);
}

static void add_head(struct text *out, const struct answer *a)
{
	text_addf(out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", a->id);
	json_out_text(out, a->request->model);
}

static void begin(struct answer *a)
{
	event(&a->out, "message_start");
	text_add(&a->out, ",\"message\":");
	add_head(&a->out, a);
	text_add(&a->out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,");
	add_usage(&a->out, a);
	text_add(&a->out, "}");
	end_event(&a->out);
}

static void close_block(struct choice *c)
{
	if (!c->block)
		return;
	event(&c->answer->out, "content_block_stop");
	text_addf(&c->answer->out, ",\"index\":%llu", (unsigned long long)c->block - 1);
	end_event(&c->answer->out);
	c->block = 0;
}

static void open_block(struct choice *c, enum part_kind kind, const char *name, size_t size)
{
	struct text *out = &c->answer->out;
	char id[64];

	close_block(c);
	c->block = ++c->answer->blocks;
	c->block_kind = kind;
	event(out, "content_block_start");
	text_addf(out, ",\"index\":%llu,\"content_block\":", (unsigned long long)c->block - 1);
	if (kind == PART_CALL) {
		answer_call_id(id, c, c->call_count - 1);
		text_addf(out, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", id);
		json_out_bytes(out, name, size);
		text_add(out, ",\"input\":{}}");
	} else if (kind == PART_THOUGHT) {
		text_add(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
	} else {
		text_add(out, "{\"type\":\"text\",\"text\":\"\"}");
	}
	end_event(out);
}

static void part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	static const char *const types[] = {[PART_TEXT] = "text_delta\",\"text",
					    [PART_THOUGHT] = "thinking_delta\",\"thinking",
					    [PART_ARGUMENTS] = "input_json_delta\",\"partial_json"};
	struct text *out = &c->answer->out;

	if (kind == PART_CALL) {
		open_block(c, kind, text, size);
		return;
	}
	if (kind != PART_ARGUMENTS && (!c->block || c->block_kind != kind))
		open_block(c, kind, NULL, 0);
	event(out, "content_block_delta");
	text_addf(out, ",\"index\":%llu,\"delta\":{\"type\":\"%s\":\"", (unsigned long long)c->block - 1,
		  types[kind]);
	json_out_escaped(out, text, size);
	text_add(out, "\"}");
	end_event(out);
}

static void choice_end(struct choice *c)
{
	close_block(c);
}

static void add_reason(struct text *out, const struct choice *c)
{
	const char *reason = !strcmp(c->reason, "length")	? "max_tokens"
			     : !strcmp(c->reason, "tool_calls") ? "tool_use"
			     : c->stop				? "stop_sequence"
								: "end_turn";

	text_addf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", reason);
	if (c->stop)
		json_out_text(out, c->stop);
	else
		text_add(out, "null");
}

static void end(struct answer *a)
{
	event(&a->out, "message_delta");
	text_add(&a->out, ",\"delta\":{");
	add_reason(&a->out, &a->choices[0]);
	text_add(&a->out, "},");
	add_usage(&a->out, a);
	end_event(&a->out);
	event(&a->out, "message_stop");
	end_event(&a->out);
}

static void error(struct answer *a, const struct api_error *e)
{
	text_add(&a->out, "event: error\ndata: ");
	api_error_body_messages(&a->out, e);
	text_add(&a->out, "\n\n");
}

static void add_content(struct text *out, const struct choice *c)
{
	const char *comma = "";
	char id[64];

	if (c->thought.size) {
		text_add(out, "{\"type\":\"thinking\",\"thinking\":");
		json_out_bytes(out, c->thought.data, c->thought.size);
		text_add(out, ",\"signature\":\"\"}");
		comma = ",";
	}
	if (c->text.size || (!c->call_count && !c->thought.size)) {
		text_addf(out, "%s{\"type\":\"text\",\"text\":", comma);
		json_out_bytes(out, text_str(&c->text), c->text.size);
		text_add(out, "}");
		comma = ",";
	}
	for (size_t i = 0; i < c->call_count; i++, comma = ",") {
		const struct text *input = &c->calls[i].arguments;

		answer_call_id(id, c, i);
		text_addf(out, "%s{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", comma, id);
		json_out_text(out, c->calls[i].name);
		/* a whole call was parsed, so its arguments are JSON */
		text_addf(out, ",\"input\":%s}", input->size ? input->data : "{}");
	}
}

static void whole(struct answer *a)
{
	add_head(&a->out, a);
	text_add(&a->out, ",\"content\":[");
	add_content(&a->out, &a->choices[0]);
	text_add(&a->out, "],");
	add_reason(&a->out, &a->choices[0]);
	text_add(&a->out, ",");
	add_usage(&a->out, a);
	text_add(&a->out, "}");
}

const struct answer_form answer_form_messages = {
	.id_prefix = "msg_",
	.begin = begin,
	.part = part,
	.choice_end = choice_end,
	.end = end,
	.error = error,
	.whole = whole,
};
