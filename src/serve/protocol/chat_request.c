/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/chat/completions. */
#include "serve/protocol/request_internal.h"

#include "core/json/member.h"

static bool check_part(struct request_reading *in, const json_t *part, size_t i, size_t k)
{
	char where[80];

	snprintf(where, sizeof(where), "messages[%zu].content[%zu]", i, k);
	if (strcmp(json_member_text(part, "type"), "text") != 0)
		return api_wrong(in->err, where, "%s is of type \"%.40s\"; this server takes text only",
				 where, json_member_text(part, "type"));
	if (json_is_string(json_object_get(part, "text")))
		return true;
	snprintf(where, sizeof(where), "messages[%zu].content[%zu].text", i, k);
	return api_wrong(in->err, where, "%s must be a text, not %s", where,
			 field_type_name(json_object_get(part, "text")));
}

static bool check_call(struct request_reading *in, const json_t *call, size_t i, size_t k)
{
	char where[80];
	const char *text, *type = "function";

	snprintf(where, sizeof(where), "messages[%zu].tool_calls[%zu]", i, k);
	if (!json_is_object(call))
		return api_wrong(in->err, where, "%s must be an object, not %s", where,
				 field_type_name(call));
	if (!field_text_in(call, where, "id", &text, in->err) ||
	    !field_text_in(call, where, "type", &type, in->err))
		return false;
	if (!strcmp(type, "function"))
		return true;
	snprintf(where, sizeof(where), "messages[%zu].tool_calls[%zu].type", i, k);
	return api_wrong(in->err, where, "%s is \"%.40s\"; only function is supported", where, type);
}

static bool check_content(struct request_reading *in, const json_t *message, size_t i)
{
	const json_t *content = field_value(message, "content"), *part;
	bool needed = !strcmp(json_member_text(message, "role"), "user");
	char where[64];
	size_t k;

	if (content ? !json_is_string(content) && !json_is_array(content) : needed) {
		snprintf(where, sizeof(where), "messages[%zu].content", i);
		return api_wrong(in->err, where, "%s must be a text or an array of parts, not %s", where,
				 field_type_name(json_object_get(message, "content")));
	}
	json_array_foreach(content, k, part) if (!check_part(in, part, i, k)) return false;
	return true;
}

static bool check_message(struct request_reading *in, const json_t *message, size_t i)
{
	const json_t *call;
	const char *text;
	char where[64];
	size_t k;

	snprintf(where, sizeof(where), "messages[%zu]", i);
	if (!json_is_object(message))
		return api_wrong(in->err, where, "%s must be an object, not %s", where,
				 field_type_name(message));
	if (!check_content(in, message, i) || !field_text_in(message, where, "name", &text, in->err) ||
	    !field_text_in(message, where, "tool_call_id", &text, in->err))
		return false;
	json_array_foreach(json_object_get(message, "tool_calls"), k, call)
	{
		if (!check_call(in, call, i, k))
			return false;
	}
	return true;
}

/* Types only: the roles, the functions of calls and the texts are checked where the conversation is read. */
static bool check_messages(struct request_reading *in, const json_t *messages)
{
	const json_t *message;
	size_t i;

	if (!json_array_size(messages))
		return api_wrong(in->err, "messages", "messages must be an array with at least one message");
	if (json_array_size(messages) > in->rules->messages_most)
		return api_wrong(in->err, "messages", "messages has %zu entries; %zu is the most",
				 json_array_size(messages), in->rules->messages_most);
	json_array_foreach(messages, i, message)
	{
		if (!check_message(in, message, i))
			return false;
	}
	return true;
}

/* The param of an error is the place that its message begins with. */
static bool conversation_wrong(struct request_reading *in, const struct error *err)
{
	char param[96];
	bool placed = !strncmp(err->text, "messages[", 9) || !strncmp(err->text, "tools[", 6);
	size_t size = placed ? strcspn(err->text, " :") : 0;

	if (size >= sizeof(param))
		size = 0;
	memcpy(param, err->text, size);
	param[size] = '\0';
	return api_from(in->err, size ? param : "messages", err);
}

bool request_prompt(struct request_reading *in, const json_t *body, const json_t *tools, bool generate)
{
	struct request *r = in->r;
	const json_t *messages = NULL, *kwargs = NULL;
	struct prompt_ask ask = {.generation_prompt = generate};
	enum thought thought = THOUGHT_NONE;
	struct error err = {0};
	json_t *root;

	if (!field_array(body, "messages", &messages, SIZE_MAX, in->err) || !check_messages(in, messages) ||
	    !field_object(body, "chat_template_kwargs", &kwargs, in->err))
		return false;
	ask.kwargs = kwargs;
	r->prompts = calloc(1, sizeof(*r->prompts));
	/* a deep copy: reading a conversation changes it, and the body is the client's */
	root = json_pack("{so so*}", "messages", json_deep_copy(messages), "tools", json_deep_copy(tools));
	if (!r->prompts || !root) {
		json_decref(root);
		return request_out_of_memory(in->err);
	}
	r->prompt_count = 1;
	if (prompter_chat(in->worker, root, &ask, &r->prompts[0], &thought, &err))
		return conversation_wrong(in, &err);
	r->think_open = thought == THOUGHT_OPEN;
	return thought == THOUGHT_NONE || request_grammar_after_thought(in);
}

static bool read_logprobs(struct request_reading *in, const json_t *body)
{
	struct {
		int64_t top;
	} v = {.top = 0};
	const struct field top = {"top_logprobs", FIELD_INT, 0, 0, ENGINE_TOP_MOST, false};
	bool wanted = false;

	if (!field_bool(body, "logprobs", &wanted, in->err) || !fields_read(body, &top, 1, &v, in->err))
		return false;
	if (field_value(body, "top_logprobs") && v.top && !wanted)
		return api_wrong(in->err, "top_logprobs", "top_logprobs needs logprobs to be true");
	in->r->chat_logprobs = wanted;
	in->r->engine.logprobs = wanted ? (int32_t)v.top : -1;
	return true;
}

/* "functions" and "function_call" are the names of tools of 2023. */
static bool refuse_old(struct request_reading *in, const json_t *body)
{
	if (field_value(body, "functions"))
		return api_wrong(in->err, "functions", "functions is not supported; use tools");
	if (field_value(body, "function_call"))
		return api_wrong(in->err, "function_call", "function_call is not supported; use tool_choice");
	if (field_value(body, "audio"))
		return api_wrong(in->err, "audio",
				 "audio is not supported: this server takes and writes text");
	return true;
}

/* The kinds of answer that the client wants. */
static bool read_modalities(struct request_reading *in, const json_t *body)
{
	const json_t *kinds = NULL, *kind;
	char where[48];
	size_t i;

	if (!field_array(body, "modalities", &kinds, 16, in->err))
		return false;
	if (kinds && !json_array_size(kinds))
		return api_wrong(in->err, "modalities", "modalities is empty; this server writes text");
	json_array_foreach(kinds, i, kind)
	{
		if (json_is_string(kind) && !strcmp(json_string_value(kind), "text"))
			continue;
		snprintf(where, sizeof(where), "modalities[%zu]", i);
		return api_wrong(in->err, where, "%s must be \"text\": this server writes nothing else",
				 where);
	}
	return true;
}

bool request_chat(struct request_reading *in, json_t *body)
{
	struct request *r = in->r;
	const json_t *tools = NULL, *shown;
	const json_t *choice = field_value(body, "tool_choice");
	bool generate = true;

	if (!request_common(in, body) || !refuse_old(in, body) || !read_modalities(in, body) ||
	    !field_array(body, "tools", &tools, REQUEST_TOOLS_MOST, in->err) || !read_logprobs(in, body) ||
	    !field_bool(body, "add_generation_prompt", &generate, in->err))
		return false;
	if (!json_array_size(tools))
		tools = NULL;
	r->think = prompter_thinks(in->rules->prompter);
	if (!request_grammar(in, body, tools))
		return false;
	if (!r->engine.max_tokens)
		return api_wrong(in->err, request_length_field(body), "%s must be at least 1",
				 request_length_field(body));
	if (r->engine.max_tokens < 0 && !request_default_length(in, 0)) /* 0: as many as the context allows */
		return false;
	shown = json_is_string(choice) && !strcmp(json_string_value(choice), "none") ? NULL : tools;
	return request_prompt(in, body, shown, generate);
}
