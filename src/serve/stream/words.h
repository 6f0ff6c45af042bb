/* SPDX-License-Identifier: Apache-2.0 */
/* Finds words in a text that grows: complete ones, and an end that may become one. */
#ifndef SERVE_STREAM_WORDS_H
#define SERVE_STREAM_WORDS_H
#include <stdbool.h>
#include <stddef.h>

/* The earliest complete word; of those that begin together, the first of the list. */
bool words_find(const char *text, size_t size, const char *const *words, size_t count, size_t *at,
		size_t *word);
/* Bytes at the end of the text that may begin a word. */
size_t words_held(const char *text, size_t size, const char *const *words, size_t count);
#endif
