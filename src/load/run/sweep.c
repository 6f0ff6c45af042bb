/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/sweep.h"

/* The bracket ends at this width. A rate above the saturated one cannot be met for long, but a closed loop
 * may underestimate it, so the first rate that is tried is near to it. */
static const double bracket = 0.05, first = 0.8, beyond = 1.1, least = 0.01;

void sweep_begin(struct sweep *s, double saturated)
{
	*s = (struct sweep){.saturated = saturated};
}

double sweep_next(const struct sweep *s)
{
	const double high = s->high > 0 ? s->high : beyond * s->saturated;

	if (s->stages >= SWEEP_STAGES_MOST || !(s->saturated > 0))
		return 0;
	if (!s->stages)
		return first * s->saturated;
	if (high - s->low <= bracket * high || high < least * s->saturated)
		return 0;
	return (s->low + high) / 2;
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
