/* SPDX-License-Identifier: Apache-2.0 */
/* Each key changes a view. */
#include <stdlib.h>
#include <string.h>
#include "watch/screen/lists.h"

enum { SEEK_S = 10, SEEK_FAR_S = 60, CONTROL_C = 3, CONTROL_H = 8 };

const char *const screen_sort_names[] = {
#define X(name, help) #name,
	SCREEN_SORTS(X)
#undef X
		NULL};

static const char *sort_help(enum screen_sort sort)
{
	static const char *const help[] = {
#define X(name, help) help,
		SCREEN_SORTS(X)
#undef X
	};

	return help[sort];
}

struct keys {
	struct screen_view *v;
	const struct screen_node *nodes;
	size_t count;
	const struct screen *drawn;
};

static const struct screen_node *node_of(const struct keys *k)
{
	return &k->nodes[k->v->node < k->count ? k->v->node : 0];
}

/* The selection that arrows move. */
static size_t *selection(struct screen_view *v)
{
	switch (v->page) {
	case SCREEN_NODE:
		return v->on_processes ? &v->process_at : &v->gpu_at;
	case SCREEN_FLEET:
		return &v->fleet_at;
	case SCREEN_METRICS:
		return &v->metric_at;
	case SCREEN_GRAPH:
		return NULL;
	case SCREEN_HELP:
	case SCREEN_LINES:
		return &v->line_at;
	}
	return NULL;
}

/* How many lines the list of the page has; SIZE_MAX: drawing limits it. */
static size_t list_size(const struct keys *k)
{
	struct screen_processes processes;
	struct screen_metrics metrics;
	struct screen_gpus gpus;
	size_t count = SIZE_MAX;

	if (k->v->page == SCREEN_METRICS) {
		screen_metrics_make(&metrics, k->v, node_of(k));
		count = metrics.count;
		screen_metrics_release(&metrics);
	} else if (k->v->page == SCREEN_FLEET) {
		count = k->count;
	} else if (k->v->page == SCREEN_NODE && k->v->on_processes) {
		screen_processes_make(&processes, k->v, node_of(k));
		count = processes.count;
		screen_processes_release(&processes);
	} else if (k->v->page == SCREEN_NODE) {
		screen_gpus_make(&gpus, k->v, node_of(k));
		count = gpus.count;
		screen_gpus_release(&gpus);
	}
	return count;
}

static void move(const struct keys *k, long by)
{
	size_t *at = selection(k->v), count = list_size(k);

	if (!at)
		return;
	if (by < 0)
		*at = (size_t)-by > *at ? 0 : *at - (size_t)-by;
	else
		*at += (size_t)by;
	if (count != SIZE_MAX && *at >= count)
		*at = count ? count - 1 : 0;
	else if (count == SIZE_MAX && *at > 100000)
		*at = 100000;
}

static enum screen_action seek(struct screen_view *v, double by)
{
	v->at += by;
	v->at = v->at < 0 ? 0 : v->at > v->length ? v->length : v->at;
	return SCREEN_SEEK;
}

static void open_help(struct screen_view *v)
{
	if (v->page == SCREEN_HELP)
		return;
	v->help_from = v->page;
	v->page = SCREEN_HELP;
	v->line_at = 0;
}

static void open_graph_of(struct screen_view *v, const struct watch_entity *e, enum catalogue row)
{
	v->entity = e->id;
	v->row = row;
	if (v->page != SCREEN_GRAPH)
		v->back = v->page;
	v->page = SCREEN_GRAPH;
}

static enum screen_action leave(const struct keys *k)
{
	struct screen_view *v = k->v;

	switch (v->page) {
	case SCREEN_LINES:
	case SCREEN_FLEET:
		return SCREEN_QUIT;
	case SCREEN_NODE:
		if (k->count < 2)
			return SCREEN_QUIT;
		v->page = SCREEN_FLEET;
		break;
	case SCREEN_METRICS:
		v->page = SCREEN_NODE;
		break;
	case SCREEN_GRAPH:
		v->page = v->back == SCREEN_METRICS ? SCREEN_METRICS : SCREEN_NODE;
		break;
	case SCREEN_HELP:
		v->page = v->help_from;
		v->line_at = 0;
		break;
	}
	return SCREEN_NOTHING;
}

/* The graph of a GPU's utilization: the selected GPU's. */
static void open_graph(const struct keys *k)
{
	struct screen_gpus gpus;

	screen_gpus_make(&gpus, k->v, node_of(k));
	if (gpus.count) {
		const struct watch_entity *e = gpus.gpu[k->v->gpu_at < gpus.count ? k->v->gpu_at : 0];

		open_graph_of(k->v, e,
			      e->scope == METRIC_SCOPE_GPU ? CATALOGUE_GPU_UTILIZATION
							   : CATALOGUE_INSTANCE_MEMORY_USED);
	}
	screen_gpus_release(&gpus);
}

/* The place of the graph's value in the list of values; the list's size if it is not there. */
static size_t place_of(const struct screen_metrics *l, const struct screen_view *v)
{
	size_t i = 0;

	while (i < l->count && (l->row[i].entity->id != v->entity || l->row[i].row != v->row))
		i++;
	return i;
}

/* The next value that is no heading. */
static void next_value(const struct keys *k, int step)
{
	struct screen_metrics l;
	size_t at;

	screen_metrics_make(&l, k->v, node_of(k));
	at = place_of(&l, k->v);
	for (size_t tried = 0; l.count && tried < l.count; tried++) {
		at = step > 0 ? (at + 1 >= l.count ? 0 : at + 1)
			      : (at == 0 || at > l.count ? l.count : at) - 1;
		if (l.row[at].row != CATALOGUE_COUNT)
			break;
	}
	if (at < l.count && l.row[at].row != CATALOGUE_COUNT) {
		k->v->entity = l.row[at].entity->id;
		k->v->row = l.row[at].row;
	}
	screen_metrics_release(&l);
}

static void graph_of_selected(const struct keys *k)
{
	struct screen_metrics l;

	screen_metrics_make(&l, k->v, node_of(k));
	if (k->v->metric_at < l.count) {
		const struct screen_metric *m = &l.row[k->v->metric_at];

		if (m->row == CATALOGUE_COUNT &&
		    k->v->metric_at + 1 < l.count) /* a heading: its first value */
			m++;
		open_graph_of(k->v, m->entity, m->row);
	}
	screen_metrics_release(&l);
}

/* The values of the node, from the selected GPU on. */
static void open_metrics(const struct keys *k, bool of_gpu)
{
	struct screen_gpus gpus;
	struct screen_metrics l;

	k->v->filter[0] = '\0'; /* it was one of processes or nodes */
	k->v->page = SCREEN_METRICS;
	k->v->metric_at = 0;
	if (!of_gpu)
		return;
	screen_gpus_make(&gpus, k->v, node_of(k));
	screen_metrics_make(&l, k->v, node_of(k));
	for (size_t i = 0; k->v->gpu_at < gpus.count && i < l.count; i++) {
		if (l.row[i].entity == gpus.gpu[k->v->gpu_at]) {
			k->v->metric_at = i;
			break;
		}
	}
	screen_metrics_release(&l);
	screen_gpus_release(&gpus);
}

static void open_node(const struct keys *k)
{
	size_t count;
	struct screen_summary *list = screen_fleet_make(&count, k->v, k->nodes, k->count);

	if (count) {
		k->v->node = list[k->v->fleet_at < count ? k->v->fleet_at : 0].index;
		k->v->page = SCREEN_NODE;
		k->v->filter[0] = '\0';
		k->v->gpu_at = k->v->process_at = 0;
		k->v->on_processes = false;
	}
	free(list);
}

static void enter(const struct keys *k)
{
	switch (k->v->page) {
	case SCREEN_FLEET:
		open_node(k);
		break;
	case SCREEN_NODE:
		open_metrics(k, !k->v->on_processes);
		break;
	case SCREEN_METRICS:
		graph_of_selected(k);
		break;
	case SCREEN_GRAPH:
	case SCREEN_HELP:
	case SCREEN_LINES:
		break;
	}
}

static void click(const struct keys *k, struct screen_event event, bool twice)
{
	const struct screen_hit *hit = event.y < k->drawn->rows ? &k->drawn->hit[event.y] : NULL;

	if (!hit)
		return;
	switch (hit->target) {
	case SCREEN_TARGET_NONE:
		return;
	case SCREEN_TARGET_NODE:
		k->v->fleet_at = hit->index;
		break;
	case SCREEN_TARGET_GPU:
		k->v->gpu_at = hit->index;
		k->v->on_processes = false;
		break;
	case SCREEN_TARGET_PROCESS:
		k->v->process_at = hit->index;
		k->v->on_processes = true;
		break;
	}
	if (twice)
		enter(k);
}

/* A key while the filter is typed. */
static void type(struct screen_view *v, uint32_t key)
{
	size_t length = strlen(v->filter);

	if (key == SCREEN_KEY_ENTER || key == '\r') {
		v->typing = false;
	} else if (key == SCREEN_KEY_ESCAPE) {
		v->typing = false;
		v->filter[0] = '\0';
	} else if (key == SCREEN_KEY_BACKSPACE || key == CONTROL_H) {
		if (length)
			v->filter[length - 1] = '\0';
	} else if (key >= ' ' && key < 0x7f && length + 1 < SCREEN_FILTER) {
		v->filter[length] = (char)key;
		v->filter[length + 1] = '\0';
	}
}

static unsigned page_rows(const struct keys *k)
{
	return k->drawn->rows > 4 ? k->drawn->rows - 4 : 1;
}

/* Keys that move the selection, or seek in a recording. */
static enum screen_action take_move(const struct keys *k, uint32_t key)
{
	struct screen_view *v = k->v;

	switch (key) {
	case SCREEN_KEY_UP:
		move(k, -1);
		break;
	case SCREEN_KEY_DOWN:
		move(k, 1);
		break;
	case SCREEN_KEY_LEFT:
		return v->replay ? seek(v, -SEEK_S) : SCREEN_NOTHING;
	case SCREEN_KEY_RIGHT:
		return v->replay ? seek(v, SEEK_S) : SCREEN_NOTHING;
	case SCREEN_KEY_PAGE_UP:
		if (v->replay)
			return seek(v, -SEEK_FAR_S);
		move(k, -(long)page_rows(k));
		break;
	case SCREEN_KEY_PAGE_DOWN:
		if (v->replay)
			return seek(v, SEEK_FAR_S);
		move(k, (long)page_rows(k));
		break;
	case SCREEN_KEY_HOME:
		if (v->replay)
			return seek(v, -v->length);
		move(k, -100000);
		break;
	case SCREEN_KEY_END:
		if (v->replay)
			return seek(v, v->length);
		move(k, 100000);
		break;
	default:
		break;
	}
	return SCREEN_NOTHING;
}

/* Characters that change what is shown. */
static void take_character(const struct keys *k, uint32_t key)
{
	struct screen_view *v = k->v;
	bool list = v->page == SCREEN_NODE || v->page == SCREEN_FLEET || v->page == SCREEN_METRICS;

	switch (key) {
	case '?':
	case 'h':
		open_help(v);
		break;
	case 'n':
		if (v->page != SCREEN_LINES)
			v->page = SCREEN_FLEET;
		break;
	case 'm':
		if (v->page == SCREEN_NODE || v->page == SCREEN_GRAPH)
			open_metrics(k, false);
		break;
	case 'g':
		if (v->page == SCREEN_NODE)
			open_graph(k);
		break;
	case '<':
	case '>':
		if (v->page == SCREEN_GRAPH)
			next_value(k, key == '>' ? 1 : -1);
		break;
	case 's':
		v->sort = (v->sort + 1) % SCREEN_SORT_COUNT;
		snprintf(v->message, sizeof(v->message), "order: %s (%s)", screen_sort_names[v->sort],
			 sort_help(v->sort));
		break;
	case 'r':
		v->reversed = !v->reversed;
		break;
	case 't':
		v->tree = !v->tree;
		break;
	case 'c':
		v->theme = (v->theme + 1) % SCREEN_THEME_COUNT;
		snprintf(v->message, sizeof(v->message), "theme: %s", screen_theme_names[v->theme]);
		break;
	case '/':
		v->typing = list;
		if (list)
			v->filter[0] = '\0';
		break;
	case ' ':
		v->paused = v->replay && !v->paused;
		break;
	case '\t':
		v->on_processes = !v->on_processes;
		break;
	default:
		break;
	}
}

enum screen_action screen_key(struct screen_view *v, const struct screen_node *nodes, size_t count,
			      const struct screen *drawn, struct screen_event event)
{
	struct keys k = {v, nodes, count, drawn};
	uint32_t key = event.key == '\r' ? SCREEN_KEY_ENTER : event.key;

	v->message[0] = '\0';
	if (!count || key == SCREEN_KEY_RESIZE || key == SCREEN_KEY_NONE)
		return SCREEN_NOTHING;
	if (key == CONTROL_C)
		return SCREEN_QUIT;
	if (*v->question) {
		v->question[0] = '\0';
		return key == 'y' || key == 'Y' ? SCREEN_END : SCREEN_KEEP;
	}
	if (v->typing) {
		type(v, key);
		return SCREEN_NOTHING;
	}
	switch (key) {
	case 'q':
	case SCREEN_KEY_ESCAPE:
		return leave(&k);
	case SCREEN_KEY_ENTER:
		enter(&k);
		return SCREEN_NOTHING;
	case 'k':
		return v->page == SCREEN_NODE ? SCREEN_ASK_END : SCREEN_NOTHING;
	case SCREEN_KEY_CLICK:
	case SCREEN_KEY_DOUBLE_CLICK:
		click(&k, event, key == SCREEN_KEY_DOUBLE_CLICK);
		return SCREEN_NOTHING;
	default:
		break;
	}
	if (key >= SCREEN_KEY_UP)
		return take_move(&k, key);
	take_character(&k, key);
	return SCREEN_NOTHING;
}
