/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of /v1/completions. */
#include "serve/protocol/answer.h"
#include "serve/protocol/json_out.h"

static void add_head(struct text *out, const struct answer *a)
{
	text_addf(out, "{\"id\":\"%s\",\"object\":\"text_completion\",\"created\":%lld,\"model\":", a->id,
		  (long long)a->created);
	json_out_text(out, a->request->model);
	text_add(out, ",\"choices\":[");
}

static void chunk(struct choice *c, const char *text, size_t size, const char *reason)
{
	struct text *out = &c->answer->out;

	if (!c->prefix.size) {
		text_add(&c->prefix, "data: ");
		add_head(&c->prefix, c->answer);
		text_addf(&c->prefix, "{\"index\":%zu,\"text\":\"", c->index);
	}
	text_add_bytes(out, c->prefix.data, c->prefix.size);
	json_out_escaped(out, text, size);
	text_add(out, "\",\"logprobs\":");
	answer_add_logprobs(out, c);
	answer_clear_logprobs(&c->logprobs);
	if (reason)
		text_addf(out, ",\"finish_reason\":\"%s\"}]", reason);
	else
		text_add(out, ",\"finish_reason\":null}]");
	answer_add_chunk_usage(out, c->answer);
	text_add(out, "}\n\n");
}

/* With echo, each choice's stream begins with its prompt. */
static void begin(struct answer *a)
{
	const struct request *r = a->request;
	struct answer_logprobs later;

	for (size_t i = 0; i < a->count && r->echo; i++) {
		struct choice *c = &a->choices[i];

		later = c->logprobs;
		c->logprobs = (struct answer_logprobs){0};
		chunk(c, text_str(&r->prompt_text[c->prompt]), r->prompt_text[c->prompt].size, NULL);
		c->logprobs = later;
	}
}

static void part(struct choice *c, enum part_kind kind, const char *text, size_t size)
{
	if (kind == PART_TEXT)
		chunk(c, text, size, NULL);
}

static void choice_end(struct choice *c)
{
	chunk(c, "", 0, c->reason);
}

static void end(struct answer *a)
{
	if (a->request->include_usage) {
		struct answer_usage u = answer_usage(a);

		text_add(&a->out, "data: ");
		add_head(&a->out, a);
		text_add(&a->out, "],");
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

static void whole(struct answer *a)
{
	struct answer_usage u = answer_usage(a);
	struct text *out = &a->out;

	add_head(out, a);
	for (size_t i = 0; i < a->count; i++) {
		const struct choice *c = &a->choices[i];

		text_addf(out, "%s{\"index\":%zu,\"text\":", i ? "," : "", i);
		json_out_bytes(out, text_str(&c->text), c->text.size);
		text_add(out, ",\"logprobs\":");
		answer_add_logprobs(out, c);
		text_addf(out, ",\"finish_reason\":\"%s\"}", c->reason);
	}
	text_add(out, "],");
	answer_add_usage(out, &u);
	text_add(out, "}");
}

const struct answer_form answer_form_completion = {
	.id_prefix = "cmpl-",
	.begin = begin,
	.part = part,
	.choice_end = choice_end,
	.end = end,
	.error = error,
	.whole = whole,
};
