/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a tokenizer, for tokenizer.c and the files that read one. */
#ifndef TEXT_TOKENIZER_INTERNAL_H
#define TEXT_TOKENIZER_INTERNAL_H
#include <jansson.h>
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/nfc.h"
#include "text/tokenizer/pretoken.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocab.h"

struct tokenizer {
	struct vocab vocab;
	struct added added;
	struct pretoken pretoken;
	struct nfc *nfc; /* NULL: the text is not normalized */
	bool whole_first;
	int32_t bos, eos;		     /* -1: none; bos is put before a text without a chat template */
	char *chat_template, *tool_template; /* NULL: none */
	char *special[TOKENIZER_SPECIALS];   /* NULL: none */
};

/* Fills an empty tokenizer from the text of a tokenizer.json. Messages begin with `name`. */
enum status tokenizer_parse_json(struct tokenizer *t, const char *name, const char *text, size_t size,
				 struct error *err);
/* The same for parsed JSON, or JSON made from a GGUF's metadata. */
enum status tokenizer_take_json(struct tokenizer *t, const char *name, const json_t *root, struct error *err);
enum status tokenizer_take_config(struct tokenizer *t, const json_t *config, struct error *err);
/* Adds eos and chat template from tokenizer_config.json and chat_template.jinja in the same folder, if they
 * exist. */
enum status tokenizer_read_config(struct tokenizer *t, const char *folder, struct error *err);
#endif
