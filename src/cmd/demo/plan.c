/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a tour needs. The run corrects the expected times: see the design page. */
#include "cmd/demo/demo.h"

/* Seconds that count as if they had gone as expected, so that the first short steps change little. */
static const double steady_s = 10;
/* A step that exceeds its expected time needs this share of its present time more. */
static const double over_share = 0.1;

static bool will_run(const struct demo *d, enum step_id id)
{
	return d->result[id].asked && !(step_list[id].skips && step_list[id].skips(d));
}

void plan_fill(struct demo *d)
{
	for (size_t i = 0; i < d->count; i++)
		if (will_run(d, d->step[i]))
			d->result[d->step[i]].expected_s = step_list[d->step[i]].expected_s(d);
}

double plan_factor(const struct demo *d)
{
	double actual = steady_s, expected = steady_s;

	for (size_t i = 0; i < d->count; i++) {
		const struct stage_result *r = &d->result[d->step[i]];

		/* a step that failed may have ended early */
		if (!(r->expected_s > 0) ||
		    (r->verdict != VERDICT_STAGE_PASSED && r->seconds < r->expected_s))
			continue;
		actual += r->seconds;
		expected += r->expected_s;
	}
	return actual / expected;
}

double plan_step_left_s(double expected_s, double elapsed_s)
{
	const double least = over_share * elapsed_s;

	return expected_s - elapsed_s > least ? expected_s - elapsed_s : least;
}

double plan_left_s(const struct demo *d, size_t at, double elapsed_s)
{
	const double factor = plan_factor(d);
	double left = 0;

	for (size_t i = at; i < d->count; i++) {
		const double expected_s = factor * d->result[d->step[i]].expected_s;

		if (will_run(d, d->step[i]))
			left += i == at ? plan_step_left_s(expected_s, elapsed_s) : expected_s;
	}
	return left;
}
