/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of a tokenizer, as grammars need it. */
#ifndef ENGINE_GRAMMAR_TOKENIZER_VOCAB_H
#define ENGINE_GRAMMAR_TOKENIZER_VOCAB_H
#include "engine/grammar/grammar.h"
#include "text/tokenizer/tokenizer.h"

/* `model`: the path of its files; generation_config.json there names further ids that end a text. *out is
 * NULL if no id ends a text, because then no grammar could end. Owner: caller, grammar_vocab_destroy. */
enum status grammar_vocab_of(struct grammar_vocab **out, const struct tokenizer *t, const char *model,
			     struct error *err);
#endif
