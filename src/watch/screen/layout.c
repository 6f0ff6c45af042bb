/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of every page: the title above it, the keys or a question below it. */
#include <math.h>
#include <string.h>
#include <time.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

static const char *node_name(const struct screen_node *n)
{
	return *n->name ? n->name : *n->state->node ? n->state->node : "this machine";
}

/* The wall clock of a node, "14:03:07Z"; "" while it is not known. */
static void node_time(char out[16], const struct screen_node *n)
{
	double wall = watch_wall(n->state);
	time_t seconds = (time_t)wall;
	struct tm tm;

	out[0] = '\0';
	if (n->state->wall > 0 && wall > 0 && wall < 1e11 && gmtime_r(&seconds, &tm))
		snprintf(out, 16, "%02d:%02d:%02dZ", tm.tm_hour % 24, tm.tm_min % 60, tm.tm_sec % 61);
}

static const char *driver_of(const struct watch_state *s)
{
	const struct watch_entity *gpu = screen_first(s, METRIC_SCOPE_GPU);

	return gpu ? screen_label(gpu, "DCGM_FI_DRIVER_VERSION") : "";
}

/* `end`: the column behind it. */
static void title_of_node(const struct draw *d, unsigned end)
{
	const char *driver = driver_of(d->n->state);
	double boot, up;
	char text[SCREEN_VALUE];
	const struct watch_entity *node = screen_first(d->n->state, METRIC_SCOPE_NODE);
	unsigned x = screen_put(d->s, 0, 0, end, SCREEN_ROLE_TITLE, node_name(d->n));

	if (*driver)
		x += screen_putf(d->s, x, 0, end > x ? end - x : 0, SCREEN_ROLE_DIM, "  driver %s", driver);
	boot = node ? screen_number(node, CATALOGUE_NODE_BOOT) : NAN;
	up = watch_wall(d->n->state) - boot;
	if (!isnan(boot) && up > 0)
		screen_putf(d->s, x, 0, end > x ? end - x : 0, SCREEN_ROLE_DIM, "  up %s",
			    screen_duration(text, up));
}

/* The right end of the title has the time and the place in a recording. */
static void right_text(char out[96], const struct draw *d)
{
	char time_text[16], at[SCREEN_VALUE], length[SCREEN_VALUE];

	node_time(time_text, d->n);
	if (d->v->page == SCREEN_LINES)
		out[0] = '\0';
	else if (d->v->replay)
		snprintf(out, 96, "  %s %s of %s%s%s", d->v->paused ? "paused at" : "recording",
			 screen_duration(at, d->v->at), screen_duration(length, d->v->length),
			 *time_text ? "  " : "", time_text);
	else
		snprintf(out, 96, "  %s", time_text);
}

static void put_title(const struct draw *d)
{
	char right[96];
	unsigned width, end = d->s->columns, x;

	right_text(right, d);
	width = (unsigned)strlen(right);
	if (end >= 30 && width + 4 < end) {
		end -= width;
		screen_put_right(d->s, end, 0, width, SCREEN_ROLE_DIM, right);
	}
	switch (d->v->page) {
	case SCREEN_FLEET:
		x = screen_putf(d->s, 0, 0, end, SCREEN_ROLE_TITLE, "%zu nodes", d->count);
		screen_put(d->s, x, 0, end - x, SCREEN_ROLE_DIM,
			   d->v->sort == SCREEN_SORT_usual ? ", worst first" : "");
		break;
	case SCREEN_LINES:
		screen_put(d->s, 0, 0, end, SCREEN_ROLE_TITLE, d->v->title ? d->v->title : "");
		break;
	case SCREEN_HELP:
		screen_put(d->s, 0, 0, end, SCREEN_ROLE_TITLE, "assay top: help");
		break;
	case SCREEN_NODE:
	case SCREEN_METRICS:
	case SCREEN_GRAPH:
		title_of_node(d, end);
		break;
	}
}

/* Keys of each page with their meanings. */
static const char *const keys_of[] = {
	[SCREEN_NODE] =
		"q quit|? help|Tab part|m values|g graph|s sort|/ filter|t tree|k end process|n fleet",
	[SCREEN_FLEET] = "q quit|? help|Enter node|s sort|r reverse|/ filter",
	[SCREEN_METRICS] = "q back|Enter graph|/ filter|? help",
	[SCREEN_GRAPH] = "q back|< > value|? help",
	[SCREEN_HELP] = "q back",
	[SCREEN_LINES] = "q quit|arrows scroll",
};

static void put_keys(const struct draw *d, unsigned y)
{
	const char *p = keys_of[d->v->page];
	unsigned x = 0;

	if (d->v->replay && d->v->page != SCREEN_HELP)
		x += screen_put(d->s, x, y, d->s->columns, SCREEN_ROLE_KEY, "Space pause  arrows seek  ");
	while (*p && x < d->s->columns) {
		size_t length = strcspn(p, "|");
		char word[64];
		size_t key;

		snprintf(word, sizeof(word), "%.*s", (int)length, p);
		if (x + length > d->s->columns)
			return;
		key = d->v->page == SCREEN_GRAPH && word[0] == '<' ? 3 : strcspn(word, " ");
		screen_put(d->s, x, y, (unsigned)length, SCREEN_ROLE_TEXT, word);
		screen_paint(d->s, x, y, (unsigned)key, SCREEN_ROLE_KEY);
		x += (unsigned)length + 2;
		p += length + (p[length] == '|');
	}
}

static void put_footer(const struct draw *d)
{
	unsigned y = d->s->rows - 1;

	if (*d->v->question) {
		screen_paint(d->s, 0, y, d->s->columns, SCREEN_ROLE_WARN);
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_WARN, d->v->question);
	} else if (d->v->typing) {
		screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_KEY, "filter: %s_", d->v->filter);
	} else if (*d->v->message) {
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_WARN, d->v->message);
	} else if (d->s->rows > SCREEN_ROWS_MIN && !d->v->printed) {
		put_keys(d, y);
	}
}

/* Whether the last line belongs to the page. */
static bool has_footer(const struct draw *d)
{
	return *d->v->question || d->v->typing || *d->v->message || d->s->rows > SCREEN_ROWS_MIN;
}

void screen_draw(struct screen *s, struct screen_view *v, const struct screen_node *nodes, size_t count)
{
	struct draw d = {.s = s, .v = v, .nodes = nodes, .count = count};
	unsigned rows;

	screen_clear(s);
	if (!count || s->rows < SCREEN_ROWS_MIN)
		return;
	v->node = v->node < count ? v->node : 0;
	d.n = &nodes[v->node];
	put_title(&d);
	rows = s->rows - 1 - has_footer(&d);
	switch (v->page) {
	case SCREEN_NODE:
		draw_node(&d, 1, rows);
		break;
	case SCREEN_FLEET:
		draw_fleet(&d, 1, rows);
		break;
	case SCREEN_METRICS:
		draw_metrics(&d, 1, rows);
		break;
	case SCREEN_GRAPH:
		draw_graph(&d, 1, rows);
		break;
	case SCREEN_HELP:
		draw_help(&d, 1, rows);
		break;
	case SCREEN_LINES:
		draw_lines(&d, 1, rows);
		break;
	}
	put_footer(&d);
}

static void add_part(struct text *out, const char *name, enum catalogue row, double value)
{
	char shown[SCREEN_VALUE];

	if (!isnan(value))
		text_addf(out, ", %s %s", name, screen_long(shown, row, value, true));
}

void screen_line(struct text *out, const struct screen_node *n)
{
	struct screen_summary s;
	char time_text[16];

	screen_summary_make(&s, n);
	node_time(time_text, n);
	text_addf(out, "%s%s%s: ", time_text, *time_text ? " " : "", node_name(n));
	if (!n->state->count) { /* how many GPUs it has is not known */
		text_add(out, s.what);
		return;
	}
	text_addf(out, "%u GPU%s", s.gpus, s.gpus == 1 ? "" : "s");
	if (s.lost)
		text_addf(out, ", %u lost", s.lost);
	add_part(out, "utilization", CATALOGUE_GPU_UTILIZATION, s.utilization);
	add_part(out, "memory", CATALOGUE_GPU_MEMORY, s.memory_used);
	add_part(out, "temperature", CATALOGUE_GPU_TEMPERATURE, s.temperature);
	add_part(out, "power", CATALOGUE_GPU_POWER, s.power);
	add_part(out, "CPU", CATALOGUE_CPU_BUSY, s.cpu);
	if (*s.what)
		text_addf(out, "; %s", s.what);
}
