/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 text in columns of a terminal. */
#ifndef REPORT_TEXT_WIDTH_H
#define REPORT_TEXT_WIDTH_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/utf8.h"

enum width_align { WIDTH_LEFT, WIDTH_RIGHT };

/* Columns that `s` takes: 0 for combining marks, 2 for wide East Asian and emoji, 1 for the rest. */
unsigned width_of(const char *s);
/* Appends `s` cut to `columns` (with an ellipsis where it is cut) and padded to it. Control characters become
 * spaces, bytes that are not UTF-8 become U+FFFD: foreign text cannot steer a terminal. */
void width_add(struct text *out, const char *s, unsigned columns, enum width_align align);
/* Bytes of `s` that fit: up to a space, or inside a word that is too wide by itself. */
size_t width_fit(const char *s, unsigned columns);
/* Appends `s` with the same cleaning, wrapped at words; every line after the first starts with `indent`
 * spaces. `used` columns of the first line are taken. */
void width_wrap(struct text *out, const char *s, unsigned columns, unsigned used, unsigned indent);
#endif
