/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of a history: all series relative to their first level, over the number of the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/history/history.h"
#include "core/math/stats.h"
#include "report/plot/lines.h"
#include "report/plot/plot.h"
#include "report/text/format.h"

enum { DRAWN = LINES_SERIES - 1, HEIGHT = 420 };

static enum status format_of(const char *path, enum plot_format *out, struct error *err)
{
	static const char *const endings[] = {".svg", ".png", ".pdf"};
	static const enum plot_format formats[] = {PLOT_SVG, PLOT_PNG, PLOT_PDF};
	size_t n = strlen(path);

	for (size_t i = 0; i < 3; i++)
		if (n > 4 && !strcmp(path + n - 4, endings[i])) {
			*out = formats[i];
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "--plot: %s does not end with .svg, .png or .pdf", path);
}

/* The median of the figures before the first change. */
static double first_level(const struct history_series *s, double *room)
{
	size_t n = 0;

	while (n < s->count && (!n || !s->point[n].marked)) {
		room[n] = s->point[n].value;
		n++;
	}
	return stats_median(room, n);
}

/* Adds one series, and its changes to `marks`. False: out of memory. */
static bool add(struct lines *l, struct lines_series *marks, const struct history *h,
		const struct history_series *s, double *room)
{
	struct lines_series *line = &l->series[l->count];
	double level = first_level(s, room);
	char title[128];

	line->x = calloc(s->count, sizeof(double));
	line->y = calloc(s->count, sizeof(double));
	l->count++;
	if (!line->x || !line->y || !(level > 0))
		return false;
	(void)h;
	format_title(title, sizeof(title), s->c);
	snprintf(line->name, sizeof(line->name), "%.30s, %.14s", title, s->c->where);
	for (size_t i = 0; i < s->count; i++) {
		line->x[i] = (double)(s->point[i].run + 1);
		line->y[i] = s->point[i].value / level;
		if (!s->point[i].marked)
			continue;
		marks->x[marks->count] = marks->x[marks->count + 1] = line->x[i];
		marks->y[marks->count] = line->y[i];
		marks->y[marks->count + 1] = NAN; /* single marks, no line */
		marks->count += 2;
	}
	line->count = s->count;
	return true;
}

static bool collect(struct lines *l, const struct history *h, size_t *left_out)
{
	struct lines_series marks = {.name = "significant change"};
	double *room = calloc(h->run_count, sizeof(*room));
	bool whole = room != NULL;

	marks.x = calloc(2 * h->marks + 1, sizeof(double));
	marks.y = calloc(2 * h->marks + 1, sizeof(double));
	whole = whole && marks.x && marks.y;
	for (size_t i = 0; i < h->count && whole; i++) {
		if (h->series[i].count < 2)
			continue;
		if (l->count == DRAWN)
			++*left_out;
		else
			whole = add(l, &marks, h, &h->series[i], room);
	}
	l->series[l->count++] = marks;
	free(room);
	return whole;
}

enum status history_plot(const char *path, const struct history *h, size_t *left_out, struct error *err)
{
	struct lines l = {.x = {.label = "run", .unit = ""},
			  .y = {.label = "relative to the first level", .unit = "share"},
			  .marks = true};
	enum plot_format format = PLOT_SVG;
	struct canvas c;
	enum status st = format_of(path, &format, err);
	bool whole = false;

	*left_out = 0;
	if (!st)
		whole = collect(&l, h, left_out);
	if (!st && !whole)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for the plot");
	if (!st && !lines_any(&l))
		st = error_set(err, STATUS_UNAVAILABLE, "--plot: no case has two figures to draw");
	if (!st) {
		canvas_init(&c, LINES_WIDTH, HEIGHT);
		lines_draw(&c, &l);
		st = plot_write(path, format, &c, "History of this machine's runs", err);
		canvas_release(&c);
	}
	for (size_t i = 0; i < l.count; i++) {
		free(l.series[i].x);
		free(l.series[i].y);
	}
	return st;
}
