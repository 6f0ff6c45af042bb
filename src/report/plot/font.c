/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stroke font. A glyph is a list of "xy" points of a grid, joined by lines; a bar lifts the pen. The
 * baseline is y 2, capitals reach 9, small letters 7, descenders 0. Two equal points are a dot, which round
 * caps draw.
 */
#include <math.h>
#include "report/plot/canvas.h"
#include "core/text/width.h"

#define GAP 1.7		/* between letters, in grid units */
#define UNIT (0.72 / 7) /* grid unit as a share of the font's size: capitals are 0.72 of it */

static const struct glyph {
	uint32_t code;
	unsigned width;
	const char *strokes;
} glyphs[] = {
	{' ', 2, ""},
	{'!', 0, "09 05|02 02"},
	{'"', 2, "09 07|29 27"},
	{'#', 5, "12 29|32 49|04 54|17 57"},
	{'$', 5, "58 49 19 08 07 16 46 55 53 42 12 03|31 30"},
	{'%', 5, "02 59|09 19 18 08 09|43 53 52 42 43"},
	{'&', 5, "52 07 08 19 28 27 04 03 12 32 55"},
	{'\'', 0, "09 07"},
	{'(', 1, "19 07 03 11"},
	{')', 1, "09 17 13 01"},
	{'*', 4, "06 46|28 24|17 35|15 37"},
	{'+', 4, "05 45|27 23"},
	{',', 1, "12 00"},
	{'-', 3, "05 35"},
	{'.', 0, "02 02"},
	{'/', 4, "01 49"},
	{'0', 4, "12 03 08 19 39 48 43 32 12"},
	{'1', 4, "07 29 22|02 42"},
	{'2', 4, "08 19 39 48 46 02 42"},
	{'3', 4, "08 19 39 48 47 36 16|36 45 43 32 12 03"},
	{'4', 4, "32 39 04 44"},
	{'5', 4, "49 09 06 36 45 43 32 12 03"},
	{'6', 4, "48 39 19 08 03 12 32 43 45 36 16 05"},
	{'7', 4, "09 49 12"},
	{'8', 4, "16 07 08 19 39 48 47 36 16 05 03 12 32 43 45 36"},
	{'9', 4, "03 12 32 43 48 39 19 08 06 15 35 46"},
	{':', 0, "02 02|06 06"},
	{';', 1, "16 16|12 00"},
	{'<', 4, "48 05 42"},
	{'=', 4, "06 46|04 44"},
	{'>', 4, "08 45 02"},
	{'?', 4, "08 19 39 48 47 25 24|22 22"},
	{'@', 6, "45 36 26 15 14 23 33 44 46|44 53 64 67 49 29 07 04 22 42"},
	{'A', 6, "02 39 62|14 54"},
	{'B', 5, "02 09 49 58 57 46 06|46 55 53 42 02"},
	{'C', 5, "58 49 19 08 03 12 42 53"},
	{'D', 5, "02 09 39 57 54 32 02"},
	{'E', 5, "59 09 02 52|06 46"},
	{'F', 5, "59 09 02|06 46"},
	{'G', 5, "58 49 19 08 03 12 42 53 55 35"},
	{'H', 5, "02 09|52 59|06 56"},
	{'I', 2, "02 22|12 19|09 29"},
	{'J', 4, "49 43 32 12 03 04"},
	{'K', 5, "02 09|59 05|27 52"},
	{'L', 5, "09 02 52"},
	{'M', 6, "02 09 35 69 62"},
	{'N', 5, "02 09 52 59"},
	{'O', 5, "12 03 08 19 49 58 53 42 12"},
	{'P', 5, "02 09 49 58 56 45 05"},
	{'Q', 5, "12 03 08 19 49 58 53 42 12|34 51"},
	{'R', 5, "02 09 49 58 56 45 05|25 52"},
	{'S', 5, "58 49 19 08 07 16 46 55 53 42 12 03"},
	{'T', 6, "09 69|39 32"},
	{'U', 5, "09 03 12 42 53 59"},
	{'V', 6, "09 32 69"},
	{'W', 8, "09 22 47 62 89"},
	{'X', 5, "02 59|09 52"},
	{'Y', 6, "09 36 69|36 32"},
	{'Z', 5, "09 59 02 52"},
	{'[', 1, "19 09 01 11"},
	{'\\', 4, "09 41"},
	{']', 1, "09 19 11 01"},
	{'^', 4, "07 29 47"},
	{'_', 5, "01 51"},
	{'`', 1, "09 18"},
	{'a', 4, "46 37 17 06 03 12 32 43|47 42"},
	{'b', 4, "09 02|03 12 32 43 46 37 17 06"},
	{'c', 4, "46 37 17 06 03 12 32 43"},
	{'d', 4, "49 42|43 32 12 03 06 17 37 46"},
	{'e', 4, "05 45 46 37 17 06 03 12 32 43"},
	{'f', 3, "39 29 18 12|07 27"},
	{'g', 4, "47 41 30 10 01|46 37 17 06 04 13 33 44"},
	{'h', 4, "09 02|06 17 37 46 42"},
	{'i', 0, "02 07|09 09"},
	{'j', 1, "17 11 00|19 19"},
	{'k', 4, "09 02|47 04|25 42"},
	{'l', 1, "09 03 12"},
	{'m', 6, "02 07|06 17 27 36 32|36 47 57 66 62"},
	{'n', 4, "02 07|06 17 37 46 42"},
	{'o', 4, "12 03 06 17 37 46 43 32 12"},
	{'p', 4, "00 07|06 17 37 46 43 32 12 03"},
	{'q', 4, "40 47|46 37 17 06 03 12 32 43"},
	{'r', 3, "02 07|06 17 37"},
	{'s', 4, "46 37 17 06 15 34 43 32 12 03"},
	{'t', 3, "19 13 22 32|07 27"},
	{'u', 4, "07 03 12 32 43|47 42"},
	{'v', 4, "07 22 47"},
	{'w', 6, "07 12 36 52 67"},
	{'x', 4, "02 47|07 42"},
	{'y', 4, "07 22|47 10"},
	{'z', 4, "07 47 02 42"},
	{'{', 2, "29 18 16 05 14 12 21"},
	{'|', 0, "09 01"},
	{'}', 2, "09 18 16 25 14 12 01"},
	{'~', 4, "05 16 34 45"},
	{0xb0, 2, "08 19 28 17 08"},
	{0xb5, 4, "00 07|03 12 32 43|47 42"},
	{0xb7, 0, "05 05"},
	{0xd7, 4, "03 47|07 43"},
	{0x2013, 5, "05 55"},
	{0x2026, 4, "02 02|22 22|42 42"},
	{0x2264, 4, "48 06 44|03 43"},
	{0xfffd, 4, "02 09 49 42 02|04 47"}, /* characters without a glyph */
};

static const struct glyph *glyph_of(uint32_t code)
{
	size_t count = sizeof(glyphs) / sizeof(glyphs[0]);

	for (size_t i = 0; i < count; i++)
		if (glyphs[i].code == code)
			return &glyphs[i];
	return &glyphs[count - 1];
}

double canvas_text_width(const char *s, double size, bool bold)
{
	double units = 0;
	size_t step;

	for (uint32_t code; (code = utf8_decode(s, &step)) || step; s += step)
		units += glyph_of(code)->width + GAP;
	return units * UNIT * size * (bold ? 1.04 : 1);
}

/* Position, size and direction of a text. */
struct place {
	double x, y, sine, cosine, unit;
};

static struct canvas_point put(const struct place *p, double x, double y)
{
	return (struct canvas_point){p->x + x * p->cosine - y * p->sine, p->y + x * p->sine + y * p->cosine};
}

static bool is_dot(const struct canvas_point *line, size_t count)
{
	return count == 2 && line[0].x == line[1].x && line[0].y == line[1].y;
}

/* A dot is a little wider than a line, so that a decimal point is visible. */
static void add_dot(struct canvas *out, enum canvas_role role, struct canvas_point at, double width)
{
	struct canvas_point p[12];

	for (int i = 0; i < 12; i++) {
		double a = i * 3.14159265358979323846 / 6;

		p[i] = (struct canvas_point){at.x + 1.05 * width * cos(a), at.y + 1.05 * width * sin(a)};
	}
	canvas_fill(out, role, 1, p, 12);
}

static void add_glyph(struct canvas *out, const struct glyph *g, const struct place *p, double left,
		      enum canvas_role role, double width)
{
	struct canvas_point line[32];
	size_t count = 0;

	for (const char *s = g->strokes;; s++) {
		if (*s >= '0' && *s <= '9' && s[1] && count < sizeof(line) / sizeof(line[0])) {
			line[count++] = put(p, (left + (s[0] - '0')) * p->unit, (2 - (s[1] - '0')) * p->unit);
			s++;
		} else if (*s == '|' || !*s) {
			if (is_dot(line, count))
				add_dot(out, role, line[0], width);
			else if (count)
				canvas_stroke(out, role, width, CANVAS_SOLID, line, count);
			count = 0;
		}
		if (!*s)
			break;
	}
}

static void add_text(struct canvas *out, const struct canvas *c, const struct canvas_op *op,
		     enum canvas_role role, double width)
{
	const char *s = c->texts.data + op->text;
	double all = canvas_text_width(s, op->width, op->bold), left = 0;
	double a = op->angle * 3.14159265358979323846 / 180;
	struct place p = {.x = c->points[op->first].x,
			  .y = c->points[op->first].y,
			  .sine = sin(a),
			  .cosine = cos(a),
			  .unit = UNIT * op->width};
	double shift = op->anchor == CANVAS_MIDDLE ? all / 2 : op->anchor == CANVAS_END ? all : 0;
	size_t step;

	p.x -= shift * p.cosine;
	p.y -= shift * p.sine;
	for (uint32_t code; (code = utf8_decode(s, &step)) || step; s += step) {
		const struct glyph *g = glyph_of(code);

		add_glyph(out, g, &p, left, role, width);
		left += (g->width + GAP) * (op->bold ? 1.04 : 1);
	}
}

void canvas_flatten(struct canvas *out, const struct canvas *c)
{
	canvas_init(out, c->width, c->height);
	for (size_t i = 0; i < c->op_count; i++) {
		const struct canvas_op *op = &c->ops[i];
		double stroke = op->width * (op->bold ? 0.125 : 0.085);

		switch (op->kind) {
		case CANVAS_STROKE:
			canvas_stroke(out, op->role, op->width, op->dash, &c->points[op->first], op->count);
			break;
		case CANVAS_FILL:
			canvas_fill(out, op->role, op->opacity, &c->points[op->first], op->count);
			break;
		case CANVAS_TEXT:
			if (op->halo)
				add_text(out, c, op, CANVAS_paper, stroke + 3);
			add_text(out, c, op, op->role, stroke);
			break;
		}
	}
	out->failed |= c->failed;
}
