/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode's composed form NFC, by utf8proc; text that is composed already costs a look at each character. */
#ifndef MODEL_TOKENIZER_NFC_H
#define MODEL_TOKENIZER_NFC_H
#include "core/error.h"
#include "core/text/text.h"

struct nfc; /* which characters need the long way; immutable, shared by threads */
enum status nfc_create(struct nfc **out, struct error *err);
void nfc_destroy(struct nfc **n);
/* The composed form of `text` (valid UTF-8, size bytes): `text` itself, or what was written to `scratch`. */
enum status nfc_apply(const struct nfc *n, const char *text, size_t size, struct text *scratch,
		      const char **out, size_t *out_size, struct error *err);
#endif
