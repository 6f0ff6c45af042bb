/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training run, as reports show them. */
#include "test.h"

#include "report/training.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training__evaluations_are_shown_beside_some_of_the_steps),
		cmocka_unit_test(test_training__of_very_many_evaluations_the_best_is_shown),
		cmocka_unit_test(test_training__a_step_done_again_counts_as_it_was_done_last),
	};

	return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
