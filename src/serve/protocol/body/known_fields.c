/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/body/body.h"

/* Fields that some endpoint reads, or that OpenAI's clients send and that change nothing here. Sorted. */
static const char *const known[] = {
	"add_generation_prompt",
	"add_special_tokens",
	"audio",
	"background",
	"best_of",
	"cache_salt",
	"chat_template_kwargs",
	"conversation",
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
	"previous_response_id",
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

/* Fields of OpenAI's and Anthropic's APIs, vLLM, SGLang, TGI, llama.cpp, Ollama and gateways that no endpoint
 * here reads. The log may name them, because these names are not a client's own text. Sorted. */
static const char *const elsewhere[] = {
	"adapter_id",
	"allowed_token_ids",
	"bad_words",
	"betas",
	"bootstrap_host",
	"bootstrap_port",
	"bootstrap_room",
	"cache_control",
	"cache_prompt",
	"chat_template",
	"container",
	"context",
	"context_management",
	"continue_final_message",
	"custom_logit_processor",
	"custom_params",
	"data_parallel_rank",
	"decoder_input_details",
	"details",
	"detokenize",
	"do_sample",
	"documents",
	"dry_multiplier",
	"dynatemp_range",
	"early_stopping",
	"extra_body",
	"extra_headers",
	"extra_query",
	"fallbacks",
	"format",
	"guided_decoding_backend",
	"guided_whitespace_pattern",
	"id_slot",
	"images",
	"include_reasoning",
	"inputs",
	"keep_alive",
	"kv_transfer_params",
	"length_penalty",
	"logits_processors",
	"lora_path",
	"max_new_tokens",
	"max_tool_calls",
	"mcp_servers",
	"mirostat",
	"mirostat_eta",
	"mirostat_tau",
	"mm_processor_kwargs",
	"models",
	"n_keep",
	"n_predict",
	"n_probs",
	"no_stop_trim",
	"options",
	"output_config",
	"parameters",
	"plugins",
	"prediction",
	"prompt_cache_key",
	"prompt_cache_retention",
	"prompt_logprobs",
	"provider",
	"raw",
	"reasoning_format",
	"repeat_last_n",
	"repeat_penalty",
	"request_id",
	"return_full_text",
	"return_hidden_states",
	"return_token_ids",
	"return_tokens_as_token_ids",
	"rid",
	"route",
	"safety_identifier",
	"samplers",
	"sampling_params",
	"separate_reasoning",
	"session_params",
	"spaces_between_special_tokens",
	"stop_regex",
	"stream_reasoning",
	"structural_tag",
	"template",
	"tfs_z",
	"think",
	"thinking_token_budget",
	"timeout",
	"timings_per_token",
	"tool_prompt",
	"top_a",
	"top_n_tokens",
	"transforms",
	"truncate_prompt_tokens",
	"typical_p",
	"usage",
	"use_beam_search",
	"verbosity",
	"vllm_xargs",
	"watermark",
	"web_search_options",
	"xtc_probability",
	"xtc_threshold",
};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

/* The entry of a sorted list; NULL: it is not there. */
static const char *find(const char *key, const char *const *names, size_t count)
{
	const char *const *found = bsearch(key, names, count, sizeof(*names), by_name);

	return found ? *found : NULL;
}

void body_note_ignored(struct request *r, const json_t *body)
{
	const json_t *value;
	const char *key, *name;

	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		if (json_is_null(value) || find(key, known, sizeof(known) / sizeof(known[0])))
			continue;
		name = find(key, elsewhere, sizeof(elsewhere) / sizeof(elsewhere[0]));
		if (!name)
			r->unknown_count++;
		else if (r->ignored_count < REQUEST_IGNORED_MOST)
			r->ignored[r->ignored_count++] = name;
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
