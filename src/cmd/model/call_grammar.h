/* SPDX-License-Identifier: Apache-2.0 */
/* The option --grammar of `generate` and `eval`: answers follow the grammar that the server uses for a
 * request with tools and tool_choice. */
#ifndef CMD_MODEL_CALL_GRAMMAR_H
#define CMD_MODEL_CALL_GRAMMAR_H
#include "engine/grammar/grammar.h"
#include "text/chat/call_form.h"
#include "text/chat/thought.h"

/* NONE: any text. AUTO, REQUIRED: as tool_choice. */
enum call_grammar_mode { CALL_GRAMMAR_NONE, CALL_GRAMMAR_AUTO, CALL_GRAMMAR_REQUIRED };
/* The words of the modes, in their order. NULL ends them. */
extern const char *const call_grammar_words[];

struct call_grammar {
	enum call_grammar_mode mode;
	enum call_form form;
	bool thinks_first;
	struct grammar_vocab *vocab; /* NULL in mode NONE */
};
/* `model`: path of the files of the tokenizer. BAD_INPUT: the template has no tool calls, or no token ends a
 * text. Owner: caller, call_grammar_close, also after a failure. */
enum status call_grammar_open(struct call_grammar *g, enum call_grammar_mode mode, const struct template *t,
			      const struct tokenizer *tokenizer, const char *model, struct error *err);
void call_grammar_close(struct call_grammar *g);
/* The grammar's source for an answer to `prompt` with these tools. *source is NULL if there is no grammar: in
 * mode NONE, or in mode AUTO without tools. BAD_INPUT: mode REQUIRED without tools, as in the server. Owner:
 * caller, free. */
enum status call_grammar_source(const struct call_grammar *g, const json_t *tools, const struct text *prompt,
				char **source, struct error *err);
#endif
