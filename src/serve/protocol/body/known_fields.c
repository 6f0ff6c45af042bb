/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/body/body.h"

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

void body_note_unknown(struct request *r, const json_t *body)
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

bool body_check_constraints(const json_t *body, struct api_error *err)
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
