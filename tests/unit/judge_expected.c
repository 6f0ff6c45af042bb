/* SPDX-License-Identifier: Apache-2.0 */
/* What is expected of collectives: bands by operation, GPUs, size and way, shares of the links without one.
 */
#include "judge_collective.h"

static void test_expected__bands_tell_the_switch_from_the_ring(void **state)
{
	struct record_case *ring = all_reduce(8, "8GiB", 362, 0), *slow = all_reduce(8, "8GiB", 420, 1),
			   *lost = all_reduce(4, "8GiB", 200, 0);

	(void)state;
	lost->step = 40;
	world_judge(&w);
	assert_verdict(&w, ring, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, slow)->verdict, VERDICT_WARN);
	assert_verdict(&w, lost, VERDICT_FAIL, CAUSE_BELOW_BAND);
}

/* As many ranks and GPUs as the band asks for, but on two nodes: a network is between them. */
static void test_expected__no_band_of_a_node_judges_a_team(void **state)
{
	struct record_case *node = all_reduce(8, "8GiB", 362, 0),
			   *team = all_reduce_of("team", 1, 8, "8GiB", 362, 0);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, node, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, team, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
	assert_false(world_of(&w, team)->has_band);
}

/* Which way it will go is not known yet: what is held against the figure then must not be above either's. */
static void test_expected__ahead_of_the_run_the_lower_band_counts(void **state)
{
	struct record_case *four = all_reduce(4, "8GiB", 0, -1), *eight = all_reduce(8, "8GiB", 0, -1);

	(void)state;
	w.ctx.ahead = true;
	world_judge(&w);
	assert_true(world_of(&w, four)->has_band);
	assert_float_equal(world_of(&w, four)->band.low, 358e9, 1e6);
	assert_true(world_of(&w, eight)->has_band);
	assert_float_equal(world_of(&w, eight)->band.low, 355e9, 1e6);
}

static void band_is(struct record_case *c, double low, double high)
{
	const struct judgement *j = world_of(&w, c);

	if (!j->has_band)
		fail_msg("%s %s has no band: %s", c->limit, c->key, j->reason);
	assert_float_equal(j->band.low, low * 1e9, 1e6);
	assert_float_equal(j->band.high, high * 1e9, 1e6);
}

static void test_expected__bands_go_by_operation_count_and_size(void **state)
{
	static const struct {
		const char *op;
		unsigned ranks;
		const char *size;
		int nvls;
		double good, low, high;
	} rows[] = {
		{"allreduce", 4, "4GiB", 0, 363, 358, 368},   {"allreduce", 4, "512MiB", 0, 349, 332, 365},
		{"allreduce", 2, "1GiB", 0, 331, 318, 362},   {"allreduce", 8, "1GiB", 1, 466, 455, 483},
		{"allreduce", 8, "256MiB", 1, 434, 419, 482}, {"allreduce", 6, "8GiB", 1, 435, 422, 449},
		{"allgather", 4, "4GiB", 0, 350, 327, 363},   {"allgather", 2, "4GiB", 0, 294, 273, 324},
		{"allgather", 8, "16GiB", 0, 361, 350, 373},  {"reducescatter", 2, "8GiB", 0, 290, 264, 313},
		{"alltoall", 4, "4GiB", -1, 350, 338, 363},   {"broadcast", 2, "2GiB", 0, 366, 353, 380},
		{"sendrecv", 4, "4GiB", -1, 364, 353, 375},   {"reduce", 2, "4GiB", 0, 372, 353, 391},
	};
	struct record_case *c[sizeof(rows) / sizeof(rows[0])];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		c[i] = other_op(rows[i].op, rows[i].ranks, rows[i].size, rows[i].good, rows[i].nvls);
	world_judge(&w);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		band_is(c[i], rows[i].low, rows[i].high);
		assert_int_equal(world_of(&w, c[i])->verdict, VERDICT_PASS);
	}
}

/* Another count, another way, another place of the data: no band of a neighbour is taken for it. */
static void test_expected__what_no_figure_is_known_of_has_no_band(void **state)
{
	struct record_case *c[] = {
		other_op("allgather", 5, "4GiB", 340, 0), /* no figure of five */
		other_op("allreduce", 6, "8GiB", 360, 0), /* of six with the switch alone */
		other_op("allreduce", 4, "16MiB", 250, 0),
		other_op("allgather", 8, "4GiB", 350, 1),
	};

	(void)state;
	world_judge(&w);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		assert_false(world_of(&w, c[i])->has_band);
		assert_verdict(&w, c[i], VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
		assert_non_null(strstr(world_of(&w, c[i])->reason, "no expected range for this operation"));
	}
}

/* Twelve links a GPU are another product; twelve of eighteen are this one, damaged. */
static void test_expected__bands_go_by_the_links_that_are_there(void **state)
{
	struct record_case *damaged = all_reduce(4, "8GiB", 240, 0), *half;

	(void)state;
	world_fact(&w.gpu[2], GPU_FACT_nvlink_active, 12);
	world_judge(&w);
	band_is(damaged, 358, 368);
	assert_verdict(&w, damaged, VERDICT_FAIL, CAUSE_BELOW_BAND);
	for (unsigned i = 0; i < 4; i++) {
		world_fact(&w.gpu[i], GPU_FACT_nvlink_active, 12);
		world_fact(&w.gpu[i], GPU_FACT_nvlink_count, 12);
	}
	half = all_reduce(4, "8GiB", 240, 0);
	world_judge(&w);
	assert_false(world_of(&w, half)->has_band);
	assert_verdict(&w, half, VERDICT_UNKNOWN, CAUSE_NO_REFERENCE);
}

/* Where no expected range fits: of the links alone, whatever the switch adds; it warns, and passes nothing. */
static void test_expected__without_a_band_a_share_of_the_links_is_looked_into(void **state)
{
	struct record_case *slow = other_op("allgather", 5, "4GiB", 290, 0),
			   *fair = other_op("allgather", 5, "4GiB", 300, 0),
			   *added = all_reduce(5, "4GiB", 290, 1), *small = all_reduce(5, "32MiB", 10, 0),
			   *strict = other_op("alltoall", 6, "4GiB", 200, -1);

	(void)state;
	slow->require = fair->require = added->require = small->require = REQUIRE_MEASURED;
	strict->require = REQUIRE_JUDGED;
	world_judge(&w);
	assert_verdict(&w, slow, VERDICT_WARN, CAUSE_BELOW_BOUND);
	assert_float_equal(world_of(&w, slow)->least.value, 0.65 * 450e9, 0.1e9);
	assert_int_equal(world_of(&w, slow)->judged_by, JUDGED_BOUND);
	assert_non_null(strstr(world_of(&w, slow)->reason, "no expected range fits"));
	assert_verdict(&w, fair, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, added, VERDICT_WARN, CAUSE_BELOW_BOUND);
	assert_float_equal(world_of(&w, added)->least.value, 0.65 * 450e9, 0.1e9);
	assert_verdict(&w, small, VERDICT_MEASURED, CAUSE_NO_REFERENCE); /* time, not links */
	assert_verdict(&w, strict, VERDICT_UNKNOWN, CAUSE_BELOW_BOUND);
}

static void test_expected__what_nccl_did_not_tell_meets_no_band_that_asks(void **state)
{
	struct record_case *c = all_reduce(8, "8GiB", 362, -1), *low = all_reduce(8, "8GiB", 200, -1);

	(void)state;
	c->require = low->require = REQUIRE_MEASURED;
	world_judge(&w);
	assert_false(world_of(&w, c)->has_band);
	assert_verdict(&w, c, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_non_null(strstr(world_of(&w, c)->reason,
			       "expected range h200-allreduce-8 depends on NCCL's choice, which NCCL did not report"));
	assert_verdict(&w, low, VERDICT_WARN, CAUSE_BELOW_BOUND);
}

/* What is asked for ahead of the run: a share where there is no band, the lower band where there are two. */
static void test_expected__ahead_of_the_run_a_share_stands_in(void **state)
{
	struct record_case *c = other_op("allgather", 5, "4GiB", 0, -1),
			   *one = other_op("allgather", 8, "1GiB", 0, -1),
			   *banded = other_op("allgather", 4, "4GiB", 0, -1);

	(void)state;
	w.ctx.ahead = true;
	world_judge(&w);
	assert_float_equal(world_of(&w, c)->least.value, 0.65 * 450e9, 0.1e9);
	assert_non_null(strstr(world_of(&w, c)->reason, "slow below"));
	assert_float_equal(world_of(&w, one)->least.value, 0.55 * 450e9, 0.1e9);
	band_is(banded, 327, 363);
	assert_true(world_of(&w, banded)->least.value <= 0);
}

static void lows_are(struct record_case *c, double untold, double links, double added)
{
	const struct expected_known *way = world_of(&w, c)->ahead.way;

	assert_float_equal(expected_of(&way[FIGURE_UNTOLD]).rate, untold * 1e9, 1e8);
	assert_float_equal(expected_of(&way[FIGURE_LINKS]).rate, links * 1e9, 1e8);
	assert_float_equal(expected_of(&way[FIGURE_SWITCH]).rate, added * 1e9, 1e8);
}

/* Bands of 1 GiB are of a switch that adds: a ring's good 360 GB/s must not be searched for being below them.
 */
static void test_expected__ahead_of_the_run_each_way_has_its_own(void **state)
{
	struct record_case *switched = all_reduce(8, "1GiB", 0, -1), *both = all_reduce(8, "8GiB", 0, -1),
			   *ring = all_reduce(4, "8GiB", 0, -1),
			   *team = all_reduce_of("team", 1, 8, "8GiB", 0, -1);

	(void)state;
	w.ctx.ahead = true;
	world_judge(&w);
	lows_are(switched, 0.55 * 450, 0.55 * 450, 455);
	lows_are(both, 355, 355, 465);
	lows_are(ring, 0.65 * 450, 358, 0.65 * 450);
	lows_are(team, 0, 0, 0);
}

/* 8 bytes by graph: of a time less is better. */
static struct record_case *short_one(const char *launch, const char *buffers, double us)
{
	struct record_case *c = other_op("allreduce", 4, "8", 1, 0);
	json_t *options = json_object_get(c->plan, "options");

	json_object_set_new(options, "launch", json_string(launch));
	json_object_set_new(options, "buffers", json_string(buffers));
	c->limit = "latency";
	c->phases = "burst";
	c->require = REQUIRE_KNOWN;
	c->step += 100; /* no round of the others */
	c->key = buffers;
	world_set(c, "sustained", "latency_ns", us * 1e3);
	return c;
}

static void test_expected__bands_of_times_are_held_the_other_way(void **state)
{
	struct record_case *good = short_one("graph", "plain", 7.5);
	const struct judgement *j = judged(good);

	(void)state;
	assert_verdict(&w, good, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_float_equal(j->band.low, 6800, 1e-6);
	assert_float_equal(j->band.high, 8500, 1e-6);
	world_set(good, "sustained", "latency_ns", 8800);
	judged(good);
	assert_verdict(&w, good, VERDICT_WARN, CAUSE_BELOW_BAND);
	world_set(good, "sustained", "latency_ns", 12000);
	judged(good);
	assert_verdict(&w, good, VERDICT_FAIL, CAUSE_BELOW_BAND);
	world_set(good, "sustained", "latency_ns", 6000);
	judged(good);
	assert_verdict(&w, good, VERDICT_WARN, CAUSE_BAND_STALE);
}

static void test_expected__times_by_stream_and_untold_windows_have_no_band(void **state)
{
	struct record_case *stream = short_one("stream", "plain", 20),
			   *window = short_one("graph", "window", 2);

	(void)state;
	json_object_del(world_phase(window, "once")->values, "nvls"); /* the switch may be on */
	world_judge(&w);
	assert_verdict(&w, stream, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, window, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
}

/* As NCCL told, else as it was asked for; `auto` where it did neither. */
static void test_expected__the_way_is_what_was_told_else_asked(void **state)
{
	struct record_case *told = all_reduce(4, "8GiB", 363, 0), *asked = all_reduce(4, "4GiB", 363, -1),
			   *neither = all_reduce(4, "2GiB", 363, -1);
	struct subject s;
	char text[32];

	(void)state;
	json_object_set_new(json_object_get(asked->plan, "options"), "algorithm", json_string("tree"));
	subject_of(&s, &w.ctx, told);
	assert_string_equal(subject_word(&s, "algorithm", text, sizeof(text)), "ring");
	assert_string_equal(subject_word(&s, "protocol", text, sizeof(text)), "simple");
	assert_string_equal(subject_word(&s, "nvls", text, sizeof(text)), "0");
	subject_of(&s, &w.ctx, asked);
	assert_string_equal(subject_word(&s, "algorithm", text, sizeof(text)), "tree");
	subject_of(&s, &w.ctx, neither);
	assert_string_equal(subject_word(&s, "algorithm", text, sizeof(text)), "auto");
	assert_null(subject_word(&s, "nvls", text, sizeof(text)));
}

static void test_expected__links_have_a_count_and_a_generation(void **state)
{
	static const struct {
		double rate, cc;
		const char *generation;
	} rows[] = {{26.5625, 90, "4"}, {53.125, 100, "5"}, {25, 80, "3"}, {25.78, 70, "2"}, {20, 60, "1"}};
	struct record_case *c = all_reduce(4, "8GiB", 363, 0);
	struct subject s;
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_fact(&w.gpu[1], GPU_FACT_nvlink_rate_gbps, rows[i].rate);
		world_fact(&w.gpu[1], GPU_FACT_cc, rows[i].cc);
		for (unsigned g = 0; g < 4; g++)
			w.gpu[g].fact[GPU_FACT_nvlink_rate_gbps] = rows[i].rate;
		w.gpu[0].fact[GPU_FACT_cc] = w.gpu[2].fact[GPU_FACT_cc] = w.gpu[3].fact[GPU_FACT_cc] =
			rows[i].cc;
		subject_of(&s, &w.ctx, c);
		assert_string_equal(subject_word(&s, "nvlink_gen", text, sizeof(text)), rows[i].generation);
	}
	w.gpu[3].fact[GPU_FACT_nvlink_rate_gbps] = 0;
	assert_null(subject_word(&s, "nvlink_gen", text, sizeof(text))); /* of one it is not known */
	world_fact(&w.gpu[2], GPU_FACT_nvlink_count, 12);
	world_fact(&w.gpu[1], GPU_FACT_pcie_gen_max, 4);
	assert_string_equal(subject_word(&s, "nvlinks", text, sizeof(text)), "12");
	assert_string_equal(subject_word(&s, "pcie_gen", text, sizeof(text)), "4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_expected__##name, begin_h200, end)
		T(ahead_of_the_run_a_share_stands_in),
		T(ahead_of_the_run_each_way_has_its_own),
		T(ahead_of_the_run_the_lower_band_counts),
		T(bands_go_by_operation_count_and_size),
		T(bands_go_by_the_links_that_are_there),
		T(bands_of_times_are_held_the_other_way),
		T(bands_tell_the_switch_from_the_ring),
		T(links_have_a_count_and_a_generation),
		T(no_band_of_a_node_judges_a_team),
		T(the_way_is_what_was_told_else_asked),
		T(times_by_stream_and_untold_windows_have_no_band),
		T(what_nccl_did_not_tell_meets_no_band_that_asks),
		T(what_no_figure_is_known_of_has_no_band),
		T(without_a_band_a_share_of_the_links_is_looked_into),
#undef T
	};

	return cmocka_run_group_tests_name("judge_expected", tests, NULL, NULL);
}
