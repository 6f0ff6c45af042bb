/* SPDX-License-Identifier: Apache-2.0 */
/* Log probabilities in the two forms of OpenAI's API. */
#include "serve/protocol/answer.h"

#include "core/text/utf8.h"
#include "serve/protocol/json_out.h"

/* Appends bytes as OpenAI's completions write a token that is no text: bytes:\xe2\x80. */
static void add_as_bytes(struct text *out, const struct text *bytes)
{
	text_add(out, "bytes:");
	for (size_t i = 0; i < bytes->size; i++) {
		const unsigned char c = (unsigned char)bytes->data[i];

		if (c >= ' ' && c < 0x7f && c != '\\')
			text_addf(out, "%c", c);
		else
			text_addf(out, "\\x%02x", c);
	}
}

/* Appends the JSON string of a completion's token. */
static void add_token(struct text *out, const struct prompter *p, int32_t id)
{
	struct text bytes = {0}, shown = {0};

	prompter_decode(p, id, true, &bytes);
	if (utf8_is_valid(text_str(&bytes), bytes.size)) {
		json_out_bytes(out, text_str(&bytes), bytes.size);
	} else {
		add_as_bytes(&shown, &bytes);
		json_out_bytes(out, text_str(&shown), shown.size);
	}
	text_release(&shown);
	text_release(&bytes);
}

/* "token", "logprob" and "bytes", without braces. */
static void add_entry(struct text *out, const struct prompter *p, int32_t id, double logprob)
{
	struct text bytes = {0};

	prompter_decode(p, id, true, &bytes);
	text_add(out, "\"token\":");
	json_out_bytes(out, text_str(&bytes), bytes.size);
	text_add(out, ",\"logprob\":");
	json_out_logprob(out, logprob);
	text_add(out, ",\"bytes\":[");
	for (size_t i = 0; i < bytes.size; i++)
		text_addf(out, "%s%u", i ? "," : "", (unsigned)(unsigned char)bytes.data[i]);
	text_add(out, "]");
	text_release(&bytes);
}

void answer_note_chat_logprob(struct choice *c, const struct engine_event *e)
{
	struct text *out = &c->logprobs.entries;
	const struct prompter *p = c->answer->prompter;
	int32_t wanted = c->answer->request->engine.logprobs;

	text_add(out, c->logprobs.count++ ? ",{" : "{");
	add_entry(out, p, e->token, (double)e->logprob);
	text_add(out, ",\"top_logprobs\":[");
	for (int32_t i = 0; i < e->tops && i < wanted; i++) {
		text_add(out, i ? ",{" : "{");
		add_entry(out, p, e->top[i].id, (double)e->top[i].logprob);
		text_add(out, "}");
	}
	text_add(out, "]}");
}

/* Characters that a token adds to the text. `control`: a control token adds its name. */
static size_t characters(const struct prompter *p, int32_t id, bool control)
{
	struct text bytes = {0};
	size_t count = 0;

	prompter_decode(p, id, control, &bytes);
	for (size_t i = 0; i < bytes.size; i++)
		count += ((unsigned char)bytes.data[i] & 0xc0) != 0x80;
	text_release(&bytes);
	return count;
}

static bool is_among(const struct text *name, const struct text *names, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		if (!strcmp(text_str(&names[i]), text_str(name)))
			return true;
	return false;
}

/* An object by tokens. If two ids have the same text, the likelier one counts. */
static void add_tops(struct text *out, const struct prompter *p, const struct engine_event *e, int32_t wanted)
{
	const int32_t tops = e->tops < wanted ? e->tops : wanted;
	struct text names[ENGINE_TOP_MOST] = {{0}};

	text_add(out, "{");
	for (int32_t i = 0; i < tops; i++) {
		add_token(&names[i], p, e->top[i].id);
		if (is_among(&names[i], names, i))
			continue;
		text_addf(out, "%s%s:", i ? "," : "", text_str(&names[i]));
		json_out_logprob(out, (double)e->top[i].logprob);
	}
	text_add(out, "}");
	for (int32_t i = 0; i < tops; i++)
		text_release(&names[i]);
}

static void note(struct choice *c, int32_t token, const struct engine_event *e, bool control)
{
	struct answer_logprobs *l = &c->logprobs;
	const struct prompter *p = c->answer->prompter;
	const char *comma = l->count++ ? "," : "";

	text_add(&l->entries, comma);
	add_token(&l->entries, p, token);
	text_add(&l->values, comma);
	text_add(&l->tops, comma);
	if (e) {
		json_out_logprob(&l->values, (double)e->logprob);
		add_tops(&l->tops, p, e, c->answer->request->engine.logprobs);
	} else { /* the first token of a prompt follows from nothing */
		text_add(&l->values, "null");
		text_add(&l->tops, "null");
	}
	text_addf(&l->offsets, "%s%zu", comma, c->offset);
	c->offset += characters(p, token, control);
}

/* False of a control token that the tokenizer put before the prompt's text. */
static bool begins_text(const struct choice *c, int32_t token)
{
	const struct text *prompt = &c->answer->request->prompt_text[c->prompt];
	struct text bytes = {0};
	bool begins;

	prompter_decode(c->answer->prompter, token, true, &bytes);
	begins = bytes.size <= prompt->size && !memcmp(text_str(&bytes), text_str(prompt), bytes.size);
	text_release(&bytes);
	return begins;
}

void answer_note_first_token(struct choice *c)
{
	const struct request *r = c->answer->request;
	const struct prompt_ids *prompt = &r->prompts[c->prompt];

	if (r->engine.prompt_logprobs >= 0 && !c->first_noted)
		note(c, prompt->ids[0], NULL, begins_text(c, prompt->ids[0]));
	c->first_noted = true;
}

void answer_note_completion_logprob(struct choice *c, const struct engine_event *e)
{
	/* echo repeats the prompt with its control tokens */
	note(c, e->token, e, e->kind == ENGINE_EVENT_PROMPT || c->answer->request->control);
}

void answer_clear_logprobs(struct answer_logprobs *l)
{
	l->entries.size = l->values.size = l->tops.size = l->offsets.size = 0;
	l->count = 0;
}

void answer_add_logprobs(struct text *out, const struct choice *c)
{
	const struct answer_logprobs *l = &c->logprobs;

	if (!l->count) {
		text_add(out, "null");
	} else if (c->answer->request->protocol == PROTOCOL_COMPLETION) {
		text_addf(out, "{\"tokens\":[%s],\"token_logprobs\":[", text_str(&l->entries));
		text_addf(out, "%s],\"top_logprobs\":[%s],\"text_offset\":[%s]}", text_str(&l->values),
			  text_str(&l->tops), text_str(&l->offsets));
	} else {
		text_addf(out, "{\"content\":[%s]}", text_str(&l->entries));
	}
}
