/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/width.h"

struct range {
	uint32_t first, last;
};

/* Unicode 15: combining marks, zero-width characters, and bidirectional controls, which foreign text may
 * contain. */
static const struct range zero_width[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},	{0x0610, 0x061a}, {0x064b, 0x065f},
	{0x06d6, 0x06dc}, {0x0900, 0x0902}, {0x093c, 0x093c},	{0x0941, 0x0948}, {0x0e31, 0x0e31},
	{0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff},	{0x1dc0, 0x1dff}, {0x200b, 0x200f},
	{0x202a, 0x202e}, {0x2060, 0x2064}, {0x2066, 0x2069},	{0x20d0, 0x20f0}, {0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

static const struct range double_width[] = {
	{0x1100, 0x115f},   {0x231a, 0x231b},	{0x2329, 0x232a},   {0x23e9, 0x23ec}, {0x2614, 0x2615},
	{0x26a1, 0x26a1},   {0x2705, 0x2705},	{0x274c, 0x274c},   {0x2e80, 0x303e}, {0x3041, 0x33ff},
	{0x3400, 0x4dbf},   {0x4e00, 0x9fff},	{0xa000, 0xa4cf},   {0xa960, 0xa97f}, {0xac00, 0xd7a3},
	{0xf900, 0xfaff},   {0xfe30, 0xfe6f},	{0xff00, 0xff60},   {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t code, const struct range *r, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (code >= r[i].first && code <= r[i].last)
			return true;
	return false;
}

unsigned width_of_code(uint32_t code)
{
	if (code < 0x300)
		return 1;
	if (in_ranges(code, zero_width, sizeof(zero_width) / sizeof(zero_width[0])))
		return 0;
	return in_ranges(code, double_width, sizeof(double_width) / sizeof(double_width[0])) ? 2 : 1;
}

unsigned width_of(const char *s)
{
	unsigned columns = 0;
	size_t size;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size)
		columns += width_of_code(code);
	return columns;
}

static void add_clean(struct text *out, const char *s, uint32_t code, size_t size)
{
	if (utf8_is_control(code))
		text_add(out, " ");
	else if (code == UTF8_REPLACEMENT)
		text_add(out, "\xef\xbf\xbd");
	else
		text_add_bytes(out, s, size);
}

static unsigned clean_width(uint32_t code)
{
	return utf8_is_control(code) ? 1 : width_of_code(code);
}

static void add_spaces(struct text *out, unsigned count)
{
	while (count--)
		text_add(out, " ");
}

static unsigned columns_of_clean(const char *s)
{
	unsigned columns = 0;
	size_t size;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size)
		columns += clean_width(code);
	return columns;
}

void width_add(struct text *out, const char *s, unsigned columns, enum width_align align)
{
	unsigned all = columns_of_clean(s), used = 0;
	bool cut = all > columns;
	unsigned room = cut && columns ? columns - 1 : columns;
	size_t size;

	if (align == WIDTH_RIGHT && !cut)
		add_spaces(out, columns - all);
	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		unsigned w = clean_width(code);

		if (used + w > room)
			break;
		add_clean(out, s, code, size);
		used += w;
	}
	if (cut && columns) {
		add_spaces(out, room - used);
		text_add(out, "…");
	} else if (align == WIDTH_LEFT) {
		add_spaces(out, columns - used);
	}
}

static unsigned word_width(const char *s, const char **end)
{
	unsigned columns = 0;
	size_t size;

	for (uint32_t code; *s != ' ' && ((code = utf8_decode(s, &size)) || size); s += size)
		columns += clean_width(code);
	*end = s;
	return columns;
}

void width_wrap(struct text *out, const char *s, unsigned columns, unsigned used, unsigned indent)
{
	bool begun = false;
	size_t size;

	while (*s) {
		const char *end;
		unsigned word = word_width(s, &end);

		if (used + begun + word > columns && (begun || used > indent)) {
			text_add(out, "\n");
			add_spaces(out, indent);
			used = indent;
		} else if (begun) {
			text_add(out, " ");
			used++;
		}
		for (uint32_t code; s < end; s += size) {
			code = utf8_decode(s, &size);
			add_clean(out, s, code, size);
		}
		used += word;
		begun = true;
		while (*s == ' ')
			s++;
	}
}
