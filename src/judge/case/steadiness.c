/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the window was one state, and how far its mean stands. */
#include "judge/case/verdict.h"

/* The power regulator held the clock down throughout, for this long: a state that waiting does not end. */
static bool power_held(const struct subject *s, double least_s)
{
	double time, window;

	return record_number(s->phase, "violation_power_share", &time) && time >= VERDICT_HELD &&
	       record_number(s->phase, "window_s", &window) && window >= least_s;
}

/* Clock, power and rate had settled. A launch's latency hangs on none of them. */
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
			"clock, power or rate had not settled, and too few samples say how far the mean stands");
	else
		finding(out, width > worst ? VERDICT_UNTRUSTED : VERDICT_WARN, CAUSE_UNSETTLED,
			"clock, power or rate had not settled; the mean stands to %.1f %% (95 %% half-width)",
			100 * width);
}

/* The power regulator swings with a period of some 3 s: a window too short for two of them scatters on a
 * healthy card, and its mean says how far. */
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
	struct interleaved_ratio turns;

	if (bound_interleaved(s, &turns)) /* their interval is what is judged */
		return;
	if (!told)
		width = 0;
	settled(out, s, told, width);
	if (width > VERDICT_SPREAD_STOP && !lenient)
		finding(out, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD, "95 %% half-width is %.1f %% of the mean",
			100 * width);
	else if (width > warn && !swings(s))
		finding(out, VERDICT_WARN, CAUSE_WIDE_SPREAD, "95 %% half-width is %.1f %% of the mean",
			100 * width);
}
