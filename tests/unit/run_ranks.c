/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of several ranks with real processes: the eight GPUs of the recorded machine, a thread each. */
#include "run_bed.h"

static struct run_bed b;

#define RANKS(target, options)                                                                               \
	"  - {probe: 'null', target: '" target                                                               \
	"', phases: burst, seconds: 2ms, limit: 120s, options: {time: 1ms, " options "}}\n"

/* Something goes from rank to rank, in less than a sample's millisecond. */
#define MOVES(target, options)                                                                               \
	"  - {probe: 'null', target: '" target                                                               \
	"', phases: burst, seconds: 2ms, limit: 120s, options: {time: 200us, link: 64, " options "}}\n"

static void run(void **state, const char *cases)
{
	run_bed_plan(&b, *state, true, cases);
	if (run_bed_run(&b))
		fail_msg("%s", b.err.text);
	assert_true(b.record.closed);
	assert_int_equal(b.record.cut_bytes, 0);
}

static double value(size_t id, const char *phase, const char *name)
{
	const struct record_phase *p = record_phase(&b.record.cases[id], phase);
	const json_t *v = p ? json_object_get(p->values, name) : NULL;

	return json_is_number(v) ? json_number_value(v) : -1;
}

static bool said(size_t id, const char *words)
{
	if (strstr(b.record.cases[id].text, words))
		return true;
	print_message("# %s\n", b.record.cases[id].text);
	return false;
}

static void test_run_ranks__cases_share_a_worker_and_its_ranks(void **state)
{
	run(state, RANKS("node", "slot: [1, 2]") RANKS("node:0,2-3", "slot: 3") RANKS("gpu0", "slot: 4"));
	for (unsigned i = 0; i < 3; i++) {
		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		assert_int_equal(run_bed_pid(*state, i, NULL), run_bed_pid(*state, 0, NULL));
		assert_int_equal(value(i, "burst", "ranks"), i < 2 ? 8 : 3);
	}
	assert_int_not_equal(run_bed_pid(*state, 3, NULL), run_bed_pid(*state, 0, NULL));
	assert_int_equal(value(3, "burst", "ranks"), -1);
	run_bed_release(&b);
}

static void test_run_ranks__a_case_is_as_long_as_on_its_slowest_rank(void **state)
{
	double most, least, mean;

	run(state, RANKS("node:0-2", "culprit: 1, slow_share: 2"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	most = value(0, "burst", "rank_ns_max");
	least = value(0, "burst", "rank_ns_min");
	mean = value(0, "burst", "time_ns_mean");
	assert_int_equal(value(0, "burst", "rank_longest"), 1);
	assert_true(most >= 3e6 && most <= mean * 1.0001);
	assert_true(least >= 1e6 && least < most);
	run_bed_release(&b);
}

/* The longest of the ranks' k-th is the case's k-th, whatever it takes: rank 1's take twice as long. */
static void test_run_ranks__what_moves_between_ranks_has_percentiles(void **state)
{
	run(state, MOVES("node:0-2", "culprit: 1, slow_share: 1") RANKS("node:0-2", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	if (value(0, "burst", "batch") >
	    1) { /* on a very busy machine even a sleep of 0.2 ms lasts a millisecond */
		assert_non_null(record_phase(&b.record.cases[0], "single"));
		assert_true(value(0, "burst", "iteration_mark_ns") > 0);
	}
	assert_true(value(0, "burst", "iteration_samples") > 0); /* how many is a matter of who else runs */
	assert_true(value(0, "burst", "iteration_ns_p50") >= 400e3);
	assert_true(value(0, "burst", "iteration_ns_p99") >= value(0, "burst", "iteration_ns_p90"));
	assert_true(value(0, "burst", "iteration_ns_max") >= value(0, "burst", "iteration_ns_p99"));
	assert_true(value(0, "burst", "skew_ns") > 0);
	if (value(1, "burst", "batch") > 1) /* it moves nothing: batches are left as they are */
		assert_int_equal(value(1, "burst", "iteration_ns_p50"), -1);
	run_bed_release(&b);
}

/* A window that others' work disturbs is taken again, and the 70th iteration is one of its: then once more from the start. */
static void run_to_singles(void **state, const char *cases)
{
	for (unsigned left = 5; left; left--) {
		run(state, cases);
		if (record_phase(&b.record.cases[0], "burst"))
			return;
		run_bed_release(&b);
		scratch_empty(*state);
	}
	fail_msg("its windows took 70 iterations five times");
}

static void test_run_ranks__a_rank_that_fails_among_single_iterations_is_named(void **state)
{
	char cases[512];

	for (unsigned culprit = 0; culprit < 2; culprit++) {
		snprintf(cases, sizeof(cases),
			 MOVES("node:0-1", "fail: enqueue, after: 70, culprit: %u")
				 RANKS("node:0-1", "slot: 1"),
			 culprit);
		run_to_singles(state, cases);
		if (value(0, "burst", "batch") > 1) { /* else its samples are single by themselves */
			run_bed_expect(&b, 0, ENDING_DONE, STATUS_VENDOR, CAUSE_NONE);
			snprintf(cases, sizeof(cases), "rank %u (gpu%u): null: the options request a failure", culprit,
				 culprit);
			assert_true(said(0, cases));
		}
		run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run_ranks__what_fails_on_one_rank_is_told_with_its_name(void **state)
{
	static const char *const points[] = {"prepare", "enqueue", "finish"};
	char cases[512];

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		snprintf(cases, sizeof(cases), RANKS("node", "fail: %s, culprit: 5") RANKS("node", "slot: 1"),
			 points[i]);
		run(state, cases);
		run_bed_expect(&b, 0, ENDING_DONE, STATUS_VENDOR, CAUSE_NONE);
		assert_true(said(0, "rank 5 (gpu5): null: the options request a failure"));
		run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run_ranks__rank_0_fails_and_the_others_follow(void **state)
{
	run(state, RANKS("node:0-1", "fail: enqueue, after: 3, culprit: 0") RANKS("node:0-1", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_VENDOR, CAUSE_NONE);
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run_ranks__a_wrong_rank_is_named(void **state)
{
	run(state,
	    RANKS("node", "wrong: data, culprit: 3") RANKS("node", "wrong: data") RANKS("node", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_MISMATCH, CAUSE_WRONG_RESULT);
	assert_true(said(0, "1 of 80 elements are wrong, the first at rank 3, element 3"));
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_MISMATCH, CAUSE_WRONG_RESULT);
	assert_true(said(1, "8 of 80 elements are wrong, the first at rank 0, element 3"));
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run_ranks__a_rank_that_hangs_is_named_at_the_limit(void **state)
{
	static const struct {
		const char *point, *words;
	} tries[] = {
		{"prepare", "rank 2 waited"},
		{"enqueue", "rank 2 waited"},
		{"verify", "rank 2 waited"},
		{"release", "rank 2 waited"},
	};
	char cases[640];

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		snprintf(cases, sizeof(cases),
			 "  - {probe: 'null', target: node, phases: burst, seconds: 2ms, limit: 2s, "
			 "options: {time: 1ms, hang: %s, culprit: 2}}\n" RANKS("node", "slot: 1"),
			 tries[i].point);
		run(state, cases);
		run_bed_expect(&b, 0, ENDING_TIMED_OUT, STATUS_NO_RESOURCE, CAUSE_TIMED_OUT);
		assert_true(said(0, tries[i].words));
		run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
		assert_int_not_equal(run_bed_pid(*state, 1, NULL), run_bed_pid(*state, 0, NULL));
		run_bed_release(&b);
		scratch_empty(*state);
	}
}

static void test_run_ranks__a_rank_that_dies_costs_its_case_alone(void **state)
{
	run(state, RANKS("node", "crash: enqueue, after: 2, culprit: 6") RANKS("node", "slot: 1"));
	run_bed_expect(&b, 0, ENDING_CRASHED, STATUS_NO_RESOURCE, CAUSE_CRASHED);
	assert_true(said(0, "signal 11"));
	assert_true(said(0, "in enqueueing"));
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run_ranks__a_lost_rank_quarantines_the_gpus_of_the_case(void **state)
{
	run(state, RANKS("node:0-1", "fail: enqueue, status: lost, culprit: 1") RANKS("node:1-2", "slot: 1")
			   RANKS("node:2-3", "slot: 2"));
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_LOST, CAUSE_GPU_LOST);
	run_bed_expect(&b, 1, ENDING_NOT_RUN, STATUS_UNAVAILABLE, CAUSE_QUARANTINED);
	run_bed_expect(&b, 2, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

static void test_run_ranks__a_request_to_stop_ends_all_of_them(void **state)
{
	run_bed_plan(&b, *state, true,
		     "  - {probe: 'null', target: node, seconds: 20s, options: {time: 1ms}}\n" RANKS(
			     "node", "slot: 1"));
	run_bed_stop_in(&b, "sustained");
	assert_int_equal(run_bed_run(&b), STATUS_OK);
	run_bed_expect(&b, 0, ENDING_CANCELLED, STATUS_CANCELLED, CAUSE_INTERRUPTED);
	assert_int_equal(b.record.close_ending, ENDING_CANCELLED);
	run_bed_release(&b);
}

static void test_run_ranks__variants_are_selected_on_all(void **state)
{
	run(state,
	    /* Half of the limit is for the search: also a busy machine comes to all variants in it. */
	    "  - {probe: 'null', target: 'node:0-3', seconds: 20ms, limit: 200s, "
	    "options: {time: 1ms, variants: 3}}\n"
	    "  - {probe: 'null', target: 'node:0-3', seconds: 20ms, limit: 200s, "
	    "options: {time: 1ms, variants: 3, fail: select, culprit: 1}}\n");
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	/* Other work may make one look hopeless, which is dropped then. */
	assert_int_equal(value(0, "best", "variants_tried") + value(0, "best", "variants_dropped"), 3);
	assert_int_equal(value(0, "best", "variants_left"), 0);
	run_bed_expect(&b, 1, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	run_bed_release(&b);
}

int main(int argc, char **argv)
{
	int code;
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(test_run_ranks__##name, scratch_create, scratch_remove)
		test(cases_share_a_worker_and_its_ranks),
		test(a_case_is_as_long_as_on_its_slowest_rank),
		test(what_moves_between_ranks_has_percentiles),
		test(a_rank_that_fails_among_single_iterations_is_named),
		test(what_fails_on_one_rank_is_told_with_its_name),
		test(rank_0_fails_and_the_others_follow),
		test(a_wrong_rank_is_named),
		test(a_rank_that_hangs_is_named_at_the_limit),
		test(a_rank_that_dies_costs_its_case_alone),
		test(a_lost_rank_quarantines_the_gpus_of_the_case),
		test(a_request_to_stop_ends_all_of_them),
		test(variants_are_selected_on_all),
	};

	if (run_bed_child(argc, argv, &code))
		return code;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
