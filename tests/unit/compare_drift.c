/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a virtual machine, whose clock drifts between them: what the rounds of both sides support. */
#include "compare_bed.h"

enum { CASES = 8 };

/* How far each case of an unmodified run lies from 1: two runs differ by up to 26 % although nothing changed.
 */
static const double unmodified[RUNS][CASES] = {
	{1.00, 1.02, 0.98, 1.01, 0.97, 1.03, 1.00, 0.99}, {0.88, 0.95, 0.84, 1.04, 0.90, 0.78, 0.93, 1.02},
	{1.05, 0.90, 1.07, 0.86, 1.02, 0.97, 0.81, 1.00}, {0.93, 1.03, 0.95, 0.90, 0.84, 1.00, 1.05, 0.88},
	{1.01, 0.97, 0.92, 0.99, 1.04, 0.90, 0.97, 0.95}, {0.90, 0.86, 1.02, 1.05, 0.93, 1.01, 0.88, 1.04},
	{0.97, 1.00, 0.89, 0.94, 1.00, 0.87, 1.02, 0.92}, {1.03, 0.92, 1.00, 0.88, 0.95, 1.04, 0.90, 0.98},
};

static json_t *machine(bool virtual, double low, double high)
{
	return json_pack("{s:{s:s, s:s, s:b}, s:{s:s, s:f, s:f}, s:[]}", "system", "hostname", "node",
			 "boot_id", "1", "virtual_machine", virtual, "cpu", "model", "Xeon", "mhz_min", low,
			 "mhz_max", high, "gpus");
}

static void machines(bool virtual, double low, double high)
{
	for (size_t i = 0; i < RUNS; i++) {
		json_decref(w[i].r.machine);
		w[i].r.machine = machine(virtual, low, high);
	}
}

/* A product that took turns with its ceiling and reached 0.8 of it; its samples agree within 0.2 %. */
static struct record_case *product(size_t run, size_t k, double factor)
{
	char options[64];
	struct record_case *c;

	snprintf(options, sizeof(options), "type=fp32 m=%zu n=2048 k=2048 data=random", 1024 * (k + 2));
	c = world_case(&w[run], "gemm", "cpu", "compute.fp32", options);
	c->engine = "openblas";
	world_set(c, "sustained", "flop_rate", 200e9 * factor);
	world_set(c, "sustained", "half_width_share", 0.002);
	world_set(c, "sustained", "threads", 2);
	world_set(c, "sustained", "cpu_share", 0.999);
	world_set(c, "sustained", "ceiling_ratio", 0.80);
	world_set(c, "sustained", "ceiling_ratio_low", 0.79);
	world_set(c, "sustained", "ceiling_ratio_high", 0.81);
	world_text(c, "ceiling", "ceiling_by", "peak engine=cpu threads=0 type=fp32 unit=fma");
	world_verified(c);
	return c;
}

static void fill(size_t count)
{
	machines(true, 1, 1);
	for (size_t run = 0; run < count; run++)
		for (size_t k = 0; k < CASES; k++)
			product(run, k, unmodified[run][k]);
}

static void scale(size_t run, size_t k, double factor)
{
	world_set(&w[run].cases[k], "sustained", "flop_rate", 200e9 * unmodified[run][k] * factor);
}

/* Two of the runs, in the first two places. */
static void pair(size_t a, size_t b)
{
	const struct compare_run two[] = {{.name = "a", .record = &w[a].r, .judged = &w[a].out},
					  {.name = "b", .record = &w[b].r, .judged = &w[b].out}};
	struct error err = {0};

	comparison_release(&result);
	if (compare_runs(&result, two, 2, COMPARE_AUTO, &err))
		fail_msg("%s", err.text);
}

static void sides(size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		runs[i].after = i >= first;
	compare(count, COMPARE_AUTO);
	for (size_t i = 0; i < count; i++)
		runs[i].after = false;
}

static size_t slower(void)
{
	size_t n = 0;

	for (size_t i = 0; i < result.row_count; i++)
		n += compare_slower(&result.row[i]);
	return n;
}

static void test_drift__no_pair_of_unmodified_runs_claims_a_regression(void **state)
{
	size_t open = 0;

	(void)state;
	fill(RUNS);
	compare(RUNS, COMPARE_AUTO);
	for (size_t a = 0; a < RUNS; a++)
		for (size_t b = 0; b < RUNS; b++) {
			pair(a, b);
			assert_int_equal(result.row_count, CASES);
			assert_int_equal(slower(), 0);
			assert_int_not_equal(result.exit_code, 1);
			for (size_t i = 0; i < CASES; i++)
				open += result.row[i].change == COMPARE_UNSUPPORTED;
		}
	assert_true(open > 100); /* they differ by more than 5 % all the same */
}

static void test_drift__one_round_of_each_says_what_is_needed(void **state)
{
	(void)state;
	fill(2);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 2); /* a judged case became slower, perhaps */
	assert_non_null(strstr(result.advice, "repeat each run twice (assay compare A1 A2 -- B1 B2)"));
	assert_non_null(strstr(result.headline, "changed by no more than the noise"));
	pair(1, 1);
	assert_int_equal(result.exit_code, 0);
	assert_string_equal(result.advice, "");
}

static void test_drift__half_the_rate_is_found_in_one_round(void **state)
{
	(void)state;
	fill(RUNS);
	compare(RUNS, COMPARE_AUTO);
	for (size_t a = 0; a < RUNS; a++)
		for (size_t b = 0; b < RUNS; b++) {
			if (a == b)
				continue;
			/* From a's own figure: what the drift adds is another test's. */
			world_set(&w[b].cases[3], "sustained", "flop_rate", 100e9 * unmodified[a][3]);
			world_judge(&w[b]);
			pair(a, b);
			assert_int_equal(slower(), 1);
			assert_true(compare_slower(&result.row[3]));
			assert_int_equal(result.exit_code, 1);
			scale(b, 3, 1);
			world_judge(&w[b]);
		}
}

/* A point of a curve, which nothing judges, lies at the edge of a cache that others share. */
static void test_drift__one_round_of_what_nothing_judges_claims_nothing(void **state)
{
	(void)state;
	machines(true, 1, 1);
	for (size_t run = 0; run < 4; run++) {
		struct record_case *c =
			world_case(&w[run], "memory", "cpu", "latency", "op=chase size=12MiB threads=1");

		c->require = REQUIRE_MEASURED;
		world_set(c, "sustained", "latency_ns", (run > 1 ? 60 : 30) + 0.1 * (double)run);
		world_verified(c);
	}
	compare(4, COMPARE_AUTO);
	pair(0, 2);
	assert_int_equal(result.row_count, 1);
	assert_false(result.row[0].judged);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.row[0].change, COMPARE_UNSUPPORTED);
	assert_int_equal(result.exit_code, 0);
	sides(2, 4); /* two rounds of each do, and nobody asked to judge it */
	assert_int_equal(slower(), 1);
	assert_int_equal(result.exit_code, 0);
}

/* The machine as a whole at half its rate: all cases agree on it. */
static void test_drift__a_machine_at_half_its_rate_is_found(void **state)
{
	(void)state;
	fill(2);
	for (size_t k = 0; k < CASES; k++)
		world_set(&w[1].cases[k], "sustained", "flop_rate", 100e9 * unmodified[0][k]);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), CASES);
	assert_int_equal(result.row[0].change, COMPARE_SLOWER_CLOCK); /* its ceiling fell with it */
	assert_int_equal(result.exit_code, 1);
}

static void test_drift__less_of_its_ceiling_is_the_work(void **state)
{
	(void)state;
	fill(2);
	for (size_t k = 0; k < CASES; k++)
		scale(1, k, unmodified[0][k] / unmodified[1][k]);
	world_set(&w[1].cases[2], "sustained", "ceiling_ratio", 0.40);
	world_set(&w[1].cases[2], "sustained", "ceiling_ratio_low", 0.39);
	world_set(&w[1].cases[2], "sustained", "ceiling_ratio_high", 0.41);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 1);
	assert_int_equal(result.row[2].change, COMPARE_SLOWER);
	assert_float_equal(result.row[2].normalised, -0.5, 1e-9);
}

static void test_drift__several_runs_of_each_side_measure_the_drift(void **state)
{
	(void)state;
	fill(4);
	sides(2, 4);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.row[0].runs_before, 2);
	assert_int_equal(result.row[0].runs_after, 2);
	assert_int_equal(result.row[0].degrees, 2);
	/* Quiet rounds support less than half the rate: 30 % of one case. */
	for (size_t run = 0; run < 4; run++)
		for (size_t k = 0; k < CASES; k++)
			world_set(&w[run].cases[k], "sustained", "flop_rate",
				  200e9 * (1 + 0.02 * (double)((run + k) % 3)) *
					  (run > 1 && k == 5 ? 0.7 : 1));
	sides(2, 4);
	assert_int_equal(slower(), 1);
	assert_true(compare_slower(&result.row[5]));
	assert_int_equal(result.exit_code, 1);
	/* One run of each does not: the same 30 %. */
	pair(0, 2);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.row[5].change, COMPARE_UNSUPPORTED);
	assert_int_equal(result.exit_code, 2);
}

/* Rounds of one run, spread over it, are rounds as well. */
static void test_drift__rounds_within_the_runs_count(void **state)
{
	(void)state;
	machines(true, 1, 1);
	for (size_t run = 0; run < 2; run++)
		for (size_t round = 0; round < 3; round++)
			product(run, 0, (1 + 0.02 * (double)round) * (run ? 0.7 : 1));
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 1);
	assert_int_equal(result.row[0].degrees, 4);
	assert_float_equal(result.row[0].before, 204e9, 1e6); /* the median of three */
	assert_int_equal(slower(), 1);
}

/* Others took a third of the CPU time of two threads that wait for each other. */
static void test_drift__cpu_time_that_others_took_widens_the_noise(void **state)
{
	(void)state;
	fill(2);
	for (size_t k = 0; k < CASES; k++)
		scale(1, k, unmodified[0][k] / unmodified[1][k]);
	scale(1, 4, 0.57 * unmodified[0][4] / unmodified[1][4]);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 1);
	world_set(&w[1].cases[4], "sustained", "cpu_share", 0.80);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.row[4].change, COMPARE_UNSUPPORTED);
}

/* Neither a virtual machine nor a range of clocks: the spread within and 5 % suffice, as before. */
static void test_drift__a_held_clock_needs_no_second_round(void **state)
{
	(void)state;
	fill(2);
	for (size_t k = 0; k < CASES; k++)
		scale(1, k, (k == 1 ? 0.9 : 1) * unmodified[0][k] / unmodified[1][k]);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 0);
	machines(false, 800, 3900);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 0);
	machines(false, 2500, 2500);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 1);
	assert_false(result.row[1].floats);
	assert_int_equal(result.exit_code, 1);
}

static void test_drift__wrong_data_fails_however_noisy(void **state)
{
	(void)state;
	fill(2);
	world_set(&w[1].cases[6], "verify", "wrong_count", 3);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.exit_code, 1);
	/* In one of several runs after it as well. */
	fill(0);
	runs[1].after = runs[2].after = true;
	for (size_t k = 0; k < CASES; k++)
		product(2, k, unmodified[2][k]);
	compare(3, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 1);
}

static void ratio(size_t run, size_t k, double value)
{
	world_set(&w[run].cases[k], "sustained", "ceiling_ratio", value);
	world_set(&w[run].cases[k], "sustained", "ceiling_ratio_low", value - 0.005);
	world_set(&w[run].cases[k], "sustained", "ceiling_ratio_high", value + 0.005);
}

/* 0.51 of its ceiling, then 0.49: on both sides of the mark, and no change. */
static void test_drift__a_mark_passed_within_the_noise_is_no_news(void **state)
{
	(void)state;
	fill(2);
	for (size_t k = 0; k < CASES; k++)
		scale(1, k, unmodified[0][k] / unmodified[1][k]);
	ratio(0, 2, 0.51);
	ratio(1, 2, 0.49);
	compare(2, COMPARE_AUTO);
	assert_int_not_equal(result.row[2].verdict_before, VERDICT_FAIL);
	assert_int_equal(result.row[2].verdict_after, VERDICT_FAIL);
	assert_int_equal(slower(), 0);
	assert_int_equal(result.exit_code, 0);
	/* What fails by its data as well is news. */
	world_set(&w[1].cases[2], "verify", "wrong_count", 3);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 1);
	world_set(&w[1].cases[2], "verify", "wrong_count", 0);
	ratio(0, 2, 0.80); /* and so is a change that the noise supports */
	ratio(1, 2, 0.40);
	compare(2, COMPARE_AUTO);
	assert_int_equal(slower(), 1);
	assert_int_equal(result.exit_code, 1);
}

static void test_drift__sides_are_of_one_machine(void **state)
{
	struct error err = {0};

	(void)state;
	fill(3);
	json_object_set_new(json_object_get(w[2].r.machine, "cpu"), "model", json_string("EPYC"));
	runs[2].after = true;
	for (size_t i = 0; i < 3; i++)
		world_judge(&w[i]);
	comparison_release(&result);
	assert_int_equal(compare_runs(&result, runs, 3, COMPARE_AUTO, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "--as history"));
	assert_int_equal(compare_runs(&result, runs, 3, COMPARE_HISTORY, &err), STATUS_OK);
}

/* 32 KiB and 1 MiB are the caches of the first run; the second has none beyond 32 KiB. */
static void test_drift__cache_levels_that_changed_are_told(void **state)
{
	static const char *const size[] = {"16KiB", "32KiB", "256KiB", "1MiB", "16MiB", "64MiB"};
	static const double ns[2][6] = {{1, 1, 5, 5, 90, 90}, {1, 1, 90, 90, 90, 90}};
	struct record_case *c[2][6];

	(void)state;
	machines(true, 1, 1);
	for (size_t run = 0; run < 2; run++)
		for (size_t k = 0; k < 6; k++) {
			char options[64];

			snprintf(options, sizeof(options), "op=chase size=%s threads=1", size[k]);
			c[run][k] = world_case(&w[run], "memory", "cpu", "latency", options);
			c[run][k]->require = REQUIRE_MEASURED;
			world_set(c[run][k], "sustained", "latency_ns", ns[run][k]);
			world_verified(c[run][k]);
		}
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.difference_count, 1);
	assert_string_equal(result.difference[0].path, "cache levels of cpu end at");
	assert_non_null(strchr(result.difference[0].before, ',')); /* two ends, then one */
	assert_null(strchr(result.difference[0].after, ','));
	assert_non_null(strstr(result.difference[0].after, " KiB"));
	assert_int_equal(result.exit_code, 0); /* no verdict */
	for (size_t k = 0; k < 6; k++)
		world_set(c[1][k], "sustained", "latency_ns", 1.1 * ns[0][k]);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.difference_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_drift__##name, begin, end)
		T(no_pair_of_unmodified_runs_claims_a_regression),
		T(one_round_of_each_says_what_is_needed),
		T(half_the_rate_is_found_in_one_round),
		T(one_round_of_what_nothing_judges_claims_nothing),
		T(a_machine_at_half_its_rate_is_found),
		T(less_of_its_ceiling_is_the_work),
		T(several_runs_of_each_side_measure_the_drift),
		T(rounds_within_the_runs_count),
		T(cpu_time_that_others_took_widens_the_noise),
		T(a_held_clock_needs_no_second_round),
		T(wrong_data_fails_however_noisy),
		T(a_mark_passed_within_the_noise_is_no_news),
		T(cache_levels_that_changed_are_told),
		T(sides_are_of_one_machine),
#undef T
	};

	return cmocka_run_group_tests_name("compare_drift", tests, NULL, NULL);
}
