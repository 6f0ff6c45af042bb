/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of requests. */
#include <math.h>
#include "core/json/read.h"
#include "core/json/text.h"
#include "load/content/internal.h"

/* Members that the plan decides or that the reader of answers relies on. */
static const char *const taken[] = {"messages",	      "prompt",	    "stream",
				    "stream_options", "max_tokens", "max_completion_tokens",
				    "min_tokens",     "n",	    NULL};

static enum status check_extra(const json_t *extra, struct error *err)
{
	if (!json_is_object(extra))
		return error_set(err, STATUS_BAD_INPUT, "--body is not a JSON object");
	for (const char *const *name = taken; *name; name++)
		if (json_object_get(extra, *name))
			return error_set(err, STATUS_BAD_INPUT,
					 "--body: \"%s\" cannot be given; the load test sets it", *name);
	return STATUS_OK;
}

static enum status add_extra(struct load_content *c, json_t *all, const char *text, struct error *err)
{
	struct json_wrong why;
	json_t *extra = json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &why);
	enum status st;

	if (!extra)
		return error_set(err, STATUS_BAD_INPUT, "--body is not a JSON object: %s (column %d)",
				 why.text, why.column);
	st = check_extra(extra, err);
	if (!st && json_object_update(all, extra))
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for the members of --body");
	c->kwargs = json_incref(json_object_get(extra, "chat_template_kwargs"));
	json_decref(extra);
	return st;
}

/* Members whose value is NULL are left out. */
static json_t *constant_members(const struct load_content_spec *s)
{
	return json_pack("{ss* sb so* so* so* so*}", "model", s->model, "stream", s->stream, "stream_options",
			 s->stream && s->usage ? json_pack("{sb}", "include_usage", 1) : NULL, "temperature",
			 isnan(s->temperature) ? NULL : json_real(s->temperature), "seed",
			 s->seed < 0 ? NULL : json_integer(s->seed), "ignore_eos",
			 s->ignore_eos ? json_true() : NULL);
}

enum status body_tail(struct load_content *c, const struct load_content_spec *spec, struct error *err)
{
	json_t *all = constant_members(spec);
	struct text json = {0};
	enum status st = all ? STATUS_OK : error_set(err, STATUS_BAD_INPUT, "the model's name is not UTF-8");

	if (!st && spec->extra)
		st = add_extra(c, all, spec->extra, err);
	if (!st) {
		json_text_add(&json, all, 0);
		if (json.size) /* without the opening brace */
			text_add(&c->tail, text_str(&json) + 1);
		if (json.failed || c->tail.failed)
			st = error_set(err, STATUS_NO_RESOURCE, "the members of requests");
	}
	text_release(&json);
	json_decref(all);
	c->limit = spec->max_completion_tokens && !spec->completion ? "max_completion_tokens" : "max_tokens";
	c->min_tokens = spec->min_tokens;
	return st;
}

static void add_rest(const struct load_content *c, const struct load_asked *asked, struct text *out)
{
	text_addf(out, ",\"%s\":%u,", c->limit, asked->output_tokens);
	if (c->min_tokens)
		text_addf(out, "\"min_tokens\":%u,", asked->output_tokens);
	text_add_bytes(out, c->tail.data, c->tail.size);
}

/* Words need no escapes. */
void body_of_message(struct load_worker *w, const struct load_asked *asked, struct text *out)
{
	text_add(out,
		 w->c->completion ? "{\"prompt\":\"" : "{\"messages\":[{\"role\":\"user\",\"content\":\"");
	text_add_bytes(out, w->message.data, w->message.size);
	text_add(out, w->c->completion ? "\"" : "\"}]");
	add_rest(w->c, asked, out);
}

enum status body_of_dialogue(struct load_worker *w, const struct load_dialogue *d,
			     const struct load_asked *asked, struct text *out, struct error *err)
{
	json_t *prompt = w->c->completion ? json_stringn(text_str(&d->prompt), d->prompt.size) : NULL;

	text_add(out, prompt ? "{\"prompt\":" : "{\"messages\":");
	json_text_add(out, prompt ? prompt : d->messages, 0);
	if (!prompt && d->tools) {
		text_add(out, ",\"tools\":");
		json_text_add(out, d->tools, 0);
	}
	json_decref(prompt);
	add_rest(w->c, asked, out);
	return out->failed ? error_set(err, STATUS_NO_RESOURCE, "the body of a request") : STATUS_OK;
}
