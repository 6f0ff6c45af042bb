/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 text in the columns of a terminal. */
#ifndef CORE_TEXT_WIDTH_H
#define CORE_TEXT_WIDTH_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/utf8.h"

enum width_align { WIDTH_LEFT, WIDTH_RIGHT };

/* The number of columns of one character: 0 for a combining mark, 2 for a wide East Asian character or emoji,
 * otherwise 1. */
unsigned width_of_code(uint32_t code);
/* The number of columns of `s`: 0 per combining mark, 2 per wide East Asian character or emoji, 1 per other
 * character. */
unsigned width_of(const char *s);
/* Appends `s`, cut to `columns` with an ellipsis or padded with spaces. Control characters become spaces and
 * bytes that are not UTF-8 become U+FFFD, so foreign text cannot control a terminal. */
void width_add(struct text *out, const char *s, unsigned columns, enum width_align align);
/* Appends `s`, cleaned as in width_add and wrapped at words. Every line after the first starts with `indent`
 * spaces. The first line has `used` columns already. */
void width_wrap(struct text *out, const char *s, unsigned columns, unsigned used, unsigned indent);
#endif
