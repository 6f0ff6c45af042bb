/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of /v1/chat/completions. The token path only appends: a chunk is a prefix that was made once, the
 * text, and a constant end. */
#include "serve/protocol/answer.h"
#include "serve/protocol/json_out.h"

/* data: {.., "choices":[{"index":I,"delta":{ */
static void add_prefix(struct choice *c)
{
	const struct answer *a = c->answer;
	struct text *p = &c->prefix;

	if (!p->size) {
		text_addf(
			p,
			"data: {\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"created\":%lld,\"model\":",
			a->id, (long long)a->created);
		json_out_text(p, a->request->model);
		text_addf(p, ",\"choices\":[{\"index\":%zu,\"delta\":{", c->index);
	}
	text_add_bytes(&c->answer->out, p->data, p->size);
}

static void add_end(struct choice *c, const char *reason)
{
	struct text *out = &c->answer->out;

	text_add(out, "},\"logprobs\":");
	answer_add_logprobs(out, c);
	answer_clear_logprobs(&c->logprobs);
	if (reason)
		text_addf(out, ",\"finish_reason\":\"%s\"}]", reason);
	else
		text_add(out, ",\"finish_reason\":null}]");
	answer_add_chunk_usage(out, c->answer);
	text_add(out, "}\n\n");
}

static void begin(struct answer *a)
{
	for (size_t i = 0; i < a->count; i++) {
		struct answer_logprobs later = a->choices[i].logprobs;

		a->choices[i].logprobs = (struct answer_logprobs){0};
		add_prefix(&a->choices[i]);
		text_add(&a->out, "\"role\":\"assistant\",\"content\":\"\"");
		add_end(&a->choices[i], NULL);
		a->choices[i].logprobs = later;
	}
}

static void part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	struct text *out = &c->answer->out;
	char id[64];

	add_prefix(c);
	switch (kind) {
	case PART_TEXT:
		text_add(out, "\"content\":\"");
		json_out_escaped(out, text, size);
		text_add(out, "\"");
		break;
	case PART_THOUGHT:
		text_add(out, "\"reasoning_content\":\"");
		json_out_escaped(out, text, size);
		text_add(out, "\"");
		break;
	case PART_CALL:
		answer_call_id(id, c, c->call_count - 1);
		text_addf(
			out,
			"\"tool_calls\":[{\"index\":%zu,\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":",
			c->call_count - 1, id);
		json_out_bytes(out, text, size);
		text_add(out, ",\"arguments\":\"\"}}]");
		break;
	case PART_ARGUMENTS:
		text_addf(out, "\"tool_calls\":[{\"index\":%zu,\"function\":{\"arguments\":\"",
			  c->call_count - 1);
		json_out_escaped(out, text, size);
		text_add(out, "\"}}]");
		break;
	}
	add_end(c, NULL);
}

static void choice_end(struct choice *c)
{
	add_prefix(c);
	add_end(c, c->reason);
}

static void end(struct answer *a)
{
	if (a->request->include_usage) {
		struct answer_usage u = answer_usage(a);

		text_addf(
			&a->out,
			"data: {\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"created\":%lld,\"model\":",
			a->id, (long long)a->created);
		json_out_text(&a->out, a->request->model);
		text_add(&a->out, ",\"choices\":[],");
		answer_add_usage(&a->out, &u);
		text_add(&a->out, "}\n\n");
	}
	text_add(&a->out, "data: [DONE]\n\n");
}

static void error(struct answer *a, const struct api_error *e)
{
	text_add(&a->out, "data: ");
	api_error_body(&a->out, e);
	text_add(&a->out, "\n\n");
}

static void add_calls(struct text *out, const struct choice *c)
{
	char id[64];

	text_add(out, ",\"tool_calls\":[");
	for (size_t i = 0; i < c->call_count; i++) {
		answer_call_id(id, c, i);
		text_addf(out, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":", i ? "," : "",
			  id);
		json_out_text(out, c->calls[i].name);
		text_add(out, ",\"arguments\":");
		json_out_bytes(out, text_str(&c->calls[i].arguments), c->calls[i].arguments.size);
		text_add(out, "}}");
	}
	text_add(out, "]");
}

static void add_choice(struct text *out, const struct choice *c)
{
	text_addf(out,
		  "%s{\"index\":%zu,\"message\":{\"role\":\"assistant\",\"content\":", c->index ? "," : "",
		  c->index);
	if (c->call_count && !c->text.size)
		text_add(out, "null");
	else
		json_out_bytes(out, text_str(&c->text), c->text.size);
	text_add(out, ",\"refusal\":null");
	if (c->thought.size) {
		text_add(out, ",\"reasoning_content\":");
		json_out_bytes(out, c->thought.data, c->thought.size);
	}
	if (c->call_count)
		add_calls(out, c);
	text_add(out, "},\"logprobs\":");
	answer_add_logprobs(out, c);
	text_addf(out, ",\"finish_reason\":\"%s\"}", c->reason);
}

static void whole(struct answer *a)
{
	struct answer_usage u = answer_usage(a);
	struct text *out = &a->out;

	text_addf(out, "{\"id\":\"%s\",\"object\":\"chat.completion\",\"created\":%lld,\"model\":", a->id,
		  (long long)a->created);
	json_out_text(out, a->request->model);
	text_add(out, ",\"choices\":[");
	for (size_t i = 0; i < a->count; i++)
		add_choice(out, &a->choices[i]);
	text_add(out, "],");
	answer_add_usage(out, &u);
	text_add(out, "}");
}

const struct answer_form answer_form_chat = {
	.id_prefix = "chatcmpl-",
	.begin = begin,
	.part = part,
	.choice_end = choice_end,
	.end = end,
	.error = error,
	.whole = whole,
};
