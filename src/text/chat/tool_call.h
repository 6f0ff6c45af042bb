/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the function calls in a model's answer. */
#ifndef TEXT_CHAT_TOOL_CALL_H
#define TEXT_CHAT_TOOL_CALL_H
#include <jansson.h>
#include "text/chat/template.h"

struct tool_call {
	char *name;
	json_t *arguments; /* an object */
};

struct tool_calls {
	struct text content; /* the text besides the calls; a call that cannot be parsed stays in it */
	struct tool_call *calls;
	size_t count;
	size_t broken; /* number of calls that cannot be parsed */
};

/*
 * `text`: a complete answer without the token that ends it. ChatML templates: <tool_call> {"name",
 * "arguments"} </tool_call>; the last one need not be closed. A mark in a JSON string is part of the string.
 * Llama: only an object {"name", "parameters"}. The only error is NO_RESOURCE. Owner: caller,
 * tool_calls_release.
 */
enum status tool_calls_read(struct tool_calls *out, const struct template *t, const char *text,
			    struct error *err);
void tool_calls_release(struct tool_calls *c);
/* {"content", "tool_calls": [{"name", "arguments"}, ..]}. Owner: caller, json_decref. */
json_t *tool_calls_json(const struct tool_calls *c);
#endif
