/* SPDX-License-Identifier: Apache-2.0 */
/* Cells as text, for output that is no terminal and for tests. */
#include "watch/screen/theme.h"

static void add_colour(struct text *out, enum screen_depth depth, int colour)
{
	if (colour < 0)
		return;
	if (depth == SCREEN_16)
		text_addf(out, ";%d", colour < 8 ? 30 + colour : 82 + colour);
	else if (depth == SCREEN_256)
		text_addf(out, ";38;5;%d", colour);
	else
		text_addf(out, ";38;2;%d;%d;%d", colour >> 16 & 255, colour >> 8 & 255, colour & 255);
}

static void add_ink(struct text *out, enum screen_theme theme, enum screen_depth depth, enum screen_role role)
{
	struct screen_ink ink = screen_ink(theme, depth, role);

	text_add(out, "\x1b[0");
	if (ink.attribute & SCREEN_BOLD)
		text_add(out, ";1");
	if (ink.attribute & SCREEN_FAINT)
		text_add(out, ";2");
	if (ink.attribute & SCREEN_UNDERLINED)
		text_add(out, ";4");
	if (ink.attribute & SCREEN_REVERSED)
		text_add(out, ";7");
	add_colour(out, depth, ink.colour);
	text_add(out, "m");
}

static void add_code(struct text *out, uint32_t c)
{
	char b[4];
	size_t n;

	if (c < 0x80)
		b[0] = (char)c, n = 1;
	else if (c < 0x800)
		b[0] = (char)(0xc0 | c >> 6), n = 2;
	else if (c < 0x10000)
		b[0] = (char)(0xe0 | c >> 12), n = 3;
	else
		b[0] = (char)(0xf0 | c >> 18), n = 4;
	for (size_t i = 1; i < n; i++)
		b[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	text_add_bytes(out, b, n);
}

void screen_text(struct text *out, const struct screen *s, enum screen_theme theme, enum screen_depth depth)
{
	bool sgr = depth != SCREEN_MONO || theme != SCREEN_THEME_mono;

	for (unsigned y = 0; y < s->rows; y++) {
		const struct screen_cell *row = &s->cell[(size_t)y * s->columns];
		enum screen_role role = SCREEN_ROLE_TEXT;
		unsigned end = s->columns;

		while (end && row[end - 1].code == ' ' && (!sgr || row[end - 1].role != SCREEN_ROLE_SELECTED))
			end--;
		for (unsigned x = 0; x < end; x++) {
			if (!row[x].code)
				continue;
			if (sgr && row[x].role != role)
				add_ink(out, theme, depth, role = row[x].role);
			add_code(out, row[x].code);
		}
		if (sgr && role != SCREEN_ROLE_TEXT)
			text_add(out, "\x1b[0m");
		text_add(out, "\n");
	}
}
