/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/energy.h"
#include <math.h>
#include "judge/judge.h"
#include "report/text/format.h"

enum { BRIEF = 8, CELL = 48 }; /* rows on a terminal */

/* Energy is measured for one GPU, or for all processors. A pair has the energy of one of its GPUs. */
static bool is_whole(const char *target)
{
	const size_t digits = strncmp(target, "gpu", 3) ? 0 : strspn(target + 3, "0123456789");

	return !strcmp(target, "cpu") || (digits && !target[3 + digits]);
}

static double rate(const struct view_row *row, const char *field)
{
	double value;

	return view_number(row, field, &value) && value > 0 ? value : 0;
}

/* By which share the counter's power differs from the readings of the same power. */
static double difference(const struct view_row *row, double power)
{
	const double readings = rate(row, "power_integral_w");

	return readings > 0 ? fabs(power / readings - 1) : 0;
}

/* The work is that of the case's figure: a triad computes too, but its energy is that of its bytes. */
static bool of_work(struct energy_of_work *out, const struct view_row *row)
{
	const char *field = row->j->figure_field;
	const bool computes = !strcmp(field, "flop_rate"),
		   moves = !strcmp(field, "byte_rate") || !strcmp(field, "link_rate");
	const double work = computes || moves ? rate(row, field) : 0;

	*out = (struct energy_of_work){.power_w = rate(row, "power_w"), .joules = rate(row, "energy_j")};
	if (!row->headline || !is_whole(row->c->target) || !(out->power_w > 0) || !(out->joules > 0) ||
	    !(work > 0))
		return false;
	*(computes ? &out->per_flop_j : &out->per_byte_j) = out->power_w / work;
	return true;
}

bool energy_of_work(struct energy_of_work *out, const struct view_row *row)
{
	return of_work(out, row) && difference(row, out->power_w) <= JUDGE_ENERGY_AGREES;
}

/* "1.39 pJ"; "" for zero. */
static void add_picojoules(struct grid *g, double joules)
{
	char cell[CELL];

	snprintf(cell, sizeof(cell), "%.3g pJ", 1e12 * joules);
	grid_cell(g, joules > 0 ? cell : FORMAT_NONE);
}

static void add_row(struct grid *g, const struct view_row *row, const struct energy_of_work *e)
{
	char cell[CELL];

	grid_cell(g, row->where);
	grid_cell(g, row->title);
	snprintf(cell, sizeof(cell), "%.0f W", e->power_w);
	grid_cell(g, cell);
	snprintf(cell, sizeof(cell), "%.4g J", e->joules);
	grid_cell(g, cell);
	add_picojoules(g, e->per_flop_j);
	add_picojoules(g, e->per_byte_j);
	snprintf(cell, sizeof(cell), "%.4g", e->per_flop_j > 0 ? 1e-9 / e->per_flop_j : 0);
	grid_cell(g, e->per_flop_j > 0 ? cell : FORMAT_NONE);
}

bool energy_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"device", "case",	"mean power", "energy",
					    "a FLOP", "a byte", "GFLOPS/W"};

	for (size_t i = 0; i < v->row_count; i++) {
		struct energy_of_work e;

		if (v->rows[i].aside || v->rows[i].j->superseded || !energy_of_work(&e, &v->rows[i]))
			continue;
		for (size_t k = 0; !g->cells && k < sizeof(heads) / sizeof(heads[0]); k++)
			grid_column(g, heads[k], k > 1);
		add_row(g, &v->rows[i], &e);
	}
	if (!g->columns)
		return false;
	text_add(&g->title, "Energy per unit of work");
	g->brief = BRIEF;
	text_add(
		&g->note,
		"Energy of the judged window, by the device's counter, with the power of the idle device. A byte is read or "
		"written once, or sent over a link. Cases whose counter and power readings differ by more than 5 % are left out");
	return true;
}

/* Why the energy of work is left out, which could be known. */
static void put_doubt(struct json_build *b, json_t *object, double share)
{
	char why[120];

	snprintf(why, sizeof(why),
		 "the energy counter and the power readings differ by %.1f %%, allowed %.0f %%", 100 * share,
		 100 * JUDGE_ENERGY_AGREES);
	json_put_text(b, object, "why", why);
}

json_t *energy_json(struct json_build *b, const struct view_row *row)
{
	struct energy_of_work e;
	json_t *object;

	if (!of_work(&e, row))
		return NULL;
	object = json_object();
	if (difference(row, e.power_w) > JUDGE_ENERGY_AGREES) {
		put_doubt(b, object, difference(row, e.power_w));
		return object;
	}
	json_put_number(b, object, "power_w", e.power_w);
	json_put_number(b, object, "joules", e.joules);
	if (e.per_flop_j > 0)
		json_put_number(b, object, "joules_per_flop", e.per_flop_j);
	if (e.per_byte_j > 0)
		json_put_number(b, object, "joules_per_byte", e.per_byte_j);
	return object;
}
