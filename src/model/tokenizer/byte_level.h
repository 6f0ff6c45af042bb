/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-2's alphabet: every byte has a printable character, so that a vocabulary of bytes can be kept as text.
 */
#ifndef MODEL_TOKENIZER_BYTE_LEVEL_H
#define MODEL_TOKENIZER_BYTE_LEVEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From character to byte. Characters of the alphabet lie below BYTE_LEVEL_CODES. */
enum { BYTE_LEVEL_CODES = 0x144 };
struct byte_level {
	int16_t byte[BYTE_LEVEL_CODES]; /* -1: no character of the alphabet */
};

void byte_level_init(struct byte_level *map);
/* Writes the bytes that `text` stands for (size bytes of UTF-8) to `out`, which has room for `size` bytes.
 * False where a character is outside the alphabet: *out_size is then undefined. */
bool byte_level_decode(const struct byte_level *map, const char *text, size_t size, char *out,
		       size_t *out_size);
#endif
