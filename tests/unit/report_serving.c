/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a server's run, as reports show them. */
#include "test.h"

#include "report/serving/serving.h"
#include "report/view/build.h"

enum { PHASES = 5 };

struct bed {
	struct record record;
	struct report_input in;
	struct record_case c;
	struct record_phase phase[PHASES];
	struct view_row row;
	struct view view;
};

static void bed_open(struct bed *b, const char *probe)
{
	*b = (struct bed){.c = {.job = true, .probe = probe, .t0_ns = 1000000000}};
	b->c.phase = b->phase;
	b->record.plan = json_pack("{s:{s:[{s:s,s:s,s:s},{s:s,s:s,s:s},{s:s,s:s,s:s}]}}", "fields", "serve",
				   "name", "requests", "unit", "", "help", "requests for text", "name",
				   "ttft_p50_s", "unit", "s", "help", "time to first token, median", "name",
				   "cache_hit_share", "unit", "", "help", "share");
	b->in.record = &b->record;
	b->row.c = &b->c;
	b->view = (struct view){.in = &b->in, .rows = &b->row, .row_count = 1};
}

static void bed_close(struct bed *b)
{
	for (size_t i = 0; i < b->c.phase_count; i++)
		json_decref(b->phase[i].values);
	json_decref(b->record.plan);
}

static void add_phase(struct bed *b, const char *name, double t0_s, double t1_s, json_t *values)
{
	struct record_phase *p = &b->phase[b->c.phase_count++];

	snprintf(p->name, sizeof(p->name), "%s", name);
	p->t0_ns = (uint64_t)(t0_s * 1e9);
	p->t1_ns = (uint64_t)(t1_s * 1e9);
	p->values = values;
}

static void test_serving__results_have_their_units_and_absent_ones_no_row(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "serve");
	assert_false(serving_grid(&g, &b.view)); /* a server that was killed has no results */
	add_phase(&b, "once", 1, 9, json_pack("{s:f, s:f}", "requests", 1234567.0, "ttft_p50_s", 0.0125));
	assert_true(serving_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 2);
	assert_string_equal(grid_at(&g, 0, 1), "1234567");
	assert_string_equal(grid_at(&g, 1, 1), "12.5 ms");
	assert_string_equal(grid_at(&g, 1, 2), "time to first token, median");
	grid_release(&g);
	bed_close(&b);
}

static void test_serving__each_start_of_the_engine_has_a_row(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "serve");
	add_phase(&b, "load", 1, 3, NULL);
	add_phase(&b, "serve", 3, 7, json_pack("{s:s}", "engine_end", "signal 9 (Killed)"));
	add_phase(&b, "load 2", 7, 8, json_pack("{s:s}", "engine_end", "it was never ready"));
	add_phase(&b, "load 3", 8, 10, NULL);
	add_phase(&b, "serve 3", 10, 60, NULL);
	assert_true(serving_engines_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 3);
	assert_string_equal(grid_at(&g, 0, 0), "1");
	assert_string_equal(grid_at(&g, 0, 1), "2.00 s");
	assert_string_equal(grid_at(&g, 0, 3), "4.00 s");
	assert_string_equal(grid_at(&g, 0, 4), "signal 9 (Killed)");
	assert_string_equal(grid_at(&g, 1, 3), "–");
	assert_string_equal(grid_at(&g, 1, 4), "it was never ready");
	assert_string_equal(grid_at(&g, 2, 0), "3");
	assert_string_equal(grid_at(&g, 2, 4), "");
	grid_release(&g);
	bed_close(&b);
}

static void test_serving__the_memory_of_the_last_engine_that_told_it(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "serve");
	add_phase(&b, "serve", 3, 7, json_pack("{s:s}", "engine_end", "signal 9 (Killed)"));
	assert_false(serving_memory_grid(&g, &b.view));
	add_phase(&b, "serve 2", 8, 9,
		  json_pack("{s:[{s:s, s:I, s:I}, {s:s, s:n, s:I}]}", "memory", "what", "weights", "planned",
			    (json_int_t)2097152, "used", (json_int_t)1048576, "what", "resident memory of the process",
			    "planned", "used", (json_int_t)3145728));
	add_phase(&b, "serve 3", 10, 60, json_pack("{s:[]}", "memory"));
	assert_true(serving_memory_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 2);
	assert_string_equal(grid_at(&g, 0, 0), "weights");
	assert_string_equal(grid_at(&g, 0, 1), "2 MiB");
	assert_string_equal(grid_at(&g, 0, 2), "1 MiB");
	assert_string_equal(grid_at(&g, 1, 1), "–");
	assert_string_equal(grid_at(&g, 1, 2), "3 MiB");
	grid_release(&g);
	bed_close(&b);
}

static void test_serving__other_jobs_have_no_such_tables(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b, "train");
	add_phase(&b, "once", 1, 9, json_pack("{s:f}", "requests", 1.0));
	add_phase(&b, "serve", 1, 9, NULL);
	assert_null(serving_case(&b.view));
	assert_false(serving_grid(&g, &b.view));
	assert_false(serving_engines_grid(&g, &b.view));
	assert_false(serving_memory_grid(&g, &b.view));
	grid_release(&g);
	bed_close(&b);
}

/* Neither `assay serve` nor `assay load` has --resume. */
static void test_serving__a_killed_job_is_told_to_start_again(void **state)
{
	static const struct {
		const char *probe;
		enum cause cause;
		bool resumes;
	} cases[] = {{"serve", CAUSE_CUT, false},
		     {"load", CAUSE_CUT, false},
		     {"load", CAUSE_INTERRUPTED, false},
		     {"train", CAUSE_CUT, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judgement j = {.verdict = VERDICT_UNKNOWN, .cause = cases[i].cause};
		struct view_todo todo[1] = {0};
		struct bed b;

		bed_open(&b, cases[i].probe);
		b.row.j = &j;
		b.view.todos = todo;
		view_todos_build(&b.view);
		assert_int_equal(b.view.todo_count, 1);
		assert_int_equal(strstr(todo[0].action, "continue with --resume") != NULL, cases[i].resumes);
		text_release(&todo[0].cases);
		text_release(&todo[0].some);
		bed_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serving__results_have_their_units_and_absent_ones_no_row),
		cmocka_unit_test(test_serving__each_start_of_the_engine_has_a_row),
		cmocka_unit_test(test_serving__the_memory_of_the_last_engine_that_told_it),
		cmocka_unit_test(test_serving__other_jobs_have_no_such_tables),
		cmocka_unit_test(test_serving__a_killed_job_is_told_to_start_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
