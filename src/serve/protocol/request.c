/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/json_cost.h"
#include "serve/protocol/request_internal.h"

/* Fields that some endpoint reads, or that OpenAI's clients send and that change nothing here. Sorted. */
static const char *const known[] = {
	"add_generation_prompt",
	"add_special_tokens",
	"audio",
	"best_of",
	"cache_salt",
	"chat_template_kwargs",
	"echo",
	"frequency_penalty",
	"function_call",
	"functions",
	"ignore_eos",
	"include",
	"include_stop_str_in_output",
	"input",
	"instructions",
	"logit_bias",
	"logprobs",
	"max_completion_tokens",
	"max_output_tokens",
	"max_tokens",
	"messages",
	"metadata",
	"min_p",
	"min_tokens",
	"modalities",
	"model",
	"n",
	"parallel_tool_calls",
	"presence_penalty",
	"priority",
	"prompt",
	"reasoning",
	"reasoning_effort",
	"repetition_penalty",
	"response_format",
	"return_token_strs",
	"seed",
	"service_tier",
	"skip_special_tokens",
	"stop",
	"stop_sequences",
	"stop_token_ids",
	"store",
	"stream",
	"stream_options",
	"suffix",
	"system",
	"temperature",
	"text",
	"thinking",
	"tokens",
	"tool_choice",
	"tools",
	"top_k",
	"top_logprobs",
	"top_p",
	"truncation",
	"user",
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

void request_unknown(struct request *r, const json_t *body)
{
	const char *key;

	for (void *at = json_object_iter((json_t *)(uintptr_t)body); at;
	     at = json_object_iter_next((json_t *)(uintptr_t)body, at)) {
		key = json_object_iter_key(at);
		if (r->unknown_count == REQUEST_UNKNOWN_MOST)
			return;
		if (bsearch(key, known, sizeof(known) / sizeof(known[0]), sizeof(known[0]), by_name))
			continue;
		r->unknown[r->unknown_count] = strndup(key, 64);
		if (r->unknown[r->unknown_count])
			r->unknown_count++;
	}
}

/* Fields of other servers that constrain the answer. An answer that ignores one looks right and is not. */
static bool check_constraints(const json_t *body, struct api_error *err)
{
	static const char *const names[] = {"ebnf",	      "grammar",     "guided_choice",
					    "guided_grammar", "guided_json", "guided_regex",
					    "json_schema",    "regex",	     "structured_outputs"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *value = json_object_get(body, names[i]);

		if (value && !json_is_null(value))
			return api_wrong(
				err, names[i],
				"%s is a field of another server, and this one would not enforce it; use "
				"response_format with a json_schema",
				names[i]);
	}
	return true;
}

bool request_out_of_memory(struct api_error *err)
{
	return api_fail(err, 503, "out_of_memory", "the server has no memory for this request");
}

bool request_ids(const json_t *array, const char *name, int32_t size, size_t most, struct prompt_ids *out,
		 struct api_error *err)
{
	size_t count = json_array_size(array), i;
	const json_t *id;

	*out = (struct prompt_ids){0};
	if (count > most)
		return api_wrong(err, name, "%s has %zu tokens; %zu is the most", name, count, most);
	out->ids = malloc((count ? count : 1) * sizeof(*out->ids));
	if (!out->ids)
		return request_out_of_memory(err);
	json_array_foreach(array, i, id)
	{
		if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= size) {
			free(out->ids);
			*out = (struct prompt_ids){0};
			return api_wrong(err, name, "%s[%zu] is not a token id from 0 to %d", name, i,
					 (int)size - 1);
		}
		out->ids[i] = (int32_t)json_integer_value(id);
	}
	out->count = count;
	return true;
}

static bool read_body(struct request_reading *in, json_t **body, const char *text, size_t size)
{
	json_error_t why;
	size_t cost = json_cost(text, size);

	if (cost > REQUEST_JSON_COST_MOST)
		return api_fail(
			in->err, 413, "body_too_large",
			"the body has too many JSON values: they would take about %zu MiB of memory, and "
			"%d MiB is the most",
			cost >> 14, REQUEST_JSON_COST_MOST >> 14);
	*body = json_loadb(text, size, JSON_ALLOW_NUL, &why);
	if (!*body)
		return api_wrong(in->err, "", "the body is not JSON at line %d, column %d (%s)", why.line,
				 why.column, why.text);
	if (!json_is_object(*body))
		return api_wrong(in->err, "", "the body must be a JSON object, not %s",
				 field_type_name(*body));
	return true;
}

static bool read_protocol(struct request_reading *in, json_t *body)
{
	switch (in->r->protocol) {
	case PROTOCOL_CHAT:
		return request_chat(in, body);
	case PROTOCOL_COMPLETION:
		return request_completion(in, body);
	case PROTOCOL_RESPONSES:
		in->r->body = json_incref(body);
		return request_responses(in, body);
	case PROTOCOL_MESSAGES:
		return request_messages(in, body);
	case PROTOCOL_TOKENIZE:
		return request_tokenize(in, body);
	case PROTOCOL_DETOKENIZE:
		return request_detokenize(in, body);
	}
	return false;
}

static bool check_lengths(struct request_reading *in)
{
	struct request *r = in->r;

	if (r->prompt_count * r->n > REQUEST_CHOICES_MOST)
		return api_wrong(in->err, "n", "%zu prompts with n %zu make %zu answers; %d is the most",
				 r->prompt_count, r->n, r->prompt_count * r->n, REQUEST_CHOICES_MOST);
	for (size_t i = 0; i < r->prompt_count; i++) {
		if (!r->prompts[i].count)
			return api_wrong(in->err, request_prompt_field(r->protocol),
					 "the prompt is empty: it has no token");
		if (r->prompts[i].count > in->rules->prompt_most) {
			api_wrong(in->err, request_prompt_field(r->protocol),
				  "the prompt has %zu tokens; the limit is %zu", r->prompts[i].count,
				  in->rules->prompt_most);
			in->err->code = "context_length_exceeded";
			return false;
		}
	}
	return true;
}

bool request_read(struct request **out, enum protocol protocol, const char *body, size_t size,
		  const struct request_rules *rules, struct prompter_worker *worker, struct api_error *err)
{
	struct request *r = calloc(1, sizeof(*r));
	struct request_reading in = {.r = r, .rules = rules, .worker = worker, .err = err};
	json_t *json = NULL;
	bool good;

	*out = NULL;
	if (!r)
		return request_out_of_memory(err);
	r->protocol = protocol;
	r->n = 1;
	r->engine.logprobs = r->engine.prompt_logprobs = -1;
	good = read_body(&in, &json, body, size);
	if (good)
		request_unknown(r, json);
	good = good && request_null_characters(protocol, json, err) && check_constraints(json, err) &&
	       read_protocol(&in, json) && (protocol > PROTOCOL_MESSAGES || check_lengths(&in));
	json_decref(json);
	if (good)
		*out = r;
	else
		request_destroy(&r);
	return good;
}

void request_destroy(struct request **r_)
{
	struct request *r = *r_;

	*r_ = NULL;
	if (!r)
		return;
	for (size_t i = 0; i < r->prompt_count; i++) {
		free(r->prompts[i].ids);
		if (r->prompt_text)
			text_release(&r->prompt_text[i]);
	}
	stop_texts_destroy(&r->stop_texts);
	for (size_t i = 0; i < r->stop_count; i++)
		free(r->stops[i]);
	for (size_t i = 0; i < r->unknown_count; i++)
		free(r->unknown[i]);
	free(r->prompts);
	free(r->prompt_text);
	text_release(&r->reply);
	free(r->bias);
	free(r->grammar);
	json_decref(r->body);
	free(r);
}

const char *request_prompt_field(enum protocol protocol)
{
	return protocol == PROTOCOL_COMPLETION	? "prompt"
	       : protocol == PROTOCOL_RESPONSES ? "input"
						: "messages";
}

static const char *penalty_of(const struct engine_sampling *s)
{
	return s->repetition != 1 ? "repetition_penalty"
	       : s->presence != 0 ? "presence_penalty"
				  : "frequency_penalty";
}

const char *request_refused_field(const struct request *r, const char *text)
{
	static const char *const same[] = {"frequency_penalty",	 "logit_bias",	"min_p", "presence_penalty",
					   "repetition_penalty", "temperature", "top_k", "top_p"};
	const struct {
		const char *words, *field;
	} others[] = {
		{"the prompt", request_prompt_field(r->protocol)},
		{"stop ids", "stop"},
		{"log probabilities", r->protocol == PROTOCOL_COMPLETION ? "logprobs" : "top_logprobs"},
		{"adapter", "model"},
		{"penalties", penalty_of(&r->engine.sampling)},
	};

	if (r->calls && !strncmp(text, "answer", 6))
		return r->protocol == PROTOCOL_RESPONSES ? "text.format" : "response_format";
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (!strncmp(text, same[i], strlen(same[i])))
			return same[i];
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strstr(text, others[i].words))
			return others[i].field;
	return r->grammar_field ? r->grammar_field : "";
}
