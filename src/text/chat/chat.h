/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation with its tools, read from the usual JSON: {"messages": [..], "tools": [..]}. */
#ifndef TEXT_CHAT_CHAT_H
#define TEXT_CHAT_CHAT_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

/* name, other names in use */
#define CHAT_ROLES(X)                                                                                        \
	X(SYSTEM, "system", "developer", NULL)                                                               \
	X(USER, "user", "human", NULL)                                                                       \
	X(ASSISTANT, "assistant", "gpt", "model")                                                            \
	X(TOOL, "tool", "function", "observation")

#define X(name, ...) CHAT_##name,
enum chat_role { CHAT_ROLES(X) CHAT_ROLE_COUNT };
#undef X
const char *chat_role_name(enum chat_role role);

struct chat_call {
	const char *name;
	const json_t *arguments; /* an object, or the JSON text of one, which is rendered unchanged */
};

/* Texts belong to the root and are never NULL. */
struct chat_message {
	enum chat_role role;
	const char *content, *reasoning;
	size_t content_size; /* more than strlen(content) if U+0000 is in it */
	bool has_reasoning;  /* the field is present, even if "" */
	bool untrained;	     /* "weight": 0 */
	struct chat_call *calls;
	size_t call_count;
};

struct chat {
	json_t *root;
	struct chat_message *messages;
	size_t count;
	const json_t *tools; /* a non-empty array; NULL: none */
};

/*
 * Reads a conversation and takes ownership of `root`, on failure too. The content of a message is a text,
 * null or a list of parts of type text. Calls are in "tool_calls" or "function_call". tools is an array, or
 * the JSON text of one. BAD_INPUT names the place: "messages[2].role: ..". Owner: caller, chat_release.
 */
enum status chat_read(struct chat *c, json_t *root, struct error *err);
void chat_release(struct chat *c);
#endif
