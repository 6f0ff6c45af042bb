/* SPDX-License-Identifier: Apache-2.0 */
#include "data/function_calls/bfcl.h"

#include "core/text/text.h"
#include "core/json/read.h"
#include "data/rows/rows.h"

static const char *const categories[] = {"simple_python",     "multiple",    "parallel",
					 "parallel_multiple", "live_simple", "live_multiple"};

/* Parameter types, and JSON Schema's names for them. */
static const char *const types[][2] = {
	{"dict", "object"}, {"float", "number"}, {"tuple", "array"}, {"any", "string"}};

static void rename_types(json_t *value)
{
	const char *key, *type;
	json_t *item;
	size_t i;

	json_array_foreach(value, i, item) rename_types(item);
	json_object_foreach(value, key, item) rename_types(item);
	type = json_string_value(json_object_get(value, "type"));
	for (i = 0; type && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i][0])) {
			json_object_set_new(value, "type", json_string(types[i][1]));
			return;
		}
}

static json_t *resolve(const json_t *value);

/* The first accepted value; NULL: the argument is optional. A value that is not in a list is used as it is.
 */
static json_t *choose(const json_t *accepted)
{
	const json_t *value;
	size_t i;

	if (!json_is_array(accepted))
		return resolve(accepted);
	json_array_foreach(accepted, i,
			   value) if (json_is_string(value) && !json_string_length(value)) return NULL;
	return json_array_size(accepted) ? resolve(json_array_get(accepted, 0)) : NULL;
}

/* Resolves a value whose objects have lists of accepted values as members. */
static json_t *resolve(const json_t *value)
{
	json_t *out, *item;
	const char *key;
	size_t i;

	if (json_is_array(value)) {
		out = json_array();
		json_array_foreach(value, i, item) json_array_append_new(out, resolve(item));
		return out;
	}
	if (!json_is_object(value))
		return json_deep_copy(value);
	out = json_object();
	json_object_foreach((json_t *)value, key, item)
	{
		json_t *chosen = choose(item);

		if (chosen)
			json_object_set_new(out, key, chosen);
	}
	return out;
}

static json_t *calls_of(const json_t *truth)
{
	json_t *calls = json_array(), *call, *arguments;
	const char *name;
	size_t i;

	json_array_foreach(truth, i, call) json_object_foreach(call, name, arguments)
		json_array_append_new(calls, json_pack("{ss s{ss so}}", "type", "function", "function",
						       "name", name, "arguments", resolve(arguments)));
	return calls;
}

static json_t *tools_of(const json_t *functions)
{
	json_t *tools = json_array(), *function;
	size_t i;

	json_array_foreach(functions, i, function)
	{
		json_t *copy = json_deep_copy(function);

		rename_types(json_object_get(copy, "parameters"));
		json_array_append_new(tools, json_pack("{ss so}", "type", "function", "function", copy));
	}
	return tools;
}

/* Reads the JSON object of a row and checks that it has an id. */
static enum status read_line(json_t *lines, const struct rows *rows, size_t i, struct error *err)
{
	const struct rows_place *place = &rows->place[i];
	struct json_wrong why;
	json_t *line = json_read(place->text, place->size, 0, &why);

	if (!line)
		return error_set(err, STATUS_BAD_INPUT, "%s:%zu: %s", rows->path, place->line, why.text);
	json_array_append_new(lines, line);
	if (json_is_string(json_object_get(line, "id")))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s:%zu: a row without an id", rows->path, place->line);
}

static enum status read_lines(json_t **out, const char *path, struct error *err)
{
	json_t *lines;
	struct rows rows;
	enum status st = rows_open(&rows, path, err);

	if (st)
		return st;
	lines = json_array();
	for (size_t i = 0; !st && i < rows.count; i++)
		st = read_line(lines, &rows, i, err);
	rows_release(&rows);
	if (st)
		json_decref(lines);
	else
		*out = lines;
	return st;
}

static enum status add_row(json_t *rows, const json_t *line, const json_t *truths, const char *path,
			   struct error *err)
{
	const char *id = json_string_value(json_object_get(line, "id"));
	const json_t *truth = json_object_get(json_object_get(truths, id), "ground_truth");
	json_t *messages = json_deep_copy(json_array_get(json_object_get(line, "question"), 0));
	json_t *functions = json_object_get(line, "function"), *row;

	if (!json_is_array(truth) || !json_is_array(messages) || !json_is_array(functions)) {
		json_decref(messages);
		return error_set(err, STATUS_BAD_INPUT, "%s: %s has no question, functions or answer", path,
				 id);
	}
	json_array_append_new(messages, json_pack("{ss ss so}", "role", "assistant", "content", "",
						  "tool_calls", calls_of(truth)));
	row = json_pack("{so so sO}", "messages", messages, "tools", tools_of(functions), "ground_truth",
			truth);
	return json_array_append_new(rows, row) ? error_set(err, STATUS_NO_RESOURCE, "%s", path) : STATUS_OK;
}

static enum status add_category(json_t *rows, const char *folder, const char *category, struct error *err)
{
	json_t *lines = NULL, *answers = NULL, *truths = json_object(), *line;
	struct text path = {0};
	enum status st;
	size_t i;

	text_addf(&path, "%s/possible_answer/BFCL_v4_%s.json", folder, category);
	st = read_lines(&answers, text_str(&path), err);
	json_array_foreach(answers, i, line)
		json_object_set(truths, json_string_value(json_object_get(line, "id")), line);
	text_release(&path);
	text_addf(&path, "%s/BFCL_v4_%s.json", folder, category);
	if (!st)
		st = read_lines(&lines, text_str(&path), err);
	json_array_foreach(lines, i, line) if (!st) st = add_row(rows, line, truths, text_str(&path), err);
	text_release(&path);
	json_decref(lines);
	json_decref(answers);
	json_decref(truths);
	return st;
}

enum status bfcl_read(json_t **out, const char *folder, struct error *err)
{
	json_t *rows = json_array();
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < sizeof(categories) / sizeof(categories[0]); i++)
		st = add_category(rows, folder, categories[i], err);
	if (st)
		json_decref(rows);
	else
		*out = rows;
	return st;
}
