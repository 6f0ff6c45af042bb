/* SPDX-License-Identifier: Apache-2.0 */
/* The text side of a model for the front end: its tokenizer, its chat template, and its form of tool calls.
 * All use of templates is here. An open prompter is immutable and shared by threads. */
#ifndef SERVE_PROMPT_H
#define SERVE_PROMPT_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"
#include "text/chat/call_form.h"
#include "text/chat/thought.h"
#include "text/generation_config.h"

struct prompter;
/* `path`: a model's folder, tokenizer.json or GGUF file. `template`: name of a chat template; NULL: the
 * model's own. A model without a known template can be opened; prompter_chat then says what to do. Owner:
 * caller. */
enum status prompter_open(struct prompter **out, const char *path, const char *template, struct error *err);
void prompter_close(struct prompter **p); /* NULL-safe */

/* The sampling defaults of the model's generation_config.json. */
const struct generation_config *prompter_defaults(const struct prompter *p);
/* Ids that end a text: of generation_config.json, the tokenizer's files and the template. */
const int32_t *prompter_ends(const struct prompter *p, size_t *count);
int32_t prompter_size(const struct prompter *p); /* one more than the largest id */

/* For one thread. */
struct prompter_worker;
enum status prompter_worker_create(struct prompter_worker **out, const struct prompter *p, struct error *err);
void prompter_worker_destroy(struct prompter_worker **w);

struct prompt_ids {
	int32_t *ids;
	size_t count;
};

struct prompt_ask {
	bool generation_prompt;
	const json_t *kwargs; /* chat_template_kwargs: an object, or NULL */
};

/* A conversation {"messages", "tools"} as token ids. Takes ownership of `root`. BAD_INPUT names the place in
 * the conversation. Owner of out->ids: caller, free. */
enum status prompter_chat(struct prompter_worker *w, json_t *root, const struct prompt_ask *ask,
			  struct prompt_ids *out, enum thought *thought, struct error *err);
/* `special`: the begin-of-text token is put before it, if the model has one. Owner of out->ids: caller, free.
 */
enum status prompter_text(struct prompter_worker *w, const char *text, size_t size, bool special,
			  struct prompt_ids *out, struct error *err);

/* Appends the bytes of one token, which may end within a character. `control`: control tokens too. */
void prompter_decode(const struct prompter *p, int32_t id, bool control, struct text *out);

enum call_form prompter_calls(const struct prompter *p);
/* Parses one call, without marks. The caller owns *name (free) and the JSON text *arguments (text_release).
 * False: it is none. */
bool prompter_read_call(const struct prompter *p, const char *text, size_t size, char **name,
			struct text *arguments);
/* The model writes thoughts between <think> and </think>. */
bool prompter_thinks(const struct prompter *p);
#endif
