/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "load/request.h"

/* A word up to `stop`; false: it does not fit, or the line ends before. */
static bool word(const char **at, const char *end, char stop, char *out, size_t room)
{
	const char *found = memchr(*at, stop, (size_t)(end - *at));
	size_t size = found ? (size_t)(found - *at) : room;

	if (size >= room)
		return false;
	memcpy(out, *at, size);
	out[size] = '\0';
	*at = found + 1;
	return true;
}

static bool value_is(const char *at, const char *end, const char *value)
{
	while (at < end && *at == ' ')
		at++;
	return (size_t)(end - at) >= strlen(value) && !strncasecmp(at, value, strlen(value));
}

/* 0, or a status */
static int read_field(struct request *r, const char *at, const char *end)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));
	size_t name = colon ? (size_t)(colon - at) : 0;
	char *stop;

	if (!colon)
		return 400;
	if (name == 14 && !strncasecmp(at, "Content-Length", name)) {
		r->body = strtoull(colon + 1, &stop, 10);
		if (*stop != '\r' || r->body > REQUEST_BODY_MOST)
			return 413;
	} else if (name == 10 && !strncasecmp(at, "Connection", name)) {
		if (value_is(colon + 1, end, "close"))
			r->close = true;
		else if (value_is(colon + 1, end, "keep-alive"))
			r->close = false;
	} else if (name == 6 && !strncasecmp(at, "Expect", name)) {
		r->expect = value_is(colon + 1, end, "100-continue");
	} else if (name == 17 && !strncasecmp(at, "Transfer-Encoding", name)) {
		return 411;
	}
	return 0;
}

int request_read_header(struct request *r, const char *bytes, size_t size)
{
	const char *end = memmem(bytes, size, "\r\n\r\n", 4), *at = bytes, *line;
	int status;

	*r = (struct request){0};
	if ((end ? (size_t)(end - bytes) : size) > REQUEST_HEADER_MOST)
		return 431;
	if (!end)
		return 0;
	end += 2; /* with the last field's end of line */
	line = memmem(at, (size_t)(end - at), "\r\n", 2);
	if (!word(&at, line, ' ', r->method, sizeof(r->method)) ||
	    !word(&at, line, ' ', r->path, sizeof(r->path)) || !value_is(at, line, "HTTP/1."))
		return 400;
	r->path[strcspn(r->path, "?")] = '\0';
	r->close = value_is(at, line, "HTTP/1.0");
	for (at = line + 2; at < end; at = line + 2) {
		line = memmem(at, (size_t)(end - at), "\r\n", 2);
		status = read_field(r, at, line);
		if (status)
			return status;
	}
	r->head = (size_t)(end + 2 - bytes);
	return 0;
}

static uint64_t count_words(const char *s)
{
	uint64_t count = 0;
	bool inside = false;

	for (; *s; s++) {
		bool blank = isspace((unsigned char)*s);

		count += !blank && !inside;
		inside = !blank;
	}
	return count;
}

/* A text, a list of texts, a list of token ids, or a list of parts with a text each. */
static uint64_t count_content(const json_t *content)
{
	uint64_t count = 0;
	const json_t *part;
	size_t i;

	if (json_is_string(content))
		return count_words(json_string_value(content));
	json_array_foreach(content, i, part)
	{
		if (json_is_integer(part))
			count++;
		else
			count += count_content(json_is_object(part) ? json_object_get(part, "text") : part);
	}
	return count;
}

static const char *read_limit(struct request *r, const json_t *root)
{
	const json_t *limit = json_object_get(root, "max_completion_tokens");
	json_int_t value;

	if (!limit)
		limit = json_object_get(root, "max_tokens");
	value = limit && !json_is_null(limit) ? json_integer_value(limit) : REQUEST_TOKENS_PRESET;
	if (value < 1 || value > REQUEST_TOKENS_MOST)
		return "max_tokens must be a number from 1 to 1000000";
	r->max_tokens = (uint32_t)value;
	return NULL;
}

static const char *read_root(struct request *r, const json_t *root)
{
	const json_t *messages = json_object_get(root, "messages"), *prompt = json_object_get(root, "prompt"),
		     *message;
	size_t i;

	if (r->chat ? !json_is_array(messages) : !prompt)
		return r->chat ? "messages must be an array" : "prompt is missing";
	if (r->chat)
		json_array_foreach(messages, i, message) r->prompt_tokens +=
			count_content(json_object_get(message, "content"));
	else
		r->prompt_tokens = count_content(prompt);
	r->stream = json_is_true(json_object_get(root, "stream"));
	r->usage = !r->stream ||
		   json_is_true(json_object_get(json_object_get(root, "stream_options"), "include_usage"));
	return read_limit(r, root);
}

int request_read_body(struct request *r, const char *bytes, const char **message)
{
	json_t *root = json_loadb(bytes, r->body, 0, NULL);

	*message = json_is_object(root) ? read_root(r, root) : "the body is not a JSON object";
	json_decref(root);
	return *message ? 400 : 0;
}
