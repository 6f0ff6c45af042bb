/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that all GPUs of a node share: slow fleets, locked clocks, host memory on a far node. */
#include <unistd.h>
#include "judge_bed.h"

/* Healthy figures of an H100: BF16 8192 and copy. `clock`: share of 1395 MHz held; `pipe`: of the pipe. */
static void slow_gpu(unsigned i, double clock, double pipe, double memory)
{
	char target[8];

	snprintf(target, sizeof(target), "gpu%u", i);
	(void)world_gemm(&w, target, "bf16", 8192, 689 * clock * pipe, 1395 * clock, 500, 0.918 * pipe);
	(void)world_memory(&w, target, "copy", 3.05 * memory, 0.92 * memory);
}

static size_t count_of(enum verdict v, enum cause cause)
{
	size_t n = 0;

	for (size_t i = 0; i < w.r.case_count; i++)
		n += w.out.of_case[i].verdict == v && w.out.of_case[i].cause == cause;
	return n;
}

static void test_fleet__eight_slow_gpus_are_one_finding_that_names_the_clock(void **state)
{
	const struct judgement *first = NULL;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		slow_gpu(i, 0.75, 1, 0.75);
	world_judge(&w);
	assert_int_equal(w.out.exit_code, 1);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 1);
	assert_int_equal(count_of(VERDICT_MEASURED, CAUSE_FLEET_LOW), 15);
	first = &w.out.of_case[0];
	assert_int_equal(first->cause, CAUSE_FLEET_LOW);
	assert_string_equal(first->part, "");
	assert_non_null(strstr(first->reason, "all 8 GPUs of the node"));
	assert_non_null(strstr(first->reason, "compute 0.80 .. 0.80 of it (clock 0.528"));
	assert_non_null(strstr(first->reason, "memory 0.79 .. 0.79 of it (busy"));
	assert_non_null(strstr(w.out.of_case[5].reason, "see case 0"));
	assert_non_null(strstr(w.out.headline, "1 of 16 cases failed"));
}

static void test_fleet__the_pipe_is_named_where_the_clock_is_as_ever(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		slow_gpu(i, 1, 0.75, 0.75);
	world_judge(&w);
	assert_int_equal(w.out.of_case[0].cause, CAUSE_FLEET_LOW);
	assert_non_null(strstr(w.out.of_case[0].reason, "(pipe 0.6"));
}

/* One class may be a library, a driver or a range that is wrong. */
static void test_fleet__one_class_alone_is_no_slow_fleet(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		slow_gpu(i, 0.75, 1, 1);
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 0);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_BELOW_BAND), 8);
}

static void test_fleet__one_sound_gpu_keeps_the_findings_of_the_others(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		slow_gpu(i, i == 3 ? 1 : 0.75, 1, 0.75);
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 0);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_fleet__gpus_that_the_run_left_out_are_told(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		slow_gpu(i, 0.75, 1, 0.75);
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 1);
	assert_non_null(strstr(w.out.of_case[0].reason, "all 2 GPUs that this run used, of 8 in the node,"));
}

/* What crashed was not judged: nothing is said of all. */
static void test_fleet__a_gpu_that_crashed_is_not_one_of_the_low(void **state)
{
	struct record_case *c;

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		slow_gpu(i, 0.75, 1, 0.75);
	c = world_case(&w, "gemm", "gpu7", "compute.bf16", "type=bf16 m=8192 n=8192 k=8192");
	c->ending = ENDING_CRASHED;
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 0);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_fleet__one_gpu_is_no_fleet(void **state)
{
	(void)state;
	slow_gpu(0, 0.75, 1, 0.75);
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 0);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_BELOW_BAND), 2);
}

/* Links count by the GPUs at their ends; a wrong result is not explained away. */
static void test_fleet__links_count_and_other_findings_stay(void **state)
{
	static const char *const target[] = {"gpu0", "gpu1"};
	struct record_case *wrong, *c;

	(void)state;
	w.ctx.gpu_count = 2;
	for (size_t i = 0; i < 2; i++) {
		(void)world_gemm(&w, target[i], "bf16", 8192, 689 * 0.75, 1395 * 0.75, 500, 0.918);
		c = world_case(&w, "link", target[i], "link.h2d", "direction=h2d memory=pinned numa=auto");
		c->work_link = 1e9;
		world_set(c, "sustained", "link_rate", 38e9);
		world_verified(c);
	}
	wrong = world_memory(&w, "gpu1", "copy", 3.05, 0);
	world_set(wrong, "verify", "wrong_count", 3);
	world_judge(&w);
	assert_int_equal(count_of(VERDICT_FAIL, CAUSE_FLEET_LOW), 1);
	assert_non_null(strstr(w.out.of_case[0].reason, "link 0.79 .. 0.79"));
	assert_verdict(&w, wrong, VERDICT_FAIL, CAUSE_WRONG_RESULT);
}

/* 20 readings of the window, `low` of them at `mhz`, the others at the maximum. */
static struct record_case *locked(double mhz, unsigned low, double watts)
{
	struct record_case *c = world_gemm(&w, "gpu0", "fp32", 8192, 48.5 * mhz / 1980, mhz, watts, 0);
	struct series *clock = world_series(&w, "gpu:0000:10:00.0", "sm_clock_mhz", SIGNAL_GAUGE),
		      *violation = world_series(&w, "gpu:0000:10:00.0", "violation_power_s", SIGNAL_COUNTER);

	for (unsigned i = 0; i < 20; i++) {
		uint64_t t = c->t0_ns + 1100000000 + i * 250000000ull;

		assert_int_equal(series_add(clock, t, i < low ? mhz : 1980, NULL), STATUS_OK);
		assert_int_equal(series_add(violation, t, 7.5, NULL), STATUS_OK);
	}
	world_set(c, "sustained", "clock_reasons_or", 0);
	world_set(c, "sustained", "flop_rate", 50e12);
	return c;
}

static bool warned(const struct record_case *c)
{
	world_judge(&w);
	return world_of(&w, c)->cause == CAUSE_CLOCK_LOCKED;
}

static void test_locked__a_low_clock_without_a_limit_warns(void **state)
{
	struct record_case *c = locked(1605, 19, 430);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_CLOCK_LOCKED);
	assert_non_null(strstr(world_of(&w, c)->reason, "95 % of the clock samples"));
	assert_int_equal(w.out.exit_code, 0);
}

static void test_locked__fewer_samples_than_nine_in_ten_do_not(void **state)
{
	(void)state;
	assert_false(warned(locked(1605, 17, 430)));
}

static void test_locked__a_power_limit_that_is_met_explains_it(void **state)
{
	(void)state;
	assert_false(warned(locked(1605, 20, 640)));
}

static void test_locked__a_violation_counter_that_rose_explains_it(void **state)
{
	struct record_case *c = locked(1605, 20, 430);

	(void)state;
	assert_int_equal(series_add(&w.series[1], c->t0_ns + 6900000000ull, 7.6, NULL), STATUS_OK);
	assert_false(warned(c));
}

static void test_locked__without_counters_and_reasons_nothing_is_claimed(void **state)
{
	struct record_case *c = locked(1605, 20, 430);

	(void)state;
	snprintf(w.series[1].signal, sizeof(w.series[1].signal), "other");
	assert_false(warned(c));
	world_set(c, "sustained", "violation_power_share", 0);
	assert_true(warned(c));
}

/* 20 readings of the reasons in the window of `locked`, `named` of them with the software's power cap. */
static void reasons(const struct record_case *c, unsigned named, unsigned count)
{
	struct series *list = world_series(&w, "gpu:0000:10:00.0", "clock_reasons", SIGNAL_BITS);

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(series_add(list, c->t0_ns + 1100000000 + i * 250000000ull,
					    i < named ? 0x4 : 0, NULL),
				 STATUS_OK);
	world_set((struct record_case *)c, "sustained", "clock_reasons_or", named ? 0x4 : 0);
}

/* Counters that cannot be read: reasons that name no limit suffice. */
static void test_locked__without_violation_counters_the_reasons_tell(void **state)
{
	static const struct {
		unsigned named, count;
		bool warns;
	} rows[] = {{0, 20, true}, {1, 20, true}, {2, 20, true}, {3, 20, false}, {20, 20, false}, {0, 9, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c;

		c = locked(1605, 20, 430);
		snprintf(w.series[1].signal, sizeof(w.series[1].signal), "other");
		reasons(c, rows[i].named, rows[i].count);
		if (warned(c) != rows[i].warns)
			fail_msg("%u of %u", rows[i].named, rows[i].count);
		end(NULL);
		begin_one(NULL);
	}
}

static void test_locked__a_limit_named_for_a_moment_does_not_silence_it(void **state)
{
	struct record_case *c = locked(1605, 20, 430);

	(void)state;
	reasons(c, 1, 20);
	assert_true(warned(c));
	for (unsigned i = 0; i < 20; i++)
		w.series[2].value[i] = 0x4;
	assert_false(warned(c));
}

static void test_locked__a_short_window_and_a_high_clock_do_not(void **state)
{
	struct record_case *c = locked(1800, 20, 430);

	(void)state;
	assert_false(warned(c)); /* 0.909 of the maximum */
	for (unsigned i = 0; i < 20; i++)
		w.series[0].value[i] = 1605;
	assert_true(warned(c));
	for (size_t i = 0; i < c->phase_count; i++)
		c->phase[i].t1_ns = c->phase[i].t0_ns + 900000000;
	assert_false(warned(c));
}

static void test_locked__as_stated_it_is_silent(void **state)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	struct judge_site site = {.file = path};
	FILE *f = fdopen(mkstemp(path), "w");
	struct record_case *c = locked(1605, 20, 430);
	struct error err = {0};

	(void)state;
	world_set(c, "sustained", "flop_rate", 42e12); /* 0.775 of what that clock allows */
	fputs("sm_clock: 1605 MHz\n", f);
	fclose(f);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_OK);
	assert_int_equal(world_of(&w, c)->verdict, VERDICT_PASS);
	judgements_release(&w.out);
	f = fopen(path, "w");
	fputs("sm_clock: 1700 MHz\n", f); /* another clock than what is held */
	fclose(f);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_OK);
	assert_verdict(&w, c, VERDICT_WARN, CAUSE_CLOCK_LOCKED);
	unlink(path);
}

static struct record_case *copy(double gbs, const char *numa)
{
	char options[96];
	struct record_case *c;

	snprintf(options, sizeof(options), "direction=h2d memory=pinned numa=%s", numa);
	c = world_case(&w, "link", "gpu0", "link.h2d", options);
	c->work_link = 1e9;
	world_set(c, "sustained", "link_rate", gbs * 1e9);
	world_verified(c);
	return c;
}

static void says(struct record_case *c, enum cause cause, const char *words)
{
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, cause);
	if (!strstr(world_of(&w, c)->reason, words))
		fail_msg("\"%s\" lacks \"%s\"", world_of(&w, c)->reason, words);
}

static void test_placement__two_nodes_that_differ_are_numa_distance(void **state)
{
	struct record_case *c = copy(38, "auto");

	(void)state;
	world_fact(&w.gpu[0], GPU_FACT_numa_node, 0);
	world_set(c, "once", "cpu_node", 1);
	says(c, CAUSE_NUMA_FAR, "NUMA distance: the host memory is on node 1, the GPU on node 0");
	world_set(c, "once", "cpu_node", 0);
	says(c, CAUSE_BELOW_BAND, "NUMA distance is not the reason: host memory and GPU are both on node 0");
	world_set(c, "once", "host_node", 1); /* asked for: it counts */
	says(c, CAUSE_NUMA_FAR, "host memory is on node 1");
}

static void test_placement__the_search_over_nodes_tells_it(void **state)
{
	struct record_case *c = copy(38, "auto"), *near;

	(void)state;
	near = copy(54, "1");
	near->phases = "burst";
	says(c, CAUSE_NUMA_FAR, "NUMA distance: memory of node 1 reached 54.0 GB/s");
	world_set(near, "sustained", "link_rate", 38.5e9);
	says(c, CAUSE_BELOW_BAND, "NUMA placement is unknown");
}

static void test_placement__what_the_system_does_not_tell_is_unknown(void **state)
{
	struct record_case *c = copy(38, "auto");

	(void)state;
	says(c, CAUSE_BELOW_BAND, "NUMA placement is unknown: the system does not report the node of the GPU and the host memory");
	world_set(c, "once", "cpu_node", 0);
	world_fact(&w.gpu[0], GPU_FACT_numa_node, -1);
	says(c, CAUSE_BELOW_BAND, "does not report the node of the GPU");
	w.cpu.numa_count = 1;
	says(c, CAUSE_BELOW_BAND, "NUMA distance is not the reason: the machine has one node");
	w.cpu.virtual_machine = true; /* it may hide the host's nodes */
	says(c, CAUSE_BELOW_BAND, "NUMA placement is unknown");
	world_set(c, "sustained", "link_rate", 55e9);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_##name, setup, end)
		T(begin_eight, fleet__eight_slow_gpus_are_one_finding_that_names_the_clock),
		T(begin_eight, fleet__the_pipe_is_named_where_the_clock_is_as_ever),
		T(begin_eight, fleet__one_class_alone_is_no_slow_fleet),
		T(begin_eight, fleet__one_sound_gpu_keeps_the_findings_of_the_others),
		T(begin_eight, fleet__links_count_and_other_findings_stay),
		T(begin_eight, fleet__gpus_that_the_run_left_out_are_told),
		T(begin_eight, fleet__a_gpu_that_crashed_is_not_one_of_the_low),
		T(begin_one, fleet__one_gpu_is_no_fleet),
		T(begin_one, locked__a_low_clock_without_a_limit_warns),
		T(begin_one, locked__fewer_samples_than_nine_in_ten_do_not),
		T(begin_one, locked__a_power_limit_that_is_met_explains_it),
		T(begin_one, locked__a_violation_counter_that_rose_explains_it),
		T(begin_one, locked__without_counters_and_reasons_nothing_is_claimed),
		T(begin_one, locked__without_violation_counters_the_reasons_tell),
		T(begin_one, locked__a_limit_named_for_a_moment_does_not_silence_it),
		T(begin_one, locked__a_short_window_and_a_high_clock_do_not),
		T(begin_one, locked__as_stated_it_is_silent),
		T(begin_one, placement__two_nodes_that_differ_are_numa_distance),
		T(begin_one, placement__the_search_over_nodes_tells_it),
		T(begin_one, placement__what_the_system_does_not_tell_is_unknown),
#undef T
	};

	return cmocka_run_group_tests_name("judge_fleet", tests, NULL, NULL);
}
