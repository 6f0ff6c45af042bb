/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2's byte alphabet: every byte has a printable character, so that a vocabulary of bytes can be stored
 * as text. */
#ifndef TEXT_TOKENIZER_BYTE_LEVEL_H
#define TEXT_TOKENIZER_BYTE_LEVEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps characters to bytes. Characters of the alphabet are below BYTE_LEVEL_CODES. */
enum { BYTE_LEVEL_CODES = 0x144 };
struct byte_level {
	int16_t byte[BYTE_LEVEL_CODES]; /* -1: not in the alphabet */
};

void byte_level_init(struct byte_level *map);
/* Writes the bytes that `text` (size bytes of UTF-8) represents to `out`, which must have room for `size`
 * bytes. False: a character is outside the alphabet, and *out_size is undefined. */
bool byte_level_decode(const struct byte_level *map, const char *text, size_t size, char *out,
		       size_t *out_size);
#endif
