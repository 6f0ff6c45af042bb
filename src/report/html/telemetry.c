/* SPDX-License-Identifier: Apache-2.0 */
/* A plot of clock, power and temperature during one case. Each signal is drawn as a share of its maximum; the
 * judged window is shaded. */
#include <math.h>
#include "report/plot/canvas.h"
#include "report/html/html.h"
#include "report/text/format.h"

enum { WIDTH = 960, HEIGHT = 96, BUCKETS = 240 };

struct trace {
	const struct series *series;
	enum canvas_role role;
	double full, low, high; /* the signal's maximum (0: unknown), the lowest and the highest reading */
};

/* Draws the lowest and the highest reading of every interval of time, so that a short dip stays visible. */
static void draw_trace(struct canvas *c, struct trace *t, uint64_t t0, uint64_t t1)
{
	struct canvas_point points[2 * BUCKETS];
	double low[BUCKETS], high[BUCKETS];
	unsigned seen[BUCKETS] = {0};
	size_t count = 0;
	double top;

	t->low = INFINITY;
	t->high = -INFINITY;
	for (size_t i = 0; i < t->series->count; i++) {
		uint64_t at = t->series->t_ns[i];
		double value = t->series->value[i];
		size_t b;

		if (at < t0 || at > t1 || !isfinite(value))
			continue;
		b = (size_t)((double)(at - t0) / ((double)(t1 - t0) + 1) * BUCKETS);
		low[b] = !seen[b] || value < low[b] ? value : low[b];
		high[b] = !seen[b] || value > high[b] ? value : high[b];
		seen[b]++;
		t->low = value < t->low ? value : t->low;
		t->high = value > t->high ? value : t->high;
	}
	top = t->high > t->full ? t->high : t->full;
	if (!(top > 0))
		top = 1;
	for (size_t b = 0; b < BUCKETS; b++) {
		double x = (b + 0.5) * WIDTH / BUCKETS;

		if (!seen[b])
			continue;
		points[count++] = (struct canvas_point){x, HEIGHT - 3 - (HEIGHT - 8) * low[b] / top};
		if (high[b] != low[b])
			points[count++] = (struct canvas_point){x, HEIGHT - 3 - (HEIGHT - 8) * high[b] / top};
	}
	canvas_stroke(c, t->role, 1.6, CANVAS_SOLID, points, count);
}

static const struct {
	const char *signal, *name, *unit;
	enum gpu_fact most; /* the fact that is the top of its trace */
} kinds[] = {
	{"sm_clock_mhz", "clock", "MHz", GPU_FACT_sm_clock_max_mhz},
	{"power_w", "power", "W", GPU_FACT_power_limit_w},
	{"temperature_c", "temperature", "°C", GPU_FACT_temperature_slowdown_c},
};
enum { TRACES = sizeof(kinds) / sizeof(kinds[0]) };

static void caption(struct text *out, unsigned colour, const char *what, const struct trace *t,
		    const char *unit)
{
	if (!t->series || !isfinite(t->low))
		return;
	text_addf(out, "<span class=\"key\" style=\"--c:var(--s%u)\">%s %.0f–%.0f %s", colour, what, t->low,
		  t->high, unit);
	if (t->full > 0)
		text_addf(out, " of %.0f", t->full);
	text_add(out, "</span>");
}

static const struct gpu *gpu_of(const struct view *v, const struct view_row *row)
{
	const struct gpu *gpu;
	char name[256];

	view_target_name(name, sizeof(name), v, row->c, &gpu);
	return gpu;
}

void html_telemetry(struct text *out, const struct view *v, const struct view_row *row)
{
	const struct gpu *gpu = gpu_of(v, row);
	const struct record_case *c = row->c;
	struct trace traces[TRACES];
	bool any = false;
	struct canvas drawing;
	struct record node;
	char source[64];

	if (!gpu || c->t1_ns <= c->t0_ns)
		return;
	record_slice(&node, v->in->record, c->node);
	snprintf(source, sizeof(source), "gpu:%s", gpu->pci);
	canvas_init(&drawing, WIDTH, HEIGHT);
	if (row->phase && row->phase->has_window && row->phase->t1_ns > row->phase->t0_ns) {
		double span = (double)(c->t1_ns - c->t0_ns);
		double x0 = ((double)row->phase->t0_ns - (double)c->t0_ns) / span * WIDTH;
		double x1 = ((double)row->phase->t1_ns - (double)c->t0_ns) / span * WIDTH;

		canvas_rect(&drawing, CANVAS_grid, 0.6, x0, 0, x1 - x0, HEIGHT);
	}
	canvas_line(&drawing, CANVAS_grid, 1, CANVAS_SOLID, 0, HEIGHT - 3, WIDTH, HEIGHT - 3);
	for (size_t i = 0; i < TRACES; i++) {
		traces[i] = (struct trace){
			.series = record_series(&node, source, kinds[i].signal),
			.role = (enum canvas_role)(CANVAS_s0 + i),
			.full = gpu_get(gpu, kinds[i].most, 0),
		};
		if (traces[i].series)
			draw_trace(&drawing, &traces[i], c->t0_ns, c->t1_ns);
		any = any || (traces[i].series && isfinite(traces[i].low));
	}
	if (any) {
		text_add(out, "<figure>");
		canvas_svg(out, &drawing, "clock, power and temperature over the case", false);
		text_add(out, "<figcaption>");
		for (size_t i = 0; i < TRACES; i++)
			caption(out, (unsigned)i, kinds[i].name, &traces[i], kinds[i].unit);
		text_addf(
			out,
			"<span>%.1f s; top of the plot: the maximum of each signal; shaded: the judged window</span></figcaption></figure>\n",
			(double)(c->t1_ns - c->t0_ns) * 1e-9);
	}
	canvas_release(&drawing);
}
