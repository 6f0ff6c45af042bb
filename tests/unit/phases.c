/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of a timed case: which, how long, what ends them. */
#include "phases_bed.h"

static void test_phases__a_headline_case_runs_all_in_order(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(b.seen.order,
			    "prepare cold verify READY ramp burst settle sustained single verify");
	bed_release(&b);
}

static void test_phases__a_point_of_a_curve_runs_burst_alone(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst verify");
	assert_null(json_object_get(b.seen.values, "sustained"));
	bed_release(&b);
}

static void test_phases__a_sample_is_a_batch_of_a_millisecond(void **state)
{
	static const struct {
		const char *time;
		json_int_t batch;
	} cases[] = {{"100ns", 10000}, {"100us", 12}, {"1ms", 1}, {"7ms", 1}, {"300us", 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bed b;

		bed_init(&b, PHASES_BURST, 0);
		bed_set(&b, "time", cases[i].time);
		bed_run(&b);
		assert_int_equal(b.status, STATUS_OK);
		assert_int_equal(whole(b.seen.batch, "burst"), cases[i].batch);
		assert_int_equal((json_int_t)value(&b, "burst", "batch"), cases[i].batch);
		bed_release(&b);
	}
}

static void test_phases__burst_is_fifty_milliseconds(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b); /* 100 us x 12 = 1.2 ms a sample: 42 samples reach 50.4 ms */
	assert_int_equal(whole(b.seen.count, "burst"), 42);
	near(length_s(&b, "burst"), 0.0504, 1e-9);
	near(value(&b, "burst", "window_s"), 0.0504, 1e-9);
	near(value(&b, "burst", "time_ns_mean"), 100000, 1e-9);
	near(value(&b, "burst", "iterations"), 42 * 12, 0);
	near(value(&b, "burst", "flop_rate"), 1000 / 100e-6, 1e-9);
	near(value(&b, "burst", "byte_rate"), 64 / 100e-6, 1e-9);
	assert_true(value(&b, "burst", "link_rate") == -1); /* no work of that kind: absent, not zero */
	assert_true(value(&b, "burst", "settled") == -1);
	assert_true(value(&b, "cold", "time_ns_mean") == 100000);
	bed_release(&b);
}

static void test_phases__slow_iterations_give_three_samples_or_a_second(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "time", "200ms");
	bed_run(&b);
	assert_int_equal(whole(b.seen.count, "burst"), 3);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "time", "5s");
	bed_run(&b);
	assert_int_equal(whole(b.seen.count, "burst"), 1);
	assert_true(value(&b, "burst", "half_width_share") == -1);
	bed_release(&b);
}

static void test_phases__a_steady_rate_settles_after_four_blocks(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(length_s(&b, "settle"), 2.0, 1e-9);
	assert_true(value(&b, "settle", "settled") == 1);
	assert_true(value(&b, "sustained", "settled") == 1);
	/* No scatter: the mean is known at once, and the window is as short as it may be. */
	near(value(&b, "sustained", "window_s"), 1.0, 1e-9);
	assert_true(value(&b, "sustained", "half_width_share") < 1e-9);
	bed_release(&b);
}

static void test_phases__a_drift_settles_when_it_ends(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "drift", "0.05"); /* 5 %/s for 3 s */
	bed_set(&b, "drift_time", "3s");
	bed_run(&b);
	assert_true(value(&b, "sustained", "settled") == 1);
	assert_true(length_s(&b, "settle") > 3.9 && length_s(&b, "settle") < 5.6);
	near(value(&b, "sustained", "time_ns_mean"), 1.15e6, 1e-6);
	bed_release(&b);
}

static void test_phases__an_endless_drift_is_called_unsettled(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "1ms");
	bed_set(&b, "drift", "0.05");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(value(&b, "sustained", "settled") == 0);
	near(length_s(&b, "settle"), 10.0, 1e-3);
	bed_release(&b);
}

static void test_phases__scatter_prolongs_the_sustained_window_to_its_limit(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "100ms");
	bed_set(&b, "scatter", "0.9"); /* at 10 samples a second no 0.5 % in 10 s */
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 10.0, 0.05);
	assert_true(value(&b, "sustained", "half_width_share") > 0.005);
	bed_release(&b);
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "time", "2ms");
	bed_set(&b, "scatter", "0.1");
	bed_run(&b);
	assert_true(value(&b, "sustained", "window_s") < 9);
	assert_true(value(&b, "sustained", "half_width_share") <= 0.005);
	bed_release(&b);
}

static void test_phases__a_wish_sets_the_windows_length(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0.5);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 0.5, 1e-9);
	near(length_s(&b, "settle"), 0.5, 1e-9); /* four blocks of an eighth of twice the wish */
	bed_release(&b);
	bed_init(&b, PHASES_HEADLINE, 6);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 6, 1e-9);
	near(length_s(&b, "settle"), 2, 1e-9);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0.2);
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(value(&b, "burst", "window_s"), 0.2, 1e-9);
	bed_release(&b);
}

static void test_phases__together_all_windows_have_fixed_length(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	b.c.order = STEP_TOGETHER;
	bed_set(&b, "time", "1ms");
	bed_run(&b);
	near(length_s(&b, "settle"), 2, 1e-9); /* settled after 1 s already */
	assert_true(value(&b, "settle", "settled") == 1);
	near(length_s(&b, "sustained"), 1, 1e-9);
	bed_release(&b);
}

static void test_phases__a_day_of_short_iterations_fits_the_room(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 86400);
	bed_set(&b, "time", "10ms");
	bed_run(&b);
	near(value(&b, "sustained", "window_s"), 86400, 1e-4);
	assert_true(whole(b.seen.count, "sustained") <= 1 << 20);
	assert_true(whole(b.seen.batch, "sustained") >= 16);
	assert_int_equal(whole(b.seen.batch, "burst"), 1);
	bed_release(&b);
}

static void test_phases__cpu_time_shows_contention(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_run(&b);
	near(value(&b, "burst", "cpu_share"), 1, 1e-6);
	assert_true(value(&b, "burst", "threads") >= 1);
	bed_release(&b);
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "cpu_share", "0.6");
	bed_run(&b);
	near(value(&b, "burst", "cpu_share"), 0.6, 1e-6);
	bed_release(&b);
}

static void test_phases__a_wrong_answer_is_never_timed(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 0);
	bed_set(&b, "wrong", "data");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_WRONG_RESULT);
	assert_non_null(strstr(b.err.text, "element 3: expected 1, found 2"));
	assert_string_equal(b.seen.order, "prepare cold verify");
	assert_true(value(&b, "once", "wrong_count") == 1);
	assert_true(value(&b, "once", "wrong_checked") == 10);
	assert_non_null(strstr(text(&b, "once", "wrong_place"), "element 3"));
	bed_release(&b);
}

static void test_phases__an_answer_that_turns_wrong_in_the_window_fails_with_its_figures_kept(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_BURST, 0);
	bed_set(&b, "wrong", "nan");
	bed_set(&b, "after", "100");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_MISMATCH);
	assert_int_equal(b.err.cause, CAUSE_NAN);
	assert_true(value(&b, "burst", "time_ns_mean") > 0);
	bed_release(&b);
}

static void test_phases__failures_keep_their_status_and_words(void **state)
{
	static const char *const points[] = {"prepare", "enqueue", "verify", "finish"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct bed b;

		bed_init(&b, PHASES_BURST, 0);
		bed_set(&b, "fail", points[i]);
		bed_set(&b, "status", i == 1 ? "lost" : "no_resource");
		bed_run(&b);
		assert_int_equal(b.status, i == 1 ? STATUS_LOST : STATUS_NO_RESOURCE);
		assert_non_null(strstr(b.err.text, points[i]));
		bed_release(&b);
	}
}

static void test_phases__a_stop_ends_any_phase(void **state)
{
	static const char *const phases[] = {"ramp",   "burst",	 "settle", "sustained",
					     "single", "search", "pairs"};

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		struct bed b;

		bed_init(&b, PHASES_HEADLINE, 0);
		bed_set(&b, "time", "600us"); /* a sample is two */
		bed_set(&b, "variants", "3");
		b.seen.stop_at = phases[i];
		bed_run(&b);
		assert_int_equal(b.status, STATUS_CANCELLED);
		assert_int_equal(b.err.cause, CAUSE_INTERRUPTED);
		assert_true(strlen(b.seen.order) >= strlen(phases[i]));
		assert_string_equal(b.seen.order + strlen(b.seen.order) - strlen(phases[i]), phases[i]);
		bed_release(&b);
	}
}

/* Scatter of +- 50 % an iteration: a batch's mean hides it, single iterations show it. */
static void test_phases__single_iterations_are_timed_apart_from_batches(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 2);
	bed_set(&b, "time", "200us");
	bed_set(&b, "scatter", "0.5");
	bed_run(&b);
	assert_int_equal(b.status, STATUS_OK);
	assert_true(whole(b.seen.batch, "sustained") >= 5);
	assert_int_equal(whole(b.seen.batch, "single"), 1);
	near(whole(b.seen.count, "single"), 500, 0.05);
	assert_true(value(&b, "sustained", "iteration_samples") == whole(b.seen.count, "single"));
	near(value(&b, "sustained", "iteration_ns_p50"), 200e3, 0.05);
	near(value(&b, "sustained", "iteration_ns_p90"), 280e3, 0.03);
	near(value(&b, "sustained", "iteration_ns_p99"), 298e3, 0.01);
	assert_true(value(&b, "sustained", "iteration_ns_max") > value(&b, "sustained", "iteration_ns_p99"));
	assert_true(value(&b, "sustained", "iteration_ns_max") <= 300e3);
	assert_true(value(&b, "sustained", "time_ns_p99") < 1.4 * 200e3);
	assert_true(value(&b, "sustained", "iteration_mark_ns") == 0); /* a look at this clock is free */
	assert_true(length_s(&b, "single") < 0.11);
	assert_null(json_object_get(b.seen.values, "single"));
	bed_release(&b);
}

static void test_phases__a_batch_of_one_is_a_single_iteration_already(void **state)
{
	static const struct {
		enum phases phases;
		const char *judged;
	} rows[] = {{PHASES_HEADLINE, "sustained"}, {PHASES_BURST, "burst"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bed b;

		bed_init(&b, rows[i].phases, 1);
		bed_set(&b, "time", "2ms");
		bed_set(&b, "spike", "3ms");
		bed_set(&b, "spike_every", "50");
		bed_run(&b);
		assert_null(strstr(b.seen.order, "single"));
		assert_true(value(&b, rows[i].judged, "iteration_samples") ==
			    value(&b, rows[i].judged, "samples"));
		near(value(&b, rows[i].judged, "iteration_ns_p99"), value(&b, rows[i].judged, "time_ns_p99"),
		     1e-12);
		near(value(&b, rows[i].judged, "iteration_ns_p50"), 2e6, 1e-9);
		near(value(&b, rows[i].judged, "iteration_ns_max"), 5e6, 1e-9);
		assert_true(value(&b, rows[i].judged, "iteration_mark_ns") == -1); /* told of no stretch */
		if (rows[i].phases == PHASES_HEADLINE)
			assert_true(value(&b, "burst", "iteration_ns_p99") == -1);
		bed_release(&b);
	}
}

/* Where a pair moves something; null needs no GPU for it. */
static void copies_of_a_pair(struct bed *b, const char *time, const char *spike_every)
{
	bed_init(b, PHASES_BURST, 0);
	b->c.target = (struct target){.kind = TARGET_PAIR, .gpu_count = 2};
	bed_set(b, "link", "64");
	bed_set(b, "time", time);
	bed_set(b, "spike", "90us");
	bed_set(b, "spike_every", spike_every);
	bed_run(b);
	assert_int_equal(b->status, STATUS_OK);
}

static void test_phases__a_slow_iteration_in_64_is_the_99th_percentile_and_not_the_median(void **state)
{
	struct bed b;

	(void)state;
	copies_of_a_pair(&b, "10us", "64");
	assert_string_equal(b.seen.order, "prepare cold verify READY ramp burst single verify");
	assert_int_equal(whole(b.seen.count, "single"), 512);
	assert_true(value(&b, "burst", "iteration_samples") == 512);
	near(value(&b, "burst", "iteration_ns_p50"), 10e3, 1e-9);
	near(value(&b, "burst", "iteration_ns_p90"), 10e3, 1e-9);
	near(value(&b, "burst", "iteration_ns_p99"), 100e3, 1e-9);
	near(value(&b, "burst", "iteration_ns_max"), 100e3, 1e-9);
	assert_true(value(&b, "burst", "time_ns_max") < 20e3);
	assert_true(value(&b, "burst", "iteration_starved_share") == 0);
	bed_release(&b);
}

static void test_phases__one_in_400_is_the_longest_alone(void **state)
{
	struct bed b;

	(void)state;
	copies_of_a_pair(&b, "10us", "400");
	near(value(&b, "burst", "iteration_ns_p99"), 10e3, 1e-9);
	near(value(&b, "burst", "iteration_ns_max"), 100e3, 1e-9);
	bed_release(&b);
}

static void test_phases__who_moves_nothing_between_gpus_has_no_single_pass(void **state)
{
	static const struct {
		enum phases phases;
		const char *time;
	} rows[] = {{PHASES_HEADLINE, "99us"}, {PHASES_BURST, "200us"}, {PHASES_BURST, "10us"}};
	struct bed b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bed_init(&b, rows[i].phases, 1);
		bed_set(&b, "time", rows[i].time);
		bed_run(&b);
		assert_null(strstr(b.seen.order, "single"));
		assert_true(value(&b, rows[i].phases == PHASES_BURST ? "burst" : "sustained",
				  "iteration_ns_p99") == -1);
		bed_release(&b);
	}
	copies_of_a_pair(&b, "200us", "1000"); /* long copies: their rate counts */
	assert_null(strstr(b.seen.order, "single"));
	bed_release(&b);
}

/* A window of a day widens its batches: the pass is then of slow iterations, and ends by its time. */
static void test_phases__slow_single_iterations_end_by_their_time(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 86400);
	bed_set(&b, "time", "10ms");
	bed_run(&b);
	assert_true(whole(b.seen.batch, "sustained") > 1);
	assert_int_equal(whole(b.seen.count, "single"), 10);
	near(length_s(&b, "single"), 0.1, 1e-2);
	bed_release(&b);
}

static void test_phases__a_failure_among_single_iterations_keeps_the_window(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b, PHASES_HEADLINE, 1);
	bed_set(&b, "time", "200us");
	bed_set(&b, "fail", "enqueue");
	bed_set(&b, "after", "10500"); /* in 0.1 s behind 50 ms, 1 s to settle and 1 s */
	bed_run(&b);
	assert_int_equal(b.status, STATUS_VENDOR);
	assert_non_null(strstr(b.err.text, "null: the options request a failure in enqueue"));
	assert_non_null(strstr(b.seen.order, "sustained single"));
	assert_true(value(&b, "sustained", "time_ns_mean") > 0);
	assert_true(value(&b, "sustained", "iteration_ns_p50") == -1);
	bed_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases__a_headline_case_runs_all_in_order),
		cmocka_unit_test(test_phases__a_point_of_a_curve_runs_burst_alone),
		cmocka_unit_test(test_phases__a_sample_is_a_batch_of_a_millisecond),
		cmocka_unit_test(test_phases__burst_is_fifty_milliseconds),
		cmocka_unit_test(test_phases__slow_iterations_give_three_samples_or_a_second),
		cmocka_unit_test(test_phases__a_steady_rate_settles_after_four_blocks),
		cmocka_unit_test(test_phases__a_drift_settles_when_it_ends),
		cmocka_unit_test(test_phases__an_endless_drift_is_called_unsettled),
		cmocka_unit_test(test_phases__scatter_prolongs_the_sustained_window_to_its_limit),
		cmocka_unit_test(test_phases__a_wish_sets_the_windows_length),
		cmocka_unit_test(test_phases__together_all_windows_have_fixed_length),
		cmocka_unit_test(test_phases__a_day_of_short_iterations_fits_the_room),
		cmocka_unit_test(test_phases__cpu_time_shows_contention),
		cmocka_unit_test(test_phases__a_wrong_answer_is_never_timed),
		cmocka_unit_test(
			test_phases__an_answer_that_turns_wrong_in_the_window_fails_with_its_figures_kept),
		cmocka_unit_test(test_phases__failures_keep_their_status_and_words),
		cmocka_unit_test(test_phases__a_stop_ends_any_phase),
		cmocka_unit_test(test_phases__single_iterations_are_timed_apart_from_batches),
		cmocka_unit_test(test_phases__a_batch_of_one_is_a_single_iteration_already),
		cmocka_unit_test(
			test_phases__a_slow_iteration_in_64_is_the_99th_percentile_and_not_the_median),
		cmocka_unit_test(test_phases__one_in_400_is_the_longest_alone),
		cmocka_unit_test(test_phases__who_moves_nothing_between_gpus_has_no_single_pass),
		cmocka_unit_test(test_phases__a_failure_among_single_iterations_keeps_the_window),
		cmocka_unit_test(test_phases__slow_single_iterations_end_by_their_time),
	};

	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
