/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/cells.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"
#include "core/text/width.h"

enum { ELLIPSIS = 0x2026, FULL_BLOCK = 0x2588, SHADE = 0x2591 };

static unsigned within(unsigned value, unsigned min, unsigned max)
{
	return value < min ? min : value > max ? max : value;
}

enum status screen_resize(struct screen *s, unsigned columns, unsigned rows, struct error *err)
{
	bool ascii = s->ascii;

	columns = within(columns, SCREEN_COLUMNS_MIN, SCREEN_COLUMNS_MAX);
	rows = within(rows, SCREEN_ROWS_MIN, SCREEN_ROWS_MAX);
	if (!s->cell || s->columns != columns || s->rows != rows) {
		screen_release(s);
		s->cell = calloc((size_t)columns * rows, sizeof(*s->cell));
		s->hit = calloc(rows, sizeof(*s->hit));
		s->ascii = ascii;
		if (!s->cell || !s->hit) {
			screen_release(s);
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for a screen of %u x %u", columns, rows);
		}
		s->columns = columns;
		s->rows = rows;
		screen_clear(s);
	}
	return STATUS_OK;
}

void screen_clear(struct screen *s)
{
	for (size_t x = 0; x < s->columns; x++)
		s->cell[x] = (struct screen_cell){' ', SCREEN_ROLE_TEXT};
	for (size_t y = 1; y < s->rows; y++)
		memcpy(&s->cell[y * s->columns], s->cell, s->columns * sizeof(*s->cell));
	for (unsigned y = 0; y < s->rows; y++)
		s->hit[y] = (struct screen_hit){SCREEN_TARGET_NONE, 0};
}

void screen_release(struct screen *s)
{
	free(s->cell);
	free(s->hit);
	*s = (struct screen){0};
}

/* The nearest ASCII character. */
static uint32_t ascii_of(uint32_t code)
{
	static const struct {
		uint32_t first, last, ascii;
	} map[] = {{0x2026, 0x2026, '~'}, {0x2581, 0x2583, '_'}, {0x2584, 0x2586, '='}, {0x2587, 0x2588, '#'},
		   {0x2589, 0x258f, '#'}, {0x2591, 0x2591, '.'}, {0x2500, 0x2500, '-'}, {0x2502, 0x2502, '|'},
		   {0x2800, 0x2800, ' '}, {0x2801, 0x28ff, '*'}, {0xb0, 0xb0, ' '},	{0xb7, 0xb7, '-'},
		   {0x2191, 0x2191, '^'}, {0x2193, 0x2193, 'v'}, {0x25b6, 0x25b6, '>'}, {0x2190, 0x2190, '<'},
		   {0x2192, 0x2192, '>'}};

	if (code < 0x80)
		return code;
	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (code >= map[i].first && code <= map[i].last)
			return map[i].ascii;
	return '?';
}

void screen_set(struct screen *s, unsigned x, unsigned y, uint32_t code, enum screen_role role)
{
	struct screen_cell *c;

	if (x >= s->columns || y >= s->rows)
		return;
	c = &s->cell[(size_t)y * s->columns + x];
	if (!c->code && x) /* the other half of a wide character goes too */
		c[-1].code = ' ';
	if (x + 1 < s->columns && !c[1].code)
		c[1].code = ' ';
	*c = (struct screen_cell){s->ascii ? ascii_of(code) : code, role};
}

static void set_wide(struct screen *s, unsigned x, unsigned y, uint32_t code, enum screen_role role)
{
	screen_set(s, x, y, code, role);
	screen_set(s, x + 1, y, ' ', role);
	if (!s->ascii)
		s->cell[(size_t)y * s->columns + x + 1].code = 0;
}

unsigned screen_put(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		    const char *text)
{
	unsigned used = 0;
	size_t size;

	if (x >= s->columns || y >= s->rows)
		return 0;
	width = width < s->columns - x ? width : s->columns - x;
	for (uint32_t code; (code = utf8_decode(text, &size)) || size; text += size) {
		bool plain = code >= ' ' && code < 0x7f, control = !plain && utf8_is_control(code);
		unsigned columns = plain || control ? 1 : width_of_code(code);

		if (!columns)
			continue;
		if (used + columns > width) {
			if (used)
				screen_set(s, x + used - 1, y, ELLIPSIS, role);
			break;
		}
		if (columns == 2)
			set_wide(s, x + used, y, code, role);
		else
			screen_set(s, x + used, y, control ? ' ' : code, role);
		used += columns;
	}
	return used;
}

void screen_put_right(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		      const char *text)
{
	unsigned columns = width_of(text), skip = columns < width ? width - columns : 0;

	screen_put(s, x + skip, y, width - skip, role, text);
}

unsigned screen_putf(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role,
		     const char *format, ...)
{
	struct text t = {0};
	va_list args;
	unsigned used;

	va_start(args, format);
	text_addv(&t, format, args);
	va_end(args);
	used = screen_put(s, x, y, width, role, text_str(&t));
	text_release(&t);
	return used;
}

void screen_paint(struct screen *s, unsigned x, unsigned y, unsigned width, enum screen_role role)
{
	for (unsigned i = 0; y < s->rows && i < width && x + i < s->columns; i++)
		s->cell[(size_t)y * s->columns + x + i].role = role;
}

enum screen_role screen_level(double share)
{
	return share >= 0.8 ? SCREEN_ROLE_HIGH : share >= 0.4 ? SCREEN_ROLE_MIDDLE : SCREEN_ROLE_LOW;
}

void screen_bar(struct screen *s, unsigned x, unsigned y, unsigned width, double share)
{
	double level = isfinite(share) ? fmin(fmax(share, 0), 1) : 0;
	unsigned eighths = (unsigned)lround(level * 8 * width);

	for (unsigned i = 0; i < width; i++) {
		unsigned here = eighths > 8 * i ? eighths - 8 * i : 0;

		if (!here)
			screen_set(s, x + i, y, SHADE, SCREEN_ROLE_EMPTY);
		else
			screen_set(s, x + i, y, here >= 8 ? FULL_BLOCK : 0x2590 - here, screen_level(level));
	}
}
