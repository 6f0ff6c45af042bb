/* SPDX-License-Identifier: Apache-2.0 */
/* The search among an engine's variants, and the pairs that confirm it. */
#include "phases_bed.h"

static void test_phases__the_best_is_timed_against_the_first_in_pairs(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "4"); /* v3 takes 1/1.03 of the time */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(text(&b, "sustained", "variant"), "v0"); /* the judged figure is the first's */
	near(value(&b, "sustained", "time_ns_mean"), 1e6, 1e-9);
	assert_string_equal(text(&b, "best", "variant"), "v3");
	near(value(&b, "best", "time_ns_mean"), 1e6 / 1.03, 1e-6);
	near(value(&b, "best", "best_ratio"), 1.03, 1e-6);
	near(value(&b, "best", "best_ratio_low"), 1.03, 1e-6);
	assert_true(value(&b, "best", "variants_tried") == 4);
	assert_non_null(json_object_get(b.seen.t0, "pairs"));
	bed_release(&b);
}

static void test_phases__a_first_that_is_best_needs_no_pairs(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "3");
	bed_set(&b, "fail", "select"); /* all but the first refuse */
	bed_set(&b, "status", "unsupported");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(value(&b, "best", "variants_tried") == 1);
	assert_true(value(&b, "best", "best_ratio") == 1);
	assert_null(json_object_get(b.seen.t0, "pairs"));
	bed_release(&b);
}

static void test_phases__a_hopeless_variant_is_dropped_after_two_samples(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "6");
	bed_set(&b, "slow_from", "4"); /* 4 and 5 take twice the time */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(text(&b, "best", "variant"), "v3");
	assert_true(value(&b, "best", "variants_tried") == 4);
	assert_true(value(&b, "best", "variants_dropped") == 2);
	assert_true(value(&b, "best", "variants_left") == 0);
	assert_non_null(strstr(b.seen.order, "search 4/6"));
	assert_null(strstr(b.seen.order, "search 5/6")); /* neither verified nor timed */
	bed_release(&b);
}

static void test_phases__a_search_keeps_to_its_budget(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "50");
	b.c.search_s = 0.2; /* a variant takes some 25 ms */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(length_s(&b, "search") >= 0.2 && length_s(&b, "search") < 0.24);
	assert_true(value(&b, "best", "variants_left") > 35);
	assert_true(value(&b, "best", "variants_tried") + value(&b, "best", "variants_left") == 50);
	near(value(&b, "best", "best_ratio"), 1 + 0.01 * (value(&b, "best", "variants_tried") - 1), 1e-6);
	bed_release(&b);
}

/* An engine whose list of variants took 0.15 s. */
static enum status list_slowly(void *state, const struct bench *b, const void *opts, struct error *err)
{
	assert_true(b->search_s == 0.2);
	assert_non_null(b->stop);
	result_f64(b->out, &field_listing_s, 0.15);
	return probe_null.engines[0]->prepare(state, b, opts, err);
}

static void test_phases__what_listing_took_is_taken_from_the_searchs_budget(void **state)
{
	struct engine engine = *probe_null.engines[0];
	struct bed b;

	(void)state;
	engine.prepare = list_slowly;
	bed_init(&b, PHASES_HEADLINE, 1);
	b.c.engine = &engine;
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "50");
	b.c.search_s = 0.2;
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(length_s(&b, "search") >= 0.05 && length_s(&b, "search") < 0.09);
	assert_true(value(&b, "once", "listing_s") == 0.15);
	bed_release(&b);
}

static void test_phases__without_a_wish_a_search_takes_half_of_the_cases_limit(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "50");
	b.c.limit_ms = 1000;
	bed_run(&b);
	assert_true(length_s(&b, "search") >= 0.5 && length_s(&b, "search") < 0.54);
	bed_release(&b);
}

static void test_phases__a_stopped_search_keeps_the_best_so_far(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "50");
	b.seen.stop_at = "search 11/50";
	bed_run(&b);
	assert_int_equal(b.status, STATUS_CANCELLED);
	assert_string_equal(text(&b, "best", "variant"), "v9"); /* the eleventh was not timed */
	assert_true(value(&b, "best", "variants_tried") == 10);
	assert_true(value(&b, "best", "variants_left") == 40);
	near(value(&b, "best", "nominated_ratio"), 1.09, 1e-6);
	assert_true(value(&b, "best", "best_ratio") == -1); /* no pairs were taken */
	bed_release(&b);
}

static void test_phases__pairs_that_were_stopped_leave_the_nominee(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "4");
	b.seen.stop_at = "pairs";
	bed_run(&b);
	assert_int_equal(b.status, STATUS_CANCELLED);
	assert_string_equal(text(&b, "best", "variant"), "v3");
	assert_true(value(&b, "best", "variants_left") == 0);
	bed_release(&b);
}

static void test_phases__a_variant_that_turns_wrong_ends_the_case_and_keeps_what_was_measured(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "variants", "4");
	bed_set(&b, "wrong", "data");
	bed_set(&b, "wrong_variant", "2"); /* the first and the second are right */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_WRONG_RESULT);
	near(value(&b, "burst", "time_ns_mean"), 1e6, 1e-9); /* the first's own figures are kept */
	assert_true(value(&b, "once", "wrong_count") == 1);
	assert_int_equal(strncmp(text(&b, "once", "wrong_place"), "v2, ", 4), 0);
	bed_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases__the_best_is_timed_against_the_first_in_pairs),
		cmocka_unit_test(test_phases__a_first_that_is_best_needs_no_pairs),
		cmocka_unit_test(test_phases__a_hopeless_variant_is_dropped_after_two_samples),
		cmocka_unit_test(test_phases__a_search_keeps_to_its_budget),
		cmocka_unit_test(test_phases__what_listing_took_is_taken_from_the_searchs_budget),
		cmocka_unit_test(test_phases__without_a_wish_a_search_takes_half_of_the_cases_limit),
		cmocka_unit_test(test_phases__a_stopped_search_keeps_the_best_so_far),
		cmocka_unit_test(test_phases__pairs_that_were_stopped_leave_the_nominee),
		cmocka_unit_test(
			test_phases__a_variant_that_turns_wrong_ends_the_case_and_keeps_what_was_measured),
	};

	return cmocka_run_group_tests_name("phases_search", tests, NULL, NULL);
}
