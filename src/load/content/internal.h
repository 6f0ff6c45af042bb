/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of contents, for the files of this folder. */
#ifndef LOAD_CONTENT_INTERNAL_H
#define LOAD_CONTENT_INTERNAL_H
#include <jansson.h>
#include "load/content/content.h"
#include "load/content/dataset.h"
#include "load/content/words.h"
#include "text/chat/template.h"

enum { BYTES_PER_TOKEN = 4 }; /* of English text; only without a tokenizer */

struct load_content {
	struct tokenizer *tokenizer; /* NULL: not known */
	struct template *template;   /* NULL: completion, or not known */
	struct load_words words;
	struct dataset *dataset; /* NULL: synthetic text */
	uint32_t dataset_tokens;
	uint64_t key; /* of all texts, from the salt */
	bool salted, completion, uncounted;
	/* Tokens that the template adds to a first message, and to a later one. additive: a first prompt has
	 * the sum of this and its words, which was tried; others are counted one by one. */
	uint32_t first_tokens, later_tokens;
	uint32_t shared_tokens; /* with which every prompt begins */
	bool additive;
	json_t *kwargs;	   /* chat_template_kwargs; NULL: none */
	const char *limit; /* member for the answer's length */
	bool min_tokens;
	struct text tail; /* members that all bodies share, with the closing brace */
};

struct load_worker {
	const struct load_content *c;
	struct tokenizer_worker *tokens; /* NULL without a tokenizer */
	struct token_list ids;		 /* of the text that was counted last */
	struct template_tokens chat;	 /* of the conversation that was counted last */
	struct text message;		 /* of the request at work */
};

struct load_dialogue {
	json_t *messages;   /* chat */
	json_t *tools;	    /* chat; NULL: none */
	struct text prompt; /* completion: all text so far */
};

/* Empties it for a new conversation. `tools`: copied; NULL: none. */
enum status dialogue_begin(struct load_dialogue *d, const json_t *tools, struct error *err);
enum status dialogue_add(struct load_dialogue *d, const char *role, const char *text, size_t size,
			 struct error *err);

/* Tokens of a conversation as the server renders it, or of a completion's prompt. */
enum status count_messages(struct load_worker *w, json_t *messages, json_t *tools, bool generation_prompt,
			   uint32_t *tokens, struct error *err);
enum status count_prompt(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
			 struct error *err);
enum status count_text(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
		       struct error *err);
/* Tokens of one user's message with its template. */
enum status count_message(struct load_worker *w, const char *text, size_t size, uint32_t *tokens,
			  struct error *err);
/* Measures what the template adds, and tries whether it always adds the same. */
enum status template_measure(struct load_content *c, struct error *err);

/* Makes the text of a synthetic message of a first or later turn in w->message. */
enum status message_first(struct load_worker *w, const struct load_request *r, struct load_asked *asked,
			  struct error *err);
enum status message_later(struct load_worker *w, const struct load_request *r, struct load_dialogue *d,
			  struct load_asked *asked, struct error *err);
/* The same from a row of the dataset. Its messages are added to the dialogue. */
enum status message_of_row(struct load_worker *w, const struct load_request *r, uint64_t index,
			   struct load_dialogue *d, struct load_asked *asked, struct error *err);

/* Makes the members that all bodies share. */
enum status body_tail(struct load_content *c, const struct load_content_spec *spec, struct error *err);
/* Bodies of a single message, whose text is in w->message, and of a dialogue. */
void body_of_message(struct load_worker *w, const struct load_asked *asked, struct text *out);
enum status body_of_dialogue(struct load_worker *w, const struct load_dialogue *d,
			     const struct load_asked *asked, struct text *out, struct error *err);
#endif
