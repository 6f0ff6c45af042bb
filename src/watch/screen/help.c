/* SPDX-License-Identifier: Apache-2.0 */
/* The help page: keys, and what the columns show, as the catalogue says it. */
#include <string.h>
#include "watch/screen/draw.h"

static const struct {
	const char *key, *help;
} keys[] = {
	{"q, Esc", "back; on the first page: quit"},
	{"Ctrl-C", "quit"},
	{"n", "the page of all nodes"},
	{"Enter", "open the selected node, the values of a GPU, or the graph of a value"},
	{"m", "all values of the node"},
	{"g", "graph of the selected GPU's utilization"},
	{"< >", "on the graph: the previous and the next value"},
	{"arrows, PgUp, PgDn", "select; in a recording, left and right seek 10 s, PgUp and PgDn 60 s"},
	{"Home, End", "first and last line; in a recording, its begin and end"},
	{"Space", "in a recording: pause and go on"},
	{"Tab", "select among GPUs or among processes"},
	{"s, r", "next order, reversed order"},
	{"/", "filter: processes, nodes or values that contain the text; Enter keeps it, Esc ends it"},
	{"t", "processes below their GPUs, or as one list"},
	{"k", "end the selected process of this machine with TERM; asks first"},
	{"c", "next theme"},
	{"mouse", "click selects, double click opens, wheel scrolls"},
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]), KEY_WIDTH = 19 };

void draw_help(const struct draw *d, unsigned y, unsigned rows)
{
	size_t columns = 0, total;
	const char *heading;
	enum catalogue row;
	unsigned used = 0;

	while (draw_gpu_column(&heading, &row, (unsigned)columns))
		columns++;
	total = KEYS + 1 + columns;
	if (d->v->line_at + rows > total)
		d->v->line_at = total > rows ? total - rows : 0;
	for (size_t i = d->v->line_at; i < total && used < rows; i++, used++) {
		unsigned line = y + used,
			 width = KEY_WIDTH < d->s->columns / 2 ? KEY_WIDTH : d->s->columns / 2;

		if (i < KEYS) {
			screen_put(d->s, 0, line, width, SCREEN_ROLE_KEY, keys[i].key);
			screen_put(d->s, width + 1, line, d->s->columns, SCREEN_ROLE_TEXT, keys[i].help);
		} else if (i == KEYS) {
			screen_put(d->s, 0, line, d->s->columns, SCREEN_ROLE_HEADING, "Columns");
		} else if (draw_gpu_column(&heading, &row, (unsigned)(i - KEYS - 1))) {
			screen_put(d->s, 0, line, width, SCREEN_ROLE_KEY, heading);
			screen_putf(d->s, width + 1, line, d->s->columns, SCREEN_ROLE_TEXT, "%s (%s%s)",
				    catalogue_row(row)->help, catalogue_row(row)->unit,
				    catalogue_row(row)->type == METRIC_COUNTER ? " per second" : "");
		}
	}
}
