/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page. Each draws into the rows from `y` on, at most `rows`, and returns how many it used. */
#ifndef WATCH_SCREEN_DRAW_H
#define WATCH_SCREEN_DRAW_H
#include "watch/screen/lists.h"

struct draw {
	struct screen *s;
	struct screen_view *v;
	const struct screen_node *nodes;
	size_t count;
	const struct screen_node *n; /* the node that is shown */
};

unsigned draw_host(const struct draw *d, unsigned y, unsigned rows);
unsigned draw_links(const struct draw *d, unsigned y, unsigned rows);
unsigned draw_gpus(const struct draw *d, unsigned y, unsigned rows);
unsigned draw_runs(const struct draw *d, unsigned y, unsigned rows);
unsigned draw_processes(const struct draw *d, unsigned y, unsigned rows);
/* How many rows these would use if there were room for all. */
unsigned draw_gpus_rows(const struct draw *d);
unsigned draw_runs_rows(const struct draw *d);
/* Lines about what does not answer. */
unsigned draw_problems(const struct draw *d, unsigned y, unsigned rows);

void draw_node(const struct draw *d, unsigned y, unsigned rows);
void draw_fleet(const struct draw *d, unsigned y, unsigned rows);
void draw_metrics(const struct draw *d, unsigned y, unsigned rows);
void draw_graph(const struct draw *d, unsigned y, unsigned rows);
/* The graph of one value, in at least three rows. */
void draw_graph_of(const struct draw *d, const struct watch_entity *e, enum catalogue row, unsigned y,
		   unsigned rows);
void draw_help(const struct draw *d, unsigned y, unsigned rows);
void draw_lines(const struct draw *d, unsigned y, unsigned rows);

/* A sparkline of the last samples of a value, newest at the right; `top`: the value of a full column. */
void draw_sparkline(const struct draw *d, unsigned x, unsigned y, unsigned width,
		    const struct watch_entity *e, enum catalogue row, double top);
/* The first row to show so that row `at` of `count` is among `rows`; moves `at` into the list. */
size_t draw_scroll(size_t *at, size_t count, unsigned rows);
/* The columns of the GPU table, for the help page: heading and the catalogue's help. False: no more. */
bool draw_gpu_column(const char **heading, enum catalogue *row, unsigned index);
#endif
