/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of grammars (engine/grammar/grammar.h), for the server and for commands. */
#ifndef ENGINE_GRAMMAR_SOURCE_H
#define ENGINE_GRAMMAR_SOURCE_H
#include <jansson.h>
#include <stdbool.h>

/* The source of type tool_calls. */
struct grammar_tool_calls {
	const char *format;   /* "chatml", "llama" or "mistral" */
	const json_t *tools;  /* an array */
	const char *mode;     /* "auto", "required" or "named" */
	const char *name;     /* the tool that must be called; NULL: any */
	bool parallel;	      /* more than one call is allowed */
	const json_t *answer; /* source of a text without a call, in mode auto; NULL: any text */
};
/* Owner: caller, json_decref. NULL: out of memory. */
json_t *grammar_source_tool_calls(const struct grammar_tool_calls *c);
/* The same source for a text that may begin with a thought, from <think> to </think>. `open`: it begins
 * within a thought. `source` is a JSON object that is not empty. Owner: caller, free. NULL: out of memory. */
char *grammar_source_after_thought(const char *source, bool open);
#endif
