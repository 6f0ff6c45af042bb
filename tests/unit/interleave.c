/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU case in turns with its ceiling: null against null, under a clock of the test's own. */
#include "phases_bed.h"

/* A case of 3 ms an iteration against a ceiling of 2.4 ms: 0.8. */
static void bed_turns(struct bed *b, double seconds)
{
	bed_init(b, PHASES_HEADLINE, seconds);
	bed_set(b, "time", "3ms");
	bed_set(b, "ceiling", "2.4ms");
}

static void hog(struct bed *b, const char *at, const char *time)
{
	bed_set(b, "hog_at", at);
	bed_set(b, "hog_time", time);
}

static void test_turns__take_the_place_of_settling(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst turns verify");
	near(value(&b, "sustained", "ceiling_ratio"), 0.8, 1e-3);
	near(value(&b, "sustained", "ceiling_ratio_low"), 0.8, 1e-3);
	near(value(&b, "sustained", "ceiling_ratio_high"), 0.8, 1e-3);
	near(value(&b, "sustained", "time_ns_mean"), 3e6, 1e-6);
	near(value(&b, "sustained", "cpu_share"), 1, 1e-6);
	near(value(&b, "sustained", "window_s"), 0.6, 0.05);
	assert_int_equal(value(&b, "sustained", "turns"), 6);
	assert_int_equal(value(&b, "sustained", "turns_disturbed"), 0);
	near(value(&b, "ceiling", "flop_rate"), 1000 / 2.4e-3, 1e-3);
	assert_true(value(&b, "sustained", "settled") < 0); /* absent */
	bed_release(&b);
}

static void test_turns__every_window_of_both_is_in_the_journal(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	bed_run(&b);
	assert_int_equal(whole(b.seen.count, "ceiling"), 7); /* ceiling, case, ceiling, .., ceiling */
	assert_int_equal(whole(b.seen.count, "turns"), 6);
	near(json_number_value(json_object_get(b.seen.first, "ceiling")), 2.4e6, 1e-6);
	near(json_number_value(json_object_get(b.seen.first, "turns")), 3e6, 1e-6);
	assert_non_null(strstr(text(&b, "ceiling", "ceiling_by"), "null engine=own"));
	bed_release(&b);
}

/* Other work for 0.2 s: the turns it meets are taken again and do not count. */
static void test_turns__a_disturbed_turn_is_taken_again(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	hog(&b, "1.4", "0.2");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_int_equal(value(&b, "sustained", "turns"), 6);
	assert_in_range((int)value(&b, "sustained", "turns_disturbed"), 1, 3);
	near(value(&b, "sustained", "ceiling_ratio"), 0.8, 1e-3);
	near(value(&b, "sustained", "ceiling_ratio_high") - value(&b, "sustained", "ceiling_ratio_low"), 0,
	     1e-3);
	near(value(&b, "sustained", "time_ns_mean"), 3e6, 1e-6);
	near(value(&b, "sustained", "cpu_share"), 1, 1e-6);
	assert_true(whole(b.seen.count, "turns") > 6); /* what was disturbed is told all the same */
	bed_release(&b);
}

/* A neighbour that stays takes as much from both: the ratio stands, the CPU share says it, and the end comes.
 */
static void test_turns__a_steady_neighbour_ends_after_a_bounded_number(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	hog(&b, "0", "1000");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_int_equal(value(&b, "sustained", "turns"), PHASE_TURNS_MOST);
	assert_int_equal(value(&b, "sustained", "turns_disturbed"), PHASE_TURNS_MOST);
	near(value(&b, "sustained", "ceiling_ratio"), 0.8, 1e-3);
	near(value(&b, "sustained", "cpu_share"), 0.5, 1e-3);
	near(value(&b, "ceiling", "cpu_share"), 0.5, 1e-3);
	bed_release(&b);
}

/* One that comes soon and stays: too few turns are clean, so all count and say how far they go apart. */
static void test_turns__a_neighbour_that_comes_leaves_all_turns_counting(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	hog(&b, "1.3", "10");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_int_equal(value(&b, "sustained", "turns"), PHASE_TURNS_MOST);
	assert_true(value(&b, "sustained", "turns_disturbed") > 6);
	assert_true(value(&b, "sustained", "ceiling_ratio_low") <= value(&b, "sustained", "ceiling_ratio"));
	assert_true(value(&b, "sustained", "ceiling_ratio_high") <= 1.7);
	bed_release(&b);
}

static void test_turns__a_drifting_clock_cancels(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	bed_set(&b, "drift", "0.05"); /* of each by its own start, 5 % a second */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(value(&b, "sustained", "ceiling_ratio_high") -
			    value(&b, "sustained", "ceiling_ratio_low") <
		    0.01);
	bed_release(&b);
}

static void test_turns__points_of_a_curve_and_cases_together_have_none(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	b.c.phases = PHASES_BURST;
	bed_run(&b);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst verify");
	bed_release(&b);
	bed_turns(&b, 0.6);
	b.c.order = STEP_TOGETHER;
	bed_run(&b);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst settle sustained verify");
	bed_release(&b);
}

static void test_turns__a_slow_case_has_one_sample_a_turn(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.3);
	bed_set(&b, "time", "400ms");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_int_equal(value(&b, "sustained", "samples"), 6);
	near(value(&b, "sustained", "ceiling_ratio"), 2.4 / 400, 1e-3);
	bed_release(&b);
}

/* The instrument fails where the case would: its words are the case's. */
static void test_turns__an_instrument_that_fails_fails_the_case(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	bed_set(&b, "wrong", "data");
	bed_set(&b, "after",
		"60"); /* iterations: its first check is before, the one after the turns is not */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_WRONG_RESULT);
	assert_true(value(&b, "sustained", "turns") < 0); /* and nothing is told of them */
	bed_release(&b);
}

/* A point of a curve: the first window meets other work, the second does not. */
static void test_turns__a_disturbed_point_is_taken_again(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0.1);
	bed_set(&b, "time", "1ms");
	hog(&b, "1.05", "0.03");
	bed_run(&b);
	assert_int_equal(value(&b, "burst", "repeats"), 1);
	near(value(&b, "burst", "time_ns_mean"), 1e6, 1e-3);
	near(value(&b, "burst", "cpu_share"), 1, 1e-3);
	assert_int_equal(whole(b.seen.count, "burst"), value(&b, "burst", "samples"));
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0.1);
	hog(&b, "0", "1000"); /* one that stays: the end comes, and the share says it */
	bed_run(&b);
	assert_int_equal(value(&b, "burst", "repeats"), 2);
	near(value(&b, "burst", "cpu_share"), 0.5, 1e-3);
	bed_release(&b);
}

static void test_turns__a_stop_ends_them(void **state)
{
	struct bed b;

	(void)state;
	bed_turns(&b, 0.6);
	b.seen.stop_at = "turns";
	bed_run(&b);
	assert_int_equal(b.status, STATUS_CANCELLED);
	assert_true(value(&b, "sustained", "turns") < 0);
	bed_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns__take_the_place_of_settling),
		cmocka_unit_test(test_turns__every_window_of_both_is_in_the_journal),
		cmocka_unit_test(test_turns__a_disturbed_turn_is_taken_again),
		cmocka_unit_test(test_turns__a_steady_neighbour_ends_after_a_bounded_number),
		cmocka_unit_test(test_turns__a_neighbour_that_comes_leaves_all_turns_counting),
		cmocka_unit_test(test_turns__a_drifting_clock_cancels),
		cmocka_unit_test(test_turns__points_of_a_curve_and_cases_together_have_none),
		cmocka_unit_test(test_turns__a_slow_case_has_one_sample_a_turn),
		cmocka_unit_test(test_turns__an_instrument_that_fails_fails_the_case),
		cmocka_unit_test(test_turns__a_disturbed_point_is_taken_again),
		cmocka_unit_test(test_turns__a_stop_ends_them),
	};

	return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
