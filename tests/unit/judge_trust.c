/* SPDX-License-Identifier: Apache-2.0 */
/* What a figure must be before it is held against anything: right data, checked, undisturbed, settled. */
#include "judge_bed.h"

static void test_verdict__wrong_data_fails_however_fast(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	world_set(c, "verify", "wrong_count", 1);
	world_text(c, "verify", "wrong_place", "row 17 column 4011");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_WRONG_RESULT);
	assert_non_null(strstr(world_of(&w, c)->reason, "row 17 column 4011"));
}

static void test_verdict__a_mismatch_without_figures_fails_as_its_cause_says(void **state)
{
	static const struct {
		enum cause given, said;
		const char *probe, *text;
	} rows[] = {
		{CAUSE_NONE, CAUSE_WRONG_RESULT, "gemm", "row 1 column 2"},
		{CAUSE_NAN, CAUSE_NAN, "gemm", "NaN at row 3"},
		{CAUSE_NONE, CAUSE_NAN, "gemm", "12 NaN, first at row 3"},
		{CAUSE_NONE, CAUSE_HBM_DATA, "hbm", "address 0x7f0000001000"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, rows[i].probe, "gpu0", "memory", "");

		c->status = STATUS_MISMATCH;
		c->cause = rows[i].given;
		snprintf(c->text, sizeof(c->text), "%s", rows[i].text);
		world_judge(&w);
		assert_verdict(&w, c, VERDICT_FAIL, rows[i].said);
		assert_non_null(strstr(world_of(&w, c)->reason, rows[i].text));
	}
}

static void test_verdict__a_result_nobody_checked_is_untrusted(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	world_set(c, "verify", "wrong_checked", 0);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_UNVERIFIED);
}

static void test_verdict__a_record_without_its_figure_is_an_error(void **state)
{
	struct record_case *c = world_case(&w, "gemm", "gpu0", "compute.bf16", "type=bf16");

	(void)state;
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_ERROR, CAUSE_DEFECT);
}

static void test_verdict__nonsense_figures_are_untrusted(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	world_set(c, "sustained", "flop_rate", -5);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_NAN);
	world_set(c, "sustained", "flop_rate", 0);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_NAN);
	assert_false(world_of(&w, c)->has_figure);
	/* JSON has no NaN: a journal holds null there, which is no number. */
	json_object_set_new(world_phase(c, "sustained")->values, "flop_rate", json_null());
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_ERROR, CAUSE_DEFECT);
}

static void reasons_are(double bits, enum verdict v, enum cause cause)
{
	struct record_case *c = healthy();

	world_set(c, "sustained", "clock_reasons_or", bits);
	world_judge(&w);
	assert_verdict(&w, c, v, cause);
}

static void test_verdict__heat_and_brakes_are_named(void **state)
{
	(void)state;
	reasons_are(0x8 | 0x40, VERDICT_FAIL, CAUSE_THERMAL_HW);
	reasons_are(0x80, VERDICT_FAIL, CAUSE_POWER_BRAKE);
	reasons_are(0x8, VERDICT_FAIL, CAUSE_THERMAL_HW);
	reasons_are(0x20, VERDICT_WARN, CAUSE_THERMAL_SW);
	reasons_are(0x4, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_verdict__xids_belong_to_their_case_first_named(void **state)
{
	struct record_case *before = healthy(), *c = healthy(), *after = healthy();
	struct series *s = world_series(&w, "gpu:0000:10:00.0", "xid", SIGNAL_GAUGE);

	(void)state;
	series_add(s, c->t0_ns + 5000, 94, NULL);
	series_add(s, c->t0_ns + 6000, 45, NULL);
	series_add(s, c->t1_ns + 6000, 45, NULL);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_XID);
	assert_non_null(strstr(world_of(&w, c)->reason, "Xid 94 (contained memory error) of 0000:10:00.0"));
	assert_non_null(strstr(world_of(&w, c)->reason, "3 in its burst"));
	assert_verdict(&w, before, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, after, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_verdict__a_counter_that_ran_back_or_a_silent_sampler_passes_and_is_named(void **state)
{
	struct record_case *c = healthy(), *d = healthy();
	struct series *energy = world_series(&w, "gpu:0000:10:00.0", "energy_j", SIGNAL_COUNTER);
	struct series *power = world_series(&w, "gpu:0000:10:00.0", "power_w", SIGNAL_GAUGE);
	unsigned i;

	(void)state;
	for (i = 0; i < 60; i++)
		series_add(energy, c->t0_ns + 1000000000 + i * 100000000ull, i == 30 ? 1 : 1000 + 60.0 * i,
			   NULL);
	for (i = 0; i < 60; i++)
		if (i < 20 || i > 32)
			series_add(power, d->t0_ns + 1000000000 + i * 100000000ull, 690, NULL);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_COUNTER_RESET);
	assert_verdict(&w, d, VERDICT_PASS, CAUSE_TELEMETRY_GAP);
	assert_false(world_of(&w, d)->explained);
	assert_true(world_of(&w, c)->explained);
}

static void test_verdict__a_counter_that_differs_from_the_power_readings_is_named(void **state)
{
	static const struct {
		double counter, readings;
		enum cause cause;
	} rows[] = {
		{690, 655, CAUSE_ENERGY_DIFFERS},
		{690, 730, CAUSE_ENERGY_DIFFERS},
		{690, 660, CAUSE_LOW_CONFIDENCE}, /* 4.5 % */
		{690, 720, CAUSE_LOW_CONFIDENCE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = healthy();

		world_set(c, "sustained", "power_w", rows[i].counter);
		world_set(c, "sustained", "power_integral_w", rows[i].readings);
		world_judge(&w);
		assert_verdict(&w, c, VERDICT_PASS, rows[i].cause);
		world_end(&w);
		world_begin(&w, 1, false);
	}
}

/* Two seconds of one value while power is drawn, or none but zeros: named beside the verdict, which stands.
 */
static void test_verdict__a_stuck_counter_and_zeros_under_load_are_named(void **state)
{
	struct record_case *c = healthy(), *d = healthy(), *e = healthy();
	struct series *energy = world_series(&w, "gpu:0000:10:00.0", "energy_j", SIGNAL_COUNTER);
	struct series *power = world_series(&w, "gpu:0000:10:00.0", "power_w", SIGNAL_GAUGE);
	struct series *clock = world_series(&w, "gpu:0000:10:00.0", "sm_clock_mhz", SIGNAL_GAUGE);
	struct span span;
	struct subject s;
	unsigned i;

	(void)state;
	for (i = 0; i < 90; i++) {
		uint64_t t = c->t0_ns + i * 100000000ull;

		series_add(energy, t, 1000 + 60.0 * (i < 40 ? i : i < 62 ? 40 : i), NULL);
		series_add(power, t, 690, NULL);
		series_add(clock, t, 1400, NULL);
	}
	for (i = 0; i < 90; i++) { /* it never stands for more than 1.9 s */
		uint64_t t = d->t0_ns + i * 100000000ull;

		series_add(energy, t, 10000 + 60.0 * (i / 19), NULL);
		series_add(power, t, 690, NULL);
		series_add(clock, t, 1400, NULL);
	}
	for (i = 0; i < 90; i++) {
		uint64_t t = e->t0_ns + i * 100000000ull;

		series_add(energy, t, 20000, NULL); /* no power that could be drawn was told */
		series_add(power, t, 0, NULL);
		series_add(clock, t, 0, NULL);
	}
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_COUNTER_STUCK);
	assert_verdict(&w, d, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, e, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST); /* the clock came before */
	subject_of(&s, &w.ctx, e);
	assert_false(subject_span(&s, "sm_clock_mhz", &span));
	assert_false(subject_span(&s, "power_w", &span));
}

/* The mark is the case's own: the plan looked at each device. */
static void test_verdict__beside_other_work_nothing_is_trusted(void **state)
{
	struct record_case *c = healthy(), *free = healthy();

	(void)state;
	w.r.open = json_pack("{s:{s:b}}", "options", "beside", 1);
	json_object_set_new((json_t *)c->plan, "beside", json_string("1 other process uses it"));
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_BUSY);
	assert_non_null(strstr(world_of(&w, c)->reason, "1 other process uses it"));
	assert_verdict(&w, free, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

/* settled, half-width, window, share of it under the power regulator -> verdict */
static void test_verdict__unsettled_and_scattered_windows(void **state)
{
	static const struct {
		double settled, width, window_s, capped;
		enum verdict v;
		enum cause cause;
	} rows[] = {
		{0, 0.008, 3, 0, VERDICT_WARN, CAUSE_UNSETTLED},
		{0, 0.004, 3, 0, VERDICT_PASS, CAUSE_LOW_CONFIDENCE}, /* the mean says what it is */
		{0, 0.03, 3, 0, VERDICT_UNTRUSTED, CAUSE_UNSETTLED},
		{1, 0.03, 3, 0, VERDICT_WARN, CAUSE_WIDE_SPREAD},
		{1, 0.08, 3, 0, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD},
		{1, 0.01, 3, 0, VERDICT_PASS, CAUSE_LOW_CONFIDENCE},
		/* throughout: settled, and a short window scatters by its swing */
		{0, 0.008, 6, 1, VERDICT_PASS, CAUSE_LOW_CONFIDENCE},
		{0, 0.008, 6, 0.9, VERDICT_WARN, CAUSE_UNSETTLED},
		{0, 0.008, 0.6, 1, VERDICT_WARN, CAUSE_UNSETTLED},
		{1, 0.03, 1.2, 1, VERDICT_PASS, CAUSE_LOW_CONFIDENCE},
		{1, 0.03, 6, 1, VERDICT_WARN, CAUSE_WIDE_SPREAD},
		{1, 0.08, 1.2, 1, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = healthy();

		world_set(c, "sustained", "settled", rows[i].settled);
		world_set(c, "sustained", "half_width_share", rows[i].width);
		world_set(c, "sustained", "window_s", rows[i].window_s);
		world_set(c, "sustained", "violation_power_share", rows[i].capped);
		world_judge(&w);
		assert_verdict(&w, c, rows[i].v, rows[i].cause);
	}
	assert_non_null(strstr(world_of(&w, &w.cases[9])->reason, "+/- 3.0 %"));
}

/* A launch hangs on no clock that could settle: it is a warning up to the spread that is no figure at all. */
static void test_verdict__an_unsettled_latency_is_untrusted_only_where_it_scatters(void **state)
{
	static const struct {
		double width;
		enum verdict v;
	} rows[] = {{0.047, VERDICT_UNKNOWN}, {0.06, VERDICT_UNTRUSTED}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = world_case(&w, "dispatch", "gpu0", "latency", "what=launch");

		world_set(c, "sustained", "latency_ns", 3200);
		world_set(c, "sustained", "settled", 0);
		world_set(c, "sustained", "half_width_share", rows[i].width);
		world_judge(&w);
		assert_int_equal(world_of(&w, c)->verdict, rows[i].v);
	}
}

static void test_verdict__rounds_that_disagree_are_named(void **state)
{
	struct record_case *a = healthy(), *b = world_gemm(&w, "gpu0", "bf16", 8192, 740, 1500, 695, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_WARN, CAUSE_WIDE_SPREAD);
	assert_non_null(strstr(world_of(&w, b)->reason, "case 0"));
	a->round = 1;
	b->round = 2;
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, b)->reason, "round 1 reached"));
}

/* A side value that is no number changes no verdict, and is told; the figure itself leaves none to trust. */
static void test_verdict__what_is_not_finite_is_told(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918), *reading;
	enum verdict was;

	(void)state;
	reading = world_reading(&w, "ecc", "gpu0", "ecc_mode=1");
	world_judge(&w);
	was = world_of(&w, c)->verdict;
	world_text(c, "sustained", "not_finite", "energy_j, flop_rate_low");
	world_text(reading, "once", "not_finite", "ecc_row_share");
	world_judge(&w);
	assert_int_equal(world_of(&w, c)->verdict, was);
	assert_non_null(strstr(world_of(&w, c)->reason,
			       "; left out, not a finite number: energy_j, flop_rate_low (sustained)"));
	assert_non_null(strstr(world_of(&w, reading)->reason, "not a finite number: ecc_row_share (once)"));
	json_object_del(world_phase(c, "sustained")->values, "flop_rate");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_ERROR, CAUSE_DEFECT); /* absent for another reason */
	world_text(c, "sustained", "not_finite", "energy_j, flop_rate");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_NAN);
	assert_non_null(strstr(world_of(&w, c)->reason, "flop_rate is not a finite number"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_verdict__##name, begin_one, end)
		T(what_is_not_finite_is_told),
		T(wrong_data_fails_however_fast),
		T(a_mismatch_without_figures_fails_as_its_cause_says),
		T(a_result_nobody_checked_is_untrusted),
		T(a_record_without_its_figure_is_an_error),
		T(nonsense_figures_are_untrusted),
		T(heat_and_brakes_are_named),
		T(xids_belong_to_their_case_first_named),
		T(a_counter_that_ran_back_or_a_silent_sampler_passes_and_is_named),
		T(a_counter_that_differs_from_the_power_readings_is_named),
		T(a_stuck_counter_and_zeros_under_load_are_named),
		T(beside_other_work_nothing_is_trusted),
		T(unsettled_and_scattered_windows),
		T(an_unsettled_latency_is_untrusted_only_where_it_scatters),
		T(rounds_that_disagree_are_named),
#undef T
	};

	return cmocka_run_group_tests_name("judge_trust", tests, NULL, NULL);
}
