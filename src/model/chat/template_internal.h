/* SPDX-License-Identifier: Apache-2.0 */
/* What a template is made of; for the files of the families. */
#ifndef MODEL_CHAT_TEMPLATE_INTERNAL_H
#define MODEL_CHAT_TEMPLATE_INTERNAL_H
#include "model/chat/template.h"

struct template_writer {
	struct template_text *out;
	const struct template_ask *ask;
};

struct template
{
	const char *name;
	const char *end;	    /* of an assistant's turn */
	const char *system;	    /* where none is given; NULL: no such turn */
	const char *const *known;   /* all of these stand in its Jinja text; NULL ends */
	const char *const *foreign; /* and none of these */
	bool tools;		    /* has a place for them */
	enum status (*render)(const struct template *t, const struct chat *c, struct template_writer *w,
			      struct error *err);
};

/* Text of the template's own. */
void template_own(struct template_writer *w, const char *text);
/* What people wrote: no control ids, unless asked. */
void template_said(struct template_writer *w, const char *text, size_t size);
/* What the assistant says; markup is recognised. `own`: with control ids too, the end of the turn. */
void template_answer(struct template_writer *w, const char *text, size_t size, bool own, bool trained);
/* A JSON value of people's. */
void template_json(struct template_writer *w, const json_t *value, unsigned indent);
/* A call's arguments as the assistant writes them. */
void template_arguments(struct template_writer *w, const struct chat_call *call, bool trained);

extern const struct template template_chatml, template_qwen2, template_qwen25, template_qwen3,
	template_qwen3_instruct, template_smollm2, template_llama3, template_llama31;
#endif
