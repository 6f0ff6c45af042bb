/* SPDX-License-Identifier: Apache-2.0 */
/* Load tests compared: intervals that overlap or not, the drift between runs, and verdicts. */
#include <math.h>
#include "compare_bed.h"

/* A figure with its interval of +/- `half`. */
static void figure(struct record_case *c, const char *stem, const char *tail, double value, double half)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", stem, tail);
	world_set(c, "once", name, value);
	snprintf(name, sizeof(name), "%s_low%s", stem, tail);
	world_set(c, "once", name, value - half);
	snprintf(name, sizeof(name), "%s_high%s", stem, tail);
	world_set(c, "once", name, value + half);
}

static struct record_case *load(size_t run, double ttft, double half, double tokens)
{
	struct record_case *c = world_case(&w[run], "load", "node", "", "");

	c->job = true;
	json_array_append_new(json_object_get(c->plan, "gpus"), json_string(w[run].gpu[0].pci));
	world_set(c, "once", "requests", 1000);
	world_set(c, "once", "answered", 1000);
	world_set(c, "once", "failed", 0);
	figure(c, "ttft_p50", "_s", ttft, half);
	figure(c, "output_tokens_per_s", "", tokens, 0.001 * tokens);
	return c;
}

static void add_share(struct record_case *c, const char *name, double share, double half)
{
	json_t *values = world_phase(c, "once")->values;

	figure(c, "slo_share", "", share, half);
	json_object_set_new(values, "slo",
			    json_pack("[{s:s, s:f, s:f, s:f, s:f}]", "name", name, "attainment", 0.9, "share",
				      share, "share_low", share - half, "share_high", share + half));
}

static const struct compare_row *row(const char *field)
{
	for (size_t i = 0; i < result.row_count; i++)
		if (result.row[i].field && !strcmp(result.row[i].field, field))
			return &result.row[i];
	return NULL;
}

static enum compare_change change(const char *field)
{
	assert_non_null(row(field));
	return row(field)->change;
}

static void test_compare_load__intervals_that_overlap_are_no_change(void **state)
{
	(void)state;
	load(0, 0.100, 0.006, 1000);
	load(1, 0.110, 0.005, 1000); /* 0.106 and 0.105 */
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SAME);
	assert_true(fabs(row("ttft_p50_s")->noise - 0.11) < 1e-9);
	assert_int_equal(result.exit_code, 0);
}

static void test_compare_load__intervals_apart_are_one(void **state)
{
	(void)state;
	load(0, 0.100, 0.004, 1000);
	load(1, 0.110, 0.005, 1000); /* 0.104 and 0.105 */
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SLOWER);
	assert_true(row("ttft_p50_s")->lower_is_better);
	assert_int_equal(change("output_tokens_per_s"), COMPARE_SAME);
	assert_int_equal(result.exit_code, 1);
	assert_non_null(strstr(result.headline, "1 of 2 cases slower"));
}

static void test_compare_load__narrow_intervals_do_not_hide_the_drift_between_runs(void **state)
{
	(void)state;
	load(0, 0.100, 1e-5, 1000);
	load(1, 0.1019, 1e-5, 1021);
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SAME); /* 1.9 %: below the 2 % of machines with GPUs */
	assert_int_equal(change("output_tokens_per_s"), COMPARE_FASTER);
	assert_int_equal(result.exit_code, 0);
}

static void test_compare_load__on_a_cpu_runs_drift_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		json_array_clear(json_object_get(load(i, i ? 0.104 : 0.1, 1e-5, 1000)->plan, "gpus"));
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SAME);
	figure(&w[1].cases[0], "ttft_p50", "_s", 0.106, 1e-5);
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SLOWER);
}

static void test_compare_load__three_earlier_runs_show_their_own_spread(void **state)
{
	(void)state;
	load(0, 0.095, 1e-5, 1000);
	load(1, 0.100, 1e-5, 1001);
	load(2, 0.105, 1e-5, 999);
	load(3, 0.115, 1e-5, 980);
	compare(4, COMPARE_AUTO);
	/* t(0.95, 2) = 4.30: one more run may differ by 4.30 * 5 % * sqrt(4/3) = 24.8 % */
	assert_int_equal(change("ttft_p50_s"), COMPARE_SAME);
	assert_true(row("ttft_p50_s")->noise > 0.24 && row("ttft_p50_s")->noise < 0.255);
	assert_int_equal(change("output_tokens_per_s"), COMPARE_SLOWER); /* 0.5 % */
	assert_true(row("ttft_p50_s")->before == 0.100);
}

static void test_compare_load__a_rate_without_an_interval_has_that_of_its_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		world_set(load(i, 0.1, 1e-5, 1000), "once", "completed_rate", i ? 95 : 100);
	compare(2, COMPARE_AUTO); /* 1000 requests: +/- 6.2 % of each */
	assert_int_equal(change("completed_rate"), COMPARE_SAME);
	world_set(&w[1].cases[0], "once", "completed_rate", 87);
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("completed_rate"), COMPARE_SLOWER);
}

static void test_compare_load__shares_of_other_limits_are_not_compared(void **state)
{
	(void)state;
	add_share(load(0, 0.1, 1e-5, 1000), "chat", 0.998, 0.001);
	add_share(load(1, 0.1, 1e-5, 1000), "chat", 0.991, 0.002);
	compare(2, COMPARE_AUTO);
	assert_int_equal(change("slo_share"), COMPARE_SLOWER); /* no drift is allowed for a share */
	add_share(&w[1].cases[0], "rag", 0.991, 0.002);
	compare(2, COMPARE_AUTO);
	assert_null(row("slo_share"));
}

static void test_compare_load__a_new_failure_counts_once(void **state)
{
	struct record_case *c;

	(void)state;
	load(0, 0.1, 1e-5, 1000);
	c = load(1, 0.1, 1e-5, 1000);
	world_set(c, "once", "failed", 100);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.exit_code, 1);
	assert_non_null(strstr(result.headline, "1 newly fail"));
}

static void test_compare_load__an_untrusted_run_is_not_compared(void **state)
{
	struct record_case *c;

	(void)state;
	load(0, 0.1, 1e-5, 1000);
	c = load(1, 0.2, 1e-5, 1000);
	json_object_set_new(world_phase(c, "once")->values, "untrusted",
			    json_pack("[s]", "the client was late"));
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 1);
	assert_int_equal(result.row[0].change, COMPARE_NOT_COMPARABLE);
	assert_string_equal(result.row[0].why, "after: the client was late");
	assert_int_equal(result.exit_code, 2);
}

static void test_compare_load__runs_without_a_common_figure(void **state)
{
	struct record_case *c;

	(void)state;
	c = load(0, 0.1, 1e-5, 1000);
	json_object_del(world_phase(c, "once")->values, "ttft_p50_s");
	c = load(1, 0.1, 1e-5, 1000);
	json_object_del(world_phase(c, "once")->values, "output_tokens_per_s");
	world_set(c, "once", "completed_rate", 5);
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 1);
	assert_string_equal(result.row[0].why, "the runs have no figure in common");
}

static void test_compare_load__another_load_is_another_case(void **state)
{
	(void)state;
	load(0, 0.1, 1e-5, 1000);
	load(1, 0.2, 1e-5, 1000)->key = "load closed";
	compare(2, COMPARE_AUTO);
	assert_int_equal(result.row_count, 0);
	assert_int_equal(result.only_before, 1);
	assert_int_equal(result.only_after, 1);
}

static void test_compare_load__several_later_runs(void **state)
{
	(void)state;
	load(0, 0.100, 1e-4, 1000);
	load(1, 0.101, 1e-4, 1000);
	load(2, 0.120, 1e-4, 1000);
	load(3, 0.122, 1e-4, 1000);
	runs[2].after = runs[3].after = true;
	compare(4, COMPARE_AUTO);
	assert_int_equal(change("ttft_p50_s"), COMPARE_SLOWER);
	assert_true(fabs(row("ttft_p50_s")->before - 0.1005) < 1e-9);
	assert_true(fabs(row("ttft_p50_s")->after - 0.121) < 1e-9);
}

#define in_bed(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_bed(test_compare_load__intervals_that_overlap_are_no_change),
		in_bed(test_compare_load__intervals_apart_are_one),
		in_bed(test_compare_load__narrow_intervals_do_not_hide_the_drift_between_runs),
		in_bed(test_compare_load__on_a_cpu_runs_drift_more),
		in_bed(test_compare_load__three_earlier_runs_show_their_own_spread),
		in_bed(test_compare_load__a_rate_without_an_interval_has_that_of_its_count),
		in_bed(test_compare_load__shares_of_other_limits_are_not_compared),
		in_bed(test_compare_load__a_new_failure_counts_once),
		in_bed(test_compare_load__an_untrusted_run_is_not_compared),
		in_bed(test_compare_load__runs_without_a_common_figure),
		in_bed(test_compare_load__another_load_is_another_case),
		in_bed(test_compare_load__several_later_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
