/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/body/body.h"
#include "serve/protocol/request_internal.h"

bool request_out_of_memory(struct api_error *err)
{
	return api_fail(err, 503, "out_of_memory", "the server has no memory for this request");
}

bool request_ids(const json_t *array, const char *name, int32_t size, size_t most, struct prompt_ids *out,
		 struct api_error *err)
{
	size_t count = json_array_size(array), i;
	const json_t *id;
	char place[64];

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
			snprintf(place, sizeof(place), "%s[%zu]", name, i);
			return api_wrong(err, place, "%s is not a token id from 0 to %d", place,
					 (int)size - 1);
		}
		out->ids[i] = (int32_t)json_integer_value(id);
	}
	out->count = count;
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
	good = body_parse(&json, body, size, err);
	if (good)
		body_note_ignored(r, json);
	good = good && body_check_null_characters(protocol, json, err) && body_check_constraints(json, err) &&
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
