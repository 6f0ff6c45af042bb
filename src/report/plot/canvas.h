/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A drawing as a list of operations, which SVG, PNG and PDF share. Coordinates are in points from the top
 * left. Colours are roles, so that a drawing has a light and a dark form.
 */
#ifndef REPORT_PLOT_CANVAS_H
#define REPORT_PLOT_CANVAS_H
#include <stdbool.h>
#include <stddef.h>
#include "core/text/text.h"

/* name (CSS class), light, dark */
#define CANVAS_ROLES(X)                                                                                      \
	X(paper, 0xffffff, 0x14171c)                                                                         \
	X(ink, 0x1b1f24, 0xe6e8eb)                                                                           \
	X(muted, 0x5c6570, 0x9aa3ad)                                                                         \
	X(grid, 0xe3e6ea, 0x2a2f37)                                                                          \
	X(s0, 0x0b62b8, 0x5aa9f0)                                                                            \
	X(s1, 0xb34a00, 0xf09a57)                                                                            \
	X(s2, 0x187a3c, 0x5cc783)                                                                            \
	X(s3, 0x8a2be2, 0xbf8cf5)                                                                            \
	X(s4, 0xa61c5d, 0xf07fb1)                                                                            \
	X(s5, 0x00737a, 0x4fc7ce)                                                                            \
	X(good, 0x187a3c, 0x5cc783)                                                                          \
	X(loss, 0xc2571a, 0xe8925c)                                                                          \
	X(odd, 0x6b5fb5, 0xa59bea)
#define X(name, light, dark) CANVAS_##name,
enum canvas_role { CANVAS_ROLES(X) CANVAS_ROLE_COUNT };
#undef X
enum { CANVAS_SERIES = 6 };

enum canvas_kind { CANVAS_STROKE, CANVAS_FILL, CANVAS_TEXT };
enum canvas_anchor { CANVAS_START, CANVAS_MIDDLE, CANVAS_END };
enum canvas_dash { CANVAS_SOLID, CANVAS_DASHED, CANVAS_DOTTED };

struct canvas_point {
	double x, y;
};

struct canvas_op {
	enum canvas_kind kind;
	enum canvas_role role;
	size_t first, count; /* points */
	double width;	     /* stroke; TEXT: size of the font */
	double angle;	     /* TEXT: degrees, clockwise, about its anchor point */
	double opacity;	     /* FILL */
	enum canvas_dash dash;
	enum canvas_anchor anchor;
	bool bold, halo; /* TEXT: halo: paint the background colour behind the letters */
	size_t text;	 /* offset in `texts` */
};

struct canvas {
	double width, height;
	struct canvas_op *ops;
	struct canvas_point *points;
	size_t op_count, op_room, point_count, point_room;
	struct text texts;
	bool failed; /* out of memory: the drawing is incomplete */
};

void canvas_init(struct canvas *c, double width, double height);
void canvas_release(struct canvas *c);
void canvas_stroke(struct canvas *c, enum canvas_role role, double width, enum canvas_dash dash,
		   const struct canvas_point *points, size_t count);
void canvas_line(struct canvas *c, enum canvas_role role, double width, enum canvas_dash dash, double x0,
		 double y0, double x1, double y1);
/* Fills a closed area. */
void canvas_fill(struct canvas *c, enum canvas_role role, double opacity, const struct canvas_point *points,
		 size_t count);
void canvas_rect(struct canvas *c, enum canvas_role role, double opacity, double x, double y, double w,
		 double h);
/* Draws a circle, square, triangle or diamond, by `shape` modulo 4; filled, or as an outline. */
void canvas_marker(struct canvas *c, enum canvas_role role, unsigned shape, bool filled, double x, double y,
		   double radius);

struct canvas_style {
	enum canvas_role role;
	double size, angle;
	enum canvas_anchor anchor;
	bool bold, halo;
};
/* Draws a text; `y` is its baseline. */
void canvas_text(struct canvas *c, const struct canvas_style *style, double x, double y, const char *s);

/* Appends the fill and stroke classes of every role for a style element, dark ones under
 * prefers-color-scheme. */
void canvas_css(struct text *out);
/* Appends a whole SVG document (`standalone`), or an element for an HTML page, without style and background.
 * `title` is its accessible name. Out of memory sets out->failed. */
void canvas_svg(struct text *out, const struct canvas *c, const char *title, bool standalone);
/* The colour of the series `index`; the colours repeat after CANVAS_SERIES. */
static inline enum canvas_role canvas_series_role(size_t index)
{
	return (enum canvas_role)(CANVAS_s0 + index % CANVAS_SERIES);
}
unsigned canvas_colour(enum canvas_role role, bool dark); /* 0xrrggbb */

/* Copies `c` to `out` with every text as strokes of the font in font.c, so that the result does not depend on
 * installed fonts. The caller frees `out` with canvas_release. */
void canvas_flatten(struct canvas *out, const struct canvas *c);
/* The width of a text in the font of font.c, which is close to that of common sans-serif fonts. */
double canvas_text_width(const char *s, double size, bool bold);
#endif
