/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a model wrote, found in its text. */
#ifndef MODEL_CHAT_TOOL_CALL_H
#define MODEL_CHAT_TOOL_CALL_H
#include <jansson.h>
#include "model/chat/template.h"

struct tool_call {
	char *name;
	json_t *arguments; /* an object */
};

struct tool_calls {
	struct text content; /* what is said beside them; a call that cannot be read stays there */
	struct tool_call *calls;
	size_t count;
	size_t broken; /* calls that were begun and cannot be read */
};

/*
 * `text`: a whole answer without the token that ends it. Templates of ChatML: <tool_call> {"name",
 * "arguments"}
 * </tool_call>, the last one perhaps not closed; Llama's: an object {"name", "parameters"} alone. NO_RESOURCE
 * alone fails. Owner: caller, tool_calls_release.
 */
enum status tool_calls_read(struct tool_calls *out, const struct template *t, const char *text,
			    struct error *err);
void tool_calls_release(struct tool_calls *c);
/* {"content", "tool_calls": [{"name", "arguments"}, ..]}. Owner: caller, json_decref. */
json_t *tool_calls_json(const struct tool_calls *c);
#endif
