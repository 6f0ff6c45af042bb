/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/unit_use.h"
#include <math.h>
#include "report/text/format.h"

enum { BRIEF = 8 }; /* rows on a terminal */

static bool is_known(const struct unit_use *m)
{
	return m->from && isfinite(m->value);
}

static bool is_memory(const struct view_row *row)
{
	return !strcmp(row->c->probe, "memory");
}

/* True for the fastest memory case of its target; the others are slower because of what they do. */
static bool best_memory(const struct view *v, const struct view_row *row)
{
	const struct unit_use *own = &row->j->metric[UNIT_USE_MEMORY];

	for (size_t i = 0; i < v->row_count && is_known(own); i++) {
		const struct view_row *o = &v->rows[i];
		const struct unit_use *m = &o->j->metric[UNIT_USE_MEMORY];

		if (o != row && is_memory(o) && !strcmp(o->where, row->where) && is_known(m) &&
		    (m->value > own->value || (!(own->value > m->value) && o < row)))
			return false;
	}
	return is_known(own);
}

static bool fits(const struct view *v, const struct view_row *row)
{
	if (row->aside || row->j->superseded)
		return false;
	if (is_memory(row))
		return best_memory(v, row);
	for (int i = 0; i < UNIT_USE_COUNT; i++)
		if (is_known(&row->j->metric[i]))
			return true;
	return false;
}

static bool reached(const struct unit_use *m, const struct unit_use_row *row)
{
	return m->value > row->target;
}

/* Adds the cell "94.7 %, met". */
static void add_metric(struct grid *g, const struct unit_use *m, const struct unit_use_row *row)
{
	char one[48], cell[64];

	if (!is_known(m)) {
		grid_cell(g, FORMAT_NONE);
		return;
	}
	if (*row->unit)
		format_quantity(one, sizeof(one), m->value, 0, row->unit);
	else
		format_share(one, sizeof(one), m->value);
	snprintf(cell, sizeof(cell), "%s, %s", one, reached(m, row) ? "met" : "missed");
	grid_cell(g, cell);
}

/* Adds the heading "tensor pipe active (90 %)", with the target in brackets. */
static void add_head(struct grid *g, const struct unit_use_row *row)
{
	char target[32], head[64];

	if (*row->unit)
		snprintf(target, sizeof(target), "%.1f T%s", row->target / 1e12, row->unit);
	else
		snprintf(target, sizeof(target), "%.0f %%", 100 * row->target);
	snprintf(head, sizeof(head), "%s (%s)", row->shown, target);
	grid_column(g, head, true);
}

/* Adds the sources of the readings. */
static void add_from(struct grid *g, const struct judgement *j)
{
	char text[48] = "";

	for (int i = 0; i < UNIT_USE_COUNT; i++) {
		size_t used = strlen(text);

		if (is_known(&j->metric[i]) && !strstr(text, j->metric[i].from))
			snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "",
				 j->metric[i].from);
	}
	grid_cell(g, text);
}

bool unit_use_grid(struct grid *g, const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];

		if (!fits(v, row))
			continue;
		if (!g->columns) {
			text_add(&g->title, "Metrics against targets");
			g->brief = BRIEF;
			grid_column(g, "case", false);
			for (int m = 0; m < UNIT_USE_COUNT; m++)
				add_head(g, &unit_use_rows[m]);
			grid_column(g, "by", false);
		}
		grid_cell(g, row->title);
		for (int m = 0; m < UNIT_USE_COUNT; m++)
			add_metric(g, &row->j->metric[m], &unit_use_rows[m]);
		add_from(g, row->j);
	}
	if (g->columns)
		text_add(
			&g->note,
			"A value above the target meets it. No verdict depends on a target: a GEMM that fills the tensor pipe leaves memory idle and needs few warps. CUPTI: hardware counters over iterations after the judged window. GPM: readings inside the window. Measured: the case's own rate");
	return g->columns;
}

/* Adds a cell with pseudonyms, because the text has values of the journal. */
static void add_words(struct grid *g, const struct view *v, const char *s)
{
	struct text t = {0};

	pseudonym_map_add(&v->names, &t, *s ? s : FORMAT_NONE);
	grid_cell(g, text_str(&t));
	text_release(&t);
}

static bool advised(const struct view_row *row)
{
	return !row->aside && !row->j->superseded && strncmp(row->c->target, "cpu", 3) &&
	       (!strcmp(row->c->probe, "gemm") || !strcmp(row->c->probe, "attention"));
}

bool unit_use_advice_grid(struct grid *g, const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];

		if (!advised(row))
			continue;
		for (size_t k = 0; k < row->j->advice_count; k++) {
			const struct advice *a = &row->j->advice[k];

			if (!g->columns) {
				text_add(&g->title, "Recommendations, each with its evidence");
				g->brief = BRIEF;
				grid_column(g, "case", false);
				grid_column(g, "recommendation", false);
				grid_column(g, "evidence", false);
				grid_column(g, "gain", true);
			}
			grid_cell(g, row->title);
			add_words(g, v, a->knob);
			add_words(g, v, a->evidence);
			add_words(g, v, a->gain);
		}
	}
	return g->columns;
}

json_t *unit_use_json(struct json_build *b, const struct view_row *row)
{
	json_t *array = json_array();

	for (int i = 0; i < UNIT_USE_COUNT; i++) {
		const struct unit_use *m = &row->j->metric[i];
		json_t *object;

		if (!is_known(m))
			continue;
		object = json_object();
		json_put_text(b, object, "name", unit_use_rows[i].name);
		json_put_number(b, object, "value", m->value);
		json_put_text(b, object, "unit", unit_use_rows[i].unit);
		json_put_number(b, object, "target", unit_use_rows[i].target);
		json_put(b, object, "reached", json_boolean(reached(m, &unit_use_rows[i])));
		json_put_text(b, object, "from", m->from);
		json_push(b, array, object);
	}
	return array;
}
