/* SPDX-License-Identifier: Apache-2.0 */
/* One among alike: outliers, slow links, two cases on one GPU. */
#include "judge_bed.h"

static void test_siblings__a_slow_gpu_among_eight_is_named_and_only_that(void **state)
{
	struct record_case *c[8];
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		c[i] = world_gemm(&w, target, "bf16", 8192, i == 5 ? 689 * 0.96 : 689 + i,
				  i == 5 ? 1395 * 0.96 : 1395, 695, 0);
		c[i]->together = true;
		c[i]->step = 0;
		world_set(c[i], "sustained", "temperature_c", i == 5 ? 79 : 70);
	}
	world_judge(&w);
	assert_verdict(&w, c[5], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	world_set(c[5], "sustained", "clock_reasons_or", 0x24);
	world_judge(&w);
	assert_verdict(&w, c[5], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_non_null(strstr(world_of(&w, c[5])->reason, "thermal_sw"));
	assert_non_null(strstr(world_of(&w, c[5])->reason, "hotter by 9 C"));
	for (i = 0; i < 8; i++)
		if (i != 5)
			assert_verdict(&w, c[i], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_siblings__an_outlier_seen_twice_fails(void **state)
{
	struct record_case *again;
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		world_gemm(&w, target, "bf16", 8192, i == 2 ? 700 : 725, i == 2 ? 1420 : 1470, 695, 0);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	again = world_gemm(&w, "gpu2", "bf16", 8192, 701, 1420, 695, 0);
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_int_equal(world_of(&w, again)->verdict, VERDICT_PASS);
}

static void test_siblings__siblings_judge_what_no_band_knows(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++) {
		char target[8];

		snprintf(target, sizeof(target), "gpu%u", i);
		world_gemm(&w, target, "bf16", 5000, i == 1 ? 420 : 600 + i, 1395, 695, 0);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_verdict(&w, &w.cases[0], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, &w.cases[0])->judged_by, JUDGED_SIBLINGS);
}

static struct record_case *burst(unsigned gpu, double tflops, double mhz)
{
	char target[8];
	struct record_case *c;

	snprintf(target, sizeof(target), "gpu%u", gpu);
	c = world_case(&w, "gemm", target, "compute.bf16", "type=bf16 m=4096 n=4096 k=4096");
	c->engine = "cublaslt";
	c->require = REQUIRE_MEASURED;
	world_set(c, "burst", "flop_rate", tflops * 1e12);
	world_set(c, "burst", "clock_hz", mhz * 1e6);
	world_set(c, "burst", "half_width_share", 0.004);
	world_verified(c);
	return c;
}

/* What four H200 of one host gave: 5.6 % apart, 0.8 % at the clock that each held. */
static void test_siblings__bursts_are_alike_at_the_clocks_they_held(void **state)
{
	static const struct {
		double tflops, mhz;
	} healthy[] = {{744.8, 1530.6}, {784.9, 1623.3}, {788.4, 1632.9}, {759.0, 1565.1}};
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		burst(i, healthy[i].tflops, healthy[i].mhz);
	world_judge(&w);
	for (i = 0; i < 4; i++)
		assert_verdict(&w, &w.cases[i], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_siblings__a_burst_that_is_slow_at_its_clock_is_told(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		burst(i, i == 2 ? 757 : 780, 1600 + i);
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	assert_non_null(strstr(world_of(&w, &w.cases[2])->reason, "at the held clocks, beyond 2.0 %"));
	burst(2, 757, 1602);
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_int_equal(world_of(&w, &w.cases[1])->verdict, VERDICT_PASS);
	/* The repeat has another clock and the same rate at it: nothing was seen again. */
	world_set(&w.cases[4], "burst", "flop_rate", 780e12 / 1602 * 1500);
	world_set(&w.cases[4], "burst", "clock_hz", 1500e6);
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
}

static void test_siblings__one_clock_that_is_not_known_leaves_the_rates(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct record_case *c = burst(i, i ? 780 : 700, i ? 1600 : 1436);

		if (i == 3)
			json_object_del(world_phase(c, "burst")->values, "clock_hz");
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[0], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
	assert_null(strstr(world_of(&w, &w.cases[0])->reason, "at the held clocks"));
}

/* Launches of four other H200: one 24 % above the rest. */
static void test_siblings__launches_of_healthy_gpus_differ_by_a_quarter(void **state)
{
	static const double us[] = {3.13, 3.89, 3.02, 3.14};
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		char target[8];
		struct record_case *c;

		snprintf(target, sizeof(target), "gpu%u", i);
		c = world_case(&w, "dispatch", target, "latency", "what=launch nodes=100");
		c->require = REQUIRE_MEASURED;
		world_set(c, "burst", "latency_ns", us[i] * 1e3);
		world_verified(c);
	}
	world_judge(&w);
	for (i = 0; i < 4; i++)
		assert_verdict(&w, &w.cases[i], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	world_set(&w.cases[1], "burst", "latency_ns", 4.2e3);
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_WARN, CAUSE_SIBLING_OUTLIER);
	world_set(&w.cases[1], "burst", "latency_ns", 6.4e3);
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_SIBLING_OUTLIER);
}

static void test_siblings__limits_go_by_what_is_compared(void **state)
{
	(void)state;
	assert_true(siblings_limit_of("gemm", "compute.bf16").flag == SIBLINGS_FLAG);
	assert_true(siblings_limit_of("link", "link.h2d").fail == SIBLINGS_FAIL);
	assert_true(siblings_limit_of("link", "latency").flag == 0.30);
	assert_true(siblings_limit_of("memory", "latency").flag == 0.10); /* a chase: the device's alone */
	assert_true(siblings_limit_of("sm", "latency").flag == SIBLINGS_FLAG);
}

static void test_siblings__two_cases_on_one_gpu_at_once_are_shared(void **state)
{
	struct record_case *a = world_gemm(&w, "gpu0", "bf16", 8192, 350, 1395, 695, 0);
	struct record_case *b = world_gemm(&w, "gpu0", "bf16", 8192, 350, 1395, 695, 0);

	(void)state;
	a->together = b->together = true;
	a->step = b->step = 3;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_FAIL, CAUSE_GPU_SHARED);
	assert_verdict(&w, b, VERDICT_FAIL, CAUSE_GPU_SHARED);
}

/* A collective that was skipped for want of a second GPU did not use the first one. */
static void test_siblings__a_skipped_case_shares_no_gpu(void **state)
{
	struct record_case *a = world_gemm(&w, "gpu0", "bf16", 8192, 700, 1395, 695, 0);
	struct record_case *b = world_gemm(&w, "gpu0", "bf16", 8192, 700, 1395, 695, 0);

	(void)state;
	a->together = b->together = true;
	a->step = b->step = 3;
	b->skipped = true;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_siblings__eight_ranks_on_one_gpu_are_shared(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 80, 1395, 695, 0);

		c->lockstep = true;
		c->step = 3;
	}
	world_judge(&w);
	for (unsigned i = 0; i < 8; i++)
		assert_verdict(&w, &w.cases[i], VERDICT_FAIL, CAUSE_GPU_SHARED);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_siblings__the_leave_one_out_median_is_not_moved_by_the_outlier(void **state)
{
	const double x[] = {100, 101, 99, 60};
	double limit;

	(void)state;
	assert_float_equal(siblings_deviation(x, 4, 3, &limit), 60.0 / 100 - 1, 1e-9);
	assert_float_equal(limit, 0.03, 1e-9); /* 3 MAD of 100, 101, 99 */
	assert_float_equal(siblings_deviation(x, 2, 0, &limit), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_siblings__##name, setup, end)
		T(begin_eight, a_slow_gpu_among_eight_is_named_and_only_that),
		T(begin_eight, an_outlier_seen_twice_fails),
		T(begin_eight, siblings_judge_what_no_band_knows),
		T(begin_eight, bursts_are_alike_at_the_clocks_they_held),
		T(begin_eight, a_burst_that_is_slow_at_its_clock_is_told),
		T(begin_eight, one_clock_that_is_not_known_leaves_the_rates),
		T(begin_eight, launches_of_healthy_gpus_differ_by_a_quarter),
		T(begin_one, limits_go_by_what_is_compared),
		T(begin_one, two_cases_on_one_gpu_at_once_are_shared),
		T(begin_one, a_skipped_case_shares_no_gpu),
		T(begin_one, eight_ranks_on_one_gpu_are_shared),
		T(begin_one, the_leave_one_out_median_is_not_moved_by_the_outlier),
#undef T
	};

	return cmocka_run_group_tests_name("judge_siblings", tests, NULL, NULL);
}
