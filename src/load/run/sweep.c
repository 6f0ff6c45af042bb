/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/sweep.h"

/* The bracket ends at this width. The first rate is near the saturated one. A closed loop may underestimate
 * that, so rates rise until one is missed. */
static const double bracket = 0.05, first = 0.8, rise = 1.25, least = 0.01;

void sweep_begin(struct sweep *s, double saturated)
{
	*s = (struct sweep){.saturated = saturated};
}

double sweep_next(const struct sweep *s)
{
	if (s->stages >= SWEEP_STAGES_MOST || !(s->saturated > 0))
		return 0;
	if (!s->stages)
		return first * s->saturated;
	if (!(s->high > 0))
		return s->low * rise;
	if (s->high - s->low <= bracket * s->high || s->high < least * s->saturated)
		return 0;
	return (s->low + s->high) / 2;
}

void sweep_take(struct sweep *s, double rate, bool met, bool sure)
{
	s->stages++;
	if (met && sure && rate > s->sure)
		s->sure = rate;
	if (met && rate > s->low)
		s->low = rate;
	else if (!met && (!(s->high > 0) || rate < s->high))
		s->high = rate;
}

static double number(const json_t *set, const char *name)
{
	return json_number_value(json_object_get(set, name));
}

bool sweep_is_sure(const json_t *values)
{
	const json_t *sets = json_object_get(values, "slo"), *set;
	bool sure = json_array_size(sets) > 0;
	size_t i;

	json_array_foreach((json_t *)sets, i, set)
	{
		const double required = number(set, "attainment");

		sure = sure && number(set, required < 1 ? "share_low" : "share") >= required;
	}
	return sure;
}
