/* SPDX-License-Identifier: Apache-2.0 */
/* The pages: a node, the fleet, all values of a node, text of the caller. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

enum { GRAPH_ROWS_MIN = 9 };

/* The utilization of the selected GPU, where there is room for it. */
static void draw_selected(const struct draw *d, unsigned y, unsigned rows)
{
	struct screen_gpus gpus;

	screen_gpus_make(&gpus, d->v, d->n);
	if (d->v->gpu_at < gpus.count && gpus.gpu[d->v->gpu_at]->scope == METRIC_SCOPE_GPU &&
	    watch_get(gpus.gpu[d->v->gpu_at], CATALOGUE_GPU_UTILIZATION))
		draw_graph_of(d, gpus.gpu[d->v->gpu_at], CATALOGUE_GPU_UTILIZATION, y, rows);
	screen_gpus_release(&gpus);
}

/* Rows that the parts get: GPUs first, then live runs, then processes. */
void draw_node(const struct draw *d, unsigned y, unsigned rows)
{
	unsigned end = y + rows, gpus = draw_gpus_rows(d), runs = draw_runs_rows(d), most;

	y += draw_problems(d, y, rows > 8 ? 4 : rows > 3 ? 1 : 0);
	if (rows >= 8)
		y += draw_host(d, y, rows >= 12 ? 2 : 1);
	if (rows >= 10)
		y += draw_links(d, y, 1);
	if (!gpus && y < end && !d->n->why) {
		bool any = d->n->state->count > 0;

		if (rows < 8)
			y += draw_host(d, y, end - y);
		if (y < end)
			screen_put(d->s, 0, y++, d->s->columns, SCREEN_ROLE_DIM,
				   any ? "no GPU" : "waiting for the first reading");
	}
	most = end - y; /* processes and runs keep a few rows, if there are enough */
	if (most >= 12 && gpus > most - 5)
		most -= 5;
	y += draw_gpus(d, y, most < gpus ? most : gpus);
	if (runs && end - y >= 4)
		y += draw_runs(d, y, runs < (end - y) / 2 ? runs : (end - y) / 2);
	if (y < end)
		y += draw_processes(d, y, end - y);
	if (end - y > GRAPH_ROWS_MIN && !d->v->printed)
		draw_selected(d, y + 1, end - y - 1);
}

static const char *value_or_dash(char out[SCREEN_VALUE], enum catalogue row, double value)
{
	return screen_short(out, row, value, !isnan(value));
}

/* heading, width, how many columns the screen needs for it */
static const struct fleet_column {
	const char *heading;
	unsigned width, from;
} fleet_columns[] = {{"node", 12, 0}, {"GPUs", 5, 0},	{"util", 5, 26}, {"memory", 12, 40},
		     {"temp", 5, 46}, {"power", 6, 54}, {"CPU", 5, 60},	 {"age", 7, 68}};
enum { FLEET_COLUMNS = sizeof(fleet_columns) / sizeof(fleet_columns[0]) };

static void fleet_text(char out[64], unsigned column, const struct screen_summary *s,
		       const struct screen_node *n)
{
	char first[SCREEN_VALUE], second[SCREEN_VALUE];

	switch (column) {
	case 0:
		snprintf(out, 64, "%.63s", *n->name ? n->name : n->state->node);
		break;
	case 1:
		snprintf(out, 64, s->lost ? "%u/%u" : "%u", s->gpus - s->lost, s->gpus);
		if (!s->lost)
			snprintf(out, 64, "%u", s->gpus);
		break;
	case 2:
		snprintf(out, 64, "%s", value_or_dash(first, CATALOGUE_GPU_UTILIZATION, s->utilization));
		break;
	case 3:
		snprintf(out, 64, "%s/%s", value_or_dash(first, CATALOGUE_GPU_MEMORY, s->memory_used),
			 value_or_dash(second, CATALOGUE_GPU_MEMORY, s->memory_total));
		break;
	case 4:
		snprintf(out, 64, "%s", value_or_dash(first, CATALOGUE_GPU_TEMPERATURE, s->temperature));
		break;
	case 5:
		snprintf(out, 64, "%s", value_or_dash(first, CATALOGUE_GPU_POWER, s->power));
		break;
	case 6:
		snprintf(out, 64, "%s", value_or_dash(first, CATALOGUE_CPU_BUSY, s->cpu));
		break;
	default:
		snprintf(out, 64, "%s", s->age >= 0 ? screen_duration(first, s->age) : "-");
		break;
	}
}

static unsigned name_width(const struct draw *d)
{
	unsigned width = fleet_columns[0].width;

	for (size_t i = 0; i < d->count; i++) {
		const char *name = *d->nodes[i].name ? d->nodes[i].name : d->nodes[i].state->node;
		unsigned length = (unsigned)strnlen(name, 32);

		width = length > width ? length : width;
	}
	return d->s->columns < 60 ? fleet_columns[0].width : width;
}

static void put_fleet_row(const struct draw *d, unsigned y, const struct screen_summary *s, unsigned name)
{
	const struct screen_node *n = s ? &d->nodes[s->index] : NULL;
	unsigned x = 0, width;
	char out[64];

	for (unsigned i = 0; i < FLEET_COLUMNS; i++) {
		if (d->s->columns < fleet_columns[i].from + (name - fleet_columns[0].width))
			continue;
		width = i ? fleet_columns[i].width : name;
		if (!s)
			snprintf(out, sizeof(out), "%s", fleet_columns[i].heading);
		else
			fleet_text(out, i, s, n);
		if (!i)
			screen_put(d->s, x, y, width, s ? SCREEN_ROLE_TITLE : SCREEN_ROLE_HEADING, out);
		else
			screen_put_right(d->s, x, y, width,
					 !s		      ? SCREEN_ROLE_HEADING
					 : s->stale || n->why ? SCREEN_ROLE_STALE
					 : i == 1 && s->lost  ? SCREEN_ROLE_BAD
							      : SCREEN_ROLE_TEXT,
					 out);
		x += width + 1;
	}
	if (x + 2 >= d->s->columns)
		return;
	if (!s)
		screen_put(d->s, x + 1, y, d->s->columns - x - 1, SCREEN_ROLE_HEADING, "what stands out");
	else
		screen_put(d->s, x + 1, y, d->s->columns - x - 1,
			   s->score >= 4e6 ? SCREEN_ROLE_BAD : SCREEN_ROLE_WARN, s->what);
}

void draw_fleet(const struct draw *d, unsigned y, unsigned rows)
{
	size_t count, first;
	struct screen_summary *list = screen_fleet_make(&count, d->v, d->nodes, d->count);
	unsigned used = 0, name = name_width(d);

	if (rows > 2)
		put_fleet_row(d, y + used++, NULL, name);
	first = draw_scroll(&d->v->fleet_at, count, rows - used);
	for (size_t i = first; i < count && used < rows; i++, used++) {
		put_fleet_row(d, y + used, &list[i], name);
		d->s->hit[y + used] = (struct screen_hit){SCREEN_TARGET_NODE, i};
		if (i == d->v->fleet_at && !d->v->printed)
			screen_paint(d->s, 0, y + used, name, SCREEN_ROLE_SELECTED);
	}
	if (!count && used < rows)
		screen_putf(d->s, 0, y + used, d->s->columns, SCREEN_ROLE_DIM, "no node matches \"%s\"",
			    d->v->filter);
	free(list);
}

static void put_metric(const struct draw *d, unsigned y, const struct screen_metric *m)
{
	unsigned half = d->s->columns / 2, graph = half + 16;
	const char *why = watch_why(m->entity, m->row);
	char name[96], out[SCREEN_VALUE];
	double value = 0;
	bool present = screen_sample(&value, m->entity, m->row);

	screen_put(d->s, 2, y, half - 2, SCREEN_ROLE_TEXT, screen_row_name(name, m->row));
	screen_put_right(d->s, half, y, 14,
			 screen_stale(d->n, m->entity) ? SCREEN_ROLE_STALE : SCREEN_ROLE_TEXT,
			 screen_long(out, m->row, value, present));
	if (!watch_get(m->entity, m->row) && why)
		screen_put(d->s, graph, y, d->s->columns, SCREEN_ROLE_DIM, why);
	else if (graph + 8 < d->s->columns)
		draw_sparkline(d, graph, y, d->s->columns - graph, m->entity, m->row, NAN);
}

void draw_metrics(const struct draw *d, unsigned y, unsigned rows)
{
	struct screen_metrics l;
	size_t first;

	screen_metrics_make(&l, d->v, d->n);
	first = draw_scroll(&d->v->metric_at, l.count, rows);
	for (size_t i = first; i < l.count && i - first < rows; i++) {
		unsigned line = y + (unsigned)(i - first);
		struct text name = {0};

		if (l.row[i].row == CATALOGUE_COUNT) {
			screen_entity_name(&name, l.row[i].entity);
			screen_put(d->s, 0, line, d->s->columns, SCREEN_ROLE_TITLE, text_str(&name));
			text_release(&name);
		} else {
			put_metric(d, line, &l.row[i]);
		}
		if (i == d->v->metric_at)
			screen_paint(d->s, 0, line, d->s->columns / 2, SCREEN_ROLE_SELECTED);
	}
	if (!l.count)
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM,
			   *d->v->filter ? "no value matches the filter" : "waiting for the first reading");
	screen_metrics_release(&l);
}

void draw_lines(const struct draw *d, unsigned y, unsigned rows)
{
	const char *p = d->v->lines ? d->v->lines : "";
	size_t count = 0, skip;
	char *line;

	for (const char *c = p; *c; c++)
		count += *c == '\n';
	skip = count > rows ? count - rows : 0; /* the last page is full */
	d->v->line_at = d->v->line_at < skip ? d->v->line_at : skip;
	for (size_t i = 0; *p && i < d->v->line_at + rows; i++) {
		size_t length = strcspn(p, "\n");

		line = i >= d->v->line_at ? strndup(p, length) : NULL;
		if (line)
			screen_put(d->s, 0, y + (unsigned)(i - d->v->line_at), d->s->columns,
				   SCREEN_ROLE_TEXT, line);
		free(line);
		p += length + (p[length] == '\n');
	}
}
