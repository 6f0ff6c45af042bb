/* SPDX-License-Identifier: Apache-2.0 */
/* Structure of a template, for the files of the families. */
#ifndef TEXT_CHAT_TEMPLATE_INTERNAL_H
#define TEXT_CHAT_TEMPLATE_INTERNAL_H
#include "text/chat/template.h"
#include "text/jinja/jinja.h"

struct template_writer {
	struct template_text *out;
	const struct template_ask *ask;
};

struct template
{
	const char *name;
	const char *end;	    /* of an assistant's turn */
	const char *system;	    /* system text if the conversation has none; NULL: no system turn */
	const char *const *known;   /* the template's Jinja text contains all of these; NULL-terminated */
	const char *const *foreign; /* and none of these */
	bool tools;		    /* supports tools */
	bool marked;		    /* calls stand between <tool_call> and </tool_call> */
	enum status (*render)(const struct template *t, const struct chat *c, struct template_writer *w,
			      struct error *err);
	/* Only of a template in Jinja: */
	struct jinja *jinja, *jinja_tools; /* jinja_tools: for conversations with tools; NULL: the same */
	const struct tokenizer *tokenizer;
	char *own_name, *own_end; /* what `name` and `end` point to */
	bool arguments_as_text;	  /* a call's arguments are written as text, not as an object */
};

/* Adds text of the template itself. */
void template_own(struct template_writer *w, const char *text);
/* Adds text of a message. Control tokens in it are treated as text, unless they were asked for. */
void template_said(struct template_writer *w, const char *text, size_t size);
/* Adds an assistant's text; markup is recognized. `own`: the text may contain control tokens, such as the
 * end of the turn. */
void template_answer(struct template_writer *w, const char *text, size_t size, bool own, bool trained);
/* Adds a JSON value of the conversation. */
void template_json(struct template_writer *w, const json_t *value, unsigned indent);
/* Adds a call's arguments as the assistant writes them. */
void template_arguments(struct template_writer *w, const struct chat_call *call, bool trained);

/* Adds text whose source is known. */
void template_add(struct template_writer *w, const char *text, size_t size, enum tokenizer_added added);
/* The template written in C that a Jinja text stands for. NULL: none. */
const struct template *template_recognize(const char *jinja);
/* Makes a template of a Jinja text, and of another one for tools, or "". `name`: for messages. */
enum status template_of_jinja(struct template **out, const char *name, const char *text, const char *tools,
			      const struct tokenizer *t, struct error *err);

extern const struct template template_chatml, template_qwen2, template_qwen25, template_qwen3,
	template_qwen3_instruct, template_smollm2, template_llama3, template_llama31;
#endif
