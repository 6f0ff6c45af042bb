/* SPDX-License-Identifier: Apache-2.0 */
/* A body of /v1/responses as one of /v1/chat/completions. Nothing is stored, so nothing can be referred to.
 */
#include "serve/protocol/request_internal.h"

#include "core/json/member.h"

static bool check_part(const json_t *part, const char *where, struct api_error *err)
{
	const char *type = json_member_text(part, "type");
	const json_t *text = json_object_get(part, "text");
	char place[104];

	if (strcmp(type, "input_text") && strcmp(type, "output_text") && strcmp(type, "text"))
		return api_wrong(err, where, "%s is of type \"%.40s\"; this server takes text only", where,
				 type);
	if (json_is_string(text))
		return true;
	snprintf(place, sizeof(place), "%s.text", where);
	return api_wrong(err, place, "%s must be a text, not %s", place, field_type_name(text));
}

/* Converts the parts at `where`. Those before a wrong one are returned with the error set. */
static json_t *convert_parts(const json_t *content, const char *where, struct api_error *err)
{
	json_t *parts = json_array();
	const json_t *part;
	char place[96];
	size_t k;

	json_array_foreach(content, k, part)
	{
		snprintf(place, sizeof(place), "%s[%zu]", where, k);
		if (!check_part(part, place, err))
			break;
		json_array_append_new(
			parts, json_pack("{ss sO}", "type", "text", "text", json_object_get(part, "text")));
	}
	return parts;
}

/* The texts in a member of the item at `where`. A text and null stay as they are. NULL: no such member. */
static json_t *convert_content(const json_t *item, const char *where, const char *member,
			       struct api_error *err)
{
	json_t *content = json_object_get(item, member);
	char place[72];

	snprintf(place, sizeof(place), "%s.%s", where, member);
	if (json_is_array(content))
		return convert_parts(content, place, err);
	if (content && !json_is_string(content) && !json_is_null(content))
		api_wrong(err, place, "%s must be a text or an array of parts, not %s", place,
			  field_type_name(content));
	return json_incref(content);
}

static json_t *convert_call(const json_t *item)
{
	return json_pack("{ss sn s[{sO* ss s{sO* sO*}}]}", "role", "assistant", "content", "tool_calls", "id",
			 json_object_get(item, "call_id"), "type", "function", "function", "name",
			 json_object_get(item, "name"), "arguments", json_object_get(item, "arguments"));
}

static json_t *convert_item(const json_t *item, size_t i, struct api_error *err)
{
	const char *type = json_member_text(item, "type");
	const char *id;
	char where[48];

	snprintf(where, sizeof(where), "input[%zu]", i);
	if (!field_text_in(item, where, "call_id", &id, err))
		return NULL;
	if (!strcmp(type, "function_call"))
		return convert_call(item);
	if (!strcmp(type, "function_call_output"))
		return json_pack("{ss sO* so*}", "role", "tool", "tool_call_id",
				 json_object_get(item, "call_id"), "content",
				 convert_content(item, where, "output", err));
	if ((!*type || !strcmp(type, "message")) && json_is_object(item))
		return json_pack("{sO* so*}", "role", json_object_get(item, "role"), "content",
				 convert_content(item, where, "content", err));
	api_wrong(err, where,
		  "%s is of type \"%.40s\"; it must be a message, function_call or function_call_output",
		  where, type);
	return NULL;
}

/* Appends the message that item i became. Consecutive calls of an assistant are one message. */
static void append(json_t *messages, struct origin *o, json_t *message, size_t i)
{
	json_t *last = json_array_get(messages, json_array_size(messages) - 1);
	json_t *calls = json_object_get(last, "tool_calls"), *more = json_object_get(message, "tool_calls");

	if (json_array_size(messages) && calls && more) {
		json_array_extend(calls, more);
		json_decref(message);
		origin_join(o, (int64_t)i);
	} else {
		json_array_append_new(messages, message);
		origin_add(o, (int64_t)i);
	}
}

static bool add_input(json_t *messages, struct origin *o, const json_t *input, struct api_error *err)
{
	const json_t *item;
	json_t *message;
	size_t i;

	if (json_is_string(input)) {
		origin_add(o, 0);
		return !json_array_append_new(messages,
					      json_pack("{ss sO}", "role", "user", "content", input));
	}
	if (!json_is_array(input) || !json_array_size(input))
		return api_wrong(err, "input", "input must be a text or an array of items");
	json_array_foreach(input, i, item)
	{
		if (!strcmp(json_member_text(item, "type"), "reasoning"))
			continue; /* thoughts of earlier answers are not repeated */
		message = convert_item(item, i, err);
		if (err->http) {
			json_decref(message);
			return false;
		}
		append(messages, o, message, i);
	}
	return true;
}

static json_t *convert_tool(const json_t *tool)
{
	if (!json_is_object(tool))
		return json_incref((json_t *)(uintptr_t)tool); /* refused where tools are read */
	return json_pack("{sO* s{sO* sO* sO* sO*}}", "type", json_object_get(tool, "type"), "function",
			 "name", json_object_get(tool, "name"), "description",
			 json_object_get(tool, "description"), "parameters",
			 json_object_get(tool, "parameters"), "strict", field_value(tool, "strict"));
}

static json_t *convert_tools(const json_t *tools)
{
	json_t *out = json_array();
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool) json_array_append_new(out, convert_tool(tool));
	return out;
}

static bool convert_format(json_t *out, const json_t *text, struct api_error *err)
{
	const json_t *format = field_value(text, "format");

	if (!format)
		return true;
	if (!json_is_object(format))
		return api_wrong(err, "text.format", "text.format must be an object, not %s",
				 field_type_name(format));
	json_object_set_new(out, "response_format",
			    json_pack("{sO* s{sO* sO* sO*}}", "type", json_object_get(format, "type"),
				      "json_schema", "name", json_object_get(format, "name"), "schema",
				      json_object_get(format, "schema"), "strict",
				      json_object_get(format, "strict")));
	return true;
}

/* *logprobs: the response includes log probabilities. The other values ask for contents of items that this
 * server does not write. */
static bool read_include(const json_t *body, bool *logprobs, struct api_error *err)
{
	const json_t *include = NULL, *one;
	char where[48];
	size_t i;

	*logprobs = false;
	if (!field_array(body, "include", &include, 64, err))
		return false;
	json_array_foreach(include, i, one)
	{
		snprintf(where, sizeof(where), "include[%zu]", i);
		if (!json_is_string(one))
			return api_wrong(err, where, "%s must be a text, not %s", where,
					 field_type_name(one));
		*logprobs |= !strcmp(json_string_value(one), "message.output_text.logprobs");
	}
	return true;
}

static void convert_choice(json_t *out)
{
	const json_t *choice = json_object_get(out, "tool_choice");

	if (json_is_object(choice) && !json_object_get(choice, "function"))
		json_object_set_new(out, "tool_choice",
				    json_pack("{sO* s{sO*}}", "type", json_object_get(choice, "type"),
					      "function", "name", json_object_get(choice, "name")));
}

/* Fields that refer to something stored. */
static bool refuse_stored(const json_t *body, struct api_error *err)
{
	static const char *const names[] = {"conversation", "previous_response_id", "prompt"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (field_value(body, names[i]))
			return api_wrong(
				err, names[i],
				"this server stores nothing, so %s refers to nothing; send the whole "
				"conversation in input",
				names[i]);
	if (json_is_true(field_value(body, "background")))
		return api_wrong(err, "background",
				 "this server stores no responses; background must be false");
	return true;
}

/* The instructions and the input become the messages of `out`. */
static bool convert_messages(json_t *out, const json_t *body, struct origin *o, struct api_error *err)
{
	json_t *messages = json_array();
	const char *instructions = NULL;

	json_object_set_new(out, "messages", messages);
	if (!field_text(body, "instructions", &instructions, err))
		return false;
	if (instructions) {
		json_array_append_new(messages,
				      json_pack("{ss ss}", "role", "system", "content", instructions));
		origin_add(o, -1);
	}
	return add_input(messages, o, field_value(body, "input"), err);
}

/* Owner: caller, json_decref. NULL: the error is set. */
static json_t *convert(const json_t *body, struct origin *o, struct api_error *err)
{
	json_t *out = json_copy((json_t *)(uintptr_t)body);
	const json_t *most = field_value(body, "max_output_tokens"), *tools = NULL, *text = NULL;

	if (!field_array(body, "tools", &tools, REQUEST_TOOLS_MOST, err) ||
	    !field_object(body, "text", &text, err) || !refuse_stored(body, err) ||
	    !convert_messages(out, body, o, err) || !convert_format(out, text, err)) {
		json_decref(out);
		return NULL;
	}
	json_object_set_new(out, "logprobs", json_true());
	if (most)
		json_object_set(out, "max_completion_tokens", (json_t *)(uintptr_t)most);
	if (tools)
		json_object_set_new(out, "tools", convert_tools(tools));
	convert_choice(out);
	json_object_set_new(out, "n", json_integer(1));
	return out;
}

bool request_responses(struct request_reading *in, const json_t *body)
{
	static const struct renamed names[] = {{"max_completion_tokens", "max_output_tokens"},
					       {"max_tokens", "max_output_tokens"},
					       {"messages", "input"},
					       {"response_format.json_schema", "text.format"},
					       {"response_format", "text.format"},
					       {NULL, NULL}};
	struct origin o = {.names = names,
			   .list = "input",
			   .positions = json_array(),
			   .before = "instructions",
			   .schema = "parameters",
			   .calls_are_entries = true};
	bool logprobs = false;
	json_t *converted = read_include(body, &logprobs, in->err) ? convert(body, &o, in->err) : NULL;
	bool good = converted && request_chat(in, converted);

	if (converted && !good)
		origin_rename(&o, in->err);
	if (!logprobs) { /* top_logprobs alone asks for none */
		in->r->chat_logprobs = false;
		in->r->engine.logprobs = -1;
	}
	if (good && in->r->grammar_field && !strcmp(in->r->grammar_field, "response_format"))
		in->r->grammar_field = "text.format";
	json_decref(converted);
	json_decref(o.positions);
	return good;
}
