/* SPDX-License-Identifier: Apache-2.0 */
/* assay history: series, marks, exit codes, sparkline, plot. */
#include "compare_bed.h"
#include "scratch.h"
#include "cmd/history/history.h"
#include "core/file/file.h"

static struct history h;

static int finish(void **state)
{
	history_release(&h);
	return end(state);
}

static void collect(size_t count, bool all)
{
	struct error err = {0};
	char wall[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(wall, sizeof(wall), "2026-11-%02zuT00:00:00Z", i + 1);
		json_decref(w[i].r.open);
		w[i].r.open = json_pack("{s:s}", "wall", wall);
		for (size_t k = 0; k < w[i].r.case_count; k++)
			w[i].cases[k].phases = "headline";
		world_judge(&w[i]);
	}
	history_release(&h);
	if (history_collect(&h, runs, count, all, &err))
		fail_msg("%s", err.text);
}

static void test_history__steady_runs_have_no_mark(void **state)
{
	static const double tflops[] = {690, 693, 688, 691, 690, 692};

	(void)state;
	for (size_t i = 0; i < 6; i++)
		gemm(i, tflops[i], 1400);
	collect(6, false);
	assert_int_equal(h.count, 1);
	assert_int_equal(h.series[0].count, 6);
	assert_int_equal(h.marks, 0);
	assert_int_equal(h.exit_code, 0);
}

/* A step is marked once: the runs after it are compared with the new level. */
static void test_history__a_step_is_marked_once_and_begins_a_level(void **state)
{
	static const double tflops[] = {690, 693, 688, 691, 649, 650, 648, 651};
	const struct history_point *p;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		gemm(i, tflops[i], 1400);
	collect(8, false);
	assert_int_equal(h.marks, 1);
	p = &h.series[0].point[4];
	assert_true(p->marked && p->judged && history_worse(&h.series[0], p));
	assert_int_equal(p->change, COMPARE_SLOWER);
	assert_int_equal(p->baselines, 4);
	assert_float_equal(p->before, 690.5e12, 1e9);
	assert_int_equal(h.exit_code, 1);
}

static void test_history__a_level_that_came_back_is_no_failure(void **state)
{
	static const double tflops[] = {690, 693, 688, 691, 649, 650, 648, 690};

	(void)state;
	for (size_t i = 0; i < 8; i++)
		gemm(i, tflops[i], 1400);
	collect(8, false);
	assert_int_equal(h.marks, 2);
	assert_false(history_worse(&h.series[0], &h.series[0].point[7]));
	assert_int_equal(h.exit_code, 0);
}

static void test_history__a_change_of_the_clock_is_told_apart(void **state)
{
	(void)state;
	gemm(0, 740, 1500);
	gemm(1, 690, 1399);
	collect(2, false);
	assert_int_equal(h.series[0].point[1].change, COMPARE_SLOWER_CLOCK);
	assert_true(h.series[0].point[1].marked);
}

static void test_history__one_run_has_nothing_to_compare(void **state)
{
	(void)state;
	gemm(0, 690, 1400);
	collect(1, false);
	assert_int_equal(h.exit_code, 2);
}

/* A case that a run lacks leaves a gap, and one that only an earlier run has is still shown. */
static void test_history__gaps_and_earlier_cases(void **state)
{
	(void)state;
	gemm(0, 690, 1400);
	gemm(2, 691, 1400);
	world_gemm(&w[1], "gpu0", "fp16", 8192, 640, 1400, 695, 0.918);
	collect(3, false);
	assert_int_equal(h.count, 2);
	assert_int_equal(h.series[0].count, 2);
	assert_int_equal(h.series[0].point[1].run, 2);
	assert_int_equal(h.series[1].count, 1);
}

static void test_history__only_headline_cases_unless_all_are_asked_for(void **state)
{
	struct error err = {0};

	(void)state;
	gemm(0, 690, 1400);
	gemm(1, 690, 1400);
	collect(2, false);
	w[0].cases[0].phases = w[1].cases[0].phases = "burst";
	history_release(&h);
	assert_int_equal(history_collect(&h, runs, 2, false, &err), STATUS_OK);
	assert_int_equal(h.count, 0);
	assert_int_equal(h.exit_code, 2);
	history_release(&h);
	assert_int_equal(history_collect(&h, runs, 2, true, &err), STATUS_OK);
	assert_int_equal(h.count, 1);
}

static void test_history__shows_marks_below_the_sparkline(void **state)
{
	static const double tflops[] = {690, 693, 688, 691, 600, 690};
	struct text t = {0};
	json_t *j;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		gemm(i, tflops[i], 1400);
	collect(6, false);
	history_show(&t, &h);
	assert_non_null(
		strstr(text_str(&t), "6 runs of this machine, 2026-11-01T00:00:00Z to 2026-11-06T00:00:00Z"));
	assert_non_null(strstr(text_str(&t), "2 significant changes"));
	assert_non_null(strstr(text_str(&t), "█")); /* the sparkline's top */
	assert_non_null(strstr(text_str(&t), "    v^\n"));
	assert_non_null(
		strstr(text_str(&t),
		       "slower (-13.1 %) 690 TFLOPS -> 600 TFLOPS; noise 1.1 %, from 4 earlier figures"));
	text_release(&t);
	j = history_json(&h);
	assert_int_equal(json_integer_value(json_object_get(j, "changes")), 2);
	assert_true(json_is_true(json_object_get(
		json_array_get(json_object_get(json_array_get(json_object_get(j, "series"), 0), "points"), 4),
		"worse")));
	json_decref(j);
}

static void test_history__draws_a_plot(void **state)
{
	static const double tflops[] = {690, 693, 688, 600};
	char *folder = NULL, path[PATH_MAX], *svg;
	struct error err = {0};
	size_t left_out, size;

	(void)state;
	assert_int_equal(scratch_create((void **)&folder), 0);
	for (size_t i = 0; i < 4; i++)
		gemm(i, tflops[i], 1400);
	collect(4, false);
	snprintf(path, sizeof(path), "%s/h.svg", folder);
	assert_int_equal(history_plot(path, &h, &left_out, &err), STATUS_OK);
	assert_int_equal(left_out, 0);
	assert_int_equal(file_read(&svg, &size, path, 1 << 20, &err), STATUS_OK);
	assert_non_null(strstr(svg, "<svg"));
	assert_non_null(strstr(svg, "significant change"));
	assert_non_null(strstr(svg, "BF16 GEMM 8192"));
	free(svg);
	snprintf(path, sizeof(path), "%s/h.gif", folder);
	assert_int_equal(history_plot(path, &h, &left_out, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "h.gif does not end with .svg, .png or .pdf"));
	error_clear(&err);
	history_release(&h);
	collect(1, false);
	snprintf(path, sizeof(path), "%s/none.svg", folder);
	assert_int_equal(history_plot(path, &h, &left_out, &err), STATUS_UNAVAILABLE);
	scratch_remove((void **)&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_history__steady_runs_have_no_mark, begin, finish),
		cmocka_unit_test_setup_teardown(test_history__a_step_is_marked_once_and_begins_a_level, begin,
						finish),
		cmocka_unit_test_setup_teardown(test_history__a_level_that_came_back_is_no_failure, begin,
						finish),
		cmocka_unit_test_setup_teardown(test_history__a_change_of_the_clock_is_told_apart, begin,
						finish),
		cmocka_unit_test_setup_teardown(test_history__one_run_has_nothing_to_compare, begin, finish),
		cmocka_unit_test_setup_teardown(test_history__gaps_and_earlier_cases, begin, finish),
		cmocka_unit_test_setup_teardown(test_history__only_headline_cases_unless_all_are_asked_for,
						begin, finish),
		cmocka_unit_test_setup_teardown(test_history__shows_marks_below_the_sparkline, begin, finish),
		cmocka_unit_test_setup_teardown(test_history__draws_a_plot, begin, finish),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
