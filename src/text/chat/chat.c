/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/chat.h"

#include <strings.h>

#include "core/text/text.h"
#include "core/json/read.h"

static const char *const role_names[CHAT_ROLE_COUNT][3] = {
#define X(name, ...) [CHAT_##name] = {__VA_ARGS__},
	CHAT_ROLES(X)
#undef X
};

const char *chat_role_name(enum chat_role role)
{
	return role_names[role][0];
}

/* CHAT_ROLE_COUNT: not a known role. */
static enum chat_role chat_role_of(const char *name)
{
	for (int role = 0; role < CHAT_ROLE_COUNT; role++)
		for (size_t i = 0; i < 3 && role_names[role][i]; i++)
			if (!strcasecmp(name, role_names[role][i]))
				return (enum chat_role)role;
	return CHAT_ROLE_COUNT;
}

/* Replaces a list of text parts by their concatenation. */
static enum status join_parts(json_t *message, const json_t *parts, size_t i, struct error *err)
{
	struct text all = {0};
	const json_t *part;
	size_t k;
	int failed;

	json_array_foreach(parts, k, part)
	{
		const json_t *text = json_object_get(part, "text");

		if (!json_is_string(text)) {
			text_release(&all);
			return error_set(err, STATUS_BAD_INPUT,
					 "messages[%zu].content[%zu] is not a part of type text", i, k);
		}
		text_add_bytes(&all, json_string_value(text), json_string_length(text));
	}
	failed =
		all.failed || json_object_set_new(message, "content", json_stringn(text_str(&all), all.size));
	text_release(&all);
	return failed ? error_set(err, STATUS_NO_RESOURCE, "a message's content") : STATUS_OK;
}

static enum status read_content(struct chat_message *m, json_t *message, size_t i, struct error *err)
{
	const json_t *content = json_object_get(message, "content");
	enum status st = STATUS_OK;

	if (json_is_array(content)) {
		st = join_parts(message, content, i, err);
		content = json_object_get(message, "content");
	}
	if (!st && content && !json_is_null(content) && !json_is_string(content))
		st = error_set(err, STATUS_BAD_INPUT, "messages[%zu].content is not a text", i);
	m->content = json_is_string(content) ? json_string_value(content) : "";
	m->content_size = json_string_length(content);
	content = json_object_get(message, "reasoning_content");
	m->has_reasoning = json_is_string(content);
	m->reasoning = m->has_reasoning ? json_string_value(content) : "";
	return st;
}

enum { PLACE_SIZE = 80 }; /* "messages[12].tool_calls[3].function.arguments" */

/* Arguments given as text must be the text of a JSON object; otherwise the model would learn calls that no
 * parser can read. The text itself is rendered, so numbers may have any size. */
static enum status check_arguments(const json_t *arguments, const char *place, struct error *err)
{
	struct json_wrong why;
	const char *text;
	json_t *read;
	bool good;

	if (json_is_object(arguments))
		return STATUS_OK;
	if (!json_is_string(arguments))
		return error_set(err, STATUS_BAD_INPUT, "%s.arguments must be an object or the text of one",
				 place);
	text = json_string_value(arguments);
	read = json_read(text, strlen(text), JSON_DECODE_INT_AS_REAL, &why);
	good = json_is_object(read);
	json_decref(read);
	if (good)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s.arguments is not the text of a JSON object%s%s", place,
			 read ? "" : ": ", read ? "" : why.text);
}

/* No arguments, null and "" stand for no members: a call of a function without parameters. */
static enum status read_call(struct chat_call *call, json_t *entry, const char *entry_place,
			     struct error *err)
{
	json_t *function = json_object_get(entry, "function"), *arguments;
	char place[PLACE_SIZE + 10];

	snprintf(place, sizeof(place), "%s%s", entry_place, json_is_object(function) ? ".function" : "");
	if (!json_is_object(function))
		function = entry;
	call->name = json_string_value(json_object_get(function, "name"));
	if (!call->name || !*call->name)
		return error_set(err, STATUS_BAD_INPUT, "%s.name must be a text that is not empty", place);
	arguments = json_object_get(function, "arguments");
	if ((!arguments || json_is_null(arguments) ||
	     (json_is_string(arguments) && !json_string_length(arguments))) &&
	    json_object_set_new(function, "arguments", json_object()))
		return error_set(err, STATUS_NO_RESOURCE, "a call's arguments");
	call->arguments = json_object_get(function, "arguments");
	return check_arguments(call->arguments, place, err);
}

static enum status read_calls(struct chat_message *m, json_t *message, size_t i, struct error *err)
{
	json_t *calls = json_object_get(message, "tool_calls"), *entry;
	json_t *single = json_object_get(message, "function_call");
	size_t count = json_array_size(calls), k;
	enum status st = STATUS_OK;
	char place[PLACE_SIZE];

	if (calls && !json_is_array(calls) && !json_is_null(calls))
		return error_set(err, STATUS_BAD_INPUT, "messages[%zu].tool_calls is not an array", i);
	if (!count && json_is_object(single))
		count = 1;
	if (!count)
		return STATUS_OK;
	if (m->role != CHAT_ASSISTANT)
		return error_set(err, STATUS_BAD_INPUT, "messages[%zu]: the role %s cannot have calls", i,
				 chat_role_name(m->role));
	m->calls = calloc(count, sizeof(*m->calls));
	if (!m->calls)
		return error_set(err, STATUS_NO_RESOURCE, "%zu calls", count);
	m->call_count = count;
	if (!json_array_size(calls)) {
		snprintf(place, sizeof(place), "messages[%zu].function_call", i);
		return read_call(&m->calls[0], single, place, err);
	}
	json_array_foreach(calls, k, entry)
	{
		snprintf(place, sizeof(place), "messages[%zu].tool_calls[%zu]", i, k);
		if (!st)
			st = read_call(&m->calls[k], entry, place, err);
	}
	return st;
}

static enum status read_message(struct chat_message *m, json_t *message, size_t i, struct error *err)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	const json_t *weight = json_object_get(message, "weight");
	enum status st;

	if (!role)
		return error_set(err, STATUS_BAD_INPUT, "messages[%zu] has no role", i);
	m->role = chat_role_of(role);
	if (m->role == CHAT_ROLE_COUNT)
		return error_set(err, STATUS_BAD_INPUT, "messages[%zu].role: \"%.60s\" is not a known role",
				 i, role);
	m->untrained = json_is_number(weight) && json_number_value(weight) == 0;
	st = read_content(m, message, i, err);
	return st ? st : read_calls(m, message, i, err);
}

static enum status read_tools(struct chat *c, struct error *err)
{
	json_t *tools = json_object_get(c->root, "tools"), *entry;
	struct json_wrong why;
	size_t i;

	if (json_is_string(tools) && json_string_length(tools)) {
		tools = json_read(json_string_value(tools), json_string_length(tools), 0, &why);
		if (!tools)
			return error_set(err, STATUS_BAD_INPUT, "tools: %s", why.text);
		if (json_object_set_new(c->root, "tools", tools))
			return error_set(err, STATUS_NO_RESOURCE, "tools");
	}
	if (!tools || json_is_null(tools) || json_is_string(tools))
		return STATUS_OK;
	if (!json_is_array(tools))
		return error_set(err, STATUS_BAD_INPUT, "tools is not an array");
	json_array_foreach(tools, i, entry) if (!json_is_object(entry)) return error_set(
		err, STATUS_BAD_INPUT, "tools[%zu] is not an object", i);
	c->tools = json_array_size(tools) ? tools : NULL;
	return STATUS_OK;
}

static enum status read_messages(struct chat *c, struct error *err)
{
	json_t *messages = json_object_get(c->root, "messages"), *entry;
	enum status st = STATUS_OK;
	size_t i;

	if (!json_is_array(messages) || !json_array_size(messages))
		return error_set(err, STATUS_BAD_INPUT, "messages is not an array, or it is empty");
	c->messages = calloc(json_array_size(messages), sizeof(*c->messages));
	if (!c->messages)
		return error_set(err, STATUS_NO_RESOURCE, "%zu messages", json_array_size(messages));
	c->count = json_array_size(messages);
	json_array_foreach(messages, i, entry) if (!st) st = read_message(&c->messages[i], entry, i, err);
	return st;
}

enum status chat_read(struct chat *c, json_t *root, struct error *err)
{
	enum status st;

	*c = (struct chat){.root = root};
	st = read_messages(c, err);
	if (!st)
		st = read_tools(c, err);
	if (st)
		chat_release(c);
	return st;
}

void chat_release(struct chat *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->messages[i].calls);
	free(c->messages);
	json_decref(c->root);
	*c = (struct chat){0};
}
