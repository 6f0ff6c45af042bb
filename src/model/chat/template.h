/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates of the families, written in C: text, and which of it is trained. The Jinja templates that
 * model files carry are not run, they are recognised.
 */
#ifndef MODEL_CHAT_TEMPLATE_H
#define MODEL_CHAT_TEMPLATE_H
#include "model/chat/chat.h"
#include "model/tokenizer/tokenizer.h"

/* A stretch of rendered text, from the end of the one before it. */
struct template_part {
	size_t end;
	enum tokenizer_added added;
	bool trained; /* what the assistant says, with the token that ends its turn */
};

struct template_text {
	struct text text;
	struct template_part *parts;
	size_t count, room;
	bool failed; /* out of memory */
};
void template_text_release(struct template_text *t);

struct template_ask {
	bool generation_prompt; /* ends with the header of the assistant's next turn */
	bool no_thinking;	/* Qwen3: with an empty thought behind it */
	bool control;		/* texts of people may yield control ids: "unless asked" */
	const char *setting;	/* what names the template, for messages; NULL: "chat_template" */
};

struct template;
/* Null-terminated, for help: "chatml", "qwen2", .. */
extern const char *const template_names[];
/*
 * The template by name; NULL or "auto": the one whose Jinja text the tokenizer's files carry. BAD_INPUT
 * where the name is unknown, or the text is of no family here: `setting`, where it is named, is named then.
 */
enum status template_find(const struct template **out, const char *name, const char *setting,
			  const struct tokenizer *t, struct error *err);
const char *template_name(const struct template *t);
/* The text that ends an assistant's turn: "<|im_end|>". */
const char *template_end(const struct template *t);
/* Renders into an empty *out. Tools where the template has no place for them: BAD_INPUT, which names the
 * setting. Owner: caller, template_text_release. */
enum status template_render(const struct template *t, const struct chat *c, const struct template_ask *ask,
			    struct template_text *out, struct error *err);

/* Ids, and for each whether it is trained. Words don't go on across the border of what is trained: at
 * inference the assistant's words begin there. */
struct template_tokens {
	struct token_list ids;
	uint8_t *trained; /* [ids.count] */
	size_t trained_count;
};
enum status template_encode(struct tokenizer_worker *w, const struct template_text *text,
			    struct template_tokens *out, struct error *err);
void template_tokens_release(struct template_tokens *t);
#endif
