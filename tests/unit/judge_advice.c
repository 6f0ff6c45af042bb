/* SPDX-License-Identifier: Apache-2.0 */
/* What no factor explains, and what is advised. */
#include "judge_bed.h"
#include <math.h>

static void test_gap__ten_percent_too_much_work_is_an_unexplained_residual(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689 * 1.10, 1395, 695, 0.918);
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	j = world_of(&w, c);
	assert_float_equal(j->unexplained, 1.10, 0.01);
	assert_false(j->explained);
	assert_int_equal(j->verdict, VERDICT_WARN);
	assert_int_equal(j->cause, CAUSE_UNEXPLAINED);
}

static void test_gap__bytes_that_dram_does_not_show_are_not_explained(void **state)
{
	struct record_case *c = world_memory(&w, "gpu0", "gather", 1.0, 0.925);

	(void)state;
	world_memory(&w, "gpu0", "read", 3.1, 0.925);
	world_memory(&w, "gpu0", "copy", 3.0, 0.895);
	world_judge(&w);
	assert_false(world_of(&w, c)->explained);
	assert_true(world_of(&w, c)->unexplained < 0.4);
}

/* A figure that nobody asked to judge may lose a rest; above what its own signals allow it is doubted. */
static void test_gap__what_is_measured_alone_may_lose_a_rest(void **state)
{
	static const struct {
		double tflops;
		enum verdict verdict;
		enum cause cause;
	} rows[] = {{689 * 0.90, VERDICT_MEASURED, CAUSE_NO_REFERENCE},
		    {689 * 1.10, VERDICT_WARN, CAUSE_UNEXPLAINED}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* of a size that no band is for */
		struct record_case *c =
			world_gemm(&w, "gpu0", "bf16", i ? 6144 : 7168, rows[i].tflops, 1395, 695, 0.918);

		c->require = REQUIRE_MEASURED;
		world_judge(&w);
		assert_int_equal(world_of(&w, c)->verdict, rows[i].verdict);
		assert_int_equal(world_of(&w, c)->cause, rows[i].cause);
		assert_false(world_of(&w, c)->explained);
	}
}

static void test_gap__advice_promises_only_what_was_measured_here(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.85), *zeros;
	const struct judgement *j;

	(void)state;
	world_judge(&w);
	j = world_of(&w, c);
	assert_int_equal(j->advice_count, 2);
	assert_string_equal(j->advice[0].knob, "power limit and cooling");
	assert_string_equal(j->advice[0].gain, "at most x 1.42");
	assert_non_null(strstr(j->advice[1].gain, "almost nothing while the power cap applies"));
	zeros = world_gemm(&w, "gpu0", "bf16", 8192, 820, 1659, 460, 0.85);
	json_object_set_new(json_object_get((json_t *)zeros->plan, "options"), "data", json_string("zeros"));
	/* A case that searched is explained by one that did not: both figures are the first choice's. */
	json_object_set_new(json_object_get((json_t *)c->plan, "options"), "search", json_string("top"));
	json_object_set_new(json_object_get((json_t *)zeros->plan, "options"), "search",
			    json_string("first"));
	world_set(c, "best", "best_ratio", 1.04);
	world_set(c, "best", "best_ratio_low", 1.03);
	world_set(c, "best", "best_ratio_high", 1.05);
	world_text(c, "best", "variant", "algo 7");
	world_judge(&w);
	j = world_of(&w, c);
	assert_non_null(strstr(j->advice[0].gain, "up to x 1.19"));
	assert_string_equal(j->advice[1].gain, "x 1.040 (1.030 .. 1.050)");
	assert_non_null(strstr(j->advice[1].evidence, "algo 7"));
}

static void test_gap__a_search_that_found_nothing_gives_no_advice(void **state)
{
	struct record_case *c = world_gemm(&w, "gpu0", "bf16", 8192, 1000, 1975, 500, 0.95);

	(void)state;
	world_set(c, "best", "best_ratio", 1.001);
	world_set(c, "best", "best_ratio_low", 0.998);
	world_set(c, "best", "best_ratio_high", 1.004);
	world_judge(&w);
	assert_int_equal(world_of(&w, c)->advice_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_gap__##name, begin_one, end)
		T(ten_percent_too_much_work_is_an_unexplained_residual),
		T(bytes_that_dram_does_not_show_are_not_explained),
		T(what_is_measured_alone_may_lose_a_rest),
		T(advice_promises_only_what_was_measured_here),
		T(a_search_that_found_nothing_gives_no_advice),
#undef T
	};

	return cmocka_run_group_tests_name("judge_advice", tests, NULL, NULL);
}
