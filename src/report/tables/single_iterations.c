/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/single_iterations.h"
#include <math.h>
#include "report/text/format.h"

enum { BRIEF = 12 }; /* rows on a terminal */

static const struct column {
	const char *head, *field, *unit; /* "%": a share */
} columns[] = {
	{"median", "iteration_ns_p50", "ns"},	       {"p99", "iteration_ns_p99", "ns"},
	{"longest", "iteration_ns_max", "ns"},	       {"of", "iteration_samples", ""},
	{"host late", "iteration_starved_share", "%"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static bool number(const struct view_row *row, const char *field, double *out)
{
	return row->phase && record_number(row->phase, field, out);
}

/* True for transfers in which ranks or GPUs wait for each other; not for one GPU, CPUs or a host link. */
static bool fits(const struct view_row *row)
{
	double p50, p99, ranks = 0, mark;

	if (row->aside || !number(row, "iteration_ns_p50", &p50) || !number(row, "iteration_ns_p99", &p99) ||
	    !(p50 > 0))
		return false;
	number(row, "ranks", &ranks);
	return ranks > 1 || (strchr(row->c->target, '>') && number(row, "iteration_mark_ns", &mark));
}

static double tail(const struct view_row *row)
{
	double p50 = 1, p99 = 0;

	number(row, "iteration_ns_p50", &p50);
	number(row, "iteration_ns_p99", &p99);
	return p99 / p50;
}

/* The rows that fit, by tail, longest first; equal rows keep their order. The caller frees the array. NULL:
 * out of memory. */
static const struct view_row **collect(const struct view *v, size_t *count)
{
	const struct view_row **rows = calloc(v->row_count + 1, sizeof(const struct view_row *));

	*count = 0;
	for (size_t i = 0; rows && i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];
		size_t at = *count;

		if (!fits(row))
			continue;
		for (; at && tail(rows[at - 1]) < tail(row); at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
		++*count;
	}
	return rows;
}

/* True if several rows have the same title; then the table has a column for the target. */
static bool titles_repeat(const struct view_row *const *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(rows[i]->title, rows[k]->title))
				return true;
	return false;
}

static void add_cell(struct grid *g, const struct view_row *row, const struct column *c)
{
	char one[48] = FORMAT_NONE;
	double value;

	if (number(row, c->field, &value)) {
		if (!strcmp(c->unit, "%"))
			format_share(one, sizeof(one), value);
		else
			format_quantity(one, sizeof(one), value, 0, c->unit);
	}
	grid_cell(g, one);
}

static void add_note(struct grid *g, const struct view_row *const *rows, size_t count)
{
	double least = INFINITY, most = 0, mark;
	char low[32], high[32];

	for (size_t i = 0; i < count; i++)
		if (number(rows[i], "iteration_mark_ns", &mark)) {
			least = fmin(least, mark);
			most = fmax(most, mark);
		}
	text_add(
		&g->note,
		"Iterations are timed one by one after the window, or they are the samples of the window. With several ranks the k-th iteration is the longest of the ranks' k-th. The longest tail (p99 over median) comes first");
	if (!(most > 0))
		return;
	format_quantity(low, sizeof(low), least, most, "ns");
	format_quantity(high, sizeof(high), most, most, "ns");
	text_addf(
		&g->note,
		". Each iteration includes its time stamp, which takes %s%s%s. Host late: share of iterations in which the device waited for the launch",
		low, strcmp(low, high) ? " to " : "", strcmp(low, high) ? high : "");
}

bool single_iterations_grid(struct grid *g, const struct view *v)
{
	size_t count;
	const struct view_row **rows = collect(v, &count);
	bool targets = rows && titles_repeat(rows, count);

	g->failed = !rows;
	if (count) {
		text_add(&g->title, "Single iterations");
		g->brief = BRIEF;
		grid_column(g, "case", false);
		if (targets)
			grid_column(g, "target", false);
		for (size_t k = 0; k < COLUMNS; k++)
			grid_column(g, columns[k].head, true);
		add_note(g, rows, count);
	}
	for (size_t i = 0; i < count; i++) {
		grid_cell(g, rows[i]->title);
		if (targets)
			grid_cell(g, rows[i]->where);
		for (size_t k = 0; k < COLUMNS; k++)
			add_cell(g, rows[i], &columns[k]);
	}
	free(rows);
	return count > 0;
}
