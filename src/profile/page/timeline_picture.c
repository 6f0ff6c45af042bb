/* SPDX-License-Identifier: Apache-2.0 */
/* Picture of the profile. The upper part shows the whole program as one strip per device, with start-up and
 * steps. The lower part shows one step, with lanes for compute, communication and copies of each device. */
#include "core/text/units.h"
#include "profile/page/internal.h"
#include "report/plot/canvas.h"

enum { DEVICES_MOST = 8, LANES = 3, TICKS = 5 };
#define WIDTH 900.0
#define LEFT 150.0 /* x of the time axis' begin */
#define RIGHT 880.0
#define STRIP 14.0 /* heights */
#define LANE 12.0
#define GAP 8.0
#define HEAD 26.0
#define LEAST 0.4 /* smallest width of a rectangle, so that short kernels stay visible */

static const struct {
	const char *name;
	enum canvas_role role;
} lanes[LANES] = {{"compute", CANVAS_s0}, {"communication", CANVAS_s1}, {"copies", CANVAS_s2}};

struct picture {
	const struct page *p;
	const struct breakdown *b;
	struct canvas c;
	size_t devices;
	struct windows_span whole, step;
};

static double x_of(struct windows_span span, uint64_t at_ns)
{
	double whole = (double)(span.to_ns - span.from_ns), at = (double)at_ns - (double)span.from_ns;

	at = at < 0 ? 0 : at > whole ? whole : at;
	return LEFT + (RIGHT - LEFT) * (whole > 0 ? at / whole : 0);
}

static void label(struct picture *o, double y, const char *s, bool bold)
{
	const struct canvas_style style = {
		.role = bold ? CANVAS_ink : CANVAS_muted, .size = 10, .bold = bold};

	canvas_text(&o->c, &style, 4, y, s);
}

/* "rank 3, GPU 0" */
static void device_label(struct picture *o, double y, const struct breakdown_device *d)
{
	const struct timeline_process *p = &o->p->f->t->process[d->process];
	char name[64];

	if (p->rank >= 0)
		snprintf(name, sizeof(name), "rank %d, GPU %u", p->rank, d->device);
	else
		snprintf(name, sizeof(name), "pid %u, GPU %u", p->pid, d->device);
	label(o, y, name, true);
}

/* Draws the time axis below, counted from the begin of the span. */
static void ticks(struct picture *o, struct windows_span span, double y)
{
	const struct canvas_style style = {.role = CANVAS_muted, .size = 9, .anchor = CANVAS_MIDDLE};
	char text[32];

	for (unsigned i = 0; i <= TICKS; i++) {
		double ns = (double)(span.to_ns - span.from_ns) * i / TICKS;
		double x = LEFT + (RIGHT - LEFT) * i / TICKS;

		canvas_line(&o->c, CANVAS_grid, 1, CANVAS_SOLID, x, y - 12, x, y - 8);
		canvas_text(&o->c, &style, x, y, page_time(text, ns));
	}
}

/* Draws the spans of one lane, which come in the order of their starts. Spans that would touch are drawn as
 * one. */
struct pen {
	struct canvas *c;
	enum canvas_role role;
	double y, height, from, to; /* from < 0: no rectangle has begun */
};

static void lift(struct pen *pen)
{
	if (pen->from >= 0)
		canvas_rect(pen->c, pen->role, 1, pen->from, pen->y, pen->to - pen->from, pen->height);
	pen->from = -1;
}

static void draw(struct pen *pen, double from, double to)
{
	to = to - from < LEAST ? from + LEAST : to;
	if (pen->from >= 0 && from <= pen->to + LEAST) {
		pen->to = to > pen->to ? to : pen->to;
		return;
	}
	lift(pen);
	pen->from = from;
	pen->to = to;
}

static bool is_of(const struct timeline *t, const struct timeline_event *e, const struct breakdown_device *d)
{
	return timeline_on_device(e->kind) && e->track != TIMELINE_NONE && e->process == d->process &&
	       t->track[e->track].device_id == d->device;
}

static unsigned lane_of(const struct timeline *t, const struct timeline_event *e)
{
	if (e->kind == TIMELINE_COPY || e->kind == TIMELINE_SET)
		return 2;
	return e->kind == TIMELINE_KERNEL && nccl_is_kernel(timeline_name(t, e->name)) ? 1 : 0;
}

/* Draws one device over the whole program: its work, and its steps below. */
static void draw_strip(struct picture *o, const struct breakdown_device *d, double y)
{
	const struct timeline *t = o->p->f->t;
	const struct steps *s = &o->p->f->steps;
	struct pen busy = {&o->c, CANVAS_s0, y, STRIP - 5, -1, 0},
		   step = {&o->c, CANVAS_good, y + STRIP - 4, 3, -1, 0};

	device_label(o, y + 9, d);
	for (size_t i = 0; i < t->events; i++)
		if (is_of(t, &t->event[i], d))
			draw(&busy, x_of(o->whole, t->event[i].start_ns), x_of(o->whole, t->event[i].end_ns));
	lift(&busy);
	for (size_t i = s->each.first[d->process]; i < s->each.first[d->process + 1]; i++)
		draw(&step, x_of(o->whole, s->each.span[i].from_ns), x_of(o->whole, s->each.span[i].to_ns));
	lift(&step);
}

static void draw_lanes(struct picture *o, const struct breakdown_device *d, double y)
{
	const struct timeline *t = o->p->f->t;
	struct pen pen[LANES];

	device_label(o, y + 9, d);
	for (unsigned k = 0; k < LANES; k++) {
		pen[k] = (struct pen){&o->c, lanes[k].role, y + k * LANE, LANE - 3, -1, 0};
		canvas_line(&o->c, CANVAS_grid, 1, CANVAS_SOLID, LEFT, y + k * LANE + LANE - 2, RIGHT,
			    y + k * LANE + LANE - 2);
	}
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];

		if (e->start_ns >= o->step.to_ns)
			break;
		if (is_of(t, e, d) && e->end_ns > o->step.from_ns)
			draw(&pen[lane_of(t, e)], x_of(o->step, e->start_ns), x_of(o->step, e->end_ns));
	}
	for (unsigned k = 0; k < LANES; k++)
		lift(&pen[k]);
}

static void legend(struct picture *o, double y)
{
	const struct canvas_style style = {.role = CANVAS_muted, .size = 10};
	double x = LEFT;

	for (unsigned k = 0; k < LANES; k++) {
		canvas_rect(&o->c, lanes[k].role, 1, x, y - 8, 10, 8);
		canvas_text(&o->c, &style, x + 14, y, lanes[k].name);
		x += 34 + canvas_text_width(lanes[k].name, style.size, false);
	}
}

/* The step nearest to the median, of the process with most steps. */
static struct windows_span typical_step(const struct steps *s, size_t processes)
{
	struct windows_span best = {0};
	size_t most = 0;
	double nearest = -1;

	for (size_t p = 1; p < processes; p++)
		if (s->process[p].steps > s->process[most].steps)
			most = p;
	for (size_t i = s->each.first[most]; i < s->each.first[most + 1]; i++) {
		double off = (double)(s->each.span[i].to_ns - s->each.span[i].from_ns) -
			     s->process[most].median_ns;

		off = off < 0 ? -off : off;
		if (nearest < 0 || off < nearest) {
			nearest = off;
			best = s->each.span[i];
		}
	}
	return best;
}

static void title(struct picture *o, double y, const char *text, uint64_t ns)
{
	char line[96], time[32];

	snprintf(line, sizeof(line), "%s, %s", text, page_time(time, (double)ns));
	label(o, y, line, true);
}

static double height_of(const struct picture *o)
{
	double strips = HEAD + (double)o->devices * (STRIP + GAP) + 20;
	double magnified = HEAD + (double)o->devices * (LANES * LANE + GAP) + 36;

	return strips + (o->step.to_ns ? magnified : 0);
}

static void paint(struct picture *o)
{
	double y = 14;

	title(o, y, "The whole program", o->whole.to_ns - o->whole.from_ns);
	y += 12;
	for (size_t i = 0; i < o->devices; i++, y += STRIP + GAP)
		draw_strip(o, &o->b->device[i], y);
	ticks(o, o->whole, y + 10);
	if (!o->step.to_ns)
		return;
	y += 20 + 14;
	title(o, y, "One step", o->step.to_ns - o->step.from_ns);
	legend(o, y);
	y += 12;
	for (size_t i = 0; i < o->devices; i++, y += LANES * LANE + GAP)
		draw_lanes(o, &o->b->device[i], y);
	ticks(o, o->step, y + 10);
}

bool page_lanes(struct text *svg, const struct page *p)
{
	const struct findings *f = p->f;
	struct picture o = {.p = p, .b = &f->whole.breakdown, .whole = {f->t->start_ns, f->t->end_ns}};

	if (f->steps.steps)
		o.b = &f->steady.breakdown;
	o.devices = o.b->devices < DEVICES_MOST ? o.b->devices : DEVICES_MOST;
	if (!o.devices)
		return false;
	if (f->steps.steps)
		o.step = typical_step(&f->steps, f->t->processes);
	canvas_init(&o.c, WIDTH, height_of(&o));
	paint(&o);
	canvas_svg(svg, &o.c, "What ran on each device: the whole program, and one step", false);
	svg->failed |= o.c.failed;
	canvas_release(&o.c);
	return true;
}
