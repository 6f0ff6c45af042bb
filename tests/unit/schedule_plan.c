/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan contains: rows, logits, budget, pages. */
#include "schedule_bed.h"

static void test_plan__the_life_of_a_request(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(5, 20, 3);
	const struct schedule_plan *plan;
	const struct schedule_entry *e;
	uint32_t number = bed_submit(s, &q, 0), place;

	(void)state;
	plan = schedule_plan(s, 0, 1);
	e = plan->entries;
	assert_int_equal(plan->step, 1);
	assert_int_equal(plan->count, 1);
	assert_int_equal(plan->rows, 20);
	assert_int_equal(plan->logits, 1);
	assert_true(e->begins && !e->decodes && e->samples);
	assert_int_equal(e->number, number);
	assert_int_equal(e->first, 0);
	assert_int_equal(e->rows, 20);
	assert_int_equal(e->logits_first, 19);
	assert_int_equal(e->most, 1);
	assert_int_equal(e->known, 20);
	assert_memory_equal(e->tokens, q.prompt, 20 * sizeof *e->tokens);
	assert_int_equal(e->page_count, 2);
	assert_int_equal(e->pages_from, 0);
	assert_true(plan->predicted_ns == 1 * MS + 20 * 10000);
	place = e->place;
	bed_done(s, bed_results(plan), 0);
	for (int i = 0; i < 2; i++) {
		plan = schedule_plan(s, 0, 1);
		e = plan->entries;
		assert_int_equal(plan->count, 1);
		assert_true(!e->begins && e->decodes && e->samples);
		assert_int_equal(e->place, place);
		assert_int_equal(e->first, 20 + i);
		assert_int_equal(e->rows, 1);
		assert_int_equal(e->known, 21 + i);
		assert_int_equal(e->tokens[20], 1000);
		assert_int_equal(e->pages_from, 2);
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(bed_end(s, 5, NULL), ENGINE_END_LENGTH);
	assert_null(schedule_plan(s, 0, 1));
	schedule_free(&s);
}

static void test_plan__a_row_may_use_a_token_that_is_in_flight(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 3);
	const struct schedule_plan *plan;

	(void)state;
	bed_submit(s, &q, 0);
	schedule_plan(s, 0, 1);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->entries[0].first, 20);
	assert_int_equal(plan->entries[0].known, 20);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->entries[0].first, 21);
	assert_null(schedule_plan(s, 0, 1)); /* the third token is the last */
	bed_check(s);
	for (int i = 0; i < 3; i++)
		bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_int_equal(bed_end(s, 1, NULL), ENGINE_END_LENGTH);
	schedule_free(&s);
}

static void test_plan__no_more_than_plans_most_are_in_flight(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 30);

	(void)state;
	bed_submit(s, &q, 0);
	for (int i = 0; i < 4; i++)
		assert_non_null(schedule_plan(s, 0, 1));
	assert_null(schedule_plan(s, 0, 1));
	assert_int_equal(schedule_facts(s).in_flight, 4);
	assert_int_equal(schedule_oldest(s)->step, 1);
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_int_equal(schedule_oldest(s)->step, 2);
	assert_non_null(schedule_plan(s, 0, 1));
	schedule_free(&s);
}

/* 4 ms for 10 us a row are 400 rows; 19 ms while nobody decodes are 1900, but rows_most is 1024. */
static void test_plan__prefill_is_cut_by_time(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request a = bed_request(1, 20, 50), b = bed_request(2, 2000, 1);
	const struct schedule_plan *plan;

	(void)state;
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->rows, 1024);
	bed_done(s, bed_results(plan), 0);
	bed_step(s, 0);
	bed_submit(s, &a, 0);
	bed_step(s, 0);
	b = bed_request(3, 2000, 1);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->decodes, 1);
	assert_int_equal(plan->entries[0].id, 1);	 /* decode rows come first */
	assert_int_equal(bed_entry(plan, 3)->rows, 384); /* 399, to the end of a page */
	assert_int_equal(bed_entry(plan, 3)->logits, 0);
	assert_true(plan->predicted_ns <= bed_options.budget_ns);
	schedule_free(&s);
}

static void test_plan__deep_rows_cost_more(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request q = bed_request(1, 4000, 1);
	int32_t last = 0;

	(void)state;
	o.cost.depth_ns = 20;
	s = bed_open(&o);
	bed_submit(s, &q, 0);
	for (int i = 0; i < 3; i++) {
		const struct schedule_plan *plan = schedule_plan(s, 0, 1);

		assert_true(plan->predicted_ns <= o.budget_idle_ns);
		assert_true(plan->predicted_ns > 0.9 * o.budget_idle_ns);
		assert_true(!last || plan->rows < last);
		last = plan->rows;
		bed_done(s, bed_results(plan), 0);
	}
	schedule_free(&s);
}

static void test_plan__a_cut_leaves_no_tiny_piece(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request q = bed_request(1, 130, 1);
	const struct schedule_plan *plan;

	(void)state;
	o.rows_least = 32;
	o.budget_idle_ns = 1 * MS + 128 * 10000; /* 128 rows: 2 would be left */
	s = bed_open(&o);
	bed_submit(s, &q, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->rows, 96);
	bed_done(s, bed_results(plan), 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->rows, 34);
	schedule_free(&s);
}

/* A budget that decode rows use up: prefill advances by rows_least all the same, and one request at a time.
 */
static void test_plan__prefill_advances_without_time(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request a = bed_request(1, 20, 50), b = bed_request(2, 100, 1),
			      c = bed_request(3, 100, 1);
	const struct schedule_plan *plan;

	(void)state;
	o.budget_ns = 0;
	o.rows_least = 32;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_step(s, 0);
	bed_submit(s, &b, 0);
	bed_submit(s, &c, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 2);
	assert_int_equal(plan->entries[1].id, 2);
	assert_int_equal(plan->entries[1].rows, 32);
	schedule_free(&s);
}

/* The newest plan is wanted as long as one of its requests lives. */
static void test_plan__is_wanted_until_all_of_its_requests_have_ended(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request a = bed_request(1, 20, 50), b = bed_request(2, 20, 50);
	const struct schedule_plan *plan;

	(void)state;
	assert_false(schedule_is_wanted(s, 0)); /* there is none */
	b.deadline_ns = 7 * (uint64_t)MS;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 2);
	assert_true(schedule_is_wanted(s, 0));
	assert_true(schedule_cancel(s, 1));
	assert_true(schedule_is_wanted(s, 6 * (uint64_t)MS));
	assert_false(schedule_is_wanted(s, 7 * (uint64_t)MS));
	bed_done(s, bed_results(plan), 8 * (uint64_t)MS);
	assert_false(schedule_is_wanted(s, 8 * (uint64_t)MS));
	schedule_free(&s);
}

static void test_plan__a_text_computes_no_row_too_many(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 33, 7);
	int32_t rows = 0;

	(void)state;
	bed_submit(s, &q, 0);
	for (const struct schedule_plan *plan; (plan = schedule_plan(s, 0, 1));) {
		rows += plan->rows;
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(rows, 33 + 7 - 1);
	schedule_free(&s);
}

static void test_plan__several_tokens_at_once_if_the_request_is_alone(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request a = bed_request(1, 14, 40), b = bed_request(2, 20, 4);
	const struct schedule_plan *plan;
	struct schedule_result *results;

	(void)state;
	bed_submit(s, &a, 0);
	plan = schedule_plan(s, 0, 16);
	assert_int_equal(plan->entries[0].most, 1); /* prefill */
	bed_done(s, bed_results(plan), 0);
	plan = schedule_plan(s, 0, 16);
	assert_int_equal(plan->entries[0].most, 16);
	assert_int_equal(plan->entries[0].rows, 1);
	assert_int_equal(plan->entries[0].page_count, 2); /* positions 14 to 29 */
	assert_null(schedule_plan(s, 0, 16));		  /* not known where the next one begins */
	results = bed_results(plan);
	results[0].count = 5; /* interrupted */
	bed_done(s, results, 0);
	assert_int_equal(results[0].taken, 5);
	plan = schedule_plan(s, 0, 100);
	assert_int_equal(plan->entries[0].first, 19);
	assert_int_equal(plan->entries[0].most, 34); /* all that is left */
	results = bed_results(plan);
	results[0].count = 0;
	bed_done(s, results, 0);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 16);
	assert_int_equal(bed_entry(plan, 1)->most, 1);
	assert_int_equal(bed_entry(plan, 1)->first, 19);
	schedule_free(&s);
}

static void test_plan__at_once_takes_no_more_than_the_free_pages(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request q = bed_request(1, 30, 50);
	const struct schedule_plan *plan;

	(void)state;
	o.pages.pages = 6;
	s = bed_open(&o);
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	plan = schedule_plan(s, 0, 64);
	assert_int_equal(plan->entries[0].most, 49);
	assert_int_equal(plan->entries[0].page_count, 5);
	schedule_free(&s);
}

/* Log probabilities of the prompt: logits for each position but the last, which only samples. Each once. */
static void test_plan__prompt_log_probabilities(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request q = bed_request(1, 100, 2);
	const struct schedule_plan *plan;
	int32_t scored = 0;

	(void)state;
	o.logits_most = 40;
	s = bed_open(&o);
	bed_submit(s, &q, 0);
	while (bed_step(s, 0))
		; /* the prompt is in the cache now */
	q.id = 2;
	q.prompt_logprobs = 0;
	bed_submit(s, &q, 0);
	while (scored < 99) {
		plan = schedule_plan(s, 0, 1);
		assert_int_equal(plan->entries[0].first, scored);
		assert_int_equal(plan->entries[0].logits_first, 0);
		assert_int_equal(plan->entries[0].logits, plan->entries[0].rows);
		assert_in_range(plan->logits, 1, 40);
		scored += plan->entries[0].logits - plan->entries[0].samples;
		bed_done(s, bed_results(plan), 0);
	}
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->entries[0].first, 100);
	assert_int_equal(plan->entries[0].logits, 1);
	schedule_free(&s);
}

static void test_plan__a_prompt_can_be_scored_without_text(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 40, -1);
	struct schedule_event end;
	const struct schedule_plan *plan;

	(void)state;
	q.prompt_logprobs = 5;
	bed_submit(s, &q, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->entries[0].rows, 40);
	assert_int_equal(plan->entries[0].logits, 39);
	assert_int_equal(plan->entries[0].most, 0);
	assert_false(plan->entries[0].samples);
	bed_done(s, bed_results(plan), 0);
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_LENGTH);
	assert_int_equal(end.tokens, 0);
	assert_int_equal(schedule_facts(s).pages.cached, 2);
	schedule_free(&s);
}

/* No logits are left for the second prompt's last row: it waits for the next step. */
static void test_plan__logits_are_limited(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request a = bed_request(1, 100, 2), b = bed_request(2, 20, 2);
	const struct schedule_plan *plan;

	(void)state;
	o.logits_most = 32;
	s = bed_open(&o);
	a.prompt_logprobs = 1;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 1);
	assert_int_equal(plan->logits, 32);
	while (bed_done(s, bed_results(plan), 0), (plan = schedule_plan(s, 0, 1)))
		assert_in_range(plan->logits, 1, 32);
	assert_int_equal(schedule_facts(s).ended, 2);
	schedule_free(&s);
}

static void test_plan__costs_can_be_corrected(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	const struct schedule_cost cost = {1 * MS, 100000, 0, 0};
	struct engine_request q = bed_request(1, 2000, 1);

	(void)state;
	schedule_set_cost(s, &cost);
	bed_submit(s, &q, 0);
	assert_int_equal(schedule_plan(s, 0, 1)->rows, 176); /* 190 in 19 ms, to the end of a page */
	schedule_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan__the_life_of_a_request),
		cmocka_unit_test(test_plan__a_row_may_use_a_token_that_is_in_flight),
		cmocka_unit_test(test_plan__no_more_than_plans_most_are_in_flight),
		cmocka_unit_test(test_plan__prefill_is_cut_by_time),
		cmocka_unit_test(test_plan__deep_rows_cost_more),
		cmocka_unit_test(test_plan__a_cut_leaves_no_tiny_piece),
		cmocka_unit_test(test_plan__prefill_advances_without_time),
		cmocka_unit_test(test_plan__is_wanted_until_all_of_its_requests_have_ended),
		cmocka_unit_test(test_plan__a_text_computes_no_row_too_many),
		cmocka_unit_test(test_plan__several_tokens_at_once_if_the_request_is_alone),
		cmocka_unit_test(test_plan__at_once_takes_no_more_than_the_free_pages),
		cmocka_unit_test(test_plan__prompt_log_probabilities),
		cmocka_unit_test(test_plan__a_prompt_can_be_scored_without_text),
		cmocka_unit_test(test_plan__logits_are_limited),
		cmocka_unit_test(test_plan__costs_can_be_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
