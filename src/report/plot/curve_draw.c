/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a curve: rates on the left axis, times on the right, sizes below, all logarithmic. Dashed lines mark
 * the ends of levels. */
#include <math.h>
#include "report/plot/curve.h"
#include "report/view/view.h"
#include "report/text/format.h"

enum { SIDE = 84, BOTTOM = 46, HEAD = 20, LEVELS = 20, FONT = 11, SIZE_TICKS = 12 };

struct axis {
	bool used;
	double low, high; /* log10 */
	const char *unit;
};

struct plot {
	struct canvas *c;
	const struct curve *curve;
	double x0, x1, y0, y1; /* the frame */
	double u0, u1;	       /* log2 of the sizes at its sides */
	struct axis rate, time;
};

static double px(const struct plot *p, double bytes)
{
	return p->x0 + (log2(bytes) - p->u0) / (p->u1 - p->u0) * (p->x1 - p->x0);
}

static double py(const struct plot *p, const struct axis *a, double value)
{
	return p->y1 - (log10(value) - a->low) / (a->high - a->low) * (p->y1 - p->y0);
}

static void find_range(struct plot *p)
{
	const struct curve *curve = p->curve;

	p->rate = p->time = (struct axis){.low = INFINITY, .high = -INFINITY};
	for (size_t i = 0; i < curve->series_count; i++) {
		const struct curve_series *s = &curve->series[i];
		struct axis *a = s->time ? &p->time : &p->rate;

		a->used = true;
		a->unit = s->unit;
		for (size_t k = 0; k < s->count; k++) {
			a->low = fmin(a->low, log10(s->point[k].value));
			a->high = fmax(a->high, log10(s->point[k].value));
		}
	}
	for (int i = 0; i < 2; i++) {
		struct axis *a = i ? &p->time : &p->rate;
		double middle = (a->low + a->high) / 2, half = fmax((a->high - a->low) / 2 * 1.12, 0.2);

		a->low = middle - half;
		a->high = middle + half;
	}
	p->u0 = log2(curve->size[0]) - 0.5;
	p->u1 = log2(curve->size[curve->size_count - 1]) + 0.5;
}

static void small_text(struct plot *p, enum canvas_role role, enum canvas_anchor anchor, double x, double y,
		       const char *s)
{
	canvas_text(p->c, &(struct canvas_style){.role = role, .size = FONT, .anchor = anchor, .halo = true},
		    x, y, s);
}

/* 1, 2 and 5 of every decade where they have room, else the decades. */
static void draw_axis(struct plot *p, const struct axis *a, bool right, bool grid)
{
	static const double steps[] = {1, 2, 5};
	bool fine = a->high - a->low < 2.2;
	char text[48];

	if (!a->used)
		return;
	for (int d = (int)floor(a->low); d <= (int)ceil(a->high); d++)
		for (size_t i = 0; i < (fine ? 3 : 1); i++) {
			double value = steps[i] * pow(10, d), y = py(p, a, value);
			char *dot;

			if (log10(value) < a->low || log10(value) > a->high)
				continue;
			if (grid)
				canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, p->x0, y, p->x1, y);
			format_quantity(text, sizeof(text), value, 0, a->unit);
			dot = strchr(text, '.');
			if (dot && value >= 1) /* "1.00 TB/s" as "1 TB/s" */
				memmove(dot, strchr(text, ' '), strlen(strchr(text, ' ')) + 1);
			small_text(p, CANVAS_muted, right ? CANVAS_START : CANVAS_END,
				   right ? p->x1 + 7 : p->x0 - 7, y + 4, text);
		}
}

static void draw_sizes(struct plot *p)
{
	int from = (int)ceil(p->u0), to = (int)floor(p->u1), step = 1;
	char text[32];

	while ((to - from) / step > SIZE_TICKS)
		step++;
	for (int e = from; e <= to; e += step) {
		double x = px(p, exp2(e));

		canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, x, p->y0, x, p->y1);
		format_bytes(text, sizeof(text), exp2(e));
		small_text(p, CANVAS_muted, CANVAS_MIDDLE, x, p->y1 + 17, text);
	}
	canvas_line(p->c, CANVAS_muted, 1, CANVAS_SOLID, p->x0, p->y1, p->x1, p->y1);
	small_text(p, CANVAS_muted, CANVAS_MIDDLE, (p->x0 + p->x1) / 2, p->y1 + 37, "size");
}

/* Draws the names of levels above the frame. A name without room is left out; the text next to the plot has
 * it. */
static void draw_levels(struct plot *p)
{
	double from = p->x0;

	for (size_t i = 0; i < p->curve->level_count; i++) {
		const struct curve_level *l = &p->curve->level[i];
		double to = isfinite(l->end_bytes) ? px(p, l->end_bytes) : p->x1;

		if (i + 1 < p->curve->level_count && !strcmp(l->name, l[1].name))
			continue; /* one cache in two steps */
		if (isfinite(l->end_bytes))
			canvas_line(p->c, CANVAS_muted, 1.2, CANVAS_DASHED, to, p->y0 - 4, to, p->y1);
		if (canvas_text_width(l->name, FONT, true) < to - from - 4)
			canvas_text(p->c,
				    &(struct canvas_style){.role = CANVAS_ink,
							   .size = FONT,
							   .anchor = CANVAS_MIDDLE,
							   .bold = true},
				    (from + to) / 2, p->y0 - 7, l->name);
		from = to;
	}
}

static void draw_series(struct plot *p, size_t index)
{
	const struct curve_series *s = &p->curve->series[index];
	const struct axis *a = s->time ? &p->time : &p->rate;
	struct canvas_point line[CURVE_POINTS];

	for (size_t i = 0; i < s->count; i++)
		line[i] = (struct canvas_point){px(p, s->point[i].bytes), py(p, a, s->point[i].value)};
	canvas_stroke(p->c, canvas_series_role(index), 1.8, s->time ? CANVAS_DOTTED : CANVAS_SOLID, line,
		      s->count);
	for (size_t i = 0; i < s->count; i++)
		canvas_marker(p->c, canvas_series_role(index), (unsigned)index,
			      s->point[i].row->j->verdict != VERDICT_UNTRUSTED, line[i].x, line[i].y, 3.6);
}

/* Draws marker, name and axis of every series, wrapped. Returns the height of the legend. */
static double draw_legend(struct canvas *c, const struct curve *curve)
{
	double x = SIDE, y = HEAD;

	for (size_t i = 0; i < curve->series_count; i++) {
		const struct curve_series *s = &curve->series[i];
		char text[96];
		double width;

		snprintf(text, sizeof(text), "%s (%s)", s->name,
			 s->time ? "time, right axis" : "rate, left axis");
		width = 1.06 * canvas_text_width(text, 12, true) + 38;
		if (x > SIDE && x + width > c->width - 8) {
			x = SIDE;
			y += 18;
		}
		canvas_marker(c, canvas_series_role(i), (unsigned)i, true, x + 5, y - 4, 4);
		canvas_text(c,
			    &(struct canvas_style){.role = canvas_series_role(i), .size = 12, .bold = true},
			    x + 15, y, text);
		x += width;
	}
	if (curve->doubtful)
		canvas_text(c, &(struct canvas_style){.role = CANVAS_muted, .size = FONT}, SIDE, y += 16,
			    "open marks: not trusted");
	return y + 10;
}

void curve_draw(struct canvas *c, const struct curve *curve)
{
	struct plot p = {.c = c, .curve = curve};

	find_range(&p);
	p.x0 = SIDE;
	p.x1 = c->width - (p.time.used ? SIDE : 22);
	p.y0 = draw_legend(c, curve) + (curve->level_count ? LEVELS : 0);
	p.y1 = c->height - BOTTOM;
	draw_sizes(&p);
	draw_axis(&p, &p.rate, false, true);
	draw_axis(&p, &p.time, true, !p.rate.used);
	draw_levels(&p);
	for (size_t i = 0; i < curve->series_count; i++)
		draw_series(&p, i);
}
