/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/theme.h"

const char *const screen_theme_names[] = {
#define X(name, help) #name,
	SCREEN_THEMES(X)
#undef X
		NULL};

/* role: true colour, colour of 16, attributes with colour, attributes without */
struct tone {
	int rgb, plain;
	unsigned attribute, mono;
};

static const struct tone tones[SCREEN_THEME_COUNT][SCREEN_ROLE_COUNT] =
	{
		[SCREEN_THEME_dark] =
			{
				[SCREEN_ROLE_TEXT] = {-1, -1, 0, 0},
				[SCREEN_ROLE_DIM] = {0x8a8a8a, 8, 0, SCREEN_FAINT},
				[SCREEN_ROLE_TITLE] = {0x5fd7ff, 14, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_HEADING] = {0x87afd7, 12, 0, SCREEN_UNDERLINED},
				[SCREEN_ROLE_KEY] = {0xffd75f, 11, 0, SCREEN_BOLD},
				[SCREEN_ROLE_SELECTED] = {-1, -1, SCREEN_REVERSED, SCREEN_REVERSED},
				[SCREEN_ROLE_LOW] = {0x5faf5f, 2, 0, 0},
				[SCREEN_ROLE_MIDDLE] = {0xd7af5f, 3, 0, 0},
				[SCREEN_ROLE_HIGH] = {0xff875f, 9, 0, SCREEN_BOLD},
				[SCREEN_ROLE_EMPTY] = {0x444444, 8, 0, SCREEN_FAINT},
				[SCREEN_ROLE_LINE] = {0x5fafff, 12, 0, 0},
				[SCREEN_ROLE_WARN] = {0xffd700, 11, 0, SCREEN_BOLD},
				[SCREEN_ROLE_BAD] = {0xff5f5f, 9,
						     SCREEN_BOLD, SCREEN_BOLD | SCREEN_UNDERLINED},
				[SCREEN_ROLE_STALE] = {0xaf87d7, 5, 0, SCREEN_FAINT},
			},
		[SCREEN_THEME_light] =
			{
				[SCREEN_ROLE_TEXT] = {-1, -1, 0, 0},
				[SCREEN_ROLE_DIM] = {0x767676, 8, 0, SCREEN_FAINT},
				[SCREEN_ROLE_TITLE] = {0x005f87, 4, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_HEADING] = {0x005faf, 4, 0, SCREEN_UNDERLINED},
				[SCREEN_ROLE_KEY] = {0x875f00, 3, 0, SCREEN_BOLD},
				[SCREEN_ROLE_SELECTED] = {-1, -1, SCREEN_REVERSED, SCREEN_REVERSED},
				[SCREEN_ROLE_LOW] = {0x008700, 2, 0, 0},
				[SCREEN_ROLE_MIDDLE] = {0xaf5f00, 3, 0, 0},
				[SCREEN_ROLE_HIGH] = {0xd70000, 1, 0, SCREEN_BOLD},
				[SCREEN_ROLE_EMPTY] = {0xbcbcbc, 7, 0, SCREEN_FAINT},
				[SCREEN_ROLE_LINE] = {0x0000d7, 4, 0, 0},
				[SCREEN_ROLE_WARN] = {0x875f00, 3, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_BAD] = {0xaf0000, 1, SCREEN_BOLD,
						     SCREEN_BOLD | SCREEN_UNDERLINED},
				[SCREEN_ROLE_STALE] = {0x5f00af, 5, 0, SCREEN_FAINT},
			},
		[SCREEN_THEME_contrast] =
			{
				[SCREEN_ROLE_TEXT] = {-1, -1, 0, 0},
				[SCREEN_ROLE_DIM] = {-1, -1, 0, 0},
				[SCREEN_ROLE_TITLE] = {0xffffff, 15, SCREEN_BOLD | SCREEN_REVERSED,
						       SCREEN_REVERSED},
				[SCREEN_ROLE_HEADING] = {-1, -1, SCREEN_UNDERLINED, SCREEN_UNDERLINED},
				[SCREEN_ROLE_KEY] = {0x00afff, 14, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_SELECTED] = {-1, -1, SCREEN_REVERSED, SCREEN_REVERSED},
				[SCREEN_ROLE_LOW] = {0x00afff, 12, 0, 0},
				[SCREEN_ROLE_MIDDLE] = {0xffffff, 15, 0, 0},
				[SCREEN_ROLE_HIGH] = {0xffaf00, 11, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_EMPTY] = {0x808080, 8, 0, SCREEN_FAINT},
				[SCREEN_ROLE_LINE] = {0x00afff, 12, SCREEN_BOLD, 0},
				[SCREEN_ROLE_WARN] = {0xffaf00, 11, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_BAD] = {0xffaf00, 11, SCREEN_BOLD | SCREEN_REVERSED,
						     SCREEN_BOLD | SCREEN_REVERSED},
				[SCREEN_ROLE_STALE] = {-1, -1, SCREEN_UNDERLINED, SCREEN_UNDERLINED},
			},
		[SCREEN_THEME_mono] =
			{
				[SCREEN_ROLE_TEXT] = {-1, -1, 0, 0},
				[SCREEN_ROLE_DIM] = {-1, -1, SCREEN_FAINT, SCREEN_FAINT},
				[SCREEN_ROLE_TITLE] = {-1, -1, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_HEADING] = {-1, -1, SCREEN_UNDERLINED, SCREEN_UNDERLINED},
				[SCREEN_ROLE_KEY] = {-1, -1, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_SELECTED] = {-1, -1, SCREEN_REVERSED, SCREEN_REVERSED},
				[SCREEN_ROLE_LOW] = {-1, -1, 0, 0},
				[SCREEN_ROLE_MIDDLE] = {-1, -1, 0, 0},
				[SCREEN_ROLE_HIGH] = {-1, -1, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_EMPTY] = {-1, -1, SCREEN_FAINT, SCREEN_FAINT},
				[SCREEN_ROLE_LINE] = {-1, -1, 0, 0},
				[SCREEN_ROLE_WARN] = {-1, -1, SCREEN_BOLD, SCREEN_BOLD},
				[SCREEN_ROLE_BAD] = {-1, -1, SCREEN_BOLD | SCREEN_UNDERLINED,
						     SCREEN_BOLD | SCREEN_UNDERLINED},
				[SCREEN_ROLE_STALE] = {-1, -1, SCREEN_FAINT, SCREEN_FAINT},
			},
};

/* The nearest level of the 6 x 6 x 6 cube of a terminal with 256 colours: 0, 95, 135, 175, 215, 255. */
static int cube_level(int value)
{
	return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

static int colour_of_256(int rgb)
{
	int red = rgb >> 16 & 255, green = rgb >> 8 & 255, blue = rgb & 255;

	if (red == green && green == blue && red > 8 && red < 248) /* the 24 greys */
		return 232 + (red - 8) / 10;
	return 16 + 36 * cube_level(red) + 6 * cube_level(green) + cube_level(blue);
}

struct screen_ink screen_ink(enum screen_theme theme, enum screen_depth depth, enum screen_role role)
{
	const struct tone *t = &tones[theme][role];

	switch (depth) {
	case SCREEN_MONO:
		break;
	case SCREEN_16:
		return (struct screen_ink){t->plain, t->attribute};
	case SCREEN_256:
		return (struct screen_ink){t->rgb < 0 ? -1 : colour_of_256(t->rgb), t->attribute};
	case SCREEN_RGB:
		return (struct screen_ink){t->rgb, t->attribute};
	}
	return (struct screen_ink){-1, t->mono};
}
