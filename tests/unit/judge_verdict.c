/* SPDX-License-Identifier: Apache-2.0 */
#include "judge_bed.h"

static void test_verdict__a_healthy_gemm_passes_with_low_confidence(void **state)
{
	struct record_case *c = healthy();
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	j = world_of(&w, c);
	assert_true(j->has_band && j->low_confidence && j->judged_by == JUDGED_BAND);
	assert_string_equal(j->phase, "sustained");
	assert_string_equal(j->bound.formula, "132 SM x 4096 FLOP x 1.980 GHz");
	assert_float_equal(j->bound.value, 1070.5e12, 0.1e12);
	assert_float_equal(j->share_of_bound, 0.6436, 0.0005);
	assert_float_equal(j->efficiency_held, 0.9135, 0.0005);
	assert_non_null(strstr(j->band.place, "bands/h100.yaml:"));
	assert_int_equal(w.out.exit_code, 0);
}

static void rate_is(double tflops, double mhz, enum verdict v, enum cause cause)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, tflops, mhz, 695, 0);

	world_judge(&w);
	assert_verdict(&w, c, v, cause);
}

static void test_verdict__below_the_band_warns_and_far_below_fails(void **state)
{
	(void)state;
	rate_is(640, 1310, VERDICT_WARN, CAUSE_BELOW_BAND);
	assert_non_null(strstr(w.out.of_case[0].reason, "more than 5 % off fails"));
}

static void test_verdict__under_three_quarters_of_the_band_fails(void **state)
{
	(void)state;
	rate_is(480, 1395, VERDICT_FAIL, CAUSE_BELOW_BAND);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_verdict__above_the_band_the_band_is_stale(void **state)
{
	(void)state;
	rate_is(810, 1635, VERDICT_WARN, CAUSE_BAND_STALE);
}

static void test_verdict__low_efficiency_at_a_high_clock_is_seen_inside_the_rate_band(void **state)
{
	(void)state;
	rate_is(700, 1600, VERDICT_WARN, CAUSE_LOW_EFFICIENCY); /* 0.809 of the held clock */
}

static void test_verdict__a_low_clock_with_full_efficiency_is_the_clock(void **state)
{
	(void)state;
	rate_is(645, 1290, VERDICT_WARN, CAUSE_LOW_CLOCK);
}

static void test_verdict__work_counted_twice_is_above_the_bound(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 2 * 689, 1395, 695, 0.918);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_int_equal(w.out.exit_code, 2);
}

static void test_verdict__above_what_the_held_clock_allows_is_untrusted_too(void **state)
{
	(void)state;
	rate_is(790, 1395, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND); /* below 1070, above 754 */
}

static void test_verdict__what_nothing_judges_is_unknown(void **state)
{
	struct record_case *odd = world_gemm(&w, "gpu0", "bf16", 5000, 600, 1400, 695, 0);
	struct record_case *int8 = world_gemm(&w, "gpu0", "int8", 8192, 948, 1400, 695, 0);
	struct record_case *curve = world_memory(&w, "gpu0", "read", 5.1, 0);
	struct record_case *cache = world_memory(&w, "gpu0", "read", 9.9, 0);

	(void)state;
	curve->phases = "burst";
	curve->work_read = 64e6;
	cache->limit = "cache";
	world_judge(&w);
	assert_verdict(&w, odd, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_verdict(&w, int8, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_non_null(strstr(world_of(&w, int8)->reason, "layout"));
	assert_verdict(&w, cache, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, cache)->bound.from, BOUND_NONE);
	assert_int_equal(world_of(&w, curve)->bound.from, BOUND_NONE);
}

/* The plan asks for its figure alone: a sound one is all that it asks; an unsound one is none. */
static void test_verdict__a_figure_that_nobody_asked_to_judge_is_measured(void **state)
{
	struct record_case *int8 = world_gemm(&w, "gpu0", "int8", 8192, 948, 1400, 695, 0);
	struct record_case *odd = world_gemm(&w, "gpu0", "bf16", 5000, 600, 1400, 695, 0);

	(void)state;
	int8->require = REQUIRE_MEASURED;
	odd->require = REQUIRE_NOTHING;
	world_judge(&w);
	assert_verdict(&w, int8, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_non_null(strstr(world_of(&w, int8)->reason, "layout"));
	assert_verdict(&w, odd, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	world_set(int8, "sustained", "settled", 0);
	world_set(int8, "sustained", "half_width_share", 0.01);
	world_set(odd, "sustained", "half_width_share", 0.06);
	world_judge(&w);
	assert_verdict(&w, int8, VERDICT_WARN, CAUSE_UNSETTLED);
	assert_verdict(&w, odd, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD);
}

/* What ended well without a figure was not measured. */
static void test_verdict__without_a_figure_it_stays_unknown(void **state)
{
	struct record_case *c = world_case(&w, "none", "gpu0", "", "");

	(void)state;
	c->require = REQUIRE_MEASURED;
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
}

static void test_verdict__a_changed_power_limit_or_a_slice_has_no_band(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	world_fact(&w.gpu[0], GPU_FACT_power_limit_w, 500);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	world_fact(&w.gpu[0], GPU_FACT_power_limit_w, 700);
	world_fact(&w.gpu[0], GPU_FACT_mig_mode, 1);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	world_fact(&w.gpu[0], GPU_FACT_mig_mode, 0);
	world_fact(&w.gpu[0], GPU_FACT_virtualization, 2);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
}

static void test_verdict__an_unknown_product_has_a_bound_and_no_band(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	w.gpu[0].pci_device = 0x2329u << 16 | 0x10de;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_float_equal(world_of(&w, c)->bound.value, 1070.5e12, 0.1e12);
}

static void test_verdict__memory_is_held_against_its_operation(void **state)
{
	struct record_case *read = world_memory(&w, "gpu0", "read", 3.09, 0), *small, *twice, *slow;

	(void)state;
	small = world_memory(&w, "gpu0", "copy", 2.95, 0);
	json_object_set_new(json_object_get((json_t *)small->plan, "options"), "size",
			    json_string("1073741824"));
	twice = world_memory(&w, "gpu0", "add", 6.0, 0);
	slow = world_memory(&w, "gpu0", "triad", 1.6, 0);
	world_judge(&w);
	assert_verdict(&w, read, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_float_equal(world_of(&w, read)->bound.value, 3.352e12, 0.001e12);
	assert_verdict(&w, small, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_verdict(&w, twice, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_verdict(&w, slow, VERDICT_FAIL, CAUSE_BELOW_BAND);
}

static struct record_case *copy(double gbs, double width, double gen)
{
	struct record_case *c = world_case(&w, "link", "gpu0", "link.h2d", "direction=h2d memory=pinned");

	c->work_link = 1e9;
	world_set(c, "sustained", "link_rate", gbs * 1e9);
	world_set(c, "once", "pcie_width_loaded", width);
	world_set(c, "once", "pcie_gen_loaded", gen);
	world_verified(c);
	return c;
}

static void test_verdict__lanes_and_generation_count_under_load(void **state)
{
	struct record_case *good = copy(55.1, 16, 5), *narrow = copy(27, 8, 5), *old = copy(27, 16, 4);
	struct record_case *idle = world_reading(&w, "pcie_state", "gpu0",
						 "pcie_gen=1 pcie_gen_max=5 pcie_width=16 pcie_width_max=16");

	(void)state;
	world_judge(&w);
	assert_verdict(&w, good, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_float_equal(world_of(&w, good)->bound.value, 63.0e9, 0.1e9);
	assert_verdict(&w, narrow, VERDICT_FAIL, CAUSE_BELOW_BAND);
	assert_verdict(&w, old, VERDICT_FAIL, CAUSE_BELOW_BAND);
	assert_verdict(&w, idle, VERDICT_PASS, CAUSE_NONE);
}

static void test_verdict__narrow_lanes_in_the_sampler_fail_a_fast_enough_copy(void **state)
{
	struct record_case *c = world_case(&w, "link", "gpu0", "link.h2d", "direction=h2d memory=pinned");
	struct series *s = world_series(&w, "gpu:0000:10:00.0", "pcie_width", SIGNAL_GAUGE);

	(void)state;
	c->work_link = 1e9;
	world_verified(c);
	world_set(c, "sustained", "link_rate", 53e9);
	series_add(s, c->t0_ns + 1500000000, 8, NULL);
	series_add(s, c->t0_ns + 2500000000, 8, NULL);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_PCIE_WIDTH);
}

/* Figures stand without telemetry where the GPU never gave any. What it gave before must be there
 * (judge_changes.c has each signal). */
static void test_verdict__a_lost_sampler_leaves_figures_standing_where_nothing_came_before(void **state)
{
	struct record_case *c = healthy(), *nvml = world_reading(&w, "clock_state", "gpu0", ""), *later;
	struct series *s;

	(void)state;
	nvml->status = STATUS_UNAVAILABLE;
	nvml->cause = CAUSE_TELEMETRY_LOST;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, nvml, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
	later = healthy();
	s = world_series(&w, "gpu:0000:10:00.0", "clock_reasons", SIGNAL_BITS);
	series_add(s, c->t0_ns + 2000000000, 0, NULL);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, later, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
}

static void test_verdict__a_probe_s_own_field_can_fail_it(void **state)
{
	struct record_case *c = world_case(&w, "sm", "gpu0", "latency", "type=bf16");

	(void)state;
	world_set(c, "sustained", "latency_ns", 5e6);
	world_set(c, "once", "slow_sms", 0);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_NONE);
	assert_int_equal(world_of(&w, c)->judged_by, JUDGED_RULE);
	world_set(c, "once", "slow_sms", 1);
	world_text(c, "once", "slow_place", "SM 17 (TPC 8)");
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_SLOW_SM);
	assert_non_null(strstr(world_of(&w, c)->reason, "SM 17 (TPC 8)"));
}

static void test_verdict__stress_is_judged_by_its_data(void **state)
{
	struct record_case *c = world_case(&w, "stress", "gpu0", "compute.bf16", "unit=tensor type=bf16");

	(void)state;
	world_set(c, "sustained", "flop_rate", 600e12);
	world_verified(c);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_NONE);
	world_set(c, "verify", "wrong_count", 2);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_WRONG_RESULT);
}

static void test_verdict__latency_is_measured_and_unjudged(void **state)
{
	struct record_case *c = world_case(&w, "dispatch", "gpu0", "latency", "");

	(void)state;
	world_set(c, "sustained", "latency_ns", 2300);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_float_equal(world_of(&w, c)->figure, 2300, 0);
}

/* What nobody could judge is measured; what should have been judged and was not stays open. */
static void test_verdict__one_probe_is_judged_where_a_reference_is_known(void **state)
{
	struct record_case *peak = world_case(&w, "peak", "cpu", "compute.fp32", "type=fp32 threads=2"), *odd;
	struct record_case *gemm = world_case(&w, "gemm", "cpu", "compute.fp32",
					      "type=fp32 m=2048 n=2048 k=2048 batch=1 data=random");
	struct record_case *banded = world_gemm(&w, "gpu0", "bf16", 8192, 400, 1395, 695, 0.918), *reading;
	struct record_case *const cases[] = {peak, gemm, banded};

	(void)state;
	odd = world_gemm(&w, "gpu0", "int8", 8192, 900, 1395, 695, 0.918); /* listed as judged by nothing */
	reading = world_reading(&w, "versions", "node", "driver_text=none nvml_version=13.x");
	reading->require = odd->require = REQUIRE_KNOWN;
	for (size_t i = 0; i < 3; i++) {
		cases[i]->require = REQUIRE_KNOWN;
		world_set(cases[i], "sustained", "half_width_share", 0.002);
		world_verified(cases[i]);
	}
	world_set(peak, "sustained", "flop_rate", 60e9);
	world_set(gemm, "sustained", "flop_rate", 50e9);
	world_judge(&w);
	assert_verdict(&w, peak, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, odd, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, gemm, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_non_null(strstr(world_of(&w, gemm)->reason, "no usable ceiling with the same number of threads"));
	assert_verdict(&w, banded, VERDICT_FAIL, CAUSE_BELOW_BAND);
	assert_verdict(&w, reading, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_int_equal(w.out.exit_code, 1);
	banded->require = REQUIRE_NOTHING;
	world_set(banded, "sustained", "flop_rate", 689e12);
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 2);
	assert_non_null(strstr(w.out.headline, "1 of 5 cases have no verdict; first gemm"));
	gemm->require = REQUIRE_NOTHING;
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 0); /* a ceiling, a format and a reading that nothing judges */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_verdict__##name, begin_one, end)
		T(a_healthy_gemm_passes_with_low_confidence),
		T(one_probe_is_judged_where_a_reference_is_known),
		T(below_the_band_warns_and_far_below_fails),
		T(under_three_quarters_of_the_band_fails),
		T(above_the_band_the_band_is_stale),
		T(low_efficiency_at_a_high_clock_is_seen_inside_the_rate_band),
		T(a_low_clock_with_full_efficiency_is_the_clock),
		T(work_counted_twice_is_above_the_bound),
		T(above_what_the_held_clock_allows_is_untrusted_too),
		T(what_nothing_judges_is_unknown),
		T(a_figure_that_nobody_asked_to_judge_is_measured),
		T(without_a_figure_it_stays_unknown),
		T(a_changed_power_limit_or_a_slice_has_no_band),
		T(an_unknown_product_has_a_bound_and_no_band),
		T(memory_is_held_against_its_operation),
		T(lanes_and_generation_count_under_load),
		T(narrow_lanes_in_the_sampler_fail_a_fast_enough_copy),
		T(a_lost_sampler_leaves_figures_standing_where_nothing_came_before),
		T(a_probe_s_own_field_can_fail_it),
		T(stress_is_judged_by_its_data),
		T(latency_is_measured_and_unjudged),
#undef T
	};

	return cmocka_run_group_tests_name("judge_verdict", tests, NULL, NULL);
}
