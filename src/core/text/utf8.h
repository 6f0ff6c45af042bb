/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes UTF-8 and makes foreign text safe to print: it cannot control the terminal, forge a line, or
 * change the direction of the text after it. */
#ifndef CORE_TEXT_UTF8_H
#define CORE_TEXT_UTF8_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"

enum { UTF8_REPLACEMENT = 0xfffd };

/* Decodes one character; *size is the number of bytes consumed. An invalid byte gives U+FFFD and size 1.
 * The end gives 0. */
uint32_t utf8_decode(const char *s, size_t *size);
/* `s` ends with a NUL after `size` bytes; it may hold NULs. */
bool utf8_is_valid(const char *s, size_t size);
/* Skips a byte order mark, which some editors write at the beginning of a file. */
void utf8_skip_bom(const char **text, size_t *size);
/* True for C0, DEL and C1 controls, line and paragraph separators, and the marks that change the direction
 * of the following text. */
bool utf8_is_control(uint32_t code);

/* COLOUR keeps "ESC [ .. m" only; use it for text whose parts are cleaned already. */
enum utf8_keep { UTF8_KEEP_NOTHING = 0, UTF8_KEEP_LINES = 1, UTF8_KEEP_COLOUR = 2 };
/* Appends `s`; control characters become spaces, and invalid UTF-8 becomes U+FFFD. */
void utf8_add_clean(struct text *out, const char *s, enum utf8_keep keep);
/* Appends JSON unchanged, except that control characters which JSON allows inside strings become \u
 * escapes: the data stay the same. */
void utf8_add_json(struct text *out, const char *json);
#endif
