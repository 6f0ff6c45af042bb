/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer is made of; for the files that read one and tokenizer.c. */
#ifndef MODEL_TOKENIZER_INTERNAL_H
#define MODEL_TOKENIZER_INTERNAL_H
#include <jansson.h>
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/nfc.h"
#include "model/tokenizer/pretoken.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/vocab.h"

struct tokenizer {
	struct vocab vocab;
	struct added added;
	struct pretoken pretoken;
	struct nfc *nfc; /* NULL: text stays as it is */
	bool whole_first;
	int32_t bos, eos;    /* -1: none; bos: put before a bare text */
	char *chat_template; /* NULL: none */
};

/* Fills an empty tokenizer from the bytes of a tokenizer.json. Messages begin with `name`. */
enum status tokenizer_parse_json(struct tokenizer *t, const char *name, const char *text, size_t size,
				 struct error *err);
/* The same from what was parsed, or made of a GGUF's metadata. */
enum status tokenizer_take_json(struct tokenizer *t, const char *name, const json_t *root, struct error *err);
enum status tokenizer_take_config(struct tokenizer *t, const json_t *config, struct error *err);
/* Adds eos and chat template from tokenizer_config.json and chat_template.jinja
 * beside it, where they are. */
enum status tokenizer_read_config(struct tokenizer *t, const char *folder, struct error *err);
void tokenizer_release(struct tokenizer *t);
#endif
