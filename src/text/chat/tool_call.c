/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/tool_call.h"

#include "text/chat/call_end.h"
#include "text/chat/template_internal.h"

static const char open_mark[] = CALL_OPEN_MARK, close_mark[] = CALL_CLOSE_MARK;

/* Parses the text as one call; false: it is not one. */
static bool read_call(struct tool_call *call, const char *text, size_t size)
{
	json_t *object = json_loadb(text, size, 0, NULL);
	const json_t *name = json_object_get(object, "name");
	json_t *arguments = json_object_get(object, "arguments");

	if (!arguments)
		arguments = json_object_get(object, "parameters");
	*call = (struct tool_call){0};
	if (json_string_length(name) && (!arguments || json_is_object(arguments))) {
		call->name = strdup(json_string_value(name));
		call->arguments = arguments ? json_incref(arguments) : json_object();
	}
	json_decref(object);
	return call->name != NULL;
}

static enum status add_call(struct tool_calls *c, struct tool_call call, struct error *err)
{
	struct tool_call *grown = realloc(c->calls, (c->count + 1) * sizeof(*grown));

	if (!grown) {
		free(call.name);
		json_decref(call.arguments);
		return error_set(err, STATUS_NO_RESOURCE, "%zu calls", c->count + 1);
	}
	c->calls = grown;
	c->calls[c->count++] = call;
	return STATUS_OK;
}

static void add_content(struct tool_calls *c, const char *text, size_t size)
{
	while (size && (*text == '\n' || *text == ' ')) {
		text++;
		size--;
	}
	while (size && (text[size - 1] == '\n' || text[size - 1] == ' '))
		size--;
	if (size && c->content.size)
		text_add(&c->content, "\n");
	text_add_bytes(&c->content, text, size);
}

/* Bytes of a call's body. It extends to its closing mark or, if that is missing, to the next mark or the end.
 */
static size_t body_size(const char *body)
{
	struct call_scan scan = {0};
	size_t size = strlen(body), at;
	enum call_end end = call_end_find(&scan, body, size, &at);

	return end == CALL_END_OPEN || end == CALL_END_CLOSE ? at : size;
}

/* A body that is no JSON extends to the first mark, wherever it is. */
static size_t broken_size(const char *body)
{
	const char *close = strstr(body, close_mark), *next = strstr(body, open_mark);

	if (close && (!next || close < next))
		return (size_t)(close - body);
	return next ? (size_t)(next - body) : strlen(body);
}

static const char *after_close(const char *at)
{
	return strncmp(at, close_mark, strlen(close_mark)) ? at : at + strlen(close_mark);
}

static enum status read_marked(struct tool_calls *c, const char *text, struct error *err)
{
	enum status st = STATUS_OK;
	const char *mark, *body, *next;
	struct tool_call call;

	for (; !st && (mark = strstr(text, open_mark)); text = next) {
		add_content(c, text, (size_t)(mark - text));
		body = mark + strlen(open_mark);
		next = after_close(body + body_size(body));
		if (read_call(&call, body, body_size(body))) {
			st = add_call(c, call, err);
		} else {
			next = after_close(body + broken_size(body));
			c->broken++;
			add_content(c, mark, (size_t)(next - mark));
		}
	}
	add_content(c, text, strlen(text));
	return st;
}

static enum status read_alone(struct tool_calls *c, const char *text, struct error *err)
{
	const char *begin = text + strspn(text, " \n");
	struct tool_call call;

	if (*begin == '{' && read_call(&call, begin, strlen(begin)))
		return add_call(c, call, err);
	c->broken = !strncmp(begin, "{\"name\"", 7);
	add_content(c, text, strlen(text));
	return STATUS_OK;
}

enum status tool_calls_read(struct tool_calls *out, const struct template *t, const char *text,
			    struct error *err)
{
	enum status st;

	*out = (struct tool_calls){0};
	st = t->marked ? read_marked(out, text, err) : read_alone(out, text, err);
	if (!st && out->content.failed)
		st = error_set(err, STATUS_NO_RESOURCE, "an answer");
	if (st)
		tool_calls_release(out);
	return st;
}

void tool_calls_release(struct tool_calls *c)
{
	for (size_t i = 0; i < c->count; i++) {
		free(c->calls[i].name);
		json_decref(c->calls[i].arguments);
	}
	free(c->calls);
	text_release(&c->content);
	*c = (struct tool_calls){0};
}

json_t *tool_calls_json(const struct tool_calls *c)
{
	json_t *calls = json_array();

	for (size_t i = 0; i < c->count; i++)
		json_array_append_new(calls, json_pack("{ss sO}", "name", c->calls[i].name, "arguments",
						       c->calls[i].arguments));
	return json_pack("{ss so}", "content", text_str(&c->content), "tool_calls", calls);
}
