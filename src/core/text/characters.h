/* SPDX-License-Identifier: Apache-2.0 */
/* Complete characters out of bytes that may end within one. */
#ifndef CORE_TEXT_CHARACTERS_H
#define CORE_TEXT_CHARACTERS_H
#include "core/text/text.h"

/* Appends the complete characters of `partial` and `bytes`, and U+FFFD for invalid bytes; keeps the rest in
 * `partial`. */
void characters_add(char partial[4], size_t *partial_size, const char *bytes, size_t size, struct text *out);
/* Appends U+FFFD if an incomplete character is left. */
void characters_end(size_t *partial_size, struct text *out);
#endif
