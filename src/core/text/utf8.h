/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, and what of it may reach a terminal: no text of a stranger steers one, forges a line or turns what
 * follows. */
#ifndef CORE_TEXT_UTF8_H
#define CORE_TEXT_UTF8_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"

enum { UTF8_REPLACEMENT = 0xfffd };

/* Decodes one character; *size: bytes taken (1 for a byte that is not UTF-8). U+FFFD where it is not. 0 at
 * the end. */
uint32_t utf8_decode(const char *s, size_t *size);
/* Past the byte order mark that some editors begin a file with. */
void utf8_skip_bom(const char **text, size_t *size);
/* C0, DEL and C1 controls, line and paragraph separators, and the marks that turn the direction of what
 * follows. */
bool utf8_is_control(uint32_t code);

/* COLOUR: "ESC [ .. m" alone, for text that was cleaned part by part. */
enum utf8_keep { UTF8_KEEP_NOTHING = 0, UTF8_KEEP_LINES = 1, UTF8_KEEP_COLOUR = 2 };
/* Appends `s` with a space for every control character and U+FFFD for what is no UTF-8. */
void utf8_add_clean(struct text *out, const char *s, enum utf8_keep keep);
/* Appends JSON as it stands, with \u escapes for the control characters that JSON allows inside its strings:
 * the same data. */
void utf8_add_json(struct text *out, const char *json);
#endif
