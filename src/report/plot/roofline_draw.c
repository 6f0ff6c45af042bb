/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a roofline with logarithmic axes: memory ceilings are lines of slope 1, compute ceilings are level
 * lines that start at the fastest memory line. */
#include <math.h>
#include "report/plot/label_places.h"
#include "report/plot/roofline.h"
#include "report/text/format.h"

enum { LEFT = 90, RIGHT = 22, BOTTOM = 52, HEAD = 22, FONT = 11, NEAR = 24 };

struct plot {
	struct canvas *c;
	const struct roofline *r;
	struct labels labels;
	double x0, x1, y0, y1; /* the frame on the canvas; y0 above y1 */
	double u0, u1, v0, v1; /* the range of the axes: log10 of intensity and rate */
	unsigned left_out;
};

static double px(const struct plot *p, double intensity)
{
	return p->x0 + (log10(intensity) - p->u0) / (p->u1 - p->u0) * (p->x1 - p->x0);
}

static double py(const struct plot *p, double rate)
{
	return p->y1 - (log10(rate) - p->v0) / (p->v1 - p->v0) * (p->y1 - p->y0);
}

static void widen(double value, double *low, double *high)
{
	if (value > 0 && isfinite(value)) {
		*low = value < *low ? value : *low;
		*high = value > *high ? value : *high;
	}
}

/* Chooses decades that include every point and the corner of every roof. */
static void find_range(struct plot *p)
{
	double low_x = 0.25, high_x = 64, low_y = INFINITY, high_y = 0;

	for (size_t i = 0; i < p->r->count; i++) {
		const struct roofline_series *s = &p->r->series[i];
		double fastest = 0, roof = 0;

		for (size_t k = 0; k < s->point_count; k++) {
			widen(s->point[k].intensity, &low_x, &high_x);
			widen(s->point[k].rate, &low_y, &high_y);
		}
		for (size_t k = 0; k < s->ceiling_count; k++) {
			const struct roofline_ceiling *c = &s->ceiling[k];

			if (c->kind == ROOFLINE_COMPUTE)
				roof = c->value > roof ? c->value : roof;
			else if (c->kind == ROOFLINE_MEMORY)
				fastest = c->value > fastest ? c->value : fastest;
			if (c->kind == ROOFLINE_COMPUTE)
				widen(c->value, &low_y, &high_y);
			else
				widen(c->value * 0.25, &low_y, &high_y);
		}
		if (fastest > 0)
			widen(roof / fastest, &low_x, &high_x);
	}
	if (!(high_y > 0))
		low_y = 1e9, high_y = 1e12;
	/* Room to the left for the sloping labels, to the right and above for those of points. */
	p->u0 = log10(low_x) - 0.45;
	p->u1 = log10(high_x) + 0.7;
	p->v0 = log10(low_y) - 0.4;
	p->v1 = log10(high_y) + 0.45;
	if (p->v1 - p->v0 < 2)
		p->v0 = p->v1 - 2;
}

static void axis_text(struct plot *p, double x, double y, enum canvas_anchor anchor, const char *s)
{
	canvas_text(p->c, &(struct canvas_style){.role = CANVAS_muted, .size = FONT, .anchor = anchor}, x, y,
		    s);
}

static void draw_grid(struct plot *p)
{
	char text[48];

	for (int d = (int)ceil(p->u0); d <= (int)floor(p->u1); d++) {
		double x = px(p, pow(10, d));

		canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, x, p->y0, x, p->y1);
		snprintf(text, sizeof(text), "%.*f", d < 0 ? -d : 0, pow(10, d));
		axis_text(p, x, p->y1 + 17, CANVAS_MIDDLE, text);
	}
	for (int d = (int)ceil(p->v0); d <= (int)floor(p->v1); d++) {
		double y = py(p, pow(10, d));
		char *dot;

		canvas_line(p->c, CANVAS_grid, 1, CANVAS_SOLID, p->x0, y, p->x1, y);
		format_quantity(text, sizeof(text), pow(10, d), 0, "FLOP/s");
		dot = strchr(text, '.'); /* "1.00 TFLOPS" as "1 TFLOPS", "10.0" as "10" */
		if (dot)
			memmove(dot, strchr(text, ' '), strlen(strchr(text, ' ')) + 1);
		axis_text(p, p->x0 - 7, y + 4, CANVAS_END, text);
	}
	canvas_line(p->c, CANVAS_muted, 1, CANVAS_SOLID, p->x0, p->y1, p->x1, p->y1);
	canvas_line(p->c, CANVAS_muted, 1, CANVAS_SOLID, p->x0, p->y0, p->x0, p->y1);
	axis_text(p, (p->x0 + p->x1) / 2, p->y1 + 38, CANVAS_MIDDLE, "arithmetic intensity, FLOP per byte");
}

/* The fastest memory level, at which a compute ceiling starts. */
static double fastest_bytes(const struct roofline_series *s, bool measured)
{
	double best = 0;

	for (size_t i = 0; i < s->ceiling_count; i++)
		if (s->ceiling[i].kind != ROOFLINE_COMPUTE && s->ceiling[i].measured == measured)
			best = s->ceiling[i].value > best ? s->ceiling[i].value : best;
	return best;
}

/* Without a compute ceiling the highest point ends the lines. */
static double highest_compute(const struct roofline_series *s, bool measured)
{
	double best = 0;

	for (size_t i = 0; i < s->ceiling_count; i++)
		if (s->ceiling[i].kind == ROOFLINE_COMPUTE &&
		    (s->ceiling[i].measured == measured || best == 0))
			best = s->ceiling[i].value > best ? s->ceiling[i].value : best;
	if (best > 0)
		return best;
	for (size_t i = 0; i < s->point_count; i++)
		best = fmax(best, s->point[i].rate);
	return best > 0 ? best : INFINITY;
}

/* The range of intensities of a ceiling's line; false if the line is outside the frame. */
static bool ceiling_span(const struct plot *p, const struct roofline_series *s,
			 const struct roofline_ceiling *c, double *from, double *to)
{
	double left = pow(10, p->u0), right = pow(10, p->u1), floor_rate = pow(10, p->v0),
	       top = pow(10, p->v1);

	*from = left;
	*to = right;
	if (c->kind == ROOFLINE_COMPUTE) {
		double bytes = fastest_bytes(s, c->measured) > 0 ? fastest_bytes(s, c->measured)
								 : fastest_bytes(s, !c->measured);

		if (bytes > 0 && c->value / bytes > left)
			*from = c->value / bytes;
	} else {
		double roof = highest_compute(s, c->measured);

		if (left * c->value < floor_rate)
			*from = floor_rate / c->value;
		if (roof / c->value < right)
			*to = roof / c->value;
		if (*to * c->value > top)
			*to = top / c->value;
	}
	return *from < *to;
}

static double ceiling_rate(const struct roofline_ceiling *c, double intensity)
{
	return c->kind == ROOFLINE_COMPUTE ? c->value : c->value * intensity;
}

static void draw_ceilings(struct plot *p)
{
	for (size_t i = 0; i < p->r->count; i++)
		for (size_t k = 0; k < p->r->series[i].ceiling_count; k++) {
			const struct roofline_ceiling *c = &p->r->series[i].ceiling[k];
			double from, to;

			if (!ceiling_span(p, &p->r->series[i], c, &from, &to))
				continue;
			canvas_line(p->c, canvas_series_role(i), c->measured ? 1.8 : 1.1,
				    c->measured ? CANVAS_SOLID : CANVAS_DASHED, px(p, from),
				    py(p, ceiling_rate(c, from)), px(p, to), py(p, ceiling_rate(c, to)));
		}
}

static void draw_points(struct plot *p)
{
	for (size_t i = 0; i < p->r->count; i++)
		for (size_t k = 0; k < p->r->series[i].point_count; k++) {
			const struct roofline_point *q = &p->r->series[i].point[k];
			double x = px(p, q->intensity), y = py(p, q->rate);

			canvas_marker(p->c, canvas_series_role(i), (unsigned)i, q->verdict == VERDICT_PASS, x,
				      y, 4.5);
			labels_take(&p->labels, (struct label_box){x - 6, y - 6, x + 6, y + 6});
		}
}

/* The same limit by the other source: the device's ceiling for a measured one, and vice versa. */
static const struct roofline_ceiling *twin_of(const struct roofline_series *s,
					      const struct roofline_ceiling *c)
{
	for (size_t i = 0; i < s->ceiling_count; i++)
		if (s->ceiling[i].kind == c->kind && s->ceiling[i].measured != c->measured &&
		    !strcmp(s->ceiling[i].name, c->name))
			return &s->ceiling[i];
	return NULL;
}

static bool same_line(const struct roofline_ceiling *a, const struct roofline_ceiling *b)
{
	return a->kind == b->kind && a->measured == b->measured &&
	       fabs(a->value - b->value) < 0.005 * b->value;
}

/* Writes a line's label: "BF16 1029 of 1070 TFLOPS", "FP64, FP32 66.9 TFLOPS". False if the label of another
 * line covers this one. */
static bool ceiling_text(char *out, size_t size, const struct roofline_series *s,
			 const struct roofline_ceiling *c)
{
	const char *unit = c->kind == ROOFLINE_COMPUTE ? "FLOP/s" : "B/s";
	const struct roofline_ceiling *twin = twin_of(s, c);
	struct text t = {0};
	char value[48];

	if (!c->measured && twin)
		return false;
	text_add(&t, c->name);
	for (size_t i = 0; i < s->ceiling_count; i++) {
		const struct roofline_ceiling *other = &s->ceiling[i];

		if (other == c || !same_line(other, c) || (!other->measured && twin_of(s, other)) ||
		    (twin && !twin_of(s, other)))
			continue;
		if (other < c)
			goto out;
		text_addf(&t, ", %s", other->name);
	}
	format_quantity(value, sizeof(value), c->value, twin ? twin->value : 0, unit);
	if (twin && c->measured)
		value[strcspn(value, " ")] = '\0';
	text_addf(&t, " %s", value);
	if (twin && c->measured) {
		format_quantity(value, sizeof(value), twin->value, 0, unit);
		text_addf(&t, " of %s", value);
	}
	text_copy(out, size, text_str(&t));
	text_release(&t);
	return true;
out:
	text_release(&t);
	return false;
}

/* Places the label of a level line: from its right end leftwards, above or below; then further away. */
static bool label_level(struct plot *p, const struct roofline_ceiling *c, double from, double to,
			enum canvas_role role, const char *text)
{
	static const double offsets[] = {-4, FONT + 2, -FONT - 7, 2 * FONT + 5, -2 * FONT - 10, 3 * FONT + 8};
	double width = canvas_text_width(text, FONT, false), y = py(p, c->value);

	for (size_t far = 0; far < 6; far += 2)
		for (double x = px(p, to) - 4; x - width > px(p, from); x -= 12)
			for (size_t i = far; i < far + 2; i++) {
				double base = y + offsets[i];
				struct label_box box = {x - width - 2, base - FONT + 1, x + 2, base + 3};

				if (!labels_try(&p->labels, &box, 1))
					continue;
				canvas_text(p->c,
					    &(struct canvas_style){.role = role,
								   .size = FONT,
								   .anchor = CANVAS_END,
								   .halo = true},
					    x, base, text);
				return true;
			}
	return false;
}

/* Places the label of a sloping line along the line: above it, then below, from its lower end upwards. */
static bool label_slope(struct plot *p, const struct roofline_ceiling *c, double from, double to,
			enum canvas_role role, const char *text)
{
	double dx = px(p, to) - px(p, from), dy = py(p, ceiling_rate(c, to)) - py(p, ceiling_rate(c, from));
	double length = sqrt(dx * dx + dy * dy), width = canvas_text_width(text, FONT, false);
	double ux = dx / length, uy = dy / length;
	struct label_box boxes[32];

	for (double at = 6; at + width < length; at += 10)
		for (int below = 0; below < 2; below++) {
			double off = below ? FONT + 3 : -5; /* along the normal, downwards */
			double x = px(p, from) + at * ux - off * uy,
			       y = py(p, ceiling_rate(c, from)) + at * uy + off * ux;
			size_t count = 0;

			for (double t = 0; t < width && count < 32; t += width / 24) {
				double bx = x + t * ux, by = y + t * uy;

				boxes[count++] = (struct label_box){bx - 2, by - FONT, bx + FONT, by + 3};
			}
			if (!labels_try(&p->labels, boxes, count))
				continue;
			canvas_text(
				p->c,
				&(struct canvas_style){.role = role,
						       .size = FONT,
						       .halo = true,
						       .angle = atan2(uy, ux) * 180 / 3.14159265358979323846},
				x, y, text);
			return true;
		}
	return false;
}

/* True if the line of another device is at the same place and has a label. */
static bool spoken_for(const struct roofline *r, size_t series, const struct roofline_ceiling *c)
{
	for (size_t i = 0; i < series; i++)
		for (size_t k = 0; k < r->series[i].ceiling_count; k++) {
			const struct roofline_ceiling *other = &r->series[i].ceiling[k];

			if (other->kind == c->kind && fabs(other->value - c->value) < 0.005 * c->value &&
			    !strcmp(other->name, c->name))
				return true;
		}
	return false;
}

static void label_ceilings(struct plot *p)
{
	for (size_t i = 0; i < p->r->count; i++)
		for (size_t k = 0; k < p->r->series[i].ceiling_count; k++) {
			const struct roofline_ceiling *c = &p->r->series[i].ceiling[k];
			double from, to;
			char text[128];
			bool placed;

			if (!ceiling_span(p, &p->r->series[i], c, &from, &to))
				continue;
			if (!ceiling_text(text, sizeof(text), &p->r->series[i], c))
				continue;
			placed = c->kind == ROOFLINE_COMPUTE
					 ? label_level(p, c, from, to, canvas_series_role(i), text)
					 : label_slope(p, c, from, to, canvas_series_role(i), text);
			p->left_out += !placed && !spoken_for(p->r, i, c);
		}
}

/* Tries places in rings around the point, nearer ones first. A distant label gets a line to its point. */
static bool label_point(struct plot *p, const struct roofline_point *q, enum canvas_role role)
{
	double x = px(p, q->intensity), y = py(p, q->rate), width = canvas_text_width(q->name, FONT, false);

	for (double ring = 9; ring < 130; ring += 9)
		for (int turn = 0; turn < 16; turn++) {
			/* right, left, then the slopes between: 0, 180, 22.5, -22.5, 157.5, .. */
			static const double turns[] = {0,   180, 22, -22, 158, 202, 45, -45,
						       135, 225, 68, -68, 112, 248, 90, -90};
			double a = turns[turn] * 3.14159265358979323846 / 180;
			double cx = x + ring * cos(a), cy = y + ring * sin(a);
			double left = cos(a) > 0.1 ? cx : cos(a) < -0.1 ? cx - width : cx - width / 2;
			struct label_box box = {left - 2, cy - FONT / 2.0 - 1, left + width + 2,
						cy + FONT / 2.0 + 2};

			if (!labels_try(&p->labels, &box, 1))
				continue;
			if (ring > 12)
				canvas_line(p->c, CANVAS_muted, 0.7, CANVAS_SOLID, x + 5 * cos(a),
					    y + 5 * sin(a), x + (ring - 1) * cos(a), y + (ring - 1) * sin(a));
			canvas_text(p->c, &(struct canvas_style){.role = role, .size = FONT, .halo = true},
				    left, cy + 4, q->name);
			return true;
		}
	return false;
}

/* True if an earlier point of the same case is at nearly the same place, as for several devices of one model:
 * one label is enough. */
static bool labelled(const struct plot *p, size_t series, size_t index)
{
	const struct roofline_point *q = &p->r->series[series].point[index];

	for (size_t i = 0; i <= series; i++) {
		const struct roofline_series *s = &p->r->series[i];

		for (size_t k = 0; k < (i < series ? s->point_count : index); k++) {
			const struct roofline_point *o = &s->point[k];

			double dx = px(p, o->intensity) - px(p, q->intensity);
			double dy = py(p, o->rate) - py(p, q->rate);

			if (o->labelled && !strcmp(o->name, q->name) &&
			    (i == series || dx * dx + dy * dy < NEAR * NEAR))
				return true;
		}
	}
	return false;
}

static void label_points(struct plot *p)
{
	for (size_t i = 0; i < p->r->count; i++)
		for (size_t k = 0; k < p->r->series[i].point_count; k++)
			if (p->r->series[i].point[k].labelled && !labelled(p, i, k))
				p->left_out +=
					!label_point(p, &p->r->series[i].point[k], canvas_series_role(i));
}

/* Draws the legend above the plot, wrapped: marker and name of every series, then the meaning of the two
 * kinds of line. Returns its height. */
static double draw_legend(struct canvas *c, const struct roofline *r)
{
	static const char of_cases[] =
		"lines: solid = measured, dashed = device facts or data sheet · marks: filled = passed, open = not passed or not judged · names: headline cases";
	double x = LEFT, y = HEAD;

	for (size_t i = 0; i < r->count; i++) {
		const char *name = r->series[i].name;
		double width = canvas_text_width(name, 12, true) + 44;

		if (x > LEFT && x + width > c->width - RIGHT) {
			x = LEFT;
			y += 18;
		}
		canvas_marker(c, canvas_series_role(i), (unsigned)i, true, x + 5, y - 4, 4.5);
		canvas_text(c,
			    &(struct canvas_style){.role = canvas_series_role(i), .size = 12, .bold = true},
			    x + 15, y, name);
		x += width;
	}
	canvas_text(c, &(struct canvas_style){.role = CANVAS_muted, .size = FONT}, LEFT, y + 18,
		    r->key ? r->key : of_cases);
	return y + 30;
}

void roofline_draw(struct canvas *c, const struct roofline *r, unsigned *left_out)
{
	struct plot *p = calloc(1, sizeof(*p));

	if (!p) {
		c->failed = true;
		return;
	}
	p->c = c;
	p->r = r;
	p->x0 = LEFT;
	p->x1 = c->width - RIGHT;
	p->y0 = draw_legend(c, r);
	p->y1 = c->height - BOTTOM;
	p->labels.frame = (struct label_box){p->x0 + 2, p->y0, p->x1, p->y1 - 2};
	find_range(p);
	draw_grid(p);
	draw_ceilings(p);
	draw_points(p);
	label_ceilings(p);
	label_points(p);
	if (left_out)
		*left_out = p->left_out;
	free(p);
}
