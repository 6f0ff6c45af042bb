/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glaive function calling v2. A row has two texts. "system" ends with the functions, as a series of JSON
 * objects. "chat" has turns that begin with USER:, ASSISTANT: or FUNCTION RESPONSE:. A call is <functioncall>
 * {"name": "f", "arguments": '{..}'}, with single quotes around the arguments. A literal <|endoftext|>
 * follows answers.
 */
#include "core/text/text.h"
#include "core/json/read.h"
#include "data/rows/rows.h"

static const char end_mark[] = "<|endoftext|>", call_mark[] = "<functioncall>",
		  call_end[] = "</functioncall>";

struct span {
	const char *begin, *end;
};

static struct span trim(struct span s)
{
	while (s.begin < s.end && json_is_blank(*s.begin))
		s.begin++;
	while (s.begin < s.end && json_is_blank(s.end[-1]))
		s.end--;
	return s;
}

static bool ends_with(struct span s, const char *word)
{
	size_t size = strlen(word);

	return (size_t)(s.end - s.begin) >= size && !memcmp(s.end - size, word, size);
}

static const char *find(struct span s, const char *word)
{
	return s.begin < s.end ? memmem(s.begin, (size_t)(s.end - s.begin), word, strlen(word)) : NULL;
}

/* Reads the functions, which follow the sentence that announces them. */
static enum status read_functions(json_t *tools, struct span s, struct error *err)
{
	json_error_t why;
	json_t *function;

	for (s = trim(s); s.begin < s.end; s = trim(s)) {
		function = json_loadb(s.begin, (size_t)(s.end - s.begin), JSON_DISABLE_EOF_CHECK, &why);
		if (!json_is_object(function)) {
			json_decref(function);
			return error_set(err, STATUS_BAD_INPUT, "system: a function is not a JSON object: %s",
					 function ? "" : why.text);
		}
		s.begin += why.position;
		if (json_array_append_new(tools,
					  json_pack("{ss so}", "type", "function", "function", function)))
			return error_set(err, STATUS_NO_RESOURCE, "a function");
	}
	return STATUS_OK;
}

/* The chat template announces functions itself, so only other text becomes a system message. */
static enum status read_system(json_t *messages, json_t *tools, const char *text, struct error *err)
{
	struct span all = trim((struct span){text, text + strlen(text)}), said;
	const char *brace;
	enum status st = STATUS_OK;

	if (!strncmp(all.begin, "SYSTEM:", 7))
		all.begin += 7;
	said = all = trim(all);
	if (find(all, "access to the following functions")) {
		brace = find(all, "{");
		st = brace ? read_functions(tools, (struct span){brace, all.end}, err)
			   : error_set(err, STATUS_BAD_INPUT, "system: it announces functions, but has none");
		said.end = said.begin;
	}
	if (!st && said.begin < said.end &&
	    json_array_append_new(messages, json_pack("{ss ss%}", "role", "system", "content", said.begin,
						      (size_t)(said.end - said.begin))))
		st = error_set(err, STATUS_NO_RESOURCE, "a system message");
	return st;
}

/* Parses the text between the arguments' outer quotes. \' is not a JSON escape, so its backslash is dropped.
 */
static json_t *quoted_object(struct span s)
{
	struct text json = {0};
	json_t *value;

	for (const char *at = s.begin; at < s.end; at++) {
		if (*at == '\\' && at + 1 < s.end && at[1] == '\'')
			continue;
		text_add_bytes(&json, at, 1);
	}
	value = json_loadb(text_str(&json), json.size, 0, NULL);
	text_release(&json);
	return value;
}

/* The value of "arguments" in single quotes: from the first quote to the last one before the closing brace.
 */
static json_t *quoted_arguments(struct span call)
{
	const char *key = find(call, "\"arguments\""), *open, *close = call.end;

	if (!key)
		return NULL;
	open = memchr(key, '\'', (size_t)(call.end - key));
	while (open && close > open + 1 && close[-1] != '\'')
		close--;
	return open && close > open + 1 ? quoted_object((struct span){open + 1, close - 1}) : NULL;
}

static json_t *name_of(struct span call)
{
	const char *key = find(call, "\"name\""), *open, *close;

	open = key ? memchr(key + 6, '"', (size_t)(call.end - key) - 6) : NULL;
	close = open ? memchr(open + 1, '"', (size_t)(call.end - open) - 1) : NULL;
	return close ? json_stringn(open + 1, (size_t)(close - open) - 1) : NULL;
}

/* Parses a call, given with arguments in single quotes or as a plain JSON object. */
static json_t *read_call(struct span call)
{
	json_t *plain, *name, *arguments;

	call = trim(call);
	if (ends_with(call, call_end))
		call.end -= strlen(call_end);
	call = trim(call);
	plain = json_loadb(call.begin, (size_t)(call.end - call.begin), 0, NULL);
	if (json_is_object(plain))
		return plain;
	json_decref(plain);
	name = name_of(call);
	arguments = quoted_arguments(call);
	if (name && json_is_object(arguments))
		return json_pack("{so so}", "name", name, "arguments", arguments);
	json_decref(name);
	json_decref(arguments);
	return NULL;
}

/* Splits an answer into its text and its calls. A call extends from its mark to the next mark. */
static enum status add_answer(json_t *messages, struct span s, size_t turn, struct error *err)
{
	const char *mark = find(s, call_mark), *next;
	struct span said = trim((struct span){s.begin, mark ? mark : s.end});
	json_t *calls = json_array(), *message;

	for (; mark; mark = next) {
		struct span call = {mark + strlen(call_mark), s.end};
		json_t *read;

		next = find(call, call_mark);
		if (next)
			call.end = next;
		read = read_call(call);
		if (!read) {
			json_decref(calls);
			return error_set(err, STATUS_BAD_INPUT, "turn %zu: the call %.80s%s cannot be read",
					 turn, mark, strlen(mark) > 80 ? ".." : "");
		}
		json_array_append_new(calls, read);
	}
	message = json_pack("{ss ss% so*}", "role", "assistant", "content", said.begin,
			    (size_t)(said.end - said.begin), "tool_calls",
			    json_array_size(calls) ? json_incref(calls) : NULL);
	json_decref(calls);
	if (!message || json_array_append_new(messages, message))
		return error_set(err, STATUS_BAD_INPUT, "turn %zu is not UTF-8", turn);
	return STATUS_OK;
}

static const struct {
	const char *word, *role;
} marks[] = {{"USER:", "user"}, {"ASSISTANT:", "assistant"}, {"FUNCTION RESPONSE:", "tool"}};
enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

/* Whether only white space with at least two line ends precedes this place. */
static bool behind_blank_line(const char *text, const char *at)
{
	int lines = 0;

	while (at > text && json_is_blank(at[-1]))
		lines += *--at == '\n';
	return at == text || lines > 1;
}

/* The index of the mark of the turn that begins here; -1: none. */
static int mark_at(const char *text, const char *at)
{
	for (int i = 0; i < MARKS; i++)
		if (!strncmp(at, marks[i].word, strlen(marks[i].word)))
			return behind_blank_line(text, at) ? i : -1;
	return -1;
}

static enum status add_turn(json_t *messages, int mark, struct span s, size_t turn, struct error *err)
{
	s = trim(s);
	while (ends_with(s, end_mark)) {
		s.end -= strlen(end_mark);
		s = trim(s);
	}
	if (!strcmp(marks[mark].role, "assistant"))
		return add_answer(messages, s, turn, err);
	if (json_array_append_new(messages, json_pack("{ss ss%}", "role", marks[mark].role, "content",
						      s.begin, (size_t)(s.end - s.begin))))
		return error_set(err, STATUS_NO_RESOURCE, "a turn");
	return STATUS_OK;
}

static enum status read_chat(json_t *messages, const char *text, struct error *err)
{
	const char *at = text, *next;
	size_t turn = 0;
	enum status st = STATUS_OK;
	int mark;

	while (json_is_blank(*at))
		at++;
	if (*at && mark_at(text, at) < 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "chat does not begin with USER:, ASSISTANT: or FUNCTION RESPONSE:");
	for (; !st && *at; at = next) {
		mark = mark_at(text, at);
		at += strlen(marks[mark].word);
		for (next = at; *next && mark_at(text, next) < 0;)
			next++;
		st = add_turn(messages, mark, (struct span){at, next}, turn++, err);
	}
	return st;
}

enum status rows_of_glaive(json_t **out, const json_t *row, struct error *err)
{
	const char *system = json_string_value(json_object_get(row, "system"));
	const char *chat = json_string_value(json_object_get(row, "chat"));
	json_t *messages = json_array(), *tools = json_array();
	enum status st;

	if (!chat)
		st = error_set(err, STATUS_BAD_INPUT, "\"chat\" is not a text");
	else
		st = read_system(messages, tools, system ? system : "", err);
	if (!st)
		st = read_chat(messages, chat, err);
	if (!st) {
		*out = json_pack("{sO sO}", "messages", messages, "tools", tools);
		if (!*out)
			st = error_set(err, STATUS_NO_RESOURCE, "a row");
	}
	json_decref(messages);
	json_decref(tools);
	return st;
}
