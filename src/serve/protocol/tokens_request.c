/* SPDX-License-Identifier: Apache-2.0 */
/* /tokenize and /detokenize. The response is written here too, because it can be long and no stream may wait
 * for it. */
#include "serve/protocol/request_internal.h"

#include "serve/protocol/json_out.h"

static void write_tokens(struct request *r, const struct prompter *p, bool texts)
{
	const struct prompt_ids *ids = &r->prompts[0];
	struct text *out = &r->reply, bytes = {0};

	text_addf(out, "{\"count\":%zu,\"tokens\":[", ids->count);
	for (size_t i = 0; i < ids->count; i++)
		text_addf(out, i ? ",%d" : "%d", (int)ids->ids[i]);
	text_add(out, texts ? "],\"token_strs\":[" : "]");
	for (size_t i = 0; texts && i < ids->count; i++) {
		bytes.size = 0;
		prompter_decode(p, ids->ids[i], true, &bytes);
		text_add(out, i ? "," : "");
		json_out_bytes(out, text_str(&bytes), bytes.size);
	}
	text_add(out, texts ? "]" : "");
	text_release(&bytes);
}

static bool read_text(struct request_reading *in, const json_t *body, bool special)
{
	const json_t *value = field_value(body, "prompt");
	struct request *r = in->r;
	const char *prompt = NULL;
	struct error err = {0};

	if (!field_text(body, "prompt", &prompt, in->err))
		return false;
	if (!prompt)
		return api_wrong(in->err, "prompt", "prompt or messages is missing");
	r->prompts = calloc(1, sizeof(*r->prompts));
	if (!r->prompts)
		return request_out_of_memory(in->err);
	r->prompt_count = 1;
	return !prompter_text(in->worker, prompt, json_string_length(value), special, &r->prompts[0], &err) ||
	       api_from(in->err, "prompt", &err);
}

bool request_tokenize(struct request_reading *in, const json_t *body)
{
	const json_t *tools = NULL;
	bool generate = true, special = true, texts = false, good;

	if (!request_common(in, body) || !field_bool(body, "return_token_strs", &texts, in->err) ||
	    !field_bool(body, "add_generation_prompt", &generate, in->err) ||
	    !field_bool(body, "add_special_tokens", &special, in->err) ||
	    !field_array(body, "tools", &tools, REQUEST_TOOLS_MOST, in->err))
		return false;
	if (field_value(body, "messages"))
		good = request_prompt(in, body, json_array_size(tools) ? tools : NULL, generate);
	else
		good = read_text(in, body, special);
	if (good)
		write_tokens(in->r, in->rules->prompter, texts);
	return good && (!in->r->reply.failed || request_out_of_memory(in->err));
}

bool request_detokenize(struct request_reading *in, const json_t *body)
{
	const struct prompter *p = in->rules->prompter;
	const json_t *tokens = NULL;
	struct prompt_ids ids;
	struct text bytes = {0};

	if (!request_common(in, body) || !field_array(body, "tokens", &tokens, SIZE_MAX, in->err))
		return false;
	if (!tokens)
		return api_wrong(in->err, "tokens", "tokens is missing: an array of token ids");
	if (!request_ids(tokens, "tokens", prompter_size(p), 4 * in->rules->prompt_most, &ids, in->err))
		return false;
	for (size_t i = 0; i < ids.count; i++)
		prompter_decode(p, ids.ids[i], true, &bytes);
	text_add(&in->r->reply, "{\"prompt\":");
	json_out_bytes(&in->r->reply, text_str(&bytes), bytes.size);
	free(ids.ids);
	text_release(&bytes);
	return !in->r->reply.failed || request_out_of_memory(in->err);
}
