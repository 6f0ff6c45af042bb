/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/baseline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/shared/judged.h"
#include "core/math/stats.h"
#include "judge/compare/compare.h"
#include "report/text/format.h"

bool baseline_worse(const struct baseline_figure *f, double value, double *worse, double *limit)
{
	struct stats s = stats_of(f->value, f->count);

	if (f->count < BASELINE_ENOUGH || !(s.median > 0))
		return false;
	*worse = !strcmp(f->unit, "ns") ? value / s.median - 1 : 1 - value / s.median;
	*limit = fmax(BASELINE_LEAST,
		      stats_t95(f->count - 1) * s.stddev / s.mean * sqrt(1 + 1.0 / (double)f->count));
	return true;
}

static const char *driver_of(const struct machine *m)
{
	const char *v =
		json_string_value(json_object_get(json_object_get(machine_json(m), "driver"), "version"));

	return v ? v : "";
}

/* The GPU whose own history the case belongs to; NULL: the case has no sound figure of one GPU. */
static const struct gpu *gpu_of(const struct judged *j, size_t i)
{
	const struct record_case *c = &j->record.cases[i];
	const struct judgement *v = &j->judgements.of_case[i];
	const struct gpu *g;
	char *end;

	if (c->reading || c->job || v->superseded || !compare_fit(v) || record_is_isolation(c) ||
	    record_tries(c) || strncmp(c->target, "gpu", 3) != 0)
		return NULL;
	g = machine_gpu(j->machine, (unsigned)strtoul(c->target + 3, &end, 10));
	return g && !*end && *g->uuid ? g : NULL;
}

/* The key of a case in the state: a case that runs together with others has another figure. */
static void key_of(char *out, size_t size, const struct record_case *c)
{
	snprintf(out, size, "%s%s", c->key, c->together ? " together" : "");
}

static void report(struct health_finding *finding, const struct judged *j, size_t i, const struct gpu *g,
		   const struct baseline_figure *f, double worse)
{
	const struct judgement *v = &j->judgements.of_case[i];
	double median = stats_of(f->value, f->count).median;
	char title[128], now[32], before[32];

	format_title(title, sizeof(title), &j->record.cases[i]);
	format_quantity(now, sizeof(now), v->figure, 0, v->figure_unit);
	format_quantity(before, sizeof(before), median, 0, v->figure_unit);
	health_finding_add(finding, HEALTH_FAIL, CAUSE_NONE, false, g->pci,
			   "%.1f %% below its own history: %s: %s, median of %u earlier runs %s", 100 * worse,
			   title, now, f->count, before);
}

enum status baseline_take(struct health_state *s, struct health_finding *finding, const struct judged *j,
			  size_t *figures, size_t *judged, struct error *err)
{
	*figures = *judged = 0;
	for (size_t i = 0; j->machine && i < j->judgements.count; i++) {
		const struct gpu *g = gpu_of(j, i);
		double value = j->judgements.of_case[i].figure, worse, limit;
		struct baseline_figure *f;
		struct baseline *b;
		char key[STATE_KEY];

		if (!g)
			continue;
		key_of(key, sizeof(key), &j->record.cases[i]);
		b = health_state_baseline(s, g->uuid, driver_of(j->machine),
					  gpu_get(g, GPU_FACT_power_limit_w, 0));
		f = b ? baseline_figure(b, key, j->judgements.of_case[i].figure_unit) : NULL;
		if (!f)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no room for the baseline of %s", g->pci);
		++*figures;
		if (baseline_worse(f, value, &worse, &limit)) {
			++*judged;
			if (worse > limit) {
				report(finding, j, i, g, f, worse);
				continue;
			}
		}
		if (f->count < STATE_VALUES)
			f->value[f->count++] = value;
	}
	return STATUS_OK;
}
