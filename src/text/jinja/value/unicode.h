/* SPDX-License-Identifier: Apache-2.0 */
/* Classes and case of characters as in Python. Without utf8proc, only ASCII letters have a case. */
#ifndef TEXT_JINJA_VALUE_UNICODE_H
#define TEXT_JINJA_VALUE_UNICODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool unicode_is_space(uint32_t code); /* str.isspace */
bool unicode_is_letter(uint32_t code);
bool unicode_is_digit(uint32_t code);
bool unicode_is_upper(uint32_t code);
bool unicode_is_lower(uint32_t code);
bool unicode_prints(uint32_t code); /* repr shows it unchanged */
uint32_t unicode_upper(uint32_t code);
uint32_t unicode_lower(uint32_t code);
uint32_t unicode_title(uint32_t code);
/* Writes UTF-8 and returns its size, 1 to 4. */
size_t unicode_encode(uint32_t code, char out[4]);
#endif
