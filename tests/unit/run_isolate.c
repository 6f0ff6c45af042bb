/* SPDX-License-Identifier: Apache-2.0 */
/* A case of a node's GPUs that is slow or wrong, followed to the one that makes it so: real processes, null
 * probes. */
#include <math.h>
#include "run_bed.h"

static struct run_bed b;
static struct expected_before_run ahead[4];

/* Eight ranks of 4 ms an iteration: 250 000 FLOP/s, less where one of them is slow. */
#define NODE(target, options)                                                                                \
	"  - {probe: 'null', target: '" target                                                               \
	"', phases: burst, seconds: 20ms, options: {time: 4ms, " options "}}\n"
#define GOOD_RATE 250e3

static void plan(void **state, const char *cases)
{
	run_bed_plan(&b, *state, true, cases);
	for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++)
		ahead[i].way[FIGURE_UNTOLD].band = 0.8 * GOOD_RATE;
	b.o.isolate = true;
	b.o.expected = ahead;
}

static void run(void)
{
	if (run_bed_run(&b))
		fail_msg("%s", b.err.text);
}

static const json_t *follows(size_t i)
{
	return json_object_get(b.record.cases[i].plan, "follows");
}

static const char *found(const char *field)
{
	const struct record_phase *p = record_phase(&b.record.cases[0], "isolated");

	if (!p)
		fail_msg("nothing was searched");
	return record_text(p, field);
}

static double found_number(const char *field)
{
	double value;

	assert_true(record_number(record_phase(&b.record.cases[0], "isolated"), field, &value));
	return value;
}

static void test_follow__the_slow_gpu_is_named(void **state)
{
	unsigned rounds = 0;

	plan(state, NODE("node", "culprit: 5, slow_share: 3"));
	run();
	assert_string_equal(found("isolated"), "member");
	assert_string_equal(found("isolated_fault"), "slow");
	assert_string_equal(found("isolated_place"), "gpu5");
	assert_string_equal(found("isolated_pci"), machine_gpu(b.machine, 5)->pci);
	assert_true(found_number("isolated_without") > 1.2 * found_number("isolated_with"));
	assert_int_equal((int)found_number("isolated_tests"), (int)b.record.case_count - 1);
	assert_int_equal(b.summary.cases, b.record.case_count);
	for (size_t i = 1; i < b.record.case_count;
	     i++) { /* the whole thrice, each left out, and the proof */
		unsigned round = (unsigned)json_integer_value(json_object_get(follows(i), "round"));

		assert_int_equal(json_integer_value(json_object_get(follows(i), "case")), 0);
		assert_in_range(round, rounds, rounds + 1);
		rounds = round;
		assert_int_equal(b.record.cases[i].require, REQUIRE_NOTHING);
		run_bed_expect(&b, i, ENDING_DONE, STATUS_OK, CAUSE_NONE);
	}
	assert_in_range(rounds, 2, 6);
	assert_string_equal(b.record.cases[1].target, "node");
	assert_string_equal(b.record.cases[4].target, "node:1,2,3,4,5,6,7");
	/* All of it in one worker, which has the node's GPUs open. */
	assert_int_equal(run_bed_pid(*state, 4, NULL), run_bed_pid(*state, 0, NULL));
	run_bed_release(&b);
}

static void test_follow__the_wrong_gpu_is_named(void **state)
{
	double ranks, rank;

	plan(state, NODE("node", "culprit: 3, wrong: data"));
	run();
	run_bed_expect(&b, 0, ENDING_DONE, STATUS_MISMATCH, CAUSE_WRONG_RESULT);
	assert_string_equal(found("isolated"), "member");
	assert_string_equal(found("isolated_fault"), "wrong");
	assert_string_equal(found("isolated_place"), "gpu3");
	assert_true(record_number(record_phase(&b.record.cases[0], "once"), "wrong_ranks", &ranks));
	assert_true(record_number(record_phase(&b.record.cases[0], "once"), "wrong_rank", &rank));
	assert_int_equal((int)ranks, 1);
	assert_int_equal((int)rank, 3);
	run_bed_release(&b);
}

/* Of what nothing hangs on a slow case is let be; wrong data is not. */
static void test_follow__wrong_data_is_followed_whatever_was_required(void **state)
{
	static const char nothing[] = "  - {probe: 'null', target: node, phases: burst, require: nothing, "
				      "options: {time: 1ms, %s}}\n";
	char cases[256], dir[PATH_MAX];

	snprintf(cases, sizeof(cases), nothing, "culprit: 3, wrong: data");
	plan(state, cases);
	run();
	assert_string_equal(found("isolated_place"), "gpu3");
	run_bed_release(&b);
	snprintf(dir, sizeof(dir), "%s/slow", (const char *)*state);
	snprintf(cases, sizeof(cases), nothing, "culprit: 3, slow_share: 3");
	plan(state, cases);
	b.o.dir = dir;
	run();
	assert_int_equal(b.record.case_count, 1);
	run_bed_release(&b);
}

static void test_follow__a_part_of_the_node_is_followed_too(void **state)
{
	plan(state, NODE("node:1,4,6", "culprit: 4, slow_share: 3"));
	run();
	assert_string_equal(found("isolated_place"), "gpu4");
	run_bed_release(&b);
}

static void test_follow__what_is_well_is_not_searched(void **state)
{
	plan(state, NODE("node", "slot: 1"));
	ahead[0].way[FIGURE_UNTOLD].band = 0.01 * GOOD_RATE; /* reached on however busy a machine */
	run();
	assert_int_equal(b.record.case_count, 1);
	assert_null(record_phase(&b.record.cases[0], "isolated"));
	run_bed_release(&b);
}

static void test_follow__nothing_is_searched_where_that_was_not_asked(void **state)
{
	char dir[PATH_MAX];

	plan(state, NODE("node", "culprit: 3, wrong: data"));
	b.o.isolate = false;
	run();
	assert_int_equal(b.record.case_count, 1);
	run_bed_release(&b);
	snprintf(dir, sizeof(dir), "%s/again", (const char *)*state);
	plan(state, NODE("node", "culprit: 3, slow_share: 3"));
	b.o.dir = dir; /* the other one holds a journal */
	b.o.expected = NULL;
	run();
	assert_int_equal(b.record.case_count, 1);
	run_bed_release(&b);
}

/* Below what it should reach, and no part of it is better. */
static void test_follow__a_small_loss_names_nobody(void **state)
{
	plan(state, NODE("node", "slow_share: 0"));
	ahead[0].way[FIGURE_UNTOLD].band = 1.005 * GOOD_RATE;
	run();
	assert_string_equal(found("isolated"), "nobody");
	assert_true(b.record.case_count >= 4);
	run_bed_release(&b);
}

/* All are slow: nobody is named. */
static void test_follow__all_slow_names_nobody(void **state)
{
	plan(state, NODE("node:0,1,2,3", "culprit: 1000, slow_share: 3"));
	run();
	assert_string_equal(found("isolated"), "nobody");
	run_bed_release(&b);
}

/* Two GPUs: each by itself. Here no driver answers, so nothing is measured and the two stay unnamed. */
static void test_follow__two_gpus_are_looked_at_each_by_itself(void **state)
{
	bool memory = false, product = false, copy = false;

	plan(state, NODE("node:2,6", "culprit: 6, slow_share: 3"));
	run();
	assert_string_equal(found("isolated"), "nobody");
	assert_non_null(strstr(found("isolated_why"), "gpu2 and gpu6 cannot be told apart"));
	for (size_t i = 4; i < b.record.case_count; i++) {
		const struct record_case *c = &b.record.cases[i];

		memory = memory || (!strcmp(c->probe, "memory") && !strcmp(c->target, "gpu6"));
		product = product || (!strcmp(c->probe, "gemm") && !strcmp(c->target, "gpu2"));
		copy = copy || (!strcmp(c->probe, "p2p") && !strcmp(c->target, "gpu6>gpu2"));
	}
	assert_true(memory && product && copy);
	run_bed_release(&b);
}

static void stop_in_search(void *arg, size_t done, size_t total, const char *what, double seconds_left)
{
	(void)arg, (void)done, (void)total, (void)seconds_left;
	if (strstr(what, "on node:1,2"))
		run_bed_stop = 1;
}

/* Stopped in the middle: what was searched stays in the record, and a resumed run searches anew. */
static void test_follow__a_resumed_run_searches_anew_and_once(void **state)
{
	size_t cases;

	plan(state, NODE("node", "culprit: 5, slow_share: 3"));
	b.o.progress.update = stop_in_search;
	run();
	assert_null(record_phase(&b.record.cases[0], "isolated"));
	assert_true(b.summary.cancelled);
	cases = b.record.case_count;
	assert_in_range(cases, 5, 27);
	record_release(&b.record);
	run_bed_stop = 0;
	b.o.progress.update = NULL;
	b.o.resume = true;
	run();
	assert_string_equal(found("isolated_place"), "gpu5");
	assert_true(b.record.case_count > cases);
	cases = b.record.case_count;
	record_release(&b.record);
	run();
	assert_int_equal(b.record.case_count, cases);
	run_bed_release(&b);
}

int main(int argc, char **argv)
{
	int code;
	const struct CMUnitTest tests[] = {
		scratch_test(test_follow__the_slow_gpu_is_named),
		scratch_test(test_follow__the_wrong_gpu_is_named),
		scratch_test(test_follow__wrong_data_is_followed_whatever_was_required),
		scratch_test(test_follow__a_part_of_the_node_is_followed_too),
		scratch_test(test_follow__what_is_well_is_not_searched),
		scratch_test(test_follow__nothing_is_searched_where_that_was_not_asked),
		scratch_test(test_follow__a_small_loss_names_nobody),
		scratch_test(test_follow__all_slow_names_nobody),
		scratch_test(test_follow__two_gpus_are_looked_at_each_by_itself),
		scratch_test(test_follow__a_resumed_run_searches_anew_and_once),
	};

	if (run_bed_child(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("run_follow", tests, NULL, NULL);
}
