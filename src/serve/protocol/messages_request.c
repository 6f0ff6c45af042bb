/* SPDX-License-Identifier: Apache-2.0 */
/* A body of Anthropic's /v1/messages as one of /v1/chat/completions. */
#include "serve/protocol/request_internal.h"

#include "core/json/member.h"

struct converted {
	json_t *messages;
	struct origin origin;
	struct api_error *err;
};

/* Appends a message that entry i became, or that `system` did (-1). */
static void append(struct converted *c, json_t *message, int64_t i)
{
	json_array_append_new(c->messages, message);
	origin_add(&c->origin, i);
}

enum { WHERE_SIZE = 96 }; /* "messages[1].content[2].content[3].text" and more */

static bool wrong_member(const char *where, const char *member, const char *want, const json_t *value,
			 struct api_error *err)
{
	char place[WHERE_SIZE];

	snprintf(place, sizeof(place), "%s.%s", where, member);
	return api_wrong(err, place, "%s must be %s, not %s", place, want, field_type_name(value));
}

/* Appends a text that a block must have. */
static bool add_member(struct text *out, const json_t *block, const char *where, const char *member,
		       struct api_error *err)
{
	const json_t *value = json_object_get(block, member);

	if (!json_is_string(value))
		return wrong_member(where, member, "a text", value, err);
	text_add(out, json_string_value(value));
	return true;
}

static bool add_text_blocks(struct text *out, const json_t *blocks, const char *where, struct api_error *err)
{
	const json_t *block;
	char place[WHERE_SIZE];
	size_t i;

	json_array_foreach(blocks, i, block)
	{
		snprintf(place, sizeof(place), "%s[%zu]", where, i);
		if (strcmp(json_member_text(block, "type"), "text") != 0)
			return api_wrong(err, place, "%s is of type \"%.40s\"; this server takes text only",
					 place, json_member_text(block, "type"));
		if (!add_member(out, block, place, "text", err))
			return false;
	}
	return true;
}

/* A text, or the texts of blocks of type text. NULL: the error is set. */
static json_t *text_of(const json_t *content, const char *where, struct api_error *err)
{
	struct text all = {0};
	json_t *out = NULL;

	if (!content || json_is_string(content))
		return json_string(content ? json_string_value(content) : "");
	if (!json_is_array(content)) {
		api_wrong(err, where, "%s must be a text or an array of blocks, not %s", where,
			  field_type_name(content));
		return NULL;
	}
	if (add_text_blocks(&all, content, where, err)) {
		out = json_string(text_str(&all));
		if (!out)
			request_out_of_memory(err);
	}
	text_release(&all);
	return out;
}

static bool add_result(struct converted *c, const json_t *block, const char *where, size_t i)
{
	char place[WHERE_SIZE];
	const char *id;
	json_t *text;

	snprintf(place, sizeof(place), "%s.content", where);
	text = field_text_in(block, where, "tool_use_id", &id, c->err)
		       ? text_of(field_value(block, "content"), place, c->err)
		       : NULL;
	if (!text)
		return false;
	append(c,
	       json_pack("{ss sO* so}", "role", "tool", "tool_call_id", json_object_get(block, "tool_use_id"),
			 "content", text),
	       (int64_t)i);
	return true;
}

/* One message's blocks: texts and calls of the message itself; results of tools are messages of their own. */
struct blocks {
	struct text text, thought;
	json_t *calls;
};

static bool add_call(struct blocks *b, const json_t *block, const char *where, struct api_error *err)
{
	const json_t *input = field_value(block, "input");
	const char *id;

	if (!field_text_in(block, where, "id", &id, err))
		return false;
	if (!*json_member_text(block, "name"))
		return wrong_member(where, "name", "a text that is not empty", json_object_get(block, "name"),
				    err);
	if (input && !json_is_object(input))
		return wrong_member(where, "input", "an object", input, err);
	json_array_append_new(b->calls, json_pack("{sO* ss s{sO* sO*}}", "id", json_object_get(block, "id"),
						  "type", "function", "function", "name",
						  json_object_get(block, "name"), "arguments", input));
	return true;
}

static bool add_block(struct converted *c, struct blocks *b, const json_t *block, const char *where, size_t i)
{
	const char *type = json_member_text(block, "type");

	if (!strcmp(type, "text"))
		return add_member(&b->text, block, where, "text", c->err);
	if (!strcmp(type, "thinking"))
		return add_member(&b->thought, block, where, "thinking", c->err);
	if (!strcmp(type, "redacted_thinking"))
		return true;
	if (!strcmp(type, "tool_result"))
		return add_result(c, block, where, i);
	if (!strcmp(type, "tool_use"))
		return add_call(b, block, where, c->err);
	return api_wrong(c->err, where, "%s is of type \"%.40s\"; this server takes text only", where, type);
}

static bool add_message(struct converted *c, const json_t *message, size_t i)
{
	const json_t *content = json_object_get(message, "content"), *block;
	const char *role = json_member_text(message, "role");
	struct blocks b = {.calls = json_array()};
	bool good = true;
	char where[64];
	json_t *made;
	size_t k;

	if (!json_is_array(content)) {
		json_decref(b.calls);
		append(c, json_incref((json_t *)(uintptr_t)message), (int64_t)i);
		return true;
	}
	json_array_foreach(content, k, block)
	{
		snprintf(where, sizeof(where), "messages[%zu].content[%zu]", i, k);
		good = good && add_block(c, &b, block, where, i);
	}
	if (good && (b.text.size || json_array_size(b.calls) || !json_array_size(content))) {
		made = json_pack("{ss ss}", "role", role, "content", text_str(&b.text));
		if (json_array_size(b.calls))
			json_object_set(made, "tool_calls", b.calls);
		if (b.thought.size)
			json_object_set_new(made, "reasoning_content", json_string(text_str(&b.thought)));
		append(c, made, (int64_t)i);
	}
	json_decref(b.calls);
	text_release(&b.text);
	text_release(&b.thought);
	return good;
}

static json_t *convert_tool(const json_t *tool)
{
	if (!json_is_object(tool))
		return json_incref((json_t *)(uintptr_t)tool); /* refused where tools are read */
	return json_pack("{ss s{sO* sO* sO* sO*}}", "type", "function", "function", "name",
			 json_object_get(tool, "name"), "description", json_object_get(tool, "description"),
			 "parameters", json_object_get(tool, "input_schema"), "strict",
			 field_value(tool, "strict"));
}

static json_t *convert_tools(const json_t *tools)
{
	json_t *out = json_array();
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool) json_array_append_new(out, convert_tool(tool));
	return out;
}

static bool convert_choice(json_t *out, const json_t *body, struct api_error *err)
{
	const json_t *choice = NULL;
	bool one_call = false;
	const char *type;

	if (!field_object(body, "tool_choice", &choice, err))
		return false;
	if (!choice)
		return true;
	type = json_member_text(choice, "type");
	if (!strcmp(type, "auto") || !strcmp(type, "none"))
		json_object_set_new(out, "tool_choice", json_string(type));
	else if (!strcmp(type, "any"))
		json_object_set_new(out, "tool_choice", json_string("required"));
	else if (!strcmp(type, "tool"))
		json_object_set_new(out, "tool_choice",
				    json_pack("{ss s{sO*}}", "type", "function", "function", "name",
					      json_object_get(choice, "name")));
	else
		return api_wrong(err, "tool_choice", "tool_choice.type must be auto, any, tool or none");
	if (!field_bool_in(choice, "tool_choice", "disable_parallel_tool_use", &one_call, err))
		return false;
	if (one_call)
		json_object_set_new(out, "parallel_tool_calls", json_false());
	return true;
}

static bool convert_messages(struct converted *c, const json_t *body)
{
	const json_t *messages = NULL, *message, *system = field_value(body, "system");
	size_t i;
	json_t *text;

	if (!field_array(body, "messages", &messages, SIZE_MAX, c->err))
		return false;
	if (system) {
		text = text_of(system, "system", c->err);
		if (!text)
			return false;
		append(c, json_pack("{ss so}", "role", "system", "content", text), -1);
	}
	json_array_foreach(messages, i, message) if (!add_message(c, message, i)) return false;
	return true;
}

/* *thinks becomes false if the request disables thoughts. */
static bool read_thinking(const json_t *body, bool *thinks, struct api_error *err)
{
	const json_t *thinking = NULL;
	const char *type = "enabled";

	if (!field_object(body, "thinking", &thinking, err) ||
	    !field_text_in(thinking, "thinking", "type", &type, err))
		return false;
	if (strcmp(type, "enabled") && strcmp(type, "adaptive") && strcmp(type, "disabled"))
		return api_wrong(err, "thinking.type",
				 "thinking.type is \"%.40s\"; it must be enabled, adaptive or disabled",
				 type);
	*thinks = strcmp(type, "disabled") != 0;
	return true;
}

static json_t *convert(struct converted *c, const json_t *body)
{
	json_t *out = json_copy((json_t *)(uintptr_t)body);
	struct api_error *err = c->err;
	const json_t *tools = NULL, *stops = NULL;
	bool thinks = true;
	bool good = field_array(body, "tools", &tools, REQUEST_TOOLS_MOST, err) &&
		    read_thinking(body, &thinks, err) &&
		    field_array(body, "stop_sequences", &stops, REQUEST_STOPS_MOST, err) &&
		    convert_choice(out, body, err);

	if (good && !field_value(body, "max_tokens"))
		good = api_wrong(err, "max_tokens", "max_tokens is missing");
	if (!good || !convert_messages(c, body)) {
		json_decref(out);
		return NULL;
	}
	json_object_set(out, "messages", c->messages);
	if (tools)
		json_object_set_new(out, "tools", convert_tools(tools));
	if (stops)
		json_object_set(out, "stop", (json_t *)(uintptr_t)stops);
	if (!thinks)
		json_object_set_new(out, "chat_template_kwargs", json_pack("{sb}", "enable_thinking", 0));
	json_object_set_new(out, "n", json_integer(1));
	return out;
}

bool request_messages(struct request_reading *in, const json_t *body)
{
	static const struct renamed names[] = {{"stop", "stop_sequences"}, {NULL, NULL}};
	struct converted c = {.messages = json_array(),
			      .origin = {.names = names,
					 .list = "messages",
					 .positions = json_array(),
					 .before = "system",
					 .schema = "input_schema"},
			      .err = in->err};
	json_t *converted = convert(&c, body);
	bool good = converted && request_chat(in, converted);

	if (converted && !good)
		origin_rename(&c.origin, in->err);
	json_decref(converted);
	json_decref(c.messages);
	json_decref(c.origin.positions);
	return good;
}
