/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/collective_scaling.h"
#include <math.h>
#include "report/tables/nodes.h"
#include "report/text/format.h"

static double number(const struct view_row *row, const char *field)
{
	double value;

	return row->phase && record_number(row->phase, field, &value) ? value : (double)NAN;
}

static double ranks_of(const struct view_row *row)
{
	return number(row, "ranks");
}

static double rate_of(const struct view_row *row)
{
	return number(row, "link_rate");
}

static bool of_team(const struct view_row *row)
{
	return !strncmp(row->c->target, "team", 4);
}

/* True for rows with data over a link: a collective of one rank has none. */
static bool fits(const struct view_row *row)
{
	return !strcmp(row->c->probe, "collective") && !row->aside && !row->j->superseded &&
	       !record_is_isolation(row->c) && rate_of(row) > 0 && ranks_of(row) > 1;
}

static bool together(const struct view_row *a, const struct view_row *b)
{
	return fits(b) && of_team(a) == of_team(b) && (of_team(a) || a->c->node == b->c->node) &&
	       !strcmp(a->c->key, b->c->key);
}

/* The smallest group of the same collective with more than `ranks` ranks; the first of equal ones. */
static const struct view_row *next_group(const struct view *v, const struct view_row *row, double ranks)
{
	const struct view_row *next = NULL;

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *r = &v->rows[i];

		if (together(row, r) && ranks_of(r) > ranks && (!next || ranks_of(r) < ranks_of(next)))
			next = r;
	}
	return next;
}

/* The smallest group is never the whole node or run, so the first test avoids the search in runs with one
 * group size. */
bool collective_scaling_lead(const struct view *v, size_t row)
{
	const struct view_row *r = &v->rows[row];

	return strchr(r->c->target, ':') && fits(r) && next_group(v, r, 0) == r &&
	       next_group(v, r, ranks_of(r));
}

bool collective_scaling_brief(const struct view *v, size_t row)
{
	return of_team(&v->rows[row]) || !nodes_many(v);
}

static void add_row(struct grid *g, const struct view_row *row, double smallest)
{
	char one[96];

	snprintf(one, sizeof(one), "%.0f", ranks_of(row));
	grid_cell(g, one);
	grid_cell(g, row->c->target);
	format_quantity(one, sizeof(one), rate_of(row), 0, "B/s");
	grid_cell(g, one);
	format_share(one, sizeof(one), rate_of(row) / smallest);
	grid_cell(g, one);
	format_quantity(one, sizeof(one), number(row, "time_ns_mean") * 1e-9, 0, "s");
	grid_cell(g, one);
}

void collective_scaling_grid(struct grid *g, const struct view *v, size_t lead)
{
	const struct view_row *first = &v->rows[lead];
	char node[64] = "";

	if (!of_team(first))
		view_node_name(node, sizeof(node), v, first->c->node);
	text_addf(&g->title, "Collective by group size: %s%s%s", first->title, *node ? ", " : "", node);
	grid_column(g, "ranks", true);
	grid_column(g, "target", false);
	grid_column(g, "bus bandwidth", true);
	grid_column(g, "of the smallest", true);
	grid_column(g, "time", true);
	for (const struct view_row *r = first; r; r = next_group(v, first, ranks_of(r)))
		add_row(g, r, rate_of(first));
	text_add(
		&g->note,
		"Every group has the same size of data. Bus bandwidth: the rate of the busiest link, so 100 % of the smallest group means no loss");
}

static json_t *group_json(struct json_build *b, const struct view_row *row, double smallest)
{
	json_t *object = json_object();

	json_put_count(b, object, "ranks", ranks_of(row));
	json_put_text(b, object, "target", row->where);
	json_put_count(b, object, "case", row->c->id);
	json_put_number(b, object, "bus_rate", rate_of(row));
	json_put_number(b, object, "of_smallest", rate_of(row) / smallest);
	json_put_number(b, object, "time_ns", number(row, "time_ns_mean"));
	return object;
}

json_t *collective_scaling_json(struct json_build *b)
{
	const struct view *v = b->v;
	json_t *array = json_array();

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *first = &v->rows[i];
		json_t *object, *groups;

		if (!collective_scaling_lead(v, i))
			continue;
		object = json_object();
		groups = json_array();
		json_put_text(b, object, "operation", record_option(first->c, "op"));
		json_put_text(b, object, "size", record_option(first->c, "size"));
		json_put_text(b, object, "title", first->title);
		for (const struct view_row *r = first; r; r = next_group(v, first, ranks_of(r)))
			json_push(b, groups, group_json(b, r, rate_of(first)));
		json_put(b, object, "groups", groups);
		json_push(b, array, object);
	}
	return array;
}
