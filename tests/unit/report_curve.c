/* SPDX-License-Identifier: Apache-2.0 */
/* What is laid out as a curve, a fold, a count: the sample "curve". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "report_sample.h"
#include "report/plot/roofline.h"
#include "report/view/view.h"

struct bed {
	struct sample s;
	struct view v;
};

static void load(struct bed *b)
{
	sample_load(&b->s, "curve");
	assert_int_equal(view_build(&b->v, &b->s.in, NULL), STATUS_OK);
}

static void unload(struct bed *b)
{
	view_release(&b->v);
	sample_release(&b->s);
}

static void test_report_curve__cases_that_differ_in_size_are_one_block(void **state)
{
	const struct curve *c;
	struct bed b;

	(void)state;
	load(&b);
	assert_int_equal(b.v.curve_count, 1);
	c = &b.v.curves[0];
	assert_string_equal(c->title, "memory by size, own loops, one thread");
	assert_int_equal(c->series_count, 2); /* two sizes of a copy make none */
	assert_string_equal(c->series[0].name, "pointer chase");
	assert_true(c->series[0].time);
	assert_int_equal(c->series[0].count, 15);
	assert_string_equal(c->series[1].name, "read");
	assert_int_equal(c->series[1].count, 8); /* the one with wrong data is none of them */
	for (size_t i = 1; i < c->size_count; i++)
		assert_true(c->size[i] > c->size[i - 1]);
	assert_int_equal(c->doubtful, 1);
	unload(&b);
}

static void level(const struct curve_level *l, const char *name, double end, double rate, double latency)
{
	assert_string_equal(l->name, name);
	assert_true(isfinite(end) ? fabs(l->end_bytes / end - 1) < 0.5 : !isfinite(l->end_bytes));
	assert_float_equal(l->rate, rate, 1e6);
	assert_float_equal(l->latency, latency, 0.05 * latency);
	assert_true(l->one_thread);
}

static void test_report_curve__levels_are_the_caches_of_the_machine(void **state)
{
	const struct curve *c;
	char text[96];
	struct bed b;

	(void)state;
	load(&b);
	c = &b.v.curves[0];
	assert_int_equal(c->level_count, 4);
	level(&c->level[0], "L1", 64 << 10, 150e9, 1.22);
	level(&c->level[1], "L2", 2 << 20, 80e9, 4.0);
	level(&c->level[2], "L3", 128 << 20, 31e9, 20.2);
	level(&c->level[3], "memory", INFINITY, 11e9, 100.6);
	curve_level_text(text, sizeof(text), &c->level[3]);
	assert_string_equal(text, "memory: 11.0 GB/s, 101 ns");
	assert_true(c->level[1].known_bytes == 2 << 20);
	unload(&b);
}

static void test_report_curve__a_point_that_failed_keeps_its_row(void **state)
{
	unsigned rows = 0;
	struct bed b;

	(void)state;
	load(&b);
	for (size_t i = 0; i < b.v.row_count; i++) {
		if (b.v.rows[i].j->verdict != VERDICT_FAIL)
			continue;
		assert_false(b.v.rows[i].in_curve);
		assert_true(view_tabled(&b.v.rows[i]));
		rows++;
	}
	assert_int_equal(rows, 1);
	unload(&b);
}

/* Each sign of the tables is told once, where it stands; a run without any has no such line. */
static void test_report_curve__signs_are_told_where_they_stand(void **state)
{
	struct text t = {0}, terminal = {0}, md = {0}, html = {0};
	struct bed b;

	(void)state;
	load(&b);
	for (size_t i = 0; i < b.v.row_count; i++) {
		text_copy(b.v.rows[i].expected, sizeof(b.v.rows[i].expected), "10–20 GB/s");
		text_copy(b.v.rows[i].clock, sizeof(b.v.rows[i].clock), "1980 MHz");
	}
	view_signs(&t, &b.v);
	assert_int_equal(t.size, 0);
	for (size_t i = 0; i < b.v.row_count; i++)
		if (view_tabled(&b.v.rows[i])) {
			text_copy(b.v.rows[i].expected, sizeof(b.v.rows[i].expected), "≈ 15 GB/s");
			text_copy(b.v.rows[i].clock, sizeof(b.v.rows[i].clock), "~1980 MHz");
		}
	view_signs(&t, &b.v);
	assert_string_equal(
		text_str(&t),
		"≈: rate of a plain loop with the same traffic, an estimate that a case may exceed; ~: reported by the driver, not measured in the window");
	text_release(&t);
	unload(&b);
	sample_load(&b.s, "cpu");
	assert_int_equal(view_build(&b.v, &b.s.in, NULL), STATUS_OK);
	view_signs(&t, &b.v);
	assert_non_null(
		strstr(text_str(&t),
		       "≤: upper bound, from the hardware or from a ceiling measured on this machine"));
	report_terminal(&terminal, &b.s.in, &(struct report_style){.columns = 400});
	report_markdown(&md, &b.s.in);
	report_html(&html, &b.s.in);
	assert_non_null(strstr(text_str(&terminal), text_str(&t)));
	assert_non_null(strstr(text_str(&md), text_str(&t)));
	assert_non_null(strstr(text_str(&html), "≤: upper bound"));
	text_release(&t);
	text_release(&terminal);
	text_release(&md);
	text_release(&html);
	unload(&b);
}

static void test_report_curve__what_nobody_asked_for_is_counted_in_one_line(void **state)
{
	struct text t = {0}, html = {0}, md = {0}, terminal = {0}, json = {0}, csv = {0};
	struct bed b;

	(void)state;
	load(&b);
	view_aside(&t, &b.v, "");
	assert_string_equal(text_str(&t), "3 more cases of the suite are for other targets (gpu)");
	report_html(&html, &b.s.in);
	report_markdown(&md, &b.s.in);
	report_terminal(&terminal, &b.s.in, &(struct report_style){.columns = 200});
	report_csv(&csv, &b.s.in);
	assert_int_equal(report_json(&json, &b.s.in, NULL), STATUS_OK);
	assert_null(strstr(text_str(&html), "not on the target"));
	assert_null(strstr(text_str(&md), "not on the target"));
	assert_null(strstr(text_str(&terminal), "not on the target"));
	assert_non_null(strstr(text_str(&terminal), text_str(&t)));
	/* what is read by programs holds every case */
	assert_non_null(strstr(text_str(&json), "not on the target"));
	assert_non_null(strstr(text_str(&csv), "not on the target"));
	text_release(&t);
	text_release(&html);
	text_release(&md);
	text_release(&terminal);
	text_release(&json);
	text_release(&csv);
	unload(&b);
}

static unsigned times(const char *text, const char *part)
{
	unsigned count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void test_report_curve__a_reason_and_a_knob_are_said_once(void **state)
{
	struct text md = {0}, terminal = {0};
	struct bed b;

	(void)state;
	load(&b);
	report_markdown(&md, &b.s.in);
	report_terminal(&terminal, &b.s.in, &(struct report_style){.columns = 100});
	assert_int_equal(times(text_str(&terminal), "a ceiling for other cases"), 1);
	assert_int_equal(times(text_str(&md), "a ceiling for other cases"), 1);
	/* what was measured without being judged is one line, and nothing to do */
	assert_int_equal(times(text_str(&md), "- measured, "), 1);
	assert_int_equal(times(text_str(&md), "points of a curve: "), 1);
	assert_int_equal(times(text_str(&md), "**measured**"), 0);
	assert_int_equal(times(text_str(&md), "this CPU has no bf16 instructions"), 1);
	assert_int_equal(times(text_str(&terminal), "BLAS library and threads"), 1);
	assert_int_equal(b.v.knob_count, 1);
	assert_int_equal(b.v.knobs[0].count, 2);
	/* the case farthest from its bound first */
	assert_int_equal(strncmp(text_str(&b.v.knobs[0].some), "FP64 GEMM", 9), 0);
	text_release(&md);
	text_release(&terminal);
	unload(&b);
}

static void test_report_curve__json_has_points_and_levels(void **state)
{
	struct text out = {0};
	json_t *root, *curve, *levels, *last;
	struct bed b;

	(void)state;
	load(&b);
	assert_int_equal(report_json(&out, &b.s.in, NULL), STATUS_OK);
	root = json_loads(text_str(&out), 0, NULL);
	assert_non_null(root);
	curve = json_array_get(json_object_get(root, "curves"), 0);
	assert_string_equal(json_string_value(json_object_get(curve, "target")), "cpu");
	levels = json_object_get(curve, "levels");
	assert_int_equal(json_array_size(levels), 4);
	last = json_array_get(levels, 3);
	assert_null(json_object_get(last, "end_bytes")); /* absent, not infinite */
	assert_float_equal(json_number_value(json_object_get(last, "bytes_per_s")), 11e9, 1);
	assert_string_equal(json_string_value(json_object_get(json_object_get(root, "stated"), "cause")),
			    "gpu_missing");
	json_decref(root);
	text_release(&out);
	unload(&b);
}

static void test_report_curve__levels_of_one_thread_are_no_ceilings(void **state)
{
	struct roofline r = {0};
	struct bed b;

	(void)state;
	load(&b);
	assert_true(b.v.curves[0].level[0].one_thread);
	roofline_add(&r, &b.v);
	for (size_t i = 0; r.count && i < r.series[0].ceiling_count; i++)
		assert_int_not_equal(r.series[0].ceiling[i].kind, ROOFLINE_CACHE);
	roofline_release(&r);
	unload(&b);
}

static void test_report_curve__levels_are_ceilings_of_the_roofline(void **state)
{
	static const char *const names[] = {"L1", "L2", "L3"};
	struct roofline r = {0};
	struct bed b;

	(void)state;
	load(&b);
	for (size_t i = 0; i < b.v.curve_count; i++)
		for (size_t k = 0; k < b.v.curves[i].level_count; k++)
			b.v.curves[i].level[k].one_thread = false;
	roofline_add(&r, &b.v);
	assert_int_equal(r.count, 1);
	for (size_t n = 0; n < 3; n++) {
		bool found = false;

		for (size_t i = 0; i < r.series[0].ceiling_count; i++)
			found |= !strcmp(r.series[0].ceiling[i].name, names[n]) &&
				 r.series[0].ceiling[i].kind == ROOFLINE_CACHE;
		assert_true(found);
	}
	for (size_t i = 0; i < r.series[0].ceiling_count; i++)
		assert_string_not_equal(r.series[0].ceiling[i].name, "cache");
	roofline_release(&r);
	unload(&b);
}

/* Everything drawn lies on the canvas, whatever the curve. */
static void test_report_curve__the_drawing_stays_inside(void **state)
{
	static const double sizes[][2] = {{960, 340}, {360, 200}};
	struct bed b;

	(void)state;
	load(&b);
	for (size_t i = 0; i < 2; i++) {
		struct canvas c;

		canvas_init(&c, sizes[i][0], sizes[i][1]);
		curve_draw(&c, &b.v.curves[0]);
		assert_false(c.failed);
		for (size_t k = 0; k < c.point_count; k++) {
			assert_true(c.points[k].x >= 0 && c.points[k].x <= sizes[i][0]);
			assert_true(c.points[k].y >= 0 && c.points[k].y <= sizes[i][1]);
		}
		canvas_release(&c);
	}
	unload(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_curve__cases_that_differ_in_size_are_one_block),
		cmocka_unit_test(test_report_curve__levels_are_the_caches_of_the_machine),
		cmocka_unit_test(test_report_curve__a_point_that_failed_keeps_its_row),
		cmocka_unit_test(test_report_curve__what_nobody_asked_for_is_counted_in_one_line),
		cmocka_unit_test(test_report_curve__signs_are_told_where_they_stand),
		cmocka_unit_test(test_report_curve__a_reason_and_a_knob_are_said_once),
		cmocka_unit_test(test_report_curve__json_has_points_and_levels),
		cmocka_unit_test(test_report_curve__levels_of_one_thread_are_no_ceilings),
		cmocka_unit_test(test_report_curve__levels_are_ceilings_of_the_roofline),
		cmocka_unit_test(test_report_curve__the_drawing_stays_inside),
	};

	return cmocka_run_group_tests_name("report_curve", tests, NULL, NULL);
}
