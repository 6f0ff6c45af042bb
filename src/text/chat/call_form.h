/* SPDX-License-Identifier: Apache-2.0 */
/* How the models of a chat template write tool calls. */
#ifndef TEXT_CHAT_CALL_FORM_H
#define TEXT_CHAT_CALL_FORM_H

struct template;

enum call_form {
	CALL_FORM_NONE,	  /* the template has no tools, or their calls are not known */
	CALL_FORM_MARKED, /* <tool_call>{"name", "arguments"}</tool_call> */
	CALL_FORM_BARE	  /* the whole text is {"name", "parameters"} */
};
enum call_form call_form_of(const struct template *t);
/* The word for it in a grammar's source (engine/grammar/grammar.h): "chatml", "llama"; "" for none. */
const char *call_form_name(enum call_form form);
#endif
