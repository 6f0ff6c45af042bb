/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/utf8.h"

uint32_t utf8_decode(const char *s, size_t *size)
{
	const unsigned char *b = (const unsigned char *)s;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned need;
	uint32_t code;

	*size = b[0] ? 1 : 0;
	if (b[0] < 0x80)
		return b[0];
	need = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
	if (b[0] < 0xc2 || b[0] > 0xf4)
		return UTF8_REPLACEMENT;
	code = b[0] & (0xffu >> (need + 1));
	for (unsigned i = 1; i < need; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return UTF8_REPLACEMENT;
		code = code << 6 | (b[i] & 0x3f);
	}
	if (code < least[need] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return UTF8_REPLACEMENT;
	*size = need;
	return code;
}

bool utf8_is_valid(const char *s, size_t size)
{
	size_t step;

	for (size_t at = 0; at < size; at += step ? step : 1)
		if (utf8_decode(s + at, &step) == UTF8_REPLACEMENT && step == 1)
			return false;
	return true;
}

bool utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* Length of a colour sequence "ESC [ digits and ; m" at `s`; 0 if there is none. */
static size_t colour_size(const char *s)
{
	size_t n = 2;

	if (s[0] != '\x1b' || s[1] != '[')
		return 0;
	while ((s[n] >= '0' && s[n] <= '9') || s[n] == ';')
		n++;
	return s[n] == 'm' ? n + 1 : 0;
}

void utf8_add_clean(struct text *out, const char *s, enum utf8_keep keep)
{
	size_t size;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		size_t colour = keep & UTF8_KEEP_COLOUR ? colour_size(s) : 0;

		if (colour)
			text_add_bytes(out, s, size = colour);
		else if (utf8_is_control(code) && !(code == '\n' && keep & UTF8_KEEP_LINES))
			text_add(out, " ");
		else if (code == UTF8_REPLACEMENT)
			text_add(out, "\xef\xbf\xbd");
		else
			text_add_bytes(out, s, size);
	}
}

void utf8_skip_bom(const char **text, size_t *size)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t length = sizeof(bom) - 1;

	if (*size < length || memcmp(*text, bom, length) != 0)
		return;
	*text += length;
	*size -= length;
}

void utf8_add_json(struct text *out, const char *json)
{
	size_t size;

	for (uint32_t code; (code = utf8_decode(json, &size)) || size; json += size) {
		if (code >= 0x7f && utf8_is_control(code))
			text_addf(out, "\\u%04x", (unsigned)code);
		else
			text_add_bytes(out, json, size);
	}
}
