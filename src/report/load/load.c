/* SPDX-License-Identifier: Apache-2.0 */
#include "report/load/load.h"
#include <math.h>
#include "report/text/format.h"

const struct record_case *load_case(const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].c->job && !strcmp(v->rows[i].c->probe, "load"))
			return v->rows[i].c;
	return NULL;
}

const json_t *load_values(const struct view *v)
{
	const struct record_case *c = load_case(v);
	const struct record_phase *once = c ? record_phase(c, "once") : NULL;

	return once ? once->values : NULL;
}

void load_value_text(char *out, size_t size, const char *unit, double value)
{
	if (!strcmp(unit, "share"))
		format_share(out, size, value);
	else if (isfinite(value) && !*unit)
		snprintf(out, size, value == floor(value) || fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
	else
		format_quantity(out, size, value, 0, unit);
}

bool load_time_ns(const struct view *v, double seconds, uint64_t *t_ns)
{
	const json_t *epoch = json_object_get(load_values(v), "epoch_ns");

	if (!json_is_integer(epoch) || json_integer_value(epoch) < 0 || !(seconds >= 0) || !(seconds < 1e9))
		return false;
	*t_ns = (uint64_t)json_integer_value(epoch) + (uint64_t)(seconds * 1e9);
	return true;
}

void load_grids(const struct view *v, grid_visit *visit, void *arg)
{
	static bool (*const all[])(struct grid * g, const struct view *v) = {
		load_slo_grid,	  load_latency_grid, load_rates_grid, load_stages_grid,
		load_errors_grid, load_checks_grid,  load_gpus_grid,  load_silences_grid,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct grid g = {0};

		if (all[i](&g, v) || g.failed)
			visit(arg, &g);
		grid_release(&g);
	}
}
