/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training run, as reports show them. */
#include "test.h"

#include "report/training/training.h"

enum { STEPS = 400, EVERY = 11 };

struct bed {
	struct record record;
	struct report_input in;
	struct record_case c;
	struct view_row row;
	struct view view;
	uint64_t now;
};

static void bed_open(struct bed *b)
{
	*b = (struct bed){.c = {.job = true, .probe = "train"}};
	b->in.record = &b->record;
	b->row.c = &b->c;
	b->view = (struct view){.in = &b->in, .rows = &b->row, .row_count = 1};
}

static void bed_close(struct bed *b)
{
	for (size_t i = 0; i < b->record.series_count; i++)
		series_release(&b->record.series[i]);
	free(b->record.series);
}

static void reading(struct bed *b, const char *signal, double value)
{
	struct series *s;

	assert_int_equal(series_find(&s, &b->record.series, &b->record.series_count, "train", signal,
				     SIGNAL_GAUGE, NULL),
			 STATUS_OK);
	assert_int_equal(series_add(s, b->now, value, NULL), STATUS_OK);
}

static void step(struct bed *b, unsigned number, double loss)
{
	b->now++;
	reading(b, "step", number);
	reading(b, "loss", loss);
}

static void evaluation(struct bed *b, unsigned number, double loss)
{
	b->now++;
	reading(b, "step", number);
	reading(b, "eval_loss", loss);
}

/* Row of that step; -1: it is not shown. */
static int row_of(const struct grid *g, unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	for (size_t i = 0; i < grid_rows(g); i++)
		if (!strcmp(grid_at(g, i, 0), text))
			return (int)i;
	return -1;
}

static void test_training__evaluations_are_shown_beside_some_of_the_steps(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	evaluation(&b, 0, 9);
	for (unsigned i = 1; i <= STEPS; i++) {
		step(&b, i, 5 - i * 0.001);
		if (i % EVERY == 0)
			evaluation(&b, i, i == 22 ? 1 : 2);
	}
	assert_true(training_steps_grid(&g, &b.view));
	for (unsigned i = 0; i <= STEPS; i += EVERY)
		if (row_of(&g, i) < 0)
			fail_msg("the evaluation of step %u", i);
	assert_string_equal(grid_at(&g, 0, 1), "–");
	assert_string_equal(grid_at(&g, 0, 2), "9.0000");
	assert_string_equal(grid_at(&g, (size_t)row_of(&g, 22), 1), "4.9780");
	assert_string_equal(grid_at(&g, (size_t)row_of(&g, 22), 2), "1.0000");
	assert_int_equal(row_of(&g, STEPS), grid_rows(&g) - 1);
	assert_true(grid_rows(&g) <= 60);
	grid_release(&g);
	bed_close(&b);
}

static void test_training__of_very_many_evaluations_the_best_is_shown(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	for (unsigned i = 1; i <= STEPS; i++) {
		step(&b, i, 5);
		evaluation(&b, i, i == 123 ? 1 : 2);
	}
	assert_true(training_steps_grid(&g, &b.view));
	assert_true(grid_rows(&g) <= 60);
	assert_true(row_of(&g, 123) >= 0);
	grid_release(&g);
	bed_close(&b);
}

static void test_training__a_step_done_again_counts_as_it_was_done_last(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	step(&b, 1, 4);
	step(&b, 2, 3);
	evaluation(&b, 2, 7);
	step(&b, 3, 2.5);
	step(&b, 2, 3.5); /* from the checkpoint of step 1 on */
	evaluation(&b, 2, 6);
	assert_true(training_steps_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 2);
	assert_string_equal(grid_at(&g, 1, 1), "3.5000");
	assert_string_equal(grid_at(&g, 1, 2), "6.0000");
	grid_release(&g);
	bed_close(&b);
}

static double ms_of(const struct grid *g, const char *name)
{
	for (size_t i = 0; i < grid_rows(g); i++)
		if (!strcmp(grid_at(g, i, 0), name))
			return strtod(grid_at(g, i, 1), NULL);
	fail_msg("no row %s", name);
	return 0;
}

/* All rows but the last, which is the step. */
static double sum_of(const struct grid *g)
{
	double sum = 0;

	for (size_t i = 0; i + 1 < grid_rows(g); i++)
		sum += strtod(grid_at(g, i, 1), NULL);
	return sum;
}

static void times(struct bed *b, double step_s, bool parts)
{
	b->now++;
	reading(b, "step_s", step_s);
	reading(b, "forward_s", 0.3 * step_s);
	reading(b, "backward_s", 0.5 * step_s);
	reading(b, "optimiser_s", 0.1 * step_s);
	reading(b, "flop_rate", 4e14);
	reading(b, "mfu", 0.5);
	if (!parts)
		return;
	reading(b, "products_part_s", 0.6 * step_s);
	reading(b, "products_part_flop", 2.4e14 * step_s);
	reading(b, "attention_backward_part_s", 0.25 * step_s);
	reading(b, "copies_part_s", 0.05 * step_s);
	reading(b, "copies_part_bytes", 0.1e12 * step_s);
}

static void test_training__parts_add_up_to_the_step_of_median_length(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	times(&b, 9, true);
	times(&b, 0.2, true);
	times(&b, 0.4, true);
	times(&b, 0.3, true);
	assert_true(training_parts_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 5);
	assert_string_equal(grid_at(&g, 4, 0), "step");
	assert_true(ms_of(&g, "step") == 300); /* of four the lower of the two in the middle */
	assert_true(sum_of(&g) == 300);
	assert_string_equal(grid_at(&g, 0, 1), "180.00 ms");
	assert_string_equal(grid_at(&g, 0, 2), "60.0 %");
	assert_string_equal(grid_at(&g, 0, 3), "400 TFLOPS");
	assert_string_equal(grid_at(&g, 0, 4), "50.0 %");
	assert_string_equal(grid_at(&g, 1, 3), "–");
	assert_string_equal(grid_at(&g, 2, 3), "2.00 TB/s");
	assert_string_equal(grid_at(&g, 2, 4), "–");
	assert_true(ms_of(&g, "host") == 30);
	assert_non_null(strstr(text_str(&g.note), "out of 4."));
	assert_non_null(strstr(text_str(&g.note), "800 TFLOPS"));
	assert_null(strstr(text_str(&g.note), "step_parts"));
	grid_release(&g);
	bed_close(&b);
}

static void test_training__without_parts_phases_add_up_and_the_setting_is_said(void **state)
{
	struct record_phase load = {.name = "load"};
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	times(&b, 0.4, false);
	assert_true(training_parts_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 5);
	assert_true(sum_of(&g) == 400 && ms_of(&g, "step") == 400);
	assert_true(ms_of(&g, "backward") == 200);
	assert_non_null(strstr(text_str(&g.note), "training: step_parts: true"));
	grid_release(&g);
	load.values = json_pack("{s:s}", "device", "cpu");
	b.c.phase = &load;
	b.c.phase_count = 1;
	assert_true(training_parts_grid(&g, &b.view));
	assert_non_null(strstr(text_str(&g.note), "only on a GPU"));
	assert_null(strstr(text_str(&g.note), "step_parts"));
	grid_release(&g);
	json_decref(load.values);
	bed_close(&b);
}

/* Waiting for other ranks is a part of its own, and not in the host's time. */
static void test_training__communication_is_not_counted_twice(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	times(&b, 0.4, false);
	reading(&b, "comm_s", 0.02);
	assert_true(training_parts_grid(&g, &b.view));
	assert_int_equal(grid_rows(&g), 6);
	assert_true(ms_of(&g, "communication") == 20 && ms_of(&g, "host") == 20);
	assert_true(sum_of(&g) == 400);
	grid_release(&g);
	bed_close(&b);
}

/* Row of that name; -1: none. */
static int named(const struct grid *g, const char *name)
{
	for (size_t i = 0; i < grid_rows(g); i++)
		if (!strcmp(grid_at(g, i, 0), name))
			return (int)i;
	return -1;
}

static void test_training__energy_per_token_needs_a_steady_rate(void **state)
{
	struct record_phase once = {.name = "once"};
	struct grid g = {0};
	struct bed b;
	int row;

	(void)state;
	bed_open(&b);
	b.c.phase = &once;
	b.c.phase_count = 1;
	once.values =
		json_pack("{s:f, s:f, s:f}", "tokens_per_s", 14000.0, "steady_steps", 6.0, "power_w", 700.0);
	json_object_set_new(once.values, "energy_j", json_real(4200));
	assert_true(training_grid(&g, &b.view));
	row = named(&g, "energy_per_token");
	assert_true(row >= 0);
	assert_string_equal(grid_at(&g, (size_t)row, 1), "50.0 mJ");
	grid_release(&g);
	json_object_del(once.values, "steady_steps"); /* an old journal: its rate contains the first steps */
	assert_true(training_grid(&g, &b.view));
	assert_int_equal(named(&g, "energy_per_token"), -1);
	grid_release(&g);
	json_decref(once.values);
	bed_close(&b);
}

static void test_training__a_run_that_told_no_step_has_no_parts(void **state)
{
	struct grid g = {0};
	struct bed b;

	(void)state;
	bed_open(&b);
	assert_false(training_parts_grid(&g, &b.view));
	assert_int_equal(g.columns, 0);
	grid_release(&g);
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training__evaluations_are_shown_beside_some_of_the_steps),
		cmocka_unit_test(test_training__of_very_many_evaluations_the_best_is_shown),
		cmocka_unit_test(test_training__a_step_done_again_counts_as_it_was_done_last),
		cmocka_unit_test(test_training__parts_add_up_to_the_step_of_median_length),
		cmocka_unit_test(test_training__without_parts_phases_add_up_and_the_setting_is_said),
		cmocka_unit_test(test_training__communication_is_not_counted_twice),
		cmocka_unit_test(test_training__energy_per_token_needs_a_steady_rate),
		cmocka_unit_test(test_training__a_run_that_told_no_step_has_no_parts),
	};

	return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
