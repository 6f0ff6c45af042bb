/* SPDX-License-Identifier: Apache-2.0 */
#include "team/account/step_breakdown.h"
#include <math.h>
#include <stdlib.h>

static double drain_at(const struct scaling_trace *t, unsigned rank, unsigned step)
{
	return t->drain[(size_t)rank * t->steps + step];
}

/* The rank whose last gradient is ready last. It waits for no other rank, so its time from there to the end
 * of the step is the cost of communication. */
static unsigned last_ready(const struct scaling_trace *t, unsigned step)
{
	unsigned last = 0;

	for (unsigned r = 1; r < t->ranks; r++)
		if (drain_at(t, r, step) < drain_at(t, last, step))
			last = r;
	return last;
}

static enum status check(const struct scaling_trace *t, struct error *err)
{
	const double apart[] = {t->wall, t->one, t->together, t->collective, t->first_ready};

	if (!t->ranks || t->ranks > SCALING_RANKS_MAX || !t->steps)
		return error_set(err, STATUS_BAD_INPUT,
				 "scaling: a trace of %u steps and %u ranks is empty or too large", t->steps,
				 t->ranks);
	for (size_t i = 0; i < (size_t)t->ranks * t->steps; i++)
		if (!isfinite(t->ready[i]) || !isfinite(t->drain[i]) || t->ready[i] < 0 || t->drain[i] < 0)
			return error_set(err, STATUS_BAD_INPUT,
					 "scaling: rank %zu, step %zu: times of %g and %g ns are invalid",
					 i / t->steps, i % t->steps, t->ready[i], t->drain[i]);
	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		if (!isfinite(apart[i]) || apart[i] < 0)
			return error_set(err, STATUS_BAD_INPUT, "scaling: a time of %g ns is invalid",
					 apart[i]);
	return STATUS_OK;
}

/* Computes means over ranks and steps, how often each rank was last, and how long each
 * waited in all. */
static void sum_parts(struct scaling_account *out, const struct scaling_trace *t, unsigned *last,
		      double *waited)
{
	double ready = 0, exposed = 0, waiting = 0, steps = t->steps, ranks = t->ranks;

	for (unsigned s = 0; s < t->steps; s++) {
		unsigned slowest = last_ready(t, s);
		double least = drain_at(t, slowest, s);

		last[slowest]++;
		exposed += least;
		for (unsigned r = 0; r < t->ranks; r++) {
			ready += t->ready[(size_t)r * t->steps + s];
			waiting += drain_at(t, r, s) - least;
			waited[r] += drain_at(t, r, s) - least;
		}
	}
	out->compute = ready / (ranks * steps);
	out->exposed = exposed / steps;
	out->waiting = waiting / (ranks * steps);
	out->step = out->compute + out->exposed + out->waiting;
}

static void name_slowest(struct scaling_account *out, const struct scaling_trace *t, const unsigned *last,
			 const double *waited)
{
	unsigned most = 0;
	double others = 0;

	out->slowest = -1;
	out->waiting_others = out->waiting;
	for (unsigned r = 1; r < t->ranks; r++)
		if (last[r] > last[most])
			most = r;
	out->slowest_share = (double)last[most] / t->steps;
	if (t->ranks < 2)
		return;
	for (unsigned r = 0; r < t->ranks; r++)
		others += r == most ? 0 : waited[r];
	others /= (double)(t->ranks - 1) * t->steps;
	if (out->slowest_share < SCALING_SLOWEST_SHARE || others < SCALING_SLOWEST_COST * out->step)
		return;
	out->slowest = (int)most;
	out->waiting_others = others;
}

/* Splits the difference between this step and the step of one rank alone into its causes. */
static void split_losses(struct scaling_account *out, const struct scaling_trace *t)
{
	out->contention = t->together > 0 ? out->compute - t->together : 0;
	out->lost[SCALING_LOSS_EXPOSED] = out->exposed;
	out->lost[SCALING_LOSS_WAITING] = out->waiting;
	if (t->one > 0) {
		out->efficiency = out->step > 0 ? t->one / out->step : 0;
		out->lost[SCALING_LOSS_COMPUTE] = (t->together > 0 ? t->together : out->compute) - t->one;
		out->lost[SCALING_LOSS_CONTENTION] = out->contention;
	}
	out->largest = SCALING_LOSS_NONE;
	for (int i = 1; i < SCALING_LOSS_COUNT; i++)
		if (out->lost[i] > out->lost[out->largest])
			out->largest = (enum scaling_loss)i;
}

enum status scaling_account(struct scaling_account *out, const struct scaling_trace *t, struct error *err)
{
	enum status st = check(t, err);
	unsigned *last = st ? NULL : calloc(t->ranks, sizeof(*last));
	double *waited = st ? NULL : calloc(t->ranks, sizeof(*waited));

	*out = (struct scaling_account){.slowest = -1, .exposed_model = -1};
	if (!st && (!last || !waited))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "scaling: not enough memory for the breakdown of the step");
	if (!st) {
		sum_parts(out, t, last, waited);
		name_slowest(out, t, last, waited);
		split_losses(out, t);
		if (t->collective > 0 && t->first_ready > 0)
			out->exposed_model = fmax(0, t->collective - (out->compute - t->first_ready));
		if (t->wall > 0)
			out->unexplained_share = fabs(out->step - t->wall) / t->wall;
		out->explained = t->wall > 0 && out->unexplained_share <= SCALING_CLOSED;
	}
	free(last);
	free(waited);
	return st;
}

const char *scaling_loss_text(enum scaling_loss loss)
{
#define X(name, text) [SCALING_LOSS_##name] = (text),
	static const char *const texts[] = {SCALING_LOSSES(X)};
#undef X

	return texts[loss];
}
