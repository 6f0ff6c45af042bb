/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode's composed form NFC, by utf8proc. Text that is already composed costs only a check of each
 * character. */
#ifndef TEXT_TOKENIZER_NFC_H
#define TEXT_TOKENIZER_NFC_H
#include "core/error.h"
#include "core/text/text.h"

struct nfc; /* table of characters that need utf8proc; immutable, shared by threads */
enum status nfc_create(struct nfc **out, struct error *err);
void nfc_destroy(struct nfc **n);
/* *out is the composed form of `text` (valid UTF-8, size bytes): `text` itself, or a text written to
 * `scratch`. */
enum status nfc_apply(const struct nfc *n, const char *text, size_t size, struct text *scratch,
		      const char **out, size_t *out_size, struct error *err);
#endif
