/* SPDX-License-Identifier: Apache-2.0 */
#include "report/serving/serving.h"
#include <math.h>
#include "core/json/member.h"
#include "report/text/format.h"

enum { TEXT_MOST = 60, SERVING_ENGINES = 100 /* starts that a run records, src/cmd/serve/record.c */ };

const struct record_case *serving_case(const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].c->job && !strcmp(v->rows[i].c->probe, "serve"))
			return v->rows[i].c;
	return NULL;
}

static void value_text(char *out, size_t size, const char *name, const char *unit, double value)
{
	const size_t length = strlen(name);

	if (length > 6 && !strcmp(name + length - 6, "_share"))
		format_share(out, size, value);
	else if (*unit)
		format_quantity(out, size, value, 0, unit);
	else
		snprintf(out, size, "%.15g", value);
}

bool serving_grid(struct grid *g, const struct view *v)
{
	const struct record_case *c = serving_case(v);
	const struct record_phase *p = c ? record_phase(c, "once") : NULL;
	const json_t *field;
	size_t i;

	if (!p || !p->values)
		return false;
	text_add(&g->title, "Serving");
	grid_column(g, "", false);
	grid_column(g, "value", true);
	grid_column(g, "what", false);
	json_array_foreach(json_object_get(json_object_get(v->in->record->plan, "fields"), "serve"), i, field)
	{
		const char *name = json_member_text(field, "name");
		double value;
		char text[48];

		if (!record_number(p, name, &value))
			continue;
		value_text(text, sizeof(text), name, json_member_text(field, "unit"), value);
		grid_cell(g, name);
		grid_cell(g, text);
		grid_cell(g, json_member_text(field, "help"));
	}
	return true;
}

static void add_seconds(struct grid *g, double seconds)
{
	char text[48];

	format_quantity(text, sizeof(text), seconds, 0, "s");
	grid_cell(g, text);
}

/* The phase NAME of the engine's start `number`: "NAME", then "NAME 2", "NAME 3" .. */
static const struct record_phase *phase_of(const struct record_case *c, const char *name, unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), number > 1 ? "%s %u" : "%s", name, number);
	return record_phase(c, text);
}

static void add_time_of(struct grid *g, const struct record_phase *p)
{
	add_seconds(g, p ? (double)(p->t1_ns - p->t0_ns) * 1e-9 : (double)NAN);
}

/* Of an engine that was never ready, `serve` is absent. A long ending is cut, because a column is as wide as
 * its longest cell. */
static void add_engine(struct grid *g, const struct record_case *c, unsigned number)
{
	const struct record_phase *load = phase_of(c, "load", number), *serve = phase_of(c, "serve", number);
	const char *how = record_text(serve ? serve : load, "engine_end");
	char text[TEXT_MOST + 1];

	snprintf(text, sizeof(text), "%u", number);
	grid_cell(g, text);
	add_seconds(g, serve ? (double)(serve->t0_ns - c->t0_ns) * 1e-9 : (double)NAN);
	add_time_of(g, load);
	add_time_of(g, serve);
	snprintf(text, sizeof(text), "%s", how ? how : "");
	grid_cell(g, text);
}

bool serving_engines_grid(struct grid *g, const struct view *v)
{
	const struct record_case *c = serving_case(v);
	bool any = false;

	for (unsigned i = 1; c && i <= SERVING_ENGINES; i++) {
		if (!phase_of(c, "load", i) && !phase_of(c, "serve", i))
			continue;
		if (!any) {
			text_add(&g->title, "Engine");
			grid_column(g, "start", true);
			grid_column(g, "ready after", true);
			grid_column(g, "loading", true);
			grid_column(g, "serving", true);
			grid_column(g, "end", false);
		}
		any = true;
		add_engine(g, c, i);
	}
	return any;
}

/* The table of the last engine that has one. */
static const json_t *last_memory(const struct record_case *c)
{
	const json_t *memory = NULL;

	for (unsigned i = 1; i <= SERVING_ENGINES; i++) {
		const struct record_phase *p = phase_of(c, "serve", i);
		const json_t *one = p ? json_object_get(p->values, "memory") : NULL;

		memory = json_array_size(one) ? one : memory;
	}
	return memory;
}

static void add_bytes(struct grid *g, const json_t *bytes)
{
	char text[48] = "–";

	if (json_is_number(bytes))
		format_bytes(text, sizeof(text), json_number_value(bytes));
	grid_cell(g, text);
}

bool serving_memory_grid(struct grid *g, const struct view *v)
{
	const struct record_case *c = serving_case(v);
	const json_t *memory = c ? last_memory(c) : NULL, *row;
	size_t i;

	if (!memory)
		return false;
	text_add(&g->title, "Memory of the engine");
	grid_column(g, "", false);
	grid_column(g, "planned", true);
	grid_column(g, "used at most", true);
	json_array_foreach(memory, i, row)
	{
		grid_cell(g, json_member_text(row, "what"));
		add_bytes(g, json_object_get(row, "planned"));
		add_bytes(g, json_object_get(row, "used"));
	}
	return true;
}
