/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates. Training uses the templates of the supported families, written in C: they mark which parts
 * are trained. Inference uses the model's own template in Jinja.
 */
#ifndef TEXT_CHAT_TEMPLATE_H
#define TEXT_CHAT_TEMPLATE_H
#include "text/chat/chat.h"
#include "text/tokenizer/tokenizer.h"

/* A part of the rendered text; it begins where the part before ends. */
struct template_part {
	size_t end;
	enum tokenizer_added added;
	bool trained; /* an assistant's text, including the token that ends its turn */
};

struct template_text {
	struct text text;
	struct template_part *parts;
	size_t count, room;
	bool failed; /* memory ran out */
};
void template_text_release(struct template_text *t);

struct template_ask {
	bool generation_prompt; /* end with the header of an assistant's turn */
	bool no_thinking;	/* Qwen3: followed by an empty thought; Jinja: enable_thinking is false */
	bool control;		/* texts in messages may contain control tokens */
	/* Name of the setting that chooses the template, for messages; NULL: "chat_template". */
	const char *setting;
	/* Jinja only. Further variables, an object; NULL: none. They do not replace the usual ones. */
	const json_t *variables;
	int64_t now; /* seconds since 1970, for templates that write the date; 0: the present time */
};

struct template;
/* Null-terminated, for help texts: "chatml", "qwen2", .. */
extern const char *const template_names[];
/*
 * Finds a template by name. NULL or "auto": recognizes the Jinja template in the tokenizer's files. BAD_INPUT
 * if the name or the Jinja template is unknown; the message names `setting` if it is given.
 */
enum status template_find(const struct template **out, const char *name, const char *setting,
			  const struct tokenizer *t, struct error *err);
/* Whether it is the path of a template's file: it has a "/" or the ending ".jinja". */
bool template_names_file(const char *name);
/*
 * Opens the template for inference. `name` NULL or "auto": the Jinja template in the tokenizer's files; the
 * path of a file: that file; otherwise a template by its name. BAD_INPUT: an unknown name,
 * or a template with an error; UNSUPPORTED: a statement, filter or test that is not supported. The tokenizer
 * must outlive the template. Threads may share an open template. Owner: caller, template_close.
 */
enum status template_open(struct template **out, const char *name, const char *setting,
			  const struct tokenizer *t, struct error *err);
void template_close(struct template **t); /* NULL-safe; sets NULL */
const char *template_name(const struct template *t);
/* The text that ends an assistant's turn, such as "<|im_end|>". */
const char *template_end(const struct template *t);
/* Whether conversations may have tools. */
bool template_has_tools(const struct template *t);
/* Renders into an empty *out. BAD_INPUT, which names the setting, if there are tools and the template does
 * not support them; or if a Jinja template refuses the conversation. Parts of a Jinja template are not
 * trained. Owner: caller, template_text_release. */
enum status template_render(const struct template *t, const struct chat *c, const struct template_ask *ask,
			    struct template_text *out, struct error *err);

/* Token ids, and whether each is trained. No token crosses the border between trained and untrained text,
 * because inference starts a new text there. */
struct template_tokens {
	struct token_list ids;
	uint8_t *trained; /* [ids.count] */
	size_t trained_count;
};
enum status template_encode(struct tokenizer_worker *w, const struct template_text *text,
			    struct template_tokens *out, struct error *err);
void template_tokens_release(struct template_tokens *t);
#endif
