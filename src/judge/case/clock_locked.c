/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a clock that stays low under load although the GPU reports no reason for it. */
#include "judge/case/range.h"
#include "judge/expect/site.h"
#include "judge/case/verdict.h"

#define LOCKED_LEAST_S 1.0 /* of sustained load */
#define LOCKED_SAMPLES 0.90
#define LOCKED_CLOCK 0.90 /* of the maximum */
#define LOCKED_POWER 0.90 /* of the limit */

enum { REASONS_LIMIT = 0x4 | 0x8 | 0x20 | 0x40 | 0x80, SAMPLES_LEAST = 10 };

/* *share: share of the window's clock samples below the value `below`; *middle: mean of the samples. False:
 * too few samples. */
static bool low_share(const struct subject *s, double below, double *share, double *middle)
{
	const struct series *clock = gpu_series(s->ctx->record, s->gpu->pci, "sm_clock_mhz");
	size_t low = 0, all = 0;
	double sum = 0;

	for (size_t i = clock ? series_lower_bound(clock, s->phase->t0_ns) : 0;
	     clock && i < clock->count && clock->t_ns[i] <= s->phase->t1_ns; i++) {
		low += clock->value[i] < below;
		sum += clock->value[i];
		all++;
	}
	if (all < SAMPLES_LEAST)
		return false;
	*share = (double)low / (double)all;
	*middle = sum / (double)all;
	return true;
}

/* 1: a violation counter rose; 0: none that was read rose; -1: none was read. */
static int violated(const struct subject *s)
{
	static const char *const counters[] = {"violation_power_s", "violation_thermal_s",
					       "violation_board_s", "violation_reliability_s"};
	static const char *const shares[] = {"violation_power_share", "violation_thermal_share"};
	int told = -1;
	struct span span;
	double share;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (subject_span(s, counters[i], &span)) {
			told = told > 0 || span.last > span.first;
		}
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		if (record_number(s->phase, shares[i], &share))
			told = told > 0 || share > 0;
	return told;
}

/* Share of the window's clock-reason readings that name no limit. False: too few readings. */
static bool free_share(const struct subject *s, double *share)
{
	const struct series *reasons = gpu_series(s->ctx->record, s->gpu->pci, "clock_reasons");
	size_t named = 0, all = 0;

	for (size_t i = reasons ? series_lower_bound(reasons, s->phase->t0_ns) : 0;
	     reasons && i < reasons->count && reasons->t_ns[i] <= s->phase->t1_ns; i++) {
		double bits = reasons->value[i];

		named += !(bits >= 0 && bits < 0x1p32) || ((unsigned)bits & REASONS_LIMIT) != 0;
		all++;
	}
	*share = all ? 1 - (double)named / (double)all : 0;
	return all >= SAMPLES_LEAST;
}

/* True if a limit that the GPU reports explains the clock. A limit that it met only for a moment does not. */
static bool limit_named(const struct subject *s)
{
	double bits, share;

	if (free_share(s, &share))
		return share < LOCKED_SAMPLES;
	return subject_number(s, "clock_reasons_or", &bits) && bits >= 0 && bits < 0x1p32 &&
	       ((unsigned)bits & REASONS_LIMIT) != 0;
}

/* True if no violation counter rose and no limit was reported. If no counter can be read, the clock reasons
 * must have been read throughout the window. */
static bool nothing_limits(const struct subject *s)
{
	const int rose = violated(s);
	double share;

	return rose <= 0 && (rose == 0 || free_share(s, &share)) && !limit_named(s);
}

static bool loads(const struct subject *s)
{
	enum range_class which = range_class_of(s);

	return s->gpu_count == 1 && s->phase && s->phase->has_window && !strcmp(s->phase_name, "sustained") &&
	       (which == RANGE_COMPUTE || which == RANGE_MEMORY || *s->type) &&
	       (double)(s->phase->t1_ns - s->phase->t0_ns) >= LOCKED_LEAST_S * 1e9;
}

void verdict_clock_locked(struct judgement *out, const struct subject *s)
{
	double most = s->gpu ? gpu_get(s->gpu, GPU_FACT_sm_clock_max_mhz, 0) : 0, share, clock, power,
	       limit = s->gpu ? gpu_get(s->gpu, GPU_FACT_power_limit_w, 0) : 0;

	if (!(most > 0) || !(limit > 0) || !loads(s) || !low_share(s, LOCKED_CLOCK * most, &share, &clock) ||
	    share < LOCKED_SAMPLES || !subject_number(s, "power_w", &power) ||
	    power >= LOCKED_POWER * limit || !nothing_limits(s) || site_states_clock(s->site, clock * 1e6))
		return;
	finding(out, VERDICT_WARN, CAUSE_CLOCK_LOCKED,
		"%.0f %% of the clock samples under load are below %.0f MHz (mean %.0f of %.0f "
		"MHz) at %.0f of %.0f W, and the GPU met no limit: the clock is locked",
		100 * share, LOCKED_CLOCK * most, clock, most, power, limit);
}
