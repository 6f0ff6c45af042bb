/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/arrival.h"

#include <math.h>
#include "core/text/text.h"
#include "core/text/units.h"

static const double rate_most = 1e6, burstiness_least = 0.01, burstiness_most = 1e6;

static enum status check_rate(double rate, const char *what, struct error *err)
{
	if (rate > 0 && rate <= rate_most)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s: %g requests/s is not above 0 and at most %g", what, rate,
			 rate_most);
}

static enum status read_steps(struct arrivals *a, const char *text, struct error *err)
{
	enum status st = STATUS_OK;

	while (!st) {
		size_t size = strcspn(text, ",");
		char one[64];

		if (size >= sizeof(one) || a->steps == LOAD_STEPS_MOST)
			return error_set(err, STATUS_BAD_INPUT,
					 "steps: more than %d rates, or one that is too long",
					 LOAD_STEPS_MOST);
		memcpy(one, text, size);
		one[size] = 0;
		if (units_parse(&a->step[a->steps], one, "", NULL))
			return error_set(err, STATUS_BAD_INPUT,
					 "steps: \"%s\" is not a rate; example: 10,20,40", one);
		st = check_rate(a->step[a->steps++], "steps", err);
		if (!text[size])
			break;
		text += size + 1;
	}
	return st;
}

/* The rates of a ramp: one of them may be 0, but not both. */
static enum status check_ramp(const struct load_plan_spec *s, struct error *err)
{
	double most = fmax(s->rate, s->rate_end), least = fmin(s->rate, s->rate_end);
	enum status st = check_rate(most, "ramp", err);

	if (!st && !(least >= 0))
		st = error_set(err, STATUS_BAD_INPUT, "ramp: %g requests/s is below 0", least);
	return st;
}

enum status arrivals_begin(struct arrivals *a, const struct load_plan_spec *spec, struct error *err)
{
	*a = (struct arrivals){.spec = spec};
	draw_begin(&a->draw, spec->seed, DRAW_ARRIVAL);
	if (spec->arrival == LOAD_STEPS)
		return read_steps(a, spec->steps ? spec->steps : "", err);
	if (spec->arrival == LOAD_RAMP)
		return check_ramp(spec, err);
	if (spec->arrival == LOAD_GAMMA &&
	    !(spec->burstiness >= burstiness_least && spec->burstiness <= burstiness_most))
		return error_set(err, STATUS_BAD_INPUT, "burstiness: %g is not from %g to %g",
				 spec->burstiness, burstiness_least, burstiness_most);
	return check_rate(spec->rate, "rate", err);
}

/* A gap of the equilibrium distribution is a uniform part of a gap that is chosen in proportion to its
 * length; such a gap has a gamma distribution whose shape is larger by 1. */
static double gamma_gap(struct arrivals *a)
{
	double shape = a->spec->burstiness, scale = 1 / (shape * a->spec->rate);

	if (!a->count)
		return draw_uniform(&a->draw) * draw_gamma(&a->draw, shape + 1) * scale;
	return draw_gamma(&a->draw, shape) * scale;
}

/* The time at which the integral of the rate reaches `sum`. */
static double ramp_time(const struct load_plan_spec *s, double sum)
{
	double slope = (s->rate_end - s->rate) / s->duration_s, square = s->rate * s->rate + 2 * slope * sum;

	if (square < 0) /* beyond the end of a ramp to 0 */
		return INFINITY;
	return 2 * sum / (s->rate + sqrt(square));
}

static double steps_time(const struct arrivals *a, double sum)
{
	double part = a->spec->duration_s / (double)a->steps;

	for (size_t i = 0; i < a->steps; i++) {
		if (sum < a->step[i] * part)
			return part * (double)i + sum / a->step[i];
		sum -= a->step[i] * part;
	}
	return INFINITY;
}

bool arrivals_next(struct arrivals *a, double *at)
{
	const struct load_plan_spec *s = a->spec;

	if (s->arrival == LOAD_GAMMA)
		a->sum += gamma_gap(a);
	else if (s->arrival != LOAD_CONSTANT)
		a->sum += draw_exponential(&a->draw);
	switch (s->arrival) {
	case LOAD_CONSTANT:
		*at = (double)a->count / s->rate;
		break;
	case LOAD_RAMP:
		*at = ramp_time(s, a->sum);
		break;
	case LOAD_STEPS:
		*at = steps_time(a, a->sum);
		break;
	case LOAD_GAMMA:
		*at = a->sum;
		break;
	default:
		*at = a->sum / s->rate;
	}
	a->count++;
	return *at < s->duration_s;
}
