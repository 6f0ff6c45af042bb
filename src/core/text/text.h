/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text. A zeroed struct is a valid empty text, also after text_release. */
#ifndef CORE_TEXT_TEXT_H
#define CORE_TEXT_TEXT_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

struct text {
	char *data; /* NUL-terminated; NULL while empty */
	size_t size, room;
	int failed; /* an allocation failed; data ends there */
};

void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const char *s, size_t size);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_addv(struct text *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
const char *text_str(const struct text *t); /* never NULL */
void text_release(struct text *t);
/* Escapes & < > " ' for HTML and XML text and attributes. Control characters other than tab and newline
 * become U+FFFD. */
void text_add_html(struct text *t, const char *s);
/* Copies at most size - 1 bytes and always adds a NUL. */
void text_copy(char *out, size_t size, const char *s);
/* True if both texts have the same words; their numbers may differ. */
bool text_alike(const char *a, const char *b);
/* The order of strcmp, for qsort and bsearch of pointers to texts. */
int text_compare(const void *a, const void *b);
#endif
