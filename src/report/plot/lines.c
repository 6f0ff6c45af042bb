/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/lines.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/text/format.h"

enum { SIDE = 84, RIGHT = 22, BOTTOM = 44, HEAD = 18, FONT = 11, X_TICKS = 10, Y_TICKS = 5, DECADES = 40 };

struct plot {
	struct canvas *c;
	const struct lines *l;
	double x0, x1, y0, y1;	/* the frame */
	struct lines_axis x, y; /* with their ends; log10 of them for a logarithmic axis */
};

/* Beyond this, coordinates and ticks lose their digits. No figure of a machine is as large. */
static const double value_most = 1e15;

static bool drawable(const struct lines_axis *a, double value)
{
	return fabs(value) < value_most && (!a->log || value > 1 / value_most);
}

static double on(const struct lines_axis *a, double value)
{
	const double share = ((a->log ? log10(value) : value) - a->low) / (a->high - a->low);

	return fmin(fmax(share, -1), 2); /* a value far beyond given ends stays near the frame */
}

bool lines_any(const struct lines *l)
{
	for (size_t i = 0; i < l->count; i++)
		for (size_t k = 0; k < l->series[i].count; k++)
			if (drawable(&l->x, l->series[i].x[k]) && drawable(&l->y, l->series[i].y[k]))
				return true;
	return false;
}

/* Ends of the axis: those given, else those of the data with some room. */
static struct lines_axis ends(const struct lines *l, const struct lines_axis *given, bool y)
{
	struct lines_axis a = *given;
	double low = INFINITY, high = -INFINITY, room;

	for (size_t i = 0; i < l->count; i++)
		for (size_t k = 0; k < l->series[i].count; k++) {
			const double value = y ? l->series[i].y[k] : l->series[i].x[k];

			if (!drawable(&a, value))
				continue;
			low = fmin(low, value);
			high = fmax(high, value);
		}
	if (a.low < a.high && drawable(&a, a.low) && drawable(&a, a.high)) {
		low = a.low;
		high = a.high;
	} else if (a.zero) {
		low = 0;
	}
	a.low = a.log ? log10(low) : low;
	a.high = a.log ? log10(high) : high;
	room = given->low < given->high ? 0 : fmax(0.04 * (a.high - a.low), 1e-6 * fabs(a.high));
	a.low -= a.zero ? 0 : room;
	a.high += room;
	if (!(a.high > a.low)) /* all values are equal, or there are none */
		a.high = (a.low = isfinite(a.low) ? a.low : 0) + 1;
	return a;
}

static void small_text(struct plot *p, enum canvas_anchor anchor, double x, double y, const char *s)
{
	canvas_text(
		p->c,
		&(struct canvas_style){.role = CANVAS_muted, .size = FONT, .anchor = anchor, .halo = true}, x,
		y, s);
}

/* Ticks of one axis have one prefix, that of `like`. */
static void value_text(char *out, size_t size, const struct lines_axis *a, double value, double like)
{
	char *dot, *space;

	if (!strcmp(a->unit, "share")) {
		snprintf(out, size, "%.3g %%", 100 * value);
		return;
	}
	if (!strcmp(a->unit, "s") && fabs(like) >= 1) { /* 120 s, not 2 min or 0.12 ks */
		snprintf(out, size, "%.4g s", value);
		return;
	}
	format_quantity(out, size, value, like, a->unit);
	dot = strchr(out, '.');
	space = strchr(out, ' ');
	if (!dot || (space && space < dot))
		return;
	/* "1.00 ms" as "1 ms" */
	for (char *end = space ? space : out + strlen(out);
	     end > dot && (end[-1] == '0' || end[-1] == '.');) {
		const bool last = end[-1] == '.';

		memmove(end - 1, end, strlen(end) + 1);
		end--;
		if (last)
			break;
	}
}

static void tick(struct plot *p, const struct lines_axis *a, bool y, double value, double like)
{
	const double share = on(a, value);
	char text[48];

	if (share < -1e-9 || share > 1 + 1e-9)
		return;
	value_text(text, sizeof(text), a, value, like);
	if (y) {
		const double at = p->y1 - share * (p->y1 - p->y0);

		canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, p->x0, at, p->x1, at);
		small_text(p, CANVAS_END, p->x0 - 7, at + 4, text);
	} else {
		const double at = p->x0 + share * (p->x1 - p->x0);

		canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, at, p->y0, at, p->y1);
		small_text(p, CANVAS_MIDDLE, at, p->y1 + 16, text);
	}
}

static void linear_ticks(struct plot *p, const struct lines_axis *a, bool y, int most)
{
	static const double steps[] = {1, 2, 5, 10};
	const double span = a->high - a->low, unit = pow(10, floor(log10(span / most)));
	double step = 10 * unit;

	for (size_t i = sizeof(steps) / sizeof(steps[0]); i-- > 0;)
		if (span / (steps[i] * unit) <= most)
			step = steps[i] * unit;
	for (int i = 0; i <= most; i++) {
		const double k = ceil(a->low / step - 1e-9) + i;

		if (k * step <= a->high + 1e-9 * span)
			tick(p, a, y, k * step + 0.0, a->high); /* not "-0" */
	}
}

/* 1, 2 and 5 of every decade if they have room, else the decades. */
static void log_ticks(struct plot *p, const struct lines_axis *a, bool y)
{
	static const double steps[] = {1, 2, 5};
	const bool fine = a->high - a->low < 2.5;
	const int from = (int)floor(a->low), to = (int)ceil(a->high);

	for (int d = from; d <= to && d < from + DECADES; d++)
		for (size_t i = 0; i < (fine ? 3 : 1); i++)
			tick(p, a, y, steps[i] * pow(10, d), 0);
}

static void draw_axes(struct plot *p)
{
	char label[96];

	if (p->x.log)
		log_ticks(p, &p->x, false);
	else
		linear_ticks(p, &p->x, false, X_TICKS);
	if (p->y.log)
		log_ticks(p, &p->y, true);
	else
		linear_ticks(p, &p->y, true, Y_TICKS);
	canvas_line(p->c, CANVAS_muted, 1, CANVAS_SOLID, p->x0, p->y1, p->x1, p->y1);
	snprintf(label, sizeof(label), "%s", p->x.label);
	small_text(p, CANVAS_MIDDLE, (p->x0 + p->x1) / 2, p->y1 + 35, label);
}

static void draw_shade(struct plot *p)
{
	double from, to;

	if (!(p->l->shade_from < p->l->shade_to))
		return;
	from = fmax(0, on(&p->x, p->l->shade_from));
	to = fmin(1, on(&p->x, p->l->shade_to));
	if (to > from)
		canvas_rect(p->c, CANVAS_grid, 0.45, p->x0 + from * (p->x1 - p->x0), p->y0,
			    (to - from) * (p->x1 - p->x0), p->y1 - p->y0);
}

static enum canvas_dash dash_of(const struct lines *l, size_t index)
{
	return l->series[index].dashed		? CANVAS_DASHED
	       : index / CANVAS_SERIES % 2 != 0 ? CANVAS_DOTTED
						: CANVAS_SOLID;
}

/* One stroke for each stretch without a gap; a lone point becomes a mark. */
static void draw_series(struct plot *p, size_t index)
{
	const struct lines_series *s = &p->l->series[index];
	struct canvas_point *line = malloc((s->count + 1) * sizeof(*line));
	size_t count = 0;

	if (!line) {
		p->c->failed = true;
		return;
	}
	for (size_t i = 0; i <= s->count; i++) {
		const bool here = i < s->count && drawable(&p->x, s->x[i]) && drawable(&p->y, s->y[i]);

		if (here) {
			line[count++] = (struct canvas_point){p->x0 + on(&p->x, s->x[i]) * (p->x1 - p->x0),
							      p->y1 - on(&p->y, s->y[i]) * (p->y1 - p->y0)};
			continue;
		}
		if (count > 1)
			canvas_stroke(p->c, canvas_series_role(index), 1.6, dash_of(p->l, index), line,
				      count);
		for (size_t k = 0; k < count && (p->l->marks || count == 1); k++)
			canvas_marker(p->c, canvas_series_role(index), (unsigned)index, true, line[k].x,
				      line[k].y, 3.2);
		count = 0;
	}
	free(line);
}

/* A piece of each line and its name, wrapped. Returns the height of the legend. */
static double draw_legend(struct canvas *c, const struct lines *l)
{
	double x = SIDE, y = HEAD;

	for (size_t i = 0; i < l->count; i++) {
		const double width = 1.06 * canvas_text_width(l->series[i].name, 12, true) + 48;

		if (x > SIDE && x + width > c->width - 8) {
			x = SIDE;
			y += 17;
		}
		canvas_line(c, canvas_series_role(i), 2.4, dash_of(l, i), x, y - 4, x + 20, y - 4);
		canvas_text(c,
			    &(struct canvas_style){.role = canvas_series_role(i), .size = 12, .bold = true},
			    x + 26, y, l->series[i].name);
		x += width;
	}
	return y + 10;
}

void lines_draw(struct canvas *c, const struct lines *l)
{
	struct plot p = {.c = c, .l = l, .x = ends(l, &l->x, false), .y = ends(l, &l->y, true)};

	p.x0 = SIDE;
	p.x1 = c->width - RIGHT;
	p.y0 = draw_legend(c, l);
	p.y1 = c->height - BOTTOM;
	draw_shade(&p);
	draw_axes(&p);
	for (size_t i = 0; i < l->count; i++)
		draw_series(&p, i);
}
