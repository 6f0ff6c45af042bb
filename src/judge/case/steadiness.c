/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the window was in one steady state, and how precisely its mean is known. */
#include "judge/case/verdict.h"

/* True if the power regulator held the clock down for the whole window and at least this long. Waiting does
 * not end such a state. */
static bool power_held(const struct subject *s, double least_s)
{
	double time, window;

	return record_number(s->phase, "violation_power_share", &time) && time >= VERDICT_HELD &&
	       record_number(s->phase, "window_s", &window) && window >= least_s;
}

/* Judges whether clock, power and rate had settled. The latency of a launch does not depend on these. */
static void settled(struct judgement *out, const struct subject *s, bool told, double width)
{
	bool latency = !strncmp(s->c->limit, "latency", 7);
	double yes, worst = latency ? VERDICT_SPREAD_STOP : VERDICT_SPREAD_WARN;

	if (strcmp(s->phase_name, "sustained") || !record_number(s->phase, "settled", &yes) || yes > 0.5 ||
	    power_held(s, VERDICT_HELD_S))
		return;
	if (told && width <= VERDICT_STANDS)
		return;
	if (!told)
		finding(out, VERDICT_WARN, CAUSE_UNSETTLED,
			"clock, power or rate had not settled, and there are too few samples to know "
			"how precise the mean is");
	else
		finding(out, width > worst ? VERDICT_UNTRUSTED : VERDICT_WARN, CAUSE_UNSETTLED,
			"clock, power or rate had not settled; the mean is known to %.1f %% (95 %% half-width)",
			100 * width);
}

/* The power regulator swings with a period of about 3 s. In a window shorter than two periods the rate
 * scatters even on a healthy card, so its scatter gives no warning. */
static bool swings(const struct subject *s)
{
	double window;

	return record_number(s->phase, "window_s", &window) && window < VERDICT_SWING_S && power_held(s, 0);
}

void verdict_steadiness(struct judgement *out, const struct subject *s)
{
	bool lenient = !s->gpu && s->require != REQUIRE_JUDGED; /* a point of a CPU's curve */
	double width, warn = lenient ? VERDICT_SPREAD_STOP : VERDICT_SPREAD_WARN;
	bool told = record_number(s->phase, "half_width_share", &width);
	struct interleaved_ratio interleaved;

	if (bound_interleaved(s, &interleaved)) /* the interval of the interleaved ratio is judged instead */
		return;
	if (!told)
		width = 0;
	settled(out, s, told, width);
	if (width > VERDICT_SPREAD_STOP && !lenient)
		finding(out, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"the mean is uncertain by %.1f %% (95 %% half-width)", 100 * width);
	else if (width > warn && !swings(s))
		finding(out, VERDICT_WARN, CAUSE_WIDE_SPREAD,
			"the mean is uncertain by %.1f %% (95 %% half-width)", 100 * width);
}
