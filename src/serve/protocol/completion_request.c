/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/completions: prompts as text or token ids, one or several. */
#include "serve/protocol/request_internal.h"

#include "core/text/characters.h"
#include "serve/protocol/fields.h"

enum { COMPLETION_TOKENS = 16 }; /* OpenAI's default of max_tokens */

static bool is_ids(const json_t *value)
{
	return json_is_array(value) && json_is_integer(json_array_get(value, 0));
}

/* `place`: "prompt", or "prompt[2]" if there are several. */
static bool add_prompt(struct request_reading *in, const json_t *value, const char *place, bool special)
{
	struct request *r = in->r;
	struct prompt_ids *ids = &r->prompts[r->prompt_count++];
	struct error err = {0};

	if (is_ids(value))
		return request_ids(value, place, prompter_size(in->rules->prompter), in->rules->prompt_most,
				   ids, in->err);
	if (json_is_array(value) && !json_array_size(value))
		return api_wrong(in->err, place, "%s is an empty array, where a prompt belongs", place);
	if (!json_is_string(value))
		return api_wrong(
			in->err, place,
			"%s is %s; a prompt must be a text, an array of texts, an array of token ids or an "
			"array of such arrays",
			place, field_type_name(value));
	return !prompter_text(in->worker, json_string_value(value), json_string_length(value), special, ids,
			      &err) ||
	       api_from(in->err, place, &err);
}

static bool read_prompts(struct request_reading *in, const json_t *body)
{
	struct request *r = in->r;
	const json_t *prompt = field_value(body, "prompt"), *one;
	bool several = json_is_array(prompt) && !is_ids(prompt), special = true;
	size_t count = several ? json_array_size(prompt) : 1, i;
	char place[32];

	if (!field_bool(body, "add_special_tokens", &special, in->err))
		return false;
	if (!prompt || !count)
		return api_wrong(in->err, "prompt", "prompt is missing or empty");
	if (count > REQUEST_PROMPTS_MOST)
		return api_wrong(in->err, "prompt", "prompt has %zu entries; %d is the most", count,
				 REQUEST_PROMPTS_MOST);
	r->prompts = calloc(count, sizeof(*r->prompts));
	if (!r->prompts)
		return request_out_of_memory(in->err);
	if (!several)
		return add_prompt(in, prompt, "prompt", special);
	json_array_foreach(prompt, i, one)
	{
		snprintf(place, sizeof(place), "prompt[%zu]", i);
		if (!add_prompt(in, one, place, special))
			return false;
	}
	return true;
}

static void decode(const struct prompter *p, const struct prompt_ids *ids, struct text *out)
{
	struct text bytes = {0};
	char partial[4];
	size_t held = 0;

	for (size_t i = 0; i < ids->count; i++)
		prompter_decode(p, ids->ids[i], true, &bytes);
	characters_add(partial, &held, text_str(&bytes), bytes.size, out);
	characters_end(&held, out);
	text_release(&bytes);
}

/* The texts that `echo` repeats: the prompt's own, not what its tokens decode to. */
static bool keep_texts(struct request_reading *in, const json_t *body)
{
	struct request *r = in->r;
	const json_t *prompt = field_value(body, "prompt");

	r->prompt_text = calloc(r->prompt_count, sizeof(*r->prompt_text));
	if (!r->prompt_text)
		return request_out_of_memory(in->err);
	for (size_t i = 0; i < r->prompt_count; i++) {
		const json_t *one =
			json_is_array(prompt) && !is_ids(prompt) ? json_array_get(prompt, i) : prompt;

		if (json_is_string(one))
			text_add_bytes(&r->prompt_text[i], json_string_value(one), json_string_length(one));
		else
			decode(in->rules->prompter, &r->prompts[i], &r->prompt_text[i]);
	}
	return true;
}

bool request_completion(struct request_reading *in, const json_t *body)
{
	struct request *r = in->r;
	struct {
		int64_t logprobs;
	} v = {.logprobs = -1};
	const struct field logprobs = {"logprobs", FIELD_INT, 0, 0, ENGINE_TOP_MOST, false};

	if (!request_common(in, body) || !field_bool(body, "echo", &r->echo, in->err) ||
	    !fields_read(body, &logprobs, 1, &v, in->err))
		return false;
	if (field_value(body, "suffix"))
		return api_wrong(in->err, "suffix", "suffix is not supported");
	r->engine.logprobs = (int32_t)v.logprobs;
	r->engine.prompt_logprobs = r->echo ? r->engine.logprobs : -1;
	if (!r->engine.max_tokens && !r->echo)
		return api_wrong(in->err, "max_tokens", "max_tokens is 0, which needs echo");
	if (!r->engine.max_tokens)
		r->engine.max_tokens = -1; /* only score the prompt */
	else if (r->engine.max_tokens < 0 && !request_default_length(in, COMPLETION_TOKENS))
		return false;
	return request_grammar(in, body, NULL) && read_prompts(in, body) &&
	       (!r->echo || keep_texts(in, body));
}
