/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/list_expectations.h"
#include "cmd/running/plan_preview.h"
#include "cmd/shared/checked_expectations.h"
#include "judge/judge.h"
#include "machine/machine.h"
#include "probe/registry.h"
#include "report/text/format.h"
#include "run/plan/case.h"

static json_t *range(double low, double high, const char *unit)
{
	return json_pack("{s:f, s:f, s:s*}", "low", low, "high", high, "unit", unit);
}

/* Numbers with units, for programs. A value that does not exist is absent. */
static json_t *numbers_of(const struct record_case *c, const struct judgement *j)
{
	json_t *row = json_pack("{s:s, s:s, s:s}", "case", c->key, "target", c->target, "why", j->reason);

	if (j->judged_by != JUDGED_NOTHING)
		json_object_set_new(row, "judged_by", json_string(judged_by_name(j->judged_by)));
	if (j->bound.value > 0)
		json_object_set_new(row, "bound",
				    json_pack("{s:f, s:s, s:s}", "value", j->bound.value, "unit",
					      j->figure_unit, "formula", j->bound.formula));
	if (j->has_band)
		json_object_set_new(row, "band", range(j->band.low, j->band.high, j->figure_unit));
	else if (j->band.high > 0)
		json_object_set_new(row, "share_at_held_clock", range(j->band.low, j->band.high, NULL));
	if (j->least.value > 0)
		json_object_set_new(row, "least",
				    json_pack("{s:f, s:s, s:f}", "value", j->least.value, "unit",
					      j->figure_unit, "share_of_links", j->least.share));
	return row;
}

/* Texts for people, with the case titles of reports. */
static json_t *texts_of(const struct record_case *c, const struct judgement *j)
{
	char title[160], bound[64] = "-", band[80] = "-";

	format_title(title, sizeof(title), c);
	if (j->bound.value > 0)
		format_quantity(bound, sizeof(bound), j->bound.value, 0, j->figure_unit);
	if (j->has_band)
		format_range(band, sizeof(band), j->band.low, j->band.high, j->figure_unit);
	else if (j->band.high > 0)
		snprintf(band, sizeof(band), "%.3f–%.3f at measured clock", j->band.low, j->band.high);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "case", title, "target", c->target, "bound", bound,
			 "expected range", band, "why", j->reason);
}

enum status list_expectations(json_t **rows, bool numbers, const char *suite, const char *machine,
			      const char *expectations, const volatile sig_atomic_t *stop,
			      const struct log *log, struct error *err)
{
	const struct machine_scope scope = {.up_to = LAYER_SOFTWARE, .stop = stop};
	struct expectations *e = NULL;
	struct judgements judged = {0};
	struct record record = {0};
	struct machine *m = NULL;
	struct suite *s = NULL;
	struct plan plan = {0};
	enum status st = suite_read(&s, suite, err);

	*rows = json_array();
	if (!st)
		st = machine_read_scope(&m, &scope, machine, log, err);
	if (!st)
		st = plan_build(&plan, s, m, probe_list, NULL, err);
	if (!st)
		st = plan_preview_record(&record, &plan, m, err);
	if (!st)
		st = checked_expectations_load(&e, expectations, err);
	if (!st)
		st = judge_plan(&judged, &record, e, err);
	for (size_t i = 0; !st && i < record.case_count && i < judged.count; i++)
		json_array_append_new(
			*rows, (numbers ? numbers_of : texts_of)(&record.cases[i], &judged.of_case[i]));
	judgements_release(&judged);
	expectations_free(e);
	record_release(&record);
	plan_release(&plan);
	machine_free(m);
	suite_free(s);
	if (st) {
		json_decref(*rows);
		*rows = NULL;
	}
	return st;
}
