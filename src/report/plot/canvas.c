/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/canvas.h"
#include <math.h>

void canvas_init(struct canvas *c, double width, double height)
{
	*c = (struct canvas){.width = width, .height = height};
}

void canvas_release(struct canvas *c)
{
	free(c->ops);
	free(c->points);
	text_release(&c->texts);
	*c = (struct canvas){0};
}

static void *grown(void *array, size_t need, size_t *room, size_t size)
{
	size_t more = *room ? *room : 64;

	while (more < need)
		more *= 2;
	if (more == *room)
		return array;
	array = realloc(array, more * size);
	if (array)
		*room = more;
	return array;
}

static struct canvas_op *add_op(struct canvas *c, const struct canvas_point *points, size_t count)
{
	void *ops = grown(c->ops, c->op_count + 1, &c->op_room, sizeof(*c->ops)), *more;

	if (!ops)
		goto failed;
	c->ops = ops;
	more = grown(c->points, c->point_count + count, &c->point_room, sizeof(*c->points));
	if (!more)
		goto failed;
	c->points = more;
	memcpy(c->points + c->point_count, points, count * sizeof(*points));
	c->ops[c->op_count] = (struct canvas_op){.first = c->point_count, .count = count};
	c->point_count += count;
	return &c->ops[c->op_count++];
failed:
	c->failed = true;
	return NULL;
}

/* A point that is not finite would prevent the whole path from being drawn. */
static bool all_finite(const struct canvas_point *points, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!isfinite(points[i].x) || !isfinite(points[i].y))
			return false;
	return count > 0;
}

void canvas_stroke(struct canvas *c, enum canvas_role role, double width, enum canvas_dash dash,
		   const struct canvas_point *points, size_t count)
{
	struct canvas_op *op = all_finite(points, count) ? add_op(c, points, count) : NULL;

	if (!op)
		return;
	op->kind = CANVAS_STROKE;
	op->role = role;
	op->width = width;
	op->dash = dash;
}

void canvas_line(struct canvas *c, enum canvas_role role, double width, enum canvas_dash dash, double x0,
		 double y0, double x1, double y1)
{
	canvas_stroke(c, role, width, dash, (struct canvas_point[]){{x0, y0}, {x1, y1}}, 2);
}

void canvas_fill(struct canvas *c, enum canvas_role role, double opacity, const struct canvas_point *points,
		 size_t count)
{
	struct canvas_op *op = all_finite(points, count) ? add_op(c, points, count) : NULL;

	if (!op)
		return;
	op->kind = CANVAS_FILL;
	op->role = role;
	op->opacity = opacity;
}

void canvas_rect(struct canvas *c, enum canvas_role role, double opacity, double x, double y, double w,
		 double h)
{
	canvas_fill(c, role, opacity, (struct canvas_point[]){{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}},
		    4);
}

void canvas_marker(struct canvas *c, enum canvas_role role, unsigned shape, bool filled, double x, double y,
		   double radius)
{
	static const unsigned corners[] = {24, 4, 3, 4};
	static const double first[] = {0, 45, -90, 0}, scale[] = {1, 1.2, 1.3, 1.35};
	struct canvas_point p[25];
	unsigned count;

	shape %= 4;
	count = corners[shape];
	for (unsigned i = 0; i <= count; i++) {
		double a = (first[shape] + 360.0 * i / count) * 3.14159265358979323846 / 180;

		p[i] = (struct canvas_point){x + scale[shape] * radius * cos(a),
					     y + scale[shape] * radius * sin(a)};
	}
	canvas_fill(c, filled ? role : CANVAS_paper, 1, p, count);
	canvas_stroke(c, filled ? CANVAS_paper : role, filled ? 1 : 1.6, CANVAS_SOLID, p, count + 1);
}

void canvas_text(struct canvas *c, const struct canvas_style *style, double x, double y, const char *s)
{
	struct canvas_point at = {x, y};
	struct canvas_op *op = all_finite(&at, 1) ? add_op(c, &at, 1) : NULL;

	if (!op)
		return;
	op->kind = CANVAS_TEXT;
	op->role = style->role;
	op->width = style->size;
	op->angle = style->angle;
	op->anchor = style->anchor;
	op->bold = style->bold;
	op->halo = style->halo;
	op->text = c->texts.size;
	text_add(&c->texts, s);
	text_add_bytes(&c->texts, "", 1);
	c->failed |= c->texts.failed != 0;
}

unsigned canvas_colour(enum canvas_role role, bool dark)
{
#define X(name, light, dark) {light, dark},
	static const unsigned colours[][2] = {CANVAS_ROLES(X)};
#undef X
	return colours[role][dark];
}
