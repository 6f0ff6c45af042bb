/* SPDX-License-Identifier: Apache-2.0 */
/* Machines without a stable clock. The spread within one run does not show the drift between runs, so the
 * drift comes from the rounds of both sides. docs/explanation/methods/comparing.md, "Machines without a
 * stable clock". */
#include "judge/compare/compare.h"
#include <math.h>
#include "core/math/stats.h"
#include "judge/case/context.h"

enum { DEGREES_ENOUGH = 2, KIN_ENOUGH = 6 };
#define SIGMAS 3.5     /* at least this many: dozens of cases are compared, and the noise has heavy tails */
#define ONE_ROUND 0.51 /* ln(1 / 0.6): a smaller change counts as drift if a side has one round */
#define ONE_ROUND_MOST 0.60 /* ln(1 / 0.55): a change to half the rate never counts as drift */
#define SIGMA_OF_MAD 1.4826 /* for a normal distribution */

bool compare_floats(const struct record *r, const struct record_case *c)
{
	const json_t *facts = compare_node_facts(r, r->node_count ? c->node : 0);
	const json_t *cpu = json_object_get(facts, "cpu");
	const json_t *low = json_object_get(cpu, "mhz_min"), *high = json_object_get(cpu, "mhz_max");

	if (strcmp(c->target, "cpu"))
		return false;
	if (json_is_true(json_object_get(json_object_get(facts, "system"), "virtual_machine")))
		return true;
	return !json_is_number(low) || !json_is_number(high) ||
	       json_number_value(high) > json_number_value(low);
}

/* True if both are of one kind, so that they move with the same part of the machine. */
static bool kin(const struct compare_row *a, const struct compare_row *b)
{
	return b->floats && b->change != COMPARE_NOT_COMPARABLE && !strcmp(a->unit, b->unit);
}

static double log_change(const struct compare_row *r, bool normalised)
{
	return log(1 + (normalised ? r->normalised : r->raw));
}

/* Root mean square of the scatter of one round over all cases of the kind. */
static double kin_scatter(const struct comparison *c, const struct compare_row *r, bool normalised)
{
	double squares = 0, degrees = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		const struct compare_row *k = &c->row[i];
		double s = normalised ? k->scatter_normalised : k->scatter;

		if (!kin(r, k) || (normalised && !k->has_normalised))
			continue;
		squares += s * s * k->degrees;
		degrees += k->degrees;
	}
	return degrees > 0 ? sqrt(squares / degrees) : 0;
}

/* Standard deviation of the kind's changes about their median; 0: too few. `x` has room for all of them. */
static double kin_spread(const struct comparison *c, const struct compare_row *r, bool normalised, double *x)
{
	size_t n = 0;

	for (size_t i = 0; i < c->row_count; i++)
		if (kin(r, &c->row[i]) && (!normalised || c->row[i].has_normalised))
			x[n++] = log_change(&c->row[i], normalised);
	return n < KIN_ENOUGH ? 0 : SIGMA_OF_MAD * stats_of(x, n).mad;
}

/* The largest change that may be drift, as a logarithm. */
static double drift(const struct comparison *c, const struct compare_row *r, bool normalised, double *x)
{
	double own = normalised ? r->scatter_normalised : r->scatter;
	double lost = normalised ? 0 : r->lost; /* its ceiling lost just as much */
	double one = fmax(own, kin_scatter(c, r, normalised));
	double spread = SIGMAS * kin_spread(c, r, normalised, x);
	double limit =
		fmax(stats_t95(r->degrees), SIGMAS) * one * sqrt(1.0 / r->runs_before + 1.0 / r->runs_after);

	/* Points of a curve lie at the edges of caches that a virtual machine shares, so one round shows
	 * nothing. */
	if (r->degrees < DEGREES_ENOUGH && !r->judged)
		return INFINITY;
	if (r->degrees < DEGREES_ENOUGH)
		return fmin(ONE_ROUND_MOST, fmax(ONE_ROUND, fmax(SIGMAS * one, spread)) + lost);
	/* Rounds within a run lie closer together than two runs do. */
	return (r->runs_before > 1 && r->runs_after > 1 ? limit : fmax(limit, spread)) + lost;
}

static bool beyond(double change, double limit)
{
	return fabs(log(1 + change)) > limit;
}

static void decide(struct compare_row *r)
{
	bool moved_work = r->has_normalised && fabs(r->normalised) > r->noise;
	bool moved = fabs(r->raw) > r->noise_raw;
	bool work = moved_work && beyond(r->normalised, r->support_normalised);
	bool whole = moved && beyond(r->raw, r->support);
	double deciding = work ? r->normalised : r->raw;
	bool better = r->lower_is_better ? deciding < 0 : deciding > 0;

	if (work || (whole && !r->has_normalised))
		r->change = better ? COMPARE_FASTER : COMPARE_SLOWER;
	else if (whole)
		r->change = better ? COMPARE_FASTER_CLOCK : COMPARE_SLOWER_CLOCK;
	else
		r->change = moved || moved_work ? COMPARE_UNSUPPORTED : COMPARE_SAME;
}

static void advise(struct comparison *c)
{
	const struct compare_row *open = NULL;

	for (size_t i = 0; i < c->row_count && !open; i++)
		if (c->row[i].change == COMPARE_UNSUPPORTED)
			open = &c->row[i];
	if (!open)
		return;
	if (open->degrees < DEGREES_ENOUGH)
		snprintf(c->advice, sizeof(c->advice),
			 "not supported by the noise, because the clock of this machine drifts between "
			 "runs: repeat each run twice (assay compare A1 A2 -- B1 B2)");
	else
		snprintf(c->advice, sizeof(c->advice),
			 "not supported by the noise: the rounds of each side differ as much; repeat on "
			 "a quiet machine, or add runs to both sides (assay compare A1 A2 A3 -- B1 B2 "
			 "B3)");
}

enum status compare_drift(struct comparison *c, struct error *err)
{
	double *x = calloc(c->row_count + 1, sizeof(*x));

	if (!x)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to compare %zu cases", c->row_count);
	/* Rows that are not comparable stay so. All others have a figure on both sides. */
	for (size_t i = 0; i < c->row_count; i++)
		if (c->row[i].floats && c->row[i].baselines)
			c->row[i].change = COMPARE_SAME;
	for (size_t i = 0; i < c->row_count; i++) {
		struct compare_row *r = &c->row[i];

		if (!r->floats || !r->baselines)
			continue;
		r->support = drift(c, r, false, x);
		r->support_normalised = r->has_normalised ? drift(c, r, true, x) : 0;
	}
	for (size_t i = 0; i < c->row_count; i++)
		if (c->row[i].floats && c->row[i].baselines)
			decide(&c->row[i]);
	advise(c);
	free(x);
	return STATUS_OK;
}
