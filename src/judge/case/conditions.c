/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that a case met while it ran: wrong data, heat, power brakes, Xids, other work on the device,
 * gaps in the telemetry. */
#include "judge/case/verdict.h"
#include "judge/case/gpu_changes.h"
#include <math.h>

enum { REASON_HW_SLOWDOWN = 0x8, REASON_SW_THERMAL = 0x20, REASON_HW_THERMAL = 0x40, REASON_BRAKE = 0x80 };

static void data(struct judgement *out, const struct subject *s)
{
	const char *place = case_text(s->c, "wrong_place"), *text = place ? place : s->c->text;
	double count = 0, checked = 0, total = 0, nan = 0;
	enum cause cause = s->c->cause;
	bool work = s->c->work_flop > 0 || s->c->work_read > 0 || s->c->work_write > 0 || s->c->work_link > 0;

	case_number(s->c, "wrong_count", &count);
	case_number(s->c, "wrong_checked", &checked);
	case_number(s->c, "wrong_total", &total);
	if (count > 0 || s->c->status == STATUS_MISMATCH) {
		if (cause != CAUSE_NAN && cause != CAUSE_HBM_DATA && cause != CAUSE_WRONG_RESULT)
			cause = strstr(text, "nan") || strstr(text, "NaN") ? CAUSE_NAN : CAUSE_WRONG_RESULT;
		if (!strcmp(s->c->probe, "hbm"))
			cause = CAUSE_HBM_DATA;
		if (checked > 0)
			finding(out, VERDICT_FAIL, cause, "%.0f of %.0f checked values are wrong%s%s",
				count > 0 ? count : 1, checked, *text ? ": " : "", text);
		else
			finding(out, VERDICT_FAIL, cause, "%s",
				*text ? text : "the computed answer is wrong");
	} else if (work && !(checked > 0)) {
		finding(out, VERDICT_UNTRUSTED, CAUSE_UNVERIFIED, "the result was not checked");
	}
	if (case_number(s->c, "nan_count", &nan) && nan > 0)
		finding(out, VERDICT_FAIL, CAUSE_NAN, "%.0f values are NaN or infinite", nan);
}

static void clock_reasons(struct judgement *out, const struct subject *s)
{
	double value = 0;
	struct span span;
	unsigned bits;

	if (!subject_number(s, "clock_reasons_or", &value) && subject_span(s, "clock_reasons", &span))
		value = (double)span.bits_or;
	bits = value >= 0 && value < 0x1p32 ? (unsigned)value : 0;
	if (bits & REASON_HW_THERMAL)
		finding(out, VERDICT_FAIL, CAUSE_THERMAL_HW,
			"the hardware slowed the GPU down because of its temperature (reasons 0x%x)", bits);
	if (bits & REASON_BRAKE)
		finding(out, VERDICT_FAIL, CAUSE_POWER_BRAKE,
			"the power brake slowed the GPU down (reasons 0x%x)", bits);
	if (bits & REASON_HW_SLOWDOWN && !(bits & (REASON_HW_THERMAL | REASON_BRAKE)))
		finding(out, VERDICT_FAIL, CAUSE_THERMAL_HW,
			"the hardware slowed the GPU down without giving a reason (reasons 0x%x)", bits);
	if (bits & REASON_SW_THERMAL)
		finding(out, VERDICT_WARN, CAUSE_THERMAL_SW,
			"the driver slowed the GPU down because of its temperature");
}

/* The other work on the device that the plan allowed with --beside; NULL: the device was free. */
static const char *beside(const struct subject *s)
{
	const char *who = s->c->plan ? json_string_value(json_object_get(s->c->plan, "beside")) : NULL;

	return who && *who ? who : NULL;
}

static void shared(struct judgement *out, const struct subject *s)
{
	const struct record *r = s->ctx->record;
	size_t i;

	if ((!s->c->together && !s->c->lockstep) || s->gpu_count != 1 || !s->gpu)
		return;
	for (i = 0; i < r->case_count; i++) {
		const struct record_case *other = &r->cases[i];
		const json_t *gpus = other->plan ? json_object_get(other->plan, "gpus") : NULL;
		const char *pci = json_string_value(json_array_get(gpus, 0));

		if (other == s->c || other->skipped || other->step != s->c->step ||
		    (s->c->lockstep && strcmp(other->key, s->c->key)) || json_array_size(gpus) != 1)
			continue;
		if (pci && !strcmp(pci, s->gpu->pci))
			finding(out, VERDICT_FAIL, CAUSE_GPU_SHARED, "case %u ran on %s at the same time",
				other->id, pci);
	}
}

/* Ranks that share CPUs: each call waits until the last rank has had its time slice. */
static void crowded(struct judgement *out, const struct subject *s)
{
	double told = 0;

	if (case_number(s->c, "oversubscribed", &told) && told > 0)
		finding(out, VERDICT_WARN, CAUSE_CPU_CROWDED,
			"the node has more ranks than CPUs, so they share CPU time: the figure shows "
			"that, not the speed of the collective");
}

/* True if the GPU drew power in the window while its energy counter did not change. */
static bool energy_stuck(const struct subject *s)
{
	const struct series *energy = gpu_series(s->ctx->record, s->gpu->pci, "energy_j");
	struct span power;

	return energy && s->phase && s->phase->has_window && subject_span(s, "power_w", &power) &&
	       power.mean > 0 && series_still_s(energy, s->phase->t0_ns, s->phase->t1_ns) >= SERIES_STUCK_S;
}

/* True if the energy counter and the power readings tell two different powers for the window. */
static bool energy_differs(const struct subject *s)
{
	double counter, readings;

	return subject_number(s, "power_w", &counter) && subject_number(s, "power_integral_w", &readings) &&
	       readings > 0 && fabs(counter / readings - 1) > JUDGE_ENERGY_AGREES;
}

/* True if the window has readings of the signal, but none that a working device can have. */
static bool only_impossible(const struct subject *s, const char *signal)
{
	const struct series *series = gpu_series(s->ctx->record, s->gpu->pci, signal);
	struct span span;
	size_t first;

	if (!series || !s->phase || !s->phase->has_window || subject_span(s, signal, &span))
		return false;
	first = series_lower_bound(series, s->phase->t0_ns);
	return first < series->count && series->t_ns[first] <= s->phase->t1_ns;
}

static void telemetry(struct judgement *out, const struct subject *s)
{
	static const char *const watched[] = {"power_w", "sm_clock_mhz"};
	struct span span;
	size_t i;

	if (!s->gpu)
		return;
	if (subject_span(s, "energy_j", &span) && span.went_back)
		remark(out, CAUSE_COUNTER_RESET);
	if (energy_stuck(s))
		remark(out, CAUSE_COUNTER_STUCK);
	if (energy_differs(s))
		remark(out, CAUSE_ENERGY_DIFFERS);
	for (i = 0; i < 2; i++)
		if (subject_span(s, watched[i], &span) ? span.gap_s > VERDICT_GAP_S
						       : only_impossible(s, watched[i]))
			remark(out, CAUSE_TELEMETRY_GAP);
}

void verdict_conditions(struct judgement *out, const struct subject *s)
{
	data(out, s);
	changes_xids(out, s);
	shared(out, s);
	if (s->gpu) {
		clock_reasons(out, s);
		verdict_clock_locked(out, s);
	}
	if (beside(s))
		finding(out, VERDICT_UNTRUSTED, CAUSE_BUSY,
			"other work ran on the device at the same time: %.200s", beside(s));
	verdict_cpu_time(out, s);
	crowded(out, s);
	telemetry(out, s);
}

void verdict_left_out(struct judgement *out, const struct subject *s)
{
	size_t i, used;

	for (i = 0; i < s->c->phase_count; i++) {
		const char *names = record_text(&s->c->phase[i], "not_finite");

		used = strlen(out->reason);
		if (names)
			snprintf(out->reason + used, sizeof(out->reason) - used,
				 "%sleft out, not a finite number: %s (%s)", used ? "; " : "", names,
				 s->c->phase[i].name);
	}
}
