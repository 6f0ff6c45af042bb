/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens. They are searched in the text first, as a whole, leftmost and longest first. */
#ifndef TEXT_TOKENIZER_ADDED_TOKENS_H
#define TEXT_TOKENIZER_ADDED_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

struct added_token {
	char *text;
	size_t size;
	int32_t id;
	bool control;	     /* otherwise markup (vocab.h) */
	bool lstrip, rstrip; /* includes the white space before or after it */
};

struct added {
	struct added_token *tokens; /* after added_index: sorted by first byte, then longest first */
	size_t count, room;
	size_t first[257]; /* tokens that begin with byte b: first[b] to first[b + 1] */
};

/* Copies the token's text. */
enum status added_add(struct added *a, const struct added_token *token, struct error *err);
/* To be called once, after the last token. */
void added_index(struct added *a);
void added_release(struct added *a);
/* The longest token that begins here, or NULL. */
const struct added_token *added_at(const struct added *a, const char *text, size_t size);
/* The first place from `from` on where a token may begin, or size. */
size_t added_next(const struct added *a, const char *text, size_t size, size_t from);
#endif
