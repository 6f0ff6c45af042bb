/* SPDX-License-Identifier: Apache-2.0 */
#include "run/followup/case_outcome.h"
#include <math.h>
#include <string.h>
#include "core/text/text.h"
#include "journal/record/record.h"

#define NORMAL_95 1.96 /* standard deviations in the half-width of a 95 % interval */

void case_outcome_result(struct case_outcome *n, const char *limit, const char *phase, const json_t *values)
{
	const struct figure *f = figure_of_limit(limit);
	const json_t *suspect = json_object_get(values, "wrong_suspect");
	double value = f ? json_number_value(json_object_get(values, f->field)) : 0;
	const json_t *nvls = json_object_get(values, "nvls");
	double half = json_number_value(json_object_get(values, "half_width_share"));

	if (json_is_integer(nvls))
		n->way = json_integer_value(nvls) ? FIGURE_SWITCH : FIGURE_LINKS;
	if (json_is_integer(suspect))
		n->suspect = (int)json_integer_value(suspect) + 1;
	if (json_object_get(values, "wrong_ranks")) {
		n->wrong_ranks = (unsigned)json_integer_value(json_object_get(values, "wrong_ranks"));
		n->wrong_rank = (unsigned)json_integer_value(json_object_get(values, "wrong_rank"));
	}
	if (json_is_string(json_object_get(values, "kernels")))
		text_copy(n->kernels, sizeof(n->kernels),
			  json_string_value(json_object_get(values, "kernels")));
	if (json_is_number(json_object_get(values, "ceiling_ratio")))
		n->ceiling_ratio = json_number_value(json_object_get(values, "ceiling_ratio"));
	if ((strcmp(phase, "burst") && strcmp(phase, "sustained")) || !isfinite(value) || !(value > 0))
		return;
	n->rate = f->lower ? 1e9 / value : value;
	n->noise = isfinite(half) && half > 0 ? half / NORMAL_95 : 0;
}

void case_outcome_take(struct case_outcome *n, double rate, double noise)
{
	n->rate = isfinite(rate) && rate > 0 ? rate : 0;
	n->noise = isfinite(noise) && noise > 0 ? noise : 0;
}

json_t *case_outcome_values(const struct case_outcome *n, const char *limit)
{
	const struct figure *f = figure_of_limit(limit ? limit : "");
	json_t *values = json_object();

	if (!f || !(n->rate > 0))
		return values;
	json_object_set_new(values, f->field, json_real(f->lower ? 1e9 / n->rate : n->rate));
	if (n->noise > 0)
		json_object_set_new(values, "half_width_share", json_real(n->noise * NORMAL_95));
	return values;
}

void case_outcome_record(struct case_outcome *n, const struct record_case *c)
{
	n->done = c->ended && c->ending == ENDING_DONE;
	n->status = c->status;
	for (size_t i = 0; i < c->phase_count; i++)
		if (c->phase[i].values)
			case_outcome_result(n, c->limit, c->phase[i].name, c->phase[i].values);
}
