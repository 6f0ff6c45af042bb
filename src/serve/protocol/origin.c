/* SPDX-License-Identifier: Apache-2.0 */
/* A request of another API is read as one of chat completions. Its errors name the fields that the client
 * sent. */
#include "serve/protocol/request_internal.h"

#include <ctype.h>

void origin_add(struct origin *o, int64_t i)
{
	json_array_append_new(o->positions, i < 0 ? json_null() : json_pack("[I]", (json_int_t)i));
}

void origin_join(struct origin *o, int64_t i)
{
	json_t *last = json_array_get(o->positions, json_array_size(o->positions) - 1);

	json_array_append_new(last, json_integer(i));
}

/* Bytes of `name` at the beginning of a text, as a whole word; 0: it does not begin with it. */
static size_t begins_with(const char *text, const char *name)
{
	size_t size = strlen(name);
	const char next = strncmp(text, name, size) ? '_' : text[size];

	return isalnum((unsigned char)next) || next == '_' ? 0 : size;
}

static void replace(char *text, size_t room, const char *from, const char *to)
{
	size_t size = begins_with(text, from);
	char rest[512];

	if (!size)
		return;
	text_copy(rest, sizeof(rest), text + size);
	snprintf(text, room, "%s%s", to, rest);
}

static void rename_in(struct api_error *err, const char *from, const char *to)
{
	replace(err->param, sizeof(err->param), from, to);
	replace(err->message, sizeof(err->message), from, to);
}

/* "messages[2].tool_calls[1].function" becomes the entry that this call was. */
static void rename_call(const struct origin *o, struct api_error *err)
{
	size_t i = 0, k = 0;
	char from[80], to[96];
	const json_t *entry;

	if (!o->calls_are_entries || sscanf(err->param, "messages[%zu].tool_calls[%zu]", &i, &k) != 2)
		return;
	entry = json_array_get(json_array_get(o->positions, i), k);
	snprintf(from, sizeof(from), "messages[%zu].tool_calls[%zu].function", i, k);
	snprintf(to, sizeof(to), "%s[%lld]", o->list, (long long)json_integer_value(entry));
	rename_in(err, from, to);
}

/* A tool of another API has the members of its function itself. */
static void rename_tool(const struct origin *o, struct api_error *err)
{
	size_t i = 0;
	char from[64], to[96];

	if (sscanf(err->param, "tools[%zu]", &i) != 1)
		return;
	snprintf(from, sizeof(from), "tools[%zu].function.parameters", i);
	snprintf(to, sizeof(to), "tools[%zu].%s", i, o->schema);
	rename_in(err, from, to);
	snprintf(from, sizeof(from), "tools[%zu].function", i);
	snprintf(to, sizeof(to), "tools[%zu]", i);
	rename_in(err, from, to);
}

/* "messages[2]" becomes the first entry that message 2 was. */
static void rename_place(const struct origin *o, struct api_error *err)
{
	size_t i = 0;
	char from[48], to[96];
	const json_t *position;

	if (sscanf(err->param, "messages[%zu]", &i) != 1)
		return;
	position = json_array_get(json_array_get(o->positions, i), 0);
	snprintf(from, sizeof(from), "messages[%zu]", i);
	if (json_is_integer(position))
		snprintf(to, sizeof(to), "%s[%lld]", o->list, (long long)json_integer_value(position));
	else
		text_copy(to, sizeof(to), o->before);
	rename_in(err, from, to);
}

void origin_rename(const struct origin *o, struct api_error *err)
{
	rename_call(o, err);
	rename_place(o, err);
	rename_tool(o, err);
	for (const struct renamed *r = o->names; r->from; r++)
		rename_in(err, r->from, r->to);
}
