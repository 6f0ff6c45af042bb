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

static void test_siblings__a_slow_link_is_named_with_its_direction(void **state)
{
	static const char *const pairs[] = {"gpu0+gpu1", "gpu1+gpu0", "gpu3+gpu6", "gpu6+gpu3", "gpu2+gpu5"};
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct record_case *c = world_case(&w, "link", pairs[i], "link.p2p", "direction=p2p");

		c->work_link = 1e9;
		world_set(c, "sustained", "link_rate", i == 2 ? 180e9 : 390e9);
		world_verified(c);
	}
	world_judge(&w);
	assert_verdict(&w, &w.cases[2], VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_non_null(strstr(world_of(&w, &w.cases[2])->reason, "gpu3+gpu6"));
	assert_int_equal(world_of(&w, &w.cases[3])->verdict, VERDICT_PASS);
}

/* Every ordered pair of the first `gpus`, 390 GB/s each over 18 links of 26.5625 GB/s. */
static void all_pairs(unsigned gpus, const char *limit)
{
	for (unsigned a = 0; a < gpus; a++)
		for (unsigned b = 0; b < gpus; b++) {
			struct record_case *c;
			char target[16];

			if (a == b)
				continue;
			snprintf(target, sizeof(target), "gpu%u>gpu%u", a, b);
			c = world_case(&w, "p2p", target, limit, "size=64MiB");
			c->engine = "driver";
			c->work_link = 0x1p26;
			world_set(c, "sustained", "link_rate", 390e9);
			world_set(c, "once", "nvlinks", 18);
			world_set(c, "once", "nvlinks_most", 18);
			world_set(c, "once", "nvlink_rate_raw", 26.5625e9);
			world_text(c, "once", "path", "NV18");
			world_verified(c);
		}
}

static struct record_case *pair(const char *target)
{
	for (size_t i = 0; i < w.r.case_count; i++)
		if (!strcmp(w.cases[i].target, target))
			return &w.cases[i];
	fail_msg("no case on %s", target);
	abort(); /* the line above does not come back */
}

static const char *reason(const char *target)
{
	return world_of(&w, pair(target))->reason;
}

static void test_siblings__the_reverse_of_a_slow_direction_is_told(void **state)
{
	(void)state;
	all_pairs(8, "link.p2p");
	world_set(pair("gpu3>gpu6"), "sustained", "link_rate", 197e9);
	world_judge(&w);
	assert_verdict(&w, pair("gpu3>gpu6"), VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_string_equal(reason("gpu3>gpu6"),
			    "gpu3>gpu6: 197 GB/s, 49.5 % below the median of the other 55; gpu6>gpu3 390 GB/s is fine");
	assert_int_equal(world_of(&w, pair("gpu6>gpu3"))->verdict, VERDICT_PASS);
	world_set(pair("gpu6>gpu3"), "sustained", "link_rate", 300e9);
	world_judge(&w);
	assert_non_null(strstr(reason("gpu3>gpu6"), "gpu6>gpu3 300 GB/s is slow as well"));
	assert_null(strstr(reason("gpu3>gpu6"), "its links"));
}

static void test_siblings__a_gpu_slow_to_most_others_is_named_itself(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	world_set(pair("gpu2>gpu0"), "sustained", "link_rate", 250e9);
	world_set(pair("gpu2>gpu3"), "sustained", "link_rate", 251e9);
	world_judge(&w);
	assert_non_null(strstr(reason("gpu2>gpu0"), "0000:12:00.0 sends slowly to 2 of 3: its links, not the pair"));
	world_set(pair("gpu2>gpu0"), "sustained", "link_rate", 390e9);
	world_set(pair("gpu0>gpu3"), "sustained", "link_rate", 250e9);
	world_judge(&w);
	assert_non_null(
		strstr(reason("gpu0>gpu3"), "0000:13:00.0 receives slowly from 2 of 3: its links, not the pair"));
}

static void test_siblings__links_bound_a_pair(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	all_pairs(2, "link.p2p.both");
	world_judge(&w);
	assert_float_equal(world_of(&w, &w.cases[0])->bound.value, 450e9, 1e6);
	assert_string_equal(world_of(&w, &w.cases[0])->bound.formula, "18 NVLinks x 26.5625 GB/s x 16/17");
	assert_float_equal(world_of(&w, &w.cases[2])->bound.value, 900e9, 1e6);
	world_set(&w.cases[0], "once", "nvlinks", 12);
	world_set(&w.cases[0], "once", "nvlinks_most", 12);
	world_set(&w.cases[1], "sustained", "link_rate", 460e9);
	world_judge(&w);
	assert_verdict(&w, &w.cases[0], VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND); /* 390 of 12 links' 300 */
	assert_verdict(&w, &w.cases[1], VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	world_set(&w.cases[0], "once", "nvlinks", 0);
	world_text(&w.cases[0], "once", "path", "PIX");
	world_set(&w.cases[0], "sustained", "link_rate", 50e9);
	world_judge(&w);
	assert_float_equal(world_of(&w, &w.cases[0])->bound.value, 16 * 32e9 / 8 * 128 / 130, 1e6);
	world_text(&w.cases[0], "once", "path", "peer"); /* nobody tells what lies between */
	world_judge(&w);
	assert_int_equal(world_of(&w, &w.cases[0])->bound.from, BOUND_NONE);
}

static void test_siblings__links_that_are_down_and_access_that_is_denied_are_told(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	world_set(&w.cases[0], "once", "nvlinks", 12);
	world_set(&w.cases[0], "sustained", "link_rate", 260e9);
	world_set(&w.cases[1], "once", "nvlinks_denied", 18);
	world_text(&w.cases[1], "once", "path", "host");
	world_set(&w.cases[1], "sustained", "link_rate", 30e9);
	world_judge(&w);
	assert_verdict(&w, &w.cases[0], VERDICT_FAIL, CAUSE_NVLINK_COUNT);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_non_null(strstr(world_of(&w, &w.cases[1])->reason, "no use of"));
	w.cases[1].require = REQUIRE_MEASURED; /* PCIe alone: many a driver allows it not */
	world_set(&w.cases[1], "once", "nvlinks_denied", 0);
	world_set(&w.cases[1], "once", "peer_access", 0);
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_WARN, CAUSE_LINK_SLOW);
	assert_non_null(strstr(world_of(&w, &w.cases[1])->reason, "through the host"));
}

static void test_siblings__a_band_judges_a_pair_where_the_card_is_known(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	for (size_t i = 0; i < 2; i++)
		json_object_set_new(json_object_get(w.cases[i].plan, "options"), "size", json_string("1073741824"));
	world_set(&w.cases[1], "sustained", "link_rate", 250e9);
	world_judge(&w);
	assert_verdict(&w, &w.cases[0], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, &w.cases[0])->judged_by, JUDGED_BAND);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_BELOW_BAND);
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
		T(begin_eight, a_slow_link_is_named_with_its_direction),
		T(begin_eight, the_reverse_of_a_slow_direction_is_told),
		T(begin_eight, a_gpu_slow_to_most_others_is_named_itself),
		T(begin_eight, links_bound_a_pair),
		T(begin_eight, links_that_are_down_and_access_that_is_denied_are_told),
		T(begin_eight, a_band_judges_a_pair_where_the_card_is_known),
		T(begin_one, two_cases_on_one_gpu_at_once_are_shared),
		T(begin_one, the_leave_one_out_median_is_not_moved_by_the_outlier),
#undef T
	};

	return cmocka_run_group_tests_name("judge_siblings", tests, NULL, NULL);
}
