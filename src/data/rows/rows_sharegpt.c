/* SPDX-License-Identifier: Apache-2.0 */
/* ShareGPT: {"conversations": [{"from", "value"}, ..]}. Some rows also have "system" and "tools". */
#include <strings.h>

#include "core/json/read.h"
#include "data/rows/rows.h"

/* Parses a turn whose text is the JSON of one or several calls. */
static json_t *calls_of(const char *text, size_t i, struct error *err)
{
	struct json_wrong why;
	json_t *calls = json_read(text, strlen(text), 0, &why), *one;

	if (!calls) {
		error_set(err, STATUS_BAD_INPUT, "conversations[%zu]: the call is not JSON: %s", i, why.text);
		return NULL;
	}
	if (json_is_array(calls))
		return calls;
	one = json_pack("[o]", calls);
	if (!one)
		error_set(err, STATUS_NO_RESOURCE, "a call");
	return one;
}

static enum status add_turn(json_t *messages, const json_t *turn, size_t i, struct error *err)
{
	const char *from = json_string_value(json_object_get(turn, "from"));
	const json_t *value = json_object_get(turn, "value");
	json_t *message, *calls;

	if (!from || !json_is_string(value))
		return error_set(err, STATUS_BAD_INPUT,
				 "conversations[%zu] has no \"from\", or its \"value\" is not a text", i);
	if (!strcasecmp(from, "function_call") || !strcasecmp(from, "tool_call")) {
		calls = calls_of(json_string_value(value), i, err);
		if (!calls)
			return err->status;
		message = json_pack("{ss ss so}", "role", "assistant", "content", "", "tool_calls", calls);
	} else {
		if (!strcasecmp(from, "function_response") || !strcasecmp(from, "tool_response"))
			from = "tool";
		message = json_pack("{ss sO}", "role", from, "content", value);
	}
	if (json_array_append_new(messages, message))
		return error_set(err, STATUS_NO_RESOURCE, "a turn");
	return STATUS_OK;
}

enum status rows_of_sharegpt(json_t **out, const json_t *row, struct error *err)
{
	const json_t *turns = json_object_get(row, "conversations"), *turn;
	json_t *system = json_object_get(row, "system"), *tools = json_object_get(row, "tools");
	json_t *messages = json_array();
	enum status st = STATUS_OK;
	size_t i;

	if (!json_is_array(turns))
		st = error_set(err, STATUS_BAD_INPUT, "\"conversations\" is not an array");
	if (json_is_string(system) && json_string_length(system))
		json_array_append_new(messages, json_pack("{ss sO}", "role", "system", "content", system));
	json_array_foreach(turns, i, turn) if (!st) st = add_turn(messages, turn, i, err);
	if (!st) {
		*out = json_pack("{so so*}", "messages", messages, "tools",
				 tools ? json_incref(tools) : NULL);
		return *out ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "a row");
	}
	json_decref(messages);
	return st;
}
