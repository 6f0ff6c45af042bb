/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of GPUs: bounds, bands, siblings, the GPU behind several slow pairs, what NVLink's counters explain.
 */
#include "judge_bed.h"

static void test_links__a_slow_link_is_named_with_its_direction(void **state)
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
			char target[32];

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

static void test_links__the_reverse_of_a_slow_direction_is_told(void **state)
{
	(void)state;
	all_pairs(8, "link.p2p");
	world_set(pair("gpu3>gpu6"), "sustained", "link_rate", 197e9);
	world_judge(&w);
	assert_verdict(&w, pair("gpu3>gpu6"), VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_string_equal(
		reason("gpu3>gpu6"),
		"gpu3>gpu6: 197 GB/s, 49.5 % below the median of the other 55; gpu6>gpu3 390 GB/s is fine");
	assert_int_equal(world_of(&w, pair("gpu6>gpu3"))->verdict, VERDICT_PASS);
	world_set(pair("gpu6>gpu3"), "sustained", "link_rate", 300e9);
	world_judge(&w);
	assert_non_null(strstr(reason("gpu3>gpu6"), "gpu6>gpu3 300 GB/s is slow as well"));
	assert_null(strstr(reason("gpu3>gpu6"), "its links"));
}

static void set_rate(const char *target, double rate)
{
	world_set(pair(target), "sustained", "link_rate", rate);
}

static void verdict_of_pair(const char *target, enum verdict verdict, enum cause cause)
{
	assert_verdict(&w, pair(target), verdict, cause);
}

/* One finding: the worst of its pairs carries it, the others point there and raise nothing. */
static void test_links__a_gpu_slow_to_most_others_is_one_finding(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	set_rate("gpu2>gpu0", 250e9);
	set_rate("gpu2>gpu3", 245e9);
	world_judge(&w);
	verdict_of_pair("gpu2>gpu3", VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_non_null(
		strstr(reason("gpu2>gpu3"),
		       "gpu2 (0000:12:00.0) sends slowly to 2 of 3: all its links are slow, not one pair; gpu2>gpu3 245 "
		       "GB/s, 37.2 % below the median"));
	assert_string_equal(world_of(&w, pair("gpu2>gpu3"))->part, "0000:12:00.0");
	verdict_of_pair("gpu2>gpu0", VERDICT_MEASURED, CAUSE_LINK_SLOW);
	assert_string_equal(reason("gpu2>gpu0"), "35.9 % below the median: the links of gpu2 are slow, see gpu2>gpu3");
	assert_string_equal(world_of(&w, pair("gpu2>gpu0"))->part, "");
	verdict_of_pair("gpu2>gpu1", VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_links__a_gpu_that_receives_slowly_is_told_from_one_that_sends(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	set_rate("gpu0>gpu3", 250e9);
	set_rate("gpu2>gpu3", 251e9);
	world_judge(&w);
	assert_non_null(
		strstr(reason("gpu0>gpu3"), "gpu3 (0000:13:00.0) receives slowly from 2 of 3: all its links"));
	verdict_of_pair("gpu2>gpu3", VERDICT_MEASURED, CAUSE_LINK_SLOW);
	assert_int_equal(w.out.exit_code, 1);
}

/* Every way of a GPU with 12 of its 18 links up, and the figure of one card's band besides. */
static void test_links__half_width_links_of_one_gpu_are_one_finding_with_their_count(void **state)
{
	static const char *const slow[] = {"gpu1>gpu0", "gpu1>gpu2", "gpu1>gpu3",
					   "gpu0>gpu1", "gpu2>gpu1", "gpu3>gpu1"};
	size_t failed = 0;

	(void)state;
	world_fact(&w.gpu[1], GPU_FACT_nvlink_active, 12);
	world_fact(&w.gpu[1], GPU_FACT_nvlink_count, 18);
	all_pairs(4, "link.p2p");
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		set_rate(slow[i], 260e9 + 1e8 * (double)i);
		world_set(pair(slow[i]), "once", "nvlinks", 12);
	}
	world_judge(&w);
	for (size_t i = 0; i < w.r.case_count; i++)
		failed += world_of(&w, &w.cases[i])->verdict == VERDICT_FAIL;
	assert_int_equal(failed, 1);
	verdict_of_pair("gpu1>gpu0", VERDICT_FAIL, CAUSE_NVLINK_COUNT);
	assert_non_null(strstr(
		reason("gpu1>gpu0"),
		"gpu1 (0000:11:00.0) sends slowly to 3 of 3 and receives slowly from 3 of 3: all its links"));
	assert_non_null(strstr(reason("gpu1>gpu0"), "0000:11:00.0 has 12 of 18 NVLinks up (0.667)"));
	verdict_of_pair("gpu3>gpu1", VERDICT_MEASURED, CAUSE_LINK_SLOW);
	verdict_of_pair("gpu0>gpu2", VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_links__a_narrow_pcie_link_is_told(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	for (size_t i = 0; i < w.r.case_count; i++) {
		json_object_del(world_phase(&w.cases[i], "once")->values, "nvlinks");
		json_object_del(world_phase(&w.cases[i], "once")->values, "nvlinks_most");
		world_text(&w.cases[i], "once", "path", "PIX");
		world_set(&w.cases[i], "sustained", "link_rate", 50e9);
	}
	world_fact(&w.gpu[3], GPU_FACT_pcie_width, 8);
	world_fact(&w.gpu[2], GPU_FACT_pcie_width, 16);
	world_fact(&w.gpu[2], GPU_FACT_pcie_gen_max, 3);
	world_fact(&w.gpu[2], GPU_FACT_pcie_gen_device, 5);
	set_rate("gpu0>gpu3", 26e9);
	set_rate("gpu2>gpu1", 12e9);
	world_judge(&w);
	assert_non_null(strstr(reason("gpu0>gpu3"), "0000:13:00.0 has x8 of x16 PCIe lanes"));
	assert_non_null(strstr(reason("gpu2>gpu1"), "0000:12:00.0 has PCIe generation 3 of 5"));
}

/* A pair across sockets is held against its like alone. */
static void test_links__ways_that_differ_are_not_compared(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	for (size_t i = 0; i < w.r.case_count; i++) {
		bool near = strstr("gpu0>gpu1 gpu1>gpu0 gpu2>gpu3 gpu3>gpu2", w.cases[i].target);

		json_object_del(world_phase(&w.cases[i], "once")->values, "nvlinks");
		json_object_del(world_phase(&w.cases[i], "once")->values, "nvlinks_most");
		world_text(&w.cases[i], "once", "path", near ? "PIX" : "SYS");
		world_set(&w.cases[i], "sustained", "link_rate", near ? 50e9 : 22e9);
	}
	world_judge(&w);
	for (size_t i = 0; i < w.r.case_count; i++)
		assert_int_equal(world_of(&w, &w.cases[i])->verdict, VERDICT_PASS);
}

/* Every ordered pair of the first `gpus`, so many ns to read a word of the other's memory. */
static void all_latencies(unsigned gpus, double ns)
{
	for (unsigned a = 0; a < gpus; a++)
		for (unsigned b = 0; b < gpus; b++) {
			struct record_case *c;
			char target[32];

			if (a == b)
				continue;
			snprintf(target, sizeof(target), "gpu%u>gpu%u", a, b);
			c = world_case(&w, "p2p", target, "latency", "direction=latency");
			c->engine = "load";
			world_set(c, "sustained", "latency_ns", ns);
			world_verified(c);
		}
}

/* Latencies of healthy pairs were 803 and 857 ns in one run, and 861 and 859 in the next. */
static void test_links__a_latency_is_slow_beyond_a_tenth(void **state)
{
	(void)state;
	all_latencies(2, 803);
	world_set(pair("gpu0>gpu1"), "sustained", "latency_ns", 857);
	world_judge(&w);
	assert_int_equal(world_of(&w, pair("gpu0>gpu1"))->verdict, world_of(&w, pair("gpu1>gpu0"))->verdict);
	world_set(pair("gpu0>gpu1"), "sustained", "latency_ns", 900);
	world_judge(&w);
	verdict_of_pair("gpu0>gpu1", VERDICT_WARN, CAUSE_LINK_SLOW);
	assert_string_equal(reason("gpu0>gpu1"),
			    "gpu0>gpu1: 900 ns, 12.1 % above its reverse direction, gpu1>gpu0 803 ns");
}

static void test_links__nor_among_siblings_below_it(void **state)
{
	(void)state;
	all_latencies(4, 803);
	world_set(pair("gpu0>gpu1"), "sustained", "latency_ns", 857);
	world_judge(&w);
	assert_int_equal(world_of(&w, pair("gpu0>gpu1"))->verdict, world_of(&w, pair("gpu1>gpu0"))->verdict);
	world_set(pair("gpu0>gpu1"), "sustained", "latency_ns", 900);
	world_judge(&w);
	verdict_of_pair("gpu0>gpu1", VERDICT_FAIL, CAUSE_LINK_SLOW);
}

static void test_links__two_gpus_are_held_against_each_other(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	set_rate("gpu1>gpu0", 384e9);
	world_judge(&w);
	assert_int_not_equal(world_of(&w, pair("gpu1>gpu0"))->cause, CAUSE_LINK_SLOW); /* 1.5 % */
	set_rate("gpu1>gpu0", 350e9);
	world_judge(&w);
	verdict_of_pair("gpu1>gpu0", VERDICT_WARN, CAUSE_LINK_SLOW);
	assert_string_equal(reason("gpu1>gpu0"),
			    "gpu1>gpu0: 350 GB/s, 10.3 % below its reverse direction, gpu0>gpu1 390 GB/s");
	assert_int_not_equal(world_of(&w, pair("gpu0>gpu1"))->cause, CAUSE_LINK_SLOW);
}

/* Wrong data outweighs how fast it came. */
static void test_links__a_wrong_result_stays_one(void **state)
{
	(void)state;
	all_pairs(4, "link.p2p");
	set_rate("gpu2>gpu0", 150e9);
	pair("gpu2>gpu0")->status = STATUS_MISMATCH;
	pair("gpu2>gpu0")->cause = CAUSE_WRONG_RESULT;
	world_judge(&w);
	verdict_of_pair("gpu2>gpu0", VERDICT_FAIL, CAUSE_WRONG_RESULT);
}

static void count_nvlink(struct record_case *c, double payload, double raw)
{
	world_set(c, "sustained", "nvlink_tx_bytes", payload);
	world_set(c, "sustained", "nvlink_rx_bytes", 1e6);
	world_set(c, "sustained", "nvlink_raw_tx_bytes", raw);
	world_set(c, "sustained", "nvlink_raw_rx_bytes", 2e7);
	world_set(c, "sustained", "iterations", 1000);
	world_set(c, "sustained", "time_ns_mean", 0x1p26 / 390);
}

static const struct factor *factor_of(const struct judgement *j, const char *name)
{
	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	return NULL;
}

/* What NVLinks carried explains what a pair lacks: links, time they were busy, payload of what they carried.
 */
static void test_links__counters_of_nvlink_explain_the_gap(void **state)
{
	const double bytes = 1000 * 0x1p26;
	const struct judgement *j;

	(void)state;
	all_pairs(2, "link.p2p");
	count_nvlink(&w.cases[0], bytes, bytes * 17 / 16);
	world_judge(&w);
	j = world_of(&w, &w.cases[0]);
	assert_float_equal(factor_of(j, "links")->value, 1, 1e-9);
	assert_float_equal(factor_of(j, "busy")->value, 390.0 / 450, 1e-3);
	assert_float_equal(factor_of(j, "payload")->value, 1, 1e-6);
	assert_float_equal(j->unexplained, 1, 1e-3);
	assert_true(j->explained);
	assert_false(world_of(&w, &w.cases[1])->explained); /* no counters: absent, and said so */
	assert_false(factor_of(world_of(&w, &w.cases[1]), "busy")->present);
}

/* Half the links, and a copy counted twice: each shows where it belongs. */
static void test_links__a_miscount_shows_in_the_residual(void **state)
{
	const double bytes = 1000 * 0x1p26;
	const struct judgement *j;

	(void)state;
	all_pairs(2, "link.p2p");
	world_set(&w.cases[0], "once", "nvlinks", 9);
	set_rate("gpu0>gpu1", 195e9);
	count_nvlink(&w.cases[0], bytes, bytes * 17 / 16);
	world_set(&w.cases[0], "sustained", "time_ns_mean", 0x1p26 / 195);
	count_nvlink(&w.cases[1], bytes / 2, bytes / 2 * 17 / 16);
	w.cases[1].require = REQUIRE_MEASURED;
	world_judge(&w);
	j = world_of(&w, &w.cases[0]);
	assert_float_equal(factor_of(j, "links")->value, 0.5, 1e-9);
	assert_float_equal(j->unexplained, 1, 1e-3);
	assert_float_equal(world_of(&w, &w.cases[1])->unexplained, 2, 1e-3);
	assert_false(world_of(&w, &w.cases[1])->explained);
	assert_int_equal(world_of(&w, &w.cases[1])->verdict, VERDICT_WARN);
	assert_int_equal(world_of(&w, &w.cases[1])->cause, CAUSE_UNEXPLAINED);
}

/* More crossed than was copied: copies of others, which contradict nothing. */
static void test_links__what_others_copy_is_no_miscount(void **state)
{
	const double bytes = 1000 * 0x1p26;

	(void)state;
	all_pairs(2, "link.p2p");
	count_nvlink(&w.cases[1], 2 * bytes, 2 * bytes * 17 / 16);
	world_judge(&w);
	assert_float_equal(world_of(&w, &w.cases[1])->unexplained, 0.5, 1e-3);
	assert_int_not_equal(world_of(&w, &w.cases[1])->cause, CAUSE_UNEXPLAINED);
}

static void test_links__other_ways_of_the_same_copy_stand_beside(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	all_pairs(2, "link.p2p");
	w.cases[2].engine = "load";
	set_rate("gpu0>gpu1", 380e9);
	world_judge(&w);
	assert_float_equal(factor_of(world_of(&w, &w.cases[2]), "engine")->value, 390.0 / 380, 1e-6);
	assert_true(factor_of(world_of(&w, &w.cases[2]), "engine")->shown_only);
	assert_null(factor_of(world_of(&w, &w.cases[0]), "engine"));
}

static void test_links__errors_that_rose_in_a_window_name_their_link(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	w.cases[0].require = w.cases[1].require = REQUIRE_MEASURED;
	world_set(&w.cases[0], "sustained", "nvlink_errors_new", 12);
	world_text(&w.cases[0], "sustained", "nvlink_errors_place", "gpu0 link 7: 12");
	world_set(&w.cases[1], "sustained", "nvlink_errors_new", 0);
	world_judge(&w);
	verdict_of_pair("gpu0>gpu1", VERDICT_WARN, CAUSE_NVLINK_ERRORS);
	assert_non_null(strstr(reason("gpu0>gpu1"), "gpu0 link 7: 12"));
	assert_int_not_equal(world_of(&w, &w.cases[1])->cause, CAUSE_NVLINK_ERRORS);
}

static void test_links__links_bound_a_pair(void **state)
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

static void test_links__links_that_are_down_and_access_that_is_denied_are_told(void **state)
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
	assert_non_null(strstr(world_of(&w, &w.cases[1])->reason, "does not use them"));
	w.cases[1].require = REQUIRE_MEASURED; /* PCIe alone: many a driver allows it not */
	world_set(&w.cases[1], "once", "nvlinks_denied", 0);
	world_set(&w.cases[1], "once", "peer_access", 0);
	world_judge(&w);
	assert_verdict(&w, &w.cases[1], VERDICT_WARN, CAUSE_LINK_SLOW);
	assert_non_null(strstr(world_of(&w, &w.cases[1])->reason, "through the host"));
}

static void test_links__a_band_judges_a_pair_where_the_card_is_known(void **state)
{
	(void)state;
	all_pairs(2, "link.p2p");
	for (size_t i = 0; i < 2; i++)
		json_object_set_new(json_object_get(w.cases[i].plan, "options"), "size",
				    json_string("1073741824"));
	world_set(&w.cases[1], "sustained", "link_rate", 250e9);
	world_judge(&w);
	assert_verdict(&w, &w.cases[0], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(world_of(&w, &w.cases[0])->judged_by, JUDGED_BAND);
	assert_verdict(&w, &w.cases[1], VERDICT_FAIL, CAUSE_LINK_SLOW);
	assert_non_null(
		strstr(world_of(&w, &w.cases[1])->reason, "its reverse direction, gpu0>gpu1 390 GB/s; expected 364"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_links__##name, begin_eight, end)
		T(a_slow_link_is_named_with_its_direction),
		T(the_reverse_of_a_slow_direction_is_told),
		T(a_gpu_slow_to_most_others_is_one_finding),
		T(a_gpu_that_receives_slowly_is_told_from_one_that_sends),
		T(half_width_links_of_one_gpu_are_one_finding_with_their_count),
		T(a_narrow_pcie_link_is_told),
		T(ways_that_differ_are_not_compared),
		T(a_latency_is_slow_beyond_a_tenth),
		T(nor_among_siblings_below_it),
		T(two_gpus_are_held_against_each_other),
		T(a_wrong_result_stays_one),
		T(counters_of_nvlink_explain_the_gap),
		T(a_miscount_shows_in_the_residual),
		T(what_others_copy_is_no_miscount),
		T(other_ways_of_the_same_copy_stand_beside),
		T(errors_that_rose_in_a_window_name_their_link),
		T(links_bound_a_pair),
		T(links_that_are_down_and_access_that_is_denied_are_told),
		T(a_band_judges_a_pair_where_the_card_is_known),
#undef T
	};

	return cmocka_run_group_tests_name("judge_links", tests, NULL, NULL);
}
