/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of the screen, for terminals with many, few or no colours. */
#ifndef WATCH_SCREEN_THEME_H
#define WATCH_SCREEN_THEME_H
#include "watch/screen/cells.h"

/* name, what it is for */
/* clang-format off */
#define SCREEN_THEMES(X) \
	X(dark, "a dark background") \
	X(light, "a light background") \
	X(contrast, "strong contrast; blue and orange instead of green and red") \
	X(mono, "no colours: bold, underlined and reversed text")
/* clang-format on */
#define X(name, help) SCREEN_THEME_##name,
enum screen_theme { SCREEN_THEMES(X) SCREEN_THEME_COUNT };
#undef X
/* Their names; NULL ends. */
extern const char *const screen_theme_names[];

/* What a terminal shows. */
enum screen_depth { SCREEN_MONO, SCREEN_16, SCREEN_256, SCREEN_RGB };

enum { SCREEN_BOLD = 1, SCREEN_UNDERLINED = 2, SCREEN_REVERSED = 4, SCREEN_FAINT = 8 };
struct screen_ink {
	int colour;	    /* 0xRRGGBB, or the number of a colour of 16 or 256; -1: the terminal's own */
	unsigned attribute; /* SCREEN_BOLD | .. */
};
struct screen_ink screen_ink(enum screen_theme theme, enum screen_depth depth, enum screen_role role);

/* Appends the cells as lines of UTF-8 without spaces at their ends. SCREEN_MONO with the theme mono: without
 * any control sequence; else with SGR sequences of the depth. */
void screen_text(struct text *out, const struct screen *s, enum screen_theme theme, enum screen_depth depth);
#endif
