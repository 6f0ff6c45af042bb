/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/characters.h"

static const char replacement[] = "\xef\xbf\xbd";

/* Bytes of a character that begins with `lead`; 0: no character does. */
static size_t size_of(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Whether `byte` may be the second byte after `lead`: no overlong forms, no surrogates. */
static bool may_follow(unsigned char lead, unsigned char byte)
{
	unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;

	return byte >= least && byte <= most;
}

static void add_byte(char partial[4], size_t *held, unsigned char byte, struct text *out)
{
	if (*held && (*held == 1 ? !may_follow((unsigned char)partial[0], byte) : (byte & 0xc0) != 0x80))
		characters_end(held, out);
	partial[(*held)++] = (char)byte;
	if (!size_of((unsigned char)partial[0])) {
		characters_end(held, out);
	} else if (*held == size_of((unsigned char)partial[0])) {
		text_add_bytes(out, partial, *held);
		*held = 0;
	}
}

void characters_add(char partial[4], size_t *partial_size, const char *bytes, size_t size, struct text *out)
{
	size_t plain = 0;

	while (plain < size) {
		size_t from = plain;

		while (!*partial_size && plain < size && (unsigned char)bytes[plain] < 0x80)
			plain++;
		text_add_bytes(out, bytes + from, plain - from);
		if (plain < size)
			add_byte(partial, partial_size, (unsigned char)bytes[plain++], out);
	}
}

void characters_end(size_t *partial_size, struct text *out)
{
	if (*partial_size)
		text_add(out, replacement);
	*partial_size = 0;
}
