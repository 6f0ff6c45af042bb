/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that prompts and decoding requests share, and backlogs of prompts. */
#include "schedule_bed.h"

/* The least piece is planned although decode rows fill a step; and without decode rows there is no limit. */
static void test_mixed__mixed_steps_leave_room_for_the_least_piece(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request a = bed_request(1, 20, 50), b = bed_request(2, 20, 50),
			      c = bed_request(3, 200, 1);
	const struct schedule_plan *plan;

	(void)state;
	o.mixed_rows = 16;
	o.backlog_rows = 10000;
	o.rows_least = 32;
	o.rows_most = 512;
	o.budget_ns = o.budget_idle_ns = 1e12;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->rows, 40);
	bed_done(s, bed_results(plan), 0);
	bed_submit(s, &c, 0);
	plan = schedule_plan(s, 0, 1); /* 32 rows, and the two decode rows */
	assert_int_equal(plan->count, 3);
	assert_int_equal(plan->entries[2].rows, 32);
	bed_done(s, bed_results(plan), 0);
	schedule_free(&s);
}

/* Mixed steps of 64 rows, and `count` requests that decode. */
static struct schedule *open_mixed(int32_t count)
{
	struct schedule_options o = bed_options;
	struct schedule *s;

	o.mixed_rows = 64;
	o.backlog_rows = 10000;
	o.places = 40;
	o.budget_ns = 1e12;
	s = bed_open(&o);
	for (int32_t i = 0; i < count; i++) {
		struct engine_request q = bed_request(1 + i, 20, 3000);

		bed_submit(s, &q, 0);
	}
	bed_step(s, 0);
	return s;
}

static void submit_prompts(struct schedule *s, int32_t count, size_t length)
{
	for (int32_t i = 0; i < count; i++) {
		struct engine_request q = bed_request(40 + i, length, 300);

		bed_submit(s, &q, 0);
	}
}

/* The next step has these decode rows and these rows of prompts. */
static void expect_step(struct schedule *s, int32_t decodes, int32_t prompt_rows)
{
	const struct schedule_plan *plan = schedule_plan(s, 0, 1);

	assert_int_equal(plan->decodes, decodes);
	assert_int_equal(plan->rows - plan->decodes, prompt_rows);
	bed_done(s, bed_results(plan), 0);
}

static void test_mixed__a_prompt_and_decode_rows_share_a_step(void **state)
{
	struct schedule *s = open_mixed(8);

	(void)state;
	submit_prompts(s, 1, 56);
	expect_step(s, 8, 56);
	expect_step(s, 9, 0);
	schedule_free(&s);
}

static void test_mixed__several_prompts_fill_mixed_steps(void **state)
{
	struct schedule *s = open_mixed(4);

	(void)state;
	submit_prompts(s, 2, 64);
	expect_step(s, 4, 48); /* a piece ends with a page */
	expect_step(s, 4, 48); /* the end of the first one, and two pages of the second one */
	expect_step(s, 5, 32);
	expect_step(s, 6, 0);
	schedule_free(&s);
}

/* While running requests lack more than backlog_rows prompt rows, a step has as many rows as its time allows:
 * budget_backlog_ns, and never less than budget_ns. */
static void test_mixed__a_backlog_allows_longer_steps(void **state)
{
	const double backlog_ns[] = {0, 1 * MS, 20 * MS, 20 * MS, 20 * MS};
	const int32_t rows[] = {304, 304, 304, 256, 304}, expected[] = {32, 32, 304, 32, 32};
	const int32_t mixed[] = {64, 64, 64, 64, 0}; /* 0: no backlog, as on a CPU */

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct schedule_options o = bed_options;
		struct engine_request a = bed_request(1, 20, 50);
		struct schedule *s;

		o.mixed_rows = mixed[i];
		o.backlog_rows = 256;
		o.rows_most = 512;
		o.budget_ns = 1 * MS + 40 * 10000;
		o.budget_backlog_ns = backlog_ns[i];
		s = bed_open(&o);
		bed_submit(s, &a, 0);
		bed_step(s, 0);
		submit_prompts(s, 2, (size_t)rows[i] / 2);
		expect_step(s, 1, expected[i]);
		schedule_free(&s);
	}
}

static void submit_short(struct schedule *s, int32_t count)
{
	static uint64_t id = 100;

	for (int32_t i = 0; i < count; i++) {
		struct engine_request q = bed_request(id++, 152, 1);

		bed_submit(s, &q, 0);
	}
}

static struct schedule *open_rationed(int32_t every)
{
	struct schedule_options o = bed_options;
	struct engine_request a = bed_request(1, 20, 3000);
	struct schedule *s;

	o.mixed_rows = 64;
	o.backlog_rows = 256;
	o.backlog_every = every;
	o.rows_most = 1024;
	o.budget_ns = 10 * MS;
	o.budget_backlog_ns = 20 * MS;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_step(s, 0);
	return s;
}

/* Eight backlogs are saved at first. When they are spent, one needs twice as many rows, until enough steps
 * have passed. */
static void test_mixed__backlogs_beside_decoding_requests_are_rationed(void **state)
{
	struct schedule *s = open_rationed(100);

	(void)state;
	for (int i = 0; i < 8; i++) {
		submit_short(s, 2);
		expect_step(s, 1, 304);
	}
	submit_short(s, 2);
	expect_step(s, 1, 48);
	for (int i = 0; i < 20; i++)
		bed_step(s, 0);
	submit_short(s, 4);
	expect_step(s, 1, 608);
	for (int i = 0; i < 99; i++)
		expect_step(s, 1, 0);
	submit_short(s, 2);
	expect_step(s, 1, 48);
	for (int i = 0; i < 99; i++)
		bed_step(s, 0);
	submit_short(s, 2);
	expect_step(s, 1, 304);
	schedule_free(&s);
}

static void test_mixed__backlogs_may_be_without_a_ration(void **state)
{
	struct schedule *s = open_rationed(0);

	(void)state;
	for (int i = 0; i < 20; i++) {
		submit_short(s, 2);
		expect_step(s, 1, 304);
	}
	schedule_free(&s);
}

/* While nobody decodes, nobody waits for a token. */
static void test_mixed__a_ration_needs_decoding_requests(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;

	(void)state;
	o.mixed_rows = 64;
	o.backlog_rows = 256;
	o.backlog_every = 100;
	o.rows_most = 512;
	o.budget_ns = 10 * MS;
	o.budget_idle_ns = 1 * MS + 40 * 10000;
	o.budget_backlog_ns = 20 * MS;
	s = bed_open(&o);
	for (int i = 0; i < 20; i++) {
		submit_short(s, 2);
		expect_step(s, 0, 304);
	}
	schedule_free(&s);
}

/* Beside more than mixed_few decode rows, prompts have at least mixed_prompt_rows, and as many rows as the
 * device computes in the same time. */
static void test_mixed__mixed_steps_grow_with_the_decode_rows(void **state)
{
	const int32_t decoding[] = {4, 8, 9, 39, 9}, few[] = {0, 0, 8, 0, 9},
		      expected[] = {48, 48, 80, 48, 48};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct schedule_options o = bed_options;
		struct schedule *s;

		o.mixed_rows = 64;
		o.mixed_few = few[i];
		o.mixed_prompt_rows = 56;
		o.rows_together = 32;
		o.backlog_rows = 10000;
		o.places = 41;
		o.budget_ns = 1e12;
		s = bed_open(&o);
		for (int32_t j = 0; j < decoding[i]; j++) {
			struct engine_request q = bed_request(1 + j, 20, 3000);

			bed_submit(s, &q, 0);
		}
		bed_step(s, 0);
		submit_prompts(s, 1, 200);
		expect_step(s, decoding[i], expected[i]);
		schedule_free(&s);
	}
}

/* The same without decoding requests, if there are several prompts. */
static void test_mixed__a_backlog_of_prompts_allows_longer_steps(void **state)
{
	const int32_t prompts[] = {1, 2, 2}, rows[] = {304, 152, 128}, expected[] = {32, 304, 32};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct schedule_options o = bed_options;
		struct schedule *s;

		o.mixed_rows = 64;
		o.backlog_rows = 256;
		o.rows_most = 512;
		o.budget_idle_ns = 1 * MS + 40 * 10000;
		o.budget_backlog_ns = 20 * MS;
		s = bed_open(&o);
		submit_prompts(s, prompts[i], (size_t)rows[i]);
		expect_step(s, 0, expected[i]);
		schedule_free(&s);
	}
}

/* With backlog_rows of 0, prompts that lack more than twice the rows of a step are a backlog. */
static void test_mixed__a_backlog_is_two_steps_unless_set(void **state)
{
	const int32_t decoding[] = {0, 0, 2, 2, 3}, rows[] = {64, 65, 64, 65, 65},
		      expected[] = {96, 130, 48, 130, 65};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct schedule_options o = bed_options;
		struct schedule *s;

		o.mixed_rows = 64;
		o.mixed_few = 2;
		o.mixed_prompt_rows = 80;
		o.rows_most = 512;
		o.budget_idle_ns = 1 * MS + 100 * 10000;
		o.budget_ns = o.budget_backlog_ns = 1e12;
		s = bed_open(&o);
		for (int32_t j = 0; j < decoding[i]; j++) {
			struct engine_request q = bed_request(1 + j, 20, 3000);

			bed_submit(s, &q, 0);
		}
		if (decoding[i])
			bed_step(s, 0);
		submit_prompts(s, 2, (size_t)rows[i]);
		expect_step(s, decoding[i], expected[i]);
		schedule_free(&s);
	}
}

/* The rows of a GPU fit into the steps of any size. */
static void test_mixed__rows_on_a_gpu_are_at_most_those_of_a_step(void **state)
{
	const int32_t rows[] = {40, 100, 800, 1100, 8192};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct schedule_options o = bed_options;
		struct schedule *s;

		o.rows_most = rows[i];
		schedule_mixed_on_gpu(&o);
		assert_int_equal(o.mixed_rows, rows[i] < 768 ? rows[i] : 768);
		s = bed_open(&o);
		schedule_free(&s);
	}
}

/* Beside requests that decode, its steps are mixed ones. */
static void test_mixed__a_lone_long_prompt_keeps_nobody_waiting(void **state)
{
	struct schedule_options o = bed_options;
	struct engine_request a = bed_request(1, 20, 50);
	struct schedule *s;

	(void)state;
	o.mixed_rows = 64;
	o.backlog_rows = 256;
	o.rows_most = 512;
	o.budget_ns = 10 * MS;
	o.budget_backlog_ns = 20 * MS;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_step(s, 0);
	submit_prompts(s, 1, 304);
	expect_step(s, 1, 48);
	schedule_free(&s);
}

/* A request that is planned to its end is no prompt that waits. */
static void test_mixed__a_lone_prompt_is_no_backlog(void **state)
{
	struct schedule_options o = bed_options;
	struct engine_request a = bed_request(1, 20, 1);
	const struct schedule_plan *plan;
	struct schedule *s;

	(void)state;
	o.mixed_rows = 64;
	o.backlog_rows = 256;
	o.rows_most = 512;
	o.budget_idle_ns = 1 * MS + 40 * 10000;
	o.budget_backlog_ns = 20 * MS;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	assert_int_equal(schedule_plan(s, 0, 1)->rows, 20);
	submit_prompts(s, 1, 304);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->rows, 32);
	schedule_free(&s);
}

/* Half of the mixed rows beside many decode rows would be more rows than a step can have. */
static void test_mixed__a_mixed_step_has_no_more_rows_than_a_step(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;

	(void)state;
	o.places = 41;
	o.rows_most = o.mixed_rows = 64;
	o.backlog_rows = 10000;
	o.budget_ns = 1e12;
	s = bed_open(&o);
	for (int32_t i = 0; i < 39; i++) {
		struct engine_request q = bed_request(1 + i, 20, 3000);

		bed_submit(s, &q, 0);
	}
	while (schedule_facts(s).prompt_tokens < 39 * 20)
		bed_step(s, 0);
	submit_prompts(s, 1, 200);
	expect_step(s, 39, 16); /* of 25 rows a whole page */
	schedule_free(&s);
}

/* Prompts have at least half of a mixed step, however many rows decode. */
static void test_mixed__decode_rows_leave_prompts_half_of_a_step(void **state)
{
	const int32_t decode[] = {16, 39}, prompt[] = {48, 32};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct schedule *s = open_mixed(decode[i]);
		const struct schedule_plan *plan;

		submit_prompts(s, 1, 200);
		plan = schedule_plan(s, 0, 1);
		assert_int_equal(plan->decodes, decode[i]);
		assert_int_equal(plan->rows, decode[i] + prompt[i]);
		bed_done(s, bed_results(plan), 0);
		schedule_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed__mixed_steps_leave_room_for_the_least_piece),
		cmocka_unit_test(test_mixed__a_prompt_and_decode_rows_share_a_step),
		cmocka_unit_test(test_mixed__several_prompts_fill_mixed_steps),
		cmocka_unit_test(test_mixed__a_backlog_allows_longer_steps),
		cmocka_unit_test(test_mixed__backlogs_beside_decoding_requests_are_rationed),
		cmocka_unit_test(test_mixed__backlogs_may_be_without_a_ration),
		cmocka_unit_test(test_mixed__a_ration_needs_decoding_requests),
		cmocka_unit_test(test_mixed__mixed_steps_grow_with_the_decode_rows),
		cmocka_unit_test(test_mixed__a_backlog_of_prompts_allows_longer_steps),
		cmocka_unit_test(test_mixed__a_backlog_is_two_steps_unless_set),
		cmocka_unit_test(test_mixed__rows_on_a_gpu_are_at_most_those_of_a_step),
		cmocka_unit_test(test_mixed__a_lone_long_prompt_keeps_nobody_waiting),
		cmocka_unit_test(test_mixed__a_lone_prompt_is_no_backlog),
		cmocka_unit_test(test_mixed__a_mixed_step_has_no_more_rows_than_a_step),
		cmocka_unit_test(test_mixed__decode_rows_leave_prompts_half_of_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
