/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/byte_level.h"

/* Printable characters of Latin-1 represent themselves; the other bytes are, in order, U+0100 and up. */
static bool stands_for_itself(int byte)
{
	return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

void byte_level_init(struct byte_level *map)
{
	int next = 0x100, i;

	for (i = 0; i < BYTE_LEVEL_CODES; i++)
		map->byte[i] = -1;
	for (i = 0; i < 256; i++)
		map->byte[stands_for_itself(i) ? i : next++] = (int16_t)i;
}

bool byte_level_decode(const struct byte_level *map, const char *text, size_t size, char *out,
		       size_t *out_size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0, n = 0;

	while (i < size) {
		unsigned code = s[i++];

		if (code >= 0x80) { /* all characters of the alphabet have at most two bytes */
			if (code < 0xc2 || code > 0xc5 || i == size || (s[i] & 0xc0) != 0x80)
				return false;
			code = (code & 0x1f) << 6 | (s[i++] & 0x3f);
		}
		if (code >= BYTE_LEVEL_CODES || map->byte[code] < 0)
			return false;
		out[n++] = (char)map->byte[code];
	}
	*out_size = n;
	return true;
}
