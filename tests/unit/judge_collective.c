/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: what the links allow, what the switch adds, and where the rest went. */
#include "judge_collective.h"
#include <math.h>

static void test_collective__the_links_bound_a_ring(void **state)
{
	struct record_case *c = all_reduce(4, "8GiB", 363, 0);
	const struct judgement *j = judged(c);

	(void)state;
	assert_true(fabs(j->bound.value - 450e9) < 0.1e9);
	assert_string_equal(j->bound.formula, "18 NVLinks x 26.5625 GB/s x 16/17");
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_non_null(strstr(j->reason, "363 GB/s, in 358 GB/s .. 368 GB/s"));
}

static void test_collective__the_gpu_with_the_fewest_links_bounds_all(void **state)
{
	struct record_case *c = all_reduce(4, "8GiB", 240, 0);

	(void)state;
	world_fact(&w.gpu[2], GPU_FACT_nvlink_active, 12);
	assert_true(fabs(judged(c)->bound.value - 300e9) < 0.1e9);
}

static void test_collective__more_than_the_links_is_not_trusted(void **state)
{
	struct record_case *ring = all_reduce(4, "8GiB", 470, 0), *two = all_reduce(2, "8GiB", 470, -1);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, ring, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_verdict(&w, two, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND); /* the switch gains nothing there */
}

/* Of windows, and beside a user's own profiler, NCCL tells nothing. */
static void test_collective__where_it_is_not_told_the_switch_may_add(void **state)
{
	struct record_case *good = all_reduce(4, "4GiB", 470, -1), *more = all_reduce(4, "2GiB", 560, -1);

	(void)state;
	good->require = REQUIRE_MEASURED;
	world_judge(&w);
	assert_verdict(&w, good, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_true(fabs(world_of(&w, good)->bound.value - 450e9 * 6 / 5) < 0.2e9);
	assert_non_null(strstr(world_of(&w, good)->bound.formula, "the switch may add (NCCL did not report it)"));
	assert_verdict(&w, more, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_collective__a_switch_that_cannot_add_explains_nothing(void **state)
{
	struct record_case *c = all_reduce(4, "4GiB", 470, -1);

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		world_fact(&w.gpu[i], GPU_FACT_cc, 80);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_collective__the_switch_explains_more_than_the_links(void **state)
{
	struct record_case *c = all_reduce(8, "8GiB", 475, 1), *false_one = all_reduce(8, "4GiB", 720, 1);
	const struct judgement *j = judged(c);

	(void)state;
	assert_true(fabs(j->bound.value - 450e9 * 14 / 9) < 0.2e9);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_ABOVE_LINK);
	assert_verdict(&w, false_one, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static double factor_of(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name) && j->gap[i].present)
			return j->gap[i].value;
	return 0;
}

static void test_collective__the_gap_has_protocol_latency_and_skew(void **state)
{
	static const char *const sizes[] = {"1MiB", "4MiB", "16MiB", "64MiB"};
	struct record_case *c[4];
	const struct judgement *j;

	(void)state;
	for (int i = 0; i < 4; i++) { /* 20 us and 200 GB/s of size */
		double bytes = ldexp(1, 20 + 2 * i), ns = 20e3 + bytes / 200;

		c[i] = all_reduce(4, sizes[i], 1.5 * bytes / ns, 0);
		world_set(c[i], "sustained", "time_ns_mean", ns);
		world_text(c[i], "once", "protocol", "ll128");
	}
	world_set(c[2], "sustained", "skew_ns", 2000);
	j = judged(c[2]);
	assert_true(fabs(factor_of(j, "protocol") - 120.0 / 128) < 1e-9);
	assert_true(fabs(factor_of(j, "latency") - (1 - 20e3 / (20e3 + 0x1p24 / 200))) < 1e-3);
	assert_true(fabs(factor_of(j, "skew") - (1 - 2e3 / (20e3 + 0x1p24 / 200))) < 1e-9);
	assert_true(j->has_explained_share && j->explained_share > 0 && j->explained_share < 1);
	assert_int_equal(j->verdict, VERDICT_UNKNOWN);
	assert_true(factor_of(world_of(&w, c[0]), "skew") == 0); /* not timed there */
}

static void test_collective__what_is_not_told_has_no_chain(void **state)
{
	struct record_case *c = all_reduce(4, "64MiB", 300, -1);

	(void)state;
	world_set(c, "sustained", "time_ns_mean", 3e5);
	assert_int_equal(judged(c)->gap_count, 0);
}

static void test_collective__a_short_one_is_its_latency(void **state)
{
	struct record_case *c = all_reduce(4, "8", 1, 0);
	const struct judgement *j;

	(void)state;
	c->limit = "latency";
	c->phases = "burst";
	c->require = REQUIRE_MEASURED;
	world_set(c, "sustained", "latency_ns", 8500);
	j = judged(c);
	assert_int_equal(j->bound.from, BOUND_NONE);
	assert_true(fabs(j->figure - 8500) < 1e-9);
	assert_string_equal(j->figure_unit, "ns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_collective__##name, begin_h200, end)
		T(a_short_one_is_its_latency),
		T(a_switch_that_cannot_add_explains_nothing),
		T(more_than_the_links_is_not_trusted),
		T(the_gap_has_protocol_latency_and_skew),
		T(the_gpu_with_the_fewest_links_bounds_all),
		T(the_links_bound_a_ring),
		T(the_switch_explains_more_than_the_links),
		T(what_is_not_told_has_no_chain),
		T(where_it_is_not_told_the_switch_may_add),
#undef T
	};

	return cmocka_run_group_tests_name("judge_collective", tests, NULL, NULL);
}
