/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/added_tokens.h"

enum status added_add(struct added *a, const struct added_token *token, struct error *err)
{
	struct added_token *grown, *to;
	size_t room;

	if (a->count == a->room) {
		room = a->room ? a->room * 2 : 32;
		grown = realloc(a->tokens, room * sizeof(*grown));
		if (!grown)
			return error_set(err, STATUS_NO_RESOURCE, "%zu added tokens", room);
		a->tokens = grown;
		a->room = room;
	}
	to = &a->tokens[a->count];
	*to = *token;
	to->text = malloc(token->size + 1);
	if (!to->text)
		return error_set(err, STATUS_NO_RESOURCE, "an added token of %zu bytes", token->size);
	memcpy(to->text, token->text, token->size);
	to->text[token->size] = '\0';
	a->count++;
	return STATUS_OK;
}

static int by_first_byte(const void *a_, const void *b_)
{
	const struct added_token *a = a_, *b = b_;
	int first = (unsigned char)a->text[0] - (unsigned char)b->text[0];

	if (first)
		return first;
	return a->size > b->size ? -1 : a->size < b->size;
}

void added_index(struct added *a)
{
	size_t i = 0;
	int byte;

	if (a->count)
		qsort(a->tokens, a->count, sizeof(*a->tokens), by_first_byte);
	for (byte = 0; byte < 256; byte++) {
		a->first[byte] = i;
		while (i < a->count && (unsigned char)a->tokens[i].text[0] == byte)
			i++;
	}
	a->first[256] = i;
}

void added_release(struct added *a)
{
	while (a->count)
		free(a->tokens[--a->count].text);
	free(a->tokens);
	*a = (struct added){0};
}

const struct added_token *added_at(const struct added *a, const char *text, size_t size)
{
	size_t byte = (unsigned char)text[0], i;

	for (i = a->first[byte]; i < a->first[byte + 1]; i++)
		if (a->tokens[i].size <= size && !memcmp(a->tokens[i].text, text, a->tokens[i].size))
			return &a->tokens[i];
	return NULL;
}

size_t added_next(const struct added *a, const char *text, size_t size, size_t from)
{
	for (; from < size; from++) {
		size_t byte = (unsigned char)text[from];

		if (a->first[byte] != a->first[byte + 1])
			break;
	}
	return from;
}
