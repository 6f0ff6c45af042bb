/* SPDX-License-Identifier: Apache-2.0 */
/* Single iterations in a report: which cases, in which order, with what; on a terminal the longest tails
 * alone. */
#include "test.h"
#include "report/terminal/style.h"
#include "report/tables/single_iterations.h"

enum { ROWS = 20 };

struct shown {
	struct record_case c[ROWS];
	struct record_phase phase[ROWS];
	struct view_row row[ROWS];
	struct view v;
	struct grid g;
};

/* A case on `target`; its 99th percentile is `tail` medians of 10 us. */
static struct view_row *add(struct shown *s, const char *target, unsigned ranks, double tail)
{
	size_t i = s->v.row_count++;
	struct view_row *row = &s->row[i];

	s->v.rows = s->row;
	s->c[i].target = (char *)(uintptr_t)target;
	s->phase[i].values =
		json_pack("{s:f, s:f, s:f, s:i, s:f, s:f}", "iteration_ns_p50", 10e3, "iteration_ns_p99",
			  10e3 * tail, "iteration_ns_max", 20e3 * tail, "iteration_samples", 512,
			  "iteration_mark_ns", 1200.0, "iteration_starved_share", 0.25);
	if (ranks)
		json_object_set_new(s->phase[i].values, "ranks", json_integer(ranks));
	row->c = &s->c[i];
	row->phase = &s->phase[i];
	snprintf(row->title, sizeof(row->title), "case %zu", i);
	snprintf(row->where, sizeof(row->where), "%s", target);
	return row;
}

static void release(struct shown *s)
{
	grid_release(&s->g);
	for (size_t i = 0; i < s->v.row_count; i++)
		json_decref(s->phase[i].values);
}

static void expect_row(const struct shown *s, size_t row, const char *const *cells)
{
	for (size_t k = 0; k < s->g.columns; k++)
		assert_string_equal(grid_at(&s->g, row, k), cells[k]);
}

static void test_report_singles__the_longest_tail_leads(void **state)
{
	static const char *const first[] = {"case 1", "10.0 us", "30.0 us", "60.0 us", "512", "25.0 %"};
	struct shown s = {.g = {.columns = 0}};

	(void)state;
	add(&s, "node", 4, 1.1);
	add(&s, "node", 4, 3);
	add(&s, "gpu0>gpu1", 0, 1.1);
	assert_true(single_iterations_grid(&s.g, &s.v));
	assert_int_equal(grid_rows(&s.g), 3);
	expect_row(&s, 0, first);
	assert_string_equal(grid_at(&s.g, 1, 0), "case 0");
	assert_string_equal(grid_at(&s.g, 2, 0), "case 2");
	assert_non_null(strstr(text_str(&s.g.note), "includes its time stamp, which takes 1.20 us."));
	release(&s);
}

static void test_report_singles__who_waits_for_nobody_is_left_out(void **state)
{
	struct shown s = {.g = {.columns = 0}};
	struct view_row *row;

	(void)state;
	add(&s, "gpu0", 0, 2);		     /* one GPU's */
	add(&s, "node", 2, 2)->aside = true; /* nobody asked for it */
	add(&s, "node", 2, 2)->phase = NULL; /* nothing was measured */
	row = add(&s, "gpu0>gpu1", 0, 2);    /* long copies, by their window's samples */
	json_object_del(row->phase->values, "iteration_mark_ns");
	assert_false(single_iterations_grid(&s.g, &s.v));
	assert_int_equal(grid_rows(&s.g), 0);
	release(&s);
}

static void test_report_singles__what_is_absent_is_a_dash_and_a_title_of_two_has_its_target(void **state)
{
	static const char *const own[] = {"same", "node:0,1", "10.0 us", "20.0 us", "–", "512", "–"};
	struct shown s = {.g = {.columns = 0}};
	struct view_row *row = add(&s, "node:0,1", 2, 2);

	(void)state;
	json_object_del(row->phase->values, "iteration_mark_ns");
	json_object_del(row->phase->values, "iteration_starved_share");
	json_object_del(row->phase->values, "iteration_ns_max");
	snprintf(row->title, sizeof(row->title), "same");
	snprintf(add(&s, "node", 4, 1)->title, sizeof(row->title), "same");
	assert_true(single_iterations_grid(&s.g, &s.v));
	expect_row(&s, 0, own);
	release(&s);
}

static void test_report_singles__a_terminal_shows_twelve(void **state)
{
	static const struct report_style style = {.columns = 100};
	struct text terminal = {0}, markdown = {0};
	const struct terminal_style p = {.out = &terminal, .style = &style, .columns = 100};
	struct shown s = {.g = {.columns = 0}};

	(void)state;
	for (unsigned i = 0; i < ROWS; i++)
		add(&s, "node", 4, 2 - 0.01 * i);
	assert_true(single_iterations_grid(&s.g, &s.v));
	assert_int_equal(grid_rows(&s.g), ROWS);
	grid_terminal(&p, &s.g);
	assert_non_null(strstr(text_str(&terminal), "case 11 "));
	assert_null(strstr(text_str(&terminal), "case 12 "));
	assert_non_null(strstr(text_str(&terminal), "and 8 more; REPORT.md lists them\n"));
	grid_markdown(&markdown, &s.g);
	assert_non_null(strstr(text_str(&markdown), "| case 19 | 10.0 us | 18.1 us |"));
	text_release(&terminal);
	text_release(&markdown);
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_singles__the_longest_tail_leads),
		cmocka_unit_test(test_report_singles__who_waits_for_nobody_is_left_out),
		cmocka_unit_test(
			test_report_singles__what_is_absent_is_a_dash_and_a_title_of_two_has_its_target),
		cmocka_unit_test(test_report_singles__a_terminal_shows_twelve),
	};

	return cmocka_run_group_tests_name("report_singles", tests, NULL, NULL);
}
