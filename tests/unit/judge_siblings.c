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
		T(begin_one, two_cases_on_one_gpu_at_once_are_shared),
		T(begin_one, eight_ranks_on_one_gpu_are_shared),
		T(begin_one, the_leave_one_out_median_is_not_moved_by_the_outlier),
#undef T
	};

	return cmocka_run_group_tests_name("judge_siblings", tests, NULL, NULL);
}
