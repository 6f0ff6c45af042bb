/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_bed.h"

static void test_compare__within_noise_nothing_changed(void **state)
{
	(void)state;
	gemm(0, 689, 1395);
	gemm(1, 693, 1400);
	compare(2, COMPARE_AUTO);
	assert_false(result.fleet);
	assert_int_equal(result.row_count, 1);
	assert_int_equal(result.row[0].change, COMPARE_SAME);
	assert_int_equal(result.exit_code, 0);
	assert_float_equal(result.row[0].noise, 0.02, 1e-9);
}

static void test_compare__a_hotter_day_is_told_from_worse_software(void **state)
{
	(void)state;
	gemm(0, 740, 1500);
	gemm(1, 690, 1399); /* -6.8 %, the clock alone */
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row[0].change, COMPARE_SLOWER_CLOCK);
	assert_int_equal(result.exit_code, 1);
	assert_true(result.row[0].has_normalised);
	assert_float_equal(result.row[0].normalised, 690.0 / 1399 / (740.0 / 1500) - 1, 1e-6);
}

static void test_compare__less_at_an_equal_clock_is_the_work(void **state)
{
	(void)state;
	gemm(0, 700, 1410);
	gemm(1, 676, 1410); /* -3.4 % raw is under the raw noise, at the clock it is not */
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row[0].change, COMPARE_SLOWER);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 1);
}

/* A CPU's stamp comes after the window: another one says nothing about equal rates. */
static void test_compare__a_cpu_s_clock_normalises_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct record_case *c = world_case(&w[i], "gemm", "cpu", "compute.fp32", "type=fp32 m=2048");

		world_set(c, "sustained", "flop_rate", i ? 250.5e9 : 250e9);
		world_set(c, "sustained", "clock_hz", i ? 2.748e9 : 2.398e9);
		world_verified(c);
	}
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 1);
	assert_false(result.row[0].has_normalised);
	assert_int_equal(result.row[0].change, COMPARE_SAME);
	assert_float_equal(result.row[0].noise_raw, 0.05, 1e-9);
}

/* A launch that nothing judges became slower: it is told, and the code is for what was judged. */
static void test_compare__what_nobody_asked_to_judge_sets_no_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct record_case *c = world_case(&w[i], "dispatch", "gpu0", "latency", "");

		c->require = 1;
		world_set(c, "sustained", "latency_ns", i ? 2600 : 2300);
		gemm(i, 690, 1410);
	}
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 2);
	assert_int_equal(result.row[0].change, COMPARE_SLOWER);
	assert_false(result.row[0].judged);
	assert_true(result.row[1].judged);
	assert_int_equal(result.exit_code, 0);
	assert_non_null(strstr(result.headline, "1 of 2 cases slower (0 of them judged)"));
	world_set(&w[1].cases[1], "sustained", "flop_rate", 640e12);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 1);
	assert_non_null(strstr(result.headline, "2 of 2 cases slower (1 of them judged)"));
}

static void test_compare__faster_is_no_reason_to_fail(void **state)
{
	(void)state;
	gemm(0, 690, 1410);
	gemm(1, 720, 1410);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row[0].change, COMPARE_FASTER);
	assert_int_equal(result.exit_code, 0);
}

static void test_compare__repeats_measure_the_noise(void **state)
{
	static const double steady[] = {3.100, 3.101, 3.099, 3.100, 3.085},
			    loose[] = {3.05, 3.20, 3.10, 3.15, 3.06};
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		json_object_del(
			world_phase(world_memory(&w[i], "gpu0", "read", steady[i], 0), "sustained")->values,
			"half_width_share");
	compare(5, COMPARE_AUTO);
	assert_int_equal(result.row[0].baselines, 4);
	assert_true(result.row[0].noise_raw < 0.004); /* tighter than the default */
	assert_int_equal(result.row[0].change, COMPARE_SLOWER);
	for (i = 0; i < 5; i++)
		world_set(&w[i].cases[0], "sustained", "byte_rate", loose[i] * 1e12);
	compare(5, COMPARE_AUTO);
	assert_true(result.row[0].noise_raw > 0.05);
	assert_int_equal(result.row[0].change, COMPARE_SAME);
}

static void test_compare__latencies_are_better_when_lower(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++)
		world_set(world_case(&w[i], "dispatch", "gpu0", "latency", ""), "sustained", "latency_ns",
			  i ? 2600 : 2300);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row[0].change, COMPARE_SLOWER);
}

static void test_compare__an_untrusted_side_is_not_compared_and_says_why(void **state)
{
	(void)state;
	gemm(0, 689, 1395);
	gemm(1, 2 * 689, 1395);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row[0].change, COMPARE_NOT_COMPARABLE);
	assert_non_null(strstr(result.row[0].why, "after"));
	assert_int_equal(result.exit_code, 2);
}

static void test_compare__a_verdict_that_turned_to_fail_fails(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		gemm(i, 689, 1395);
		world_reading(&w[i], "remap", "gpu0", i ? "remap_pending=1" : "remap_pending=0");
	}
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 2);
	assert_int_equal(result.exit_code, 1);
}

static void test_compare__cases_without_a_partner_are_counted(void **state)
{
	(void)state;
	gemm(0, 689, 1395);
	gemm(1, 689, 1395);
	world_memory(&w[0], "gpu0", "read", 3.1, 0);
	world_memory(&w[1], "gpu0", "copy", 3.0, 0);
	world_memory(&w[1], "gpu0", "add", 3.0, 0);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.only_before, 1);
	assert_int_equal(result.only_after, 2);
}

static void test_compare__alone_and_together_are_two_measurements(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		gemm(i, 689, 1395);
		world_gemm(&w[i], "gpu0", "bf16", 8192, 600, 1210, 695, 0.918)->together = true;
	}
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 2);
	assert_float_equal(result.row[0].before, 689e12, 1e6);
	assert_float_equal(result.row[1].before, 600e12, 1e6);
	assert_int_equal(result.row[0].change, COMPARE_SAME);
	assert_int_equal(result.row[1].change, COMPARE_SAME);
	w[0].cases[1].together = false; /* a repeat of the first now */
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 1);
	assert_int_equal(result.only_after, 1);
}

static void test_compare__several_machines_show_their_outlier(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		char uuid[16];

		snprintf(uuid, sizeof(uuid), "GPU-%zu", i);
		json_decref(w[i].r.machine);
		w[i].r.machine = facts("node", uuid, "96.00");
		gemm(i, i == 4 ? 640 : 690 + (double)i, 1395);
	}
	compare(6, COMPARE_AUTO);
	assert_true(result.fleet);
	assert_int_equal(result.groups, 1);
	assert_int_equal(result.outlier_count, 1);
	assert_string_equal(result.outlier[0].run, "e");
	assert_true(result.outlier[0].slower);
	assert_float_equal(result.outlier[0].deviation, 640.0 / 692 - 1, 1e-6);
	assert_int_equal(result.exit_code, 1);
}

static void test_compare__three_machines_are_too_few_for_an_outlier(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		gemm(i, i == 2 ? 400 : 690, 1395);
	compare(3, COMPARE_FLEET);
	assert_int_equal(result.groups, 0);
	assert_int_equal(result.exit_code, 2);
	assert_int_equal(result.pair_count, 2); /* the first beside each other */
	assert_string_equal(result.pair[1].run, "c");
	assert_float_equal(result.pair[1].ratio, 400.0 / 690, 1e-9);
}

static void test_compare__side_by_side_takes_the_same_sound_case_alone(void **state)
{
	(void)state;
	gemm(0, 690, 1395);
	gemm(1, 345, 1395);
	world_gemm(&w[0], "gpu0", "bf16", 4096, 600, 1500, 600, 0.9);
	world_gemm(&w[1], "gpu0", "bf16", 4096, 6000, 1500, 600, 0.9); /* above its bound: untrusted */
	world_gemm(&w[1], "gpu0", "fp16", 8192, 600, 1500, 600, 0.9);
	compare(2, COMPARE_FLEET);
	assert_int_equal(result.pair_count, 1);
	assert_float_equal(result.pair[0].ratio, 0.5, 1e-9);
	assert_string_equal(result.pair[0].c->key, w[0].r.cases[0].key);
	compare(2, COMPARE_HISTORY);
	assert_int_equal(result.pair_count, 0);
}

static void test_compare__other_products_are_not_of_one_kind(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		gemm(i, i == 4 ? 250 : 690, 1395);
		if (i == 4)
			json_object_set_new(
				json_array_get(
					json_object_get(json_object_get(w[i].r.machine, "facts"), "gpus"), 0),
				"name", json_string("NVIDIA A100"));
	}
	compare(5, COMPARE_FLEET);
	assert_int_equal(result.outlier_count, 0);
	assert_int_equal(result.groups, 1);
}

static void test_compare__inventory_differences_leave_out_what_moves_by_itself(void **state)
{
	(void)state;
	json_decref(w[1].r.machine);
	w[1].r.machine = facts("renamed", "GPU-1", "96.99");
	gemm(0, 689, 1395);
	gemm(1, 689, 1395);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.difference_count, 1);
	assert_string_equal(result.difference[0].path, "gpus[0].vbios");
	assert_string_equal(result.difference[0].before, "96.00");
	assert_string_equal(result.difference[0].after, "96.99");
}

static json_t *places_facts(const char *output, const char *home)
{
	return json_pack("{s:{s:s}, s:{s:[{s:s, s:s, s:s}, {s:s, s:s}]}, s:[]}", "cpu", "model", "Xeon",
			 "storage", "places", "role", "output", "path", output, "mount", "/", "role", "home",
			 "path", home, "gpus");
}

static void test_compare__a_run_s_own_folder_is_no_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		json_decref(w[i].r.machine);
		w[i].r.machine =
			places_facts(i ? "/runs/tuesday" : "/runs/monday", i ? "/home/b" : "/home/a");
		gemm(i, 689, 1395);
	}
	compare(2, COMPARE_HISTORY);
	assert_int_equal(result.difference_count, 1);
	assert_string_equal(result.difference[0].path, "storage.places[1].path");
}

/* Facts as record_read keeps them: without the wrapping of a machine record. */
static json_t *cpu_facts(const char *hostname, const char *boot, const char *model)
{
	return json_pack("{s:{s:s, s:s}, s:{s:s}, s:[]}", "system", "hostname", hostname, "boot_id", boot,
			 "cpu", "model", model, "gpus");
}

static bool fleet_of(json_t *a, json_t *b)
{
	json_decref(w[0].r.machine);
	json_decref(w[1].r.machine);
	w[0].r.machine = a;
	w[1].r.machine = b;
	compare(2, COMPARE_AUTO);
	return result.fleet;
}

static void test_compare__one_machine_is_known_again(void **state)
{
	(void)state;
	assert_false(fleet_of(cpu_facts("node", "1", "Xeon"), cpu_facts("node", "1", "Xeon")));
	assert_false(fleet_of(cpu_facts("node", "1", "Xeon"), cpu_facts("node", "2", "Xeon"))); /* rebooted */
	assert_false(
		fleet_of(cpu_facts("3f2a", "1", "Xeon"), cpu_facts("90bc", "1", "Xeon"))); /* containers */
	assert_true(fleet_of(cpu_facts("node", "1", "Xeon"), cpu_facts("other", "2", "Xeon")));
	assert_true(fleet_of(cpu_facts("node", "1", "Xeon"), cpu_facts("node", "1", "EPYC")));
	assert_false(fleet_of(facts("node", "GPU-1", "96.00"), facts("other", "GPU-1", "96.00")));
	assert_true(fleet_of(facts("node", "GPU-1", "96.00"), facts("node", "GPU-2", "96.00")));
	assert_true(fleet_of(facts("node", "GPU-1", "96.00"), cpu_facts("node", "1", "Xeon")));
	comparison_release(&result);
	compare_runs(&result, (struct compare_run[]){runs[0], runs[0]}, 2, COMPARE_AUTO, NULL);
	assert_false(result.fleet); /* the same directory twice */
}

static void test_compare__one_run_is_wrong_usage(void **state)
{
	struct error err = {0};

	(void)state;
	comparison_release(&result);
	assert_int_equal(compare_runs(&result, runs, 1, COMPARE_AUTO, &err), STATUS_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_compare__##name, begin, end)
		T(within_noise_nothing_changed),
		T(a_hotter_day_is_told_from_worse_software),
		T(less_at_an_equal_clock_is_the_work),
		T(a_cpu_s_clock_normalises_nothing),
		T(what_nobody_asked_to_judge_sets_no_code),
		T(a_run_s_own_folder_is_no_difference),
		T(faster_is_no_reason_to_fail),
		T(repeats_measure_the_noise),
		T(latencies_are_better_when_lower),
		T(an_untrusted_side_is_not_compared_and_says_why),
		T(a_verdict_that_turned_to_fail_fails),
		T(cases_without_a_partner_are_counted),
		T(alone_and_together_are_two_measurements),
		T(several_machines_show_their_outlier),
		T(three_machines_are_too_few_for_an_outlier),
		T(side_by_side_takes_the_same_sound_case_alone),
		T(other_products_are_not_of_one_kind),
		T(inventory_differences_leave_out_what_moves_by_itself),
		T(one_machine_is_known_again),
		T(one_run_is_wrong_usage),
#undef T
	};

	return cmocka_run_group_tests_name("judge_compare", tests, NULL, NULL);
}
