/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are refused, and how accepted ones end. */
#include "schedule_bed.h"

static void test_options__out_of_range_are_refused_by_name(void **state)
{
	struct schedule_options bad[23];
	static const char *const says[] = {
		"KV cache",
		"places is 0",
		"requests_most is 7",
		"plans_most is 65",
		"rows_most is 23",
		"logits_most is 23",
		"context is 1",
		"rows_least is 15",
		"bypass_most",
		"pages_ahead",
		"age_ns",
		"step_ns",
		"row_ns is -1",
		"depth_ns",
		"logits_ns is nan",
		"budget_ns is inf",
		"mixed_rows is -1",
		"backlog_rows is -1",
		"backlog_every is -1",
		"mixed_prompt_rows is -1",
		"rows_together is -1",
		"mixed_few is -1",
		"mixed_prompt_rows is 10000",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = bed_options;
	bad[0].pages.pages = 1;
	bad[1].places = 0;
	bad[2].requests_most = 7;
	bad[3].plans_most = 65;
	bad[4].rows_most = 23;
	bad[5].logits_most = 23;
	bad[6].context = 1;
	bad[7].rows_least = 15;
	bad[8].bypass_most = -1;
	bad[9].pages_ahead = -1;
	bad[10].age_ns = UINT64_MAX;
	bad[11].cost.step_ns = -1;
	bad[12].cost.row_ns = -1;
	bad[13].cost.depth_ns = -1;
	bad[14].cost.logits_ns = __builtin_nan("");
	bad[15].budget_ns = __builtin_inf();
	bad[16].mixed_rows = -1;
	bad[17].backlog_rows = -1;
	bad[18].backlog_every = -1;
	bad[19].mixed_prompt_rows = -1;
	bad[20].rows_together = -1;
	bad[21].mixed_few = -1;
	bad[22].mixed_prompt_rows = 10000;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct schedule *s = NULL;
		struct error err = {0};

		assert_int_equal(schedule_create(&s, bad + i, &err), STATUS_BAD_INPUT);
		assert_null(s);
		if (!strstr(err.text, says[i]))
			fail_msg("%s: %s", says[i], err.text);
		schedule_free(&s);
	}
}

static void refused(struct schedule *s, const struct engine_request *q, enum status status, const char *says)
{
	struct error err = {0};
	uint32_t number;

	assert_int_equal(schedule_submit(s, q, 0, 0, &number, &err), status);
	if (!strstr(err.text, says))
		fail_msg("%s: %s", says, err.text);
	bed_check(s);
}

static void test_submit__impossible_requests_are_refused_with_the_reason(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 0, 1);

	(void)state;
	refused(s, &q, STATUS_BAD_INPUT, "the prompt is empty");
	q = bed_request(1, 4097, 1);
	refused(s, &q, STATUS_BAD_INPUT,
		"the prompt has 4097 tokens, but the model's context has room for 4096");
	q = bed_request(1, 4096, 0);
	refused(s, &q, STATUS_BAD_INPUT, "shorten the prompt");
	q = bed_request(1, 4000, 97);
	refused(s, &q, STATUS_BAD_INPUT,
		"the prompt has 4000 tokens and max_tokens is 97, but the model's context");
	q = bed_request(1, 10, INT64_MAX);
	refused(s, &q, STATUS_BAD_INPUT, "lower max_tokens");
	q = bed_request(1, 10, -2);
	refused(s, &q, STATUS_BAD_INPUT, "max_tokens is -2");
	q = bed_request(1, 10, 1);
	q.priority = 16;
	refused(s, &q, STATUS_BAD_INPUT, "priority is 16, but must be from -16 to 15");
	q.priority = -17;
	refused(s, &q, STATUS_BAD_INPUT, "priority is -17");
	q.priority = 0;
	bed_submit(s, &q, 0);
	refused(s, &q, STATUS_BAD_INPUT, "a request with the id 1 is running already");
	schedule_free(&s);
}

static void test_submit__the_pool_limits_what_was_asked_for(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct schedule_event end;
	struct engine_request q = bed_request(1, 100, 61);

	(void)state;
	o.pages.pages = 11; /* 160 positions */
	s = bed_open(&o);
	refused(s, &q, STATUS_BAD_INPUT, "but the KV cache has room for 160 tokens");
	q.max_tokens = 0; /* as many as there is room for */
	bed_submit(s, &q, 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_LENGTH);
	assert_int_equal(end.tokens, 60);
	schedule_free(&s);
}

static void test_submit__a_full_queue_refuses(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q;

	(void)state;
	for (uint64_t id = 1; id <= 64; id++) {
		q = bed_request(id, 10, 1);
		bed_submit(s, &q, 0);
	}
	q = bed_request(65, 10, 1);
	refused(s, &q, STATUS_NO_RESOURCE, "the queue is full: 64 requests");
	assert_true(schedule_cancel(s, 7));
	refused(s, &q, STATUS_NO_RESOURCE, "the queue is full"); /* its event is still there */
	assert_int_equal(bed_end(s, 7, NULL), ENGINE_END_CANCELLED);
	bed_submit(s, &q, 0);
	schedule_free(&s);
}

static void test_end__length_and_stop(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request a = bed_request(1, 20, 3), b = bed_request(2, 20, 100);
	struct schedule_event end;
	int steps = 0;

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	for (; steps < 5; steps++) {
		const struct schedule_plan *plan = schedule_plan(s, 0, 1);
		struct schedule_result *results = bed_results(plan);

		if (steps == 4)
			results[0].outcome = SCHEDULE_STOPPED;
		bed_done(s, results, 0);
	}
	assert_null(schedule_plan(s, 0, 1));
	assert_true(schedule_event(s, &end));
	assert_int_equal(end.kind, SCHEDULE_EVENT_BEGUN);
	assert_int_equal(end.prompt_tokens, 20);
	assert_true(schedule_event(s, &end));
	assert_int_equal(end.end, ENGINE_END_LENGTH);
	assert_int_equal(end.tokens, 3);
	assert_int_equal(bed_end(s, 2, &end), ENGINE_END_STOP);
	assert_int_equal(end.tokens, 5);
	assert_string_equal(end.text, "");
	schedule_free(&s);
}

static void test_end__a_cancelled_request_leaves_the_queue(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 3);

	(void)state;
	bed_submit(s, &q, 0);
	assert_true(schedule_cancel(s, 1));
	assert_false(schedule_cancel(s, 1));
	assert_false(schedule_finish(s, 1, 0));
	bed_check(s);
	assert_null(schedule_plan(s, 0, 1));
	assert_int_equal(bed_end(s, 1, NULL), ENGINE_END_CANCELLED);
	bed_submit(s, &q, 0); /* the id is free again */
	assert_non_null(schedule_plan(s, 0, 1));
	schedule_free(&s);
}

/* A plan in flight still contains the request: its result is dropped, and nobody gets its place or the pages
 * that the step may write. */
static void test_end__results_after_the_end_are_dropped(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request a = bed_request(1, 20, 9), b = bed_request(2, 20, 9);
	struct schedule_result *results;
	const struct schedule_plan *plan;

	(void)state;
	o.places = 1;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	plan = schedule_plan(s, 0, 1);
	assert_non_null(bed_entry(plan, 1));
	assert_true(schedule_cancel(s, 1));
	bed_check(s);
	assert_int_equal(bed_end(s, 1, NULL), ENGINE_END_CANCELLED);
	assert_int_equal(schedule_facts(s).pages.draining, 2);
	assert_null(schedule_plan(s, 0, 1));
	results = bed_results(plan);
	bed_done(s, results, 0);
	assert_int_equal(results[0].taken, 0);
	assert_false(results[0].alive);
	assert_int_equal(schedule_facts(s).pages.free, 1000);
	plan = schedule_plan(s, 0, 1);
	assert_non_null(bed_entry(plan, 2));
	assert_true(plan->entries[0].begins);
	schedule_free(&s);
}

static void test_end__finish_counts_tokens_up_to_the_stop_string(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 100);
	struct schedule_event end;

	(void)state;
	bed_submit(s, &q, 0);
	for (int i = 0; i < 10; i++)
		bed_step(s, 0);
	assert_true(schedule_finish(s, 1, 7));
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_STOP);
	assert_int_equal(end.tokens, 7);
	q.id = 2;
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	assert_true(schedule_finish(s, 2, 50)); /* more than there are */
	assert_int_equal(bed_end(s, 2, &end), ENGINE_END_STOP);
	assert_int_equal(end.tokens, 1);
	schedule_free(&s);
}

static void test_end__deadlines_of_waiting_and_running_requests(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request a = bed_request(1, 20, 100), b = bed_request(2, 20, 100);
	struct schedule_event end;

	(void)state;
	o.places = 1;
	s = bed_open(&o);
	assert_int_equal(schedule_wake(s), UINT64_MAX);
	a.deadline_ns = 2000;
	b.deadline_ns = 1000;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	assert_int_equal(schedule_wake(s), 1000);
	bed_step(s, 999);
	assert_int_equal(bed_end(s, 2, NULL), -1);
	schedule_plan(s, 1000, 1);
	assert_int_equal(bed_end(s, 2, &end), ENGINE_END_DEADLINE);
	assert_int_equal(end.tokens, 0);
	bed_done(s, bed_results(schedule_oldest(s)), 2000); /* the token of this step still counts */
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_DEADLINE);
	assert_int_equal(end.tokens, 2);
	assert_int_equal(schedule_wake(s), UINT64_MAX);
	schedule_free(&s);
}

/* A request that fails while it writes its third page: the pages before are not cached either. */
static void test_end__pages_of_a_failed_request_are_not_cached(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request q = bed_request(1, 40, 100);
	struct schedule_event end;
	struct schedule_result *results;

	(void)state;
	o.budget_idle_ns = 1;
	o.rows_least = P;
	s = bed_open(&o);
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	bed_step(s, 0);
	results = bed_results(schedule_plan(s, 0, 1));
	results[0].finite = false;
	bed_done(s, results, 0);
	assert_int_equal(results[0].taken, 0);
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_FAILED);
	assert_non_null(strstr(end.text, "NaN or infinity"));
	assert_int_equal(schedule_facts(s).pages.free, 1000);
	schedule_free(&s);
}

/* Pages that were in the cache before stay there. */
static void test_end__a_failed_request_leaves_older_pages_in_the_cache(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 40, 1);
	struct schedule_result *results;

	(void)state;
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	assert_int_equal(schedule_facts(s).pages.cached, 2);
	q.id = 2;
	bed_submit(s, &q, 0);
	results = bed_results(schedule_plan(s, 0, 1));
	results[0].finite = false;
	bed_done(s, results, 0);
	assert_int_equal(schedule_facts(s).pages.cached, 2);
	assert_int_equal(schedule_facts(s).pages.free, 998);
	schedule_free(&s);
}

static void test_end__impossible_results_fail_the_request(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct schedule_event end;

	(void)state;
	for (uint64_t id = 1; id <= 4; id++) {
		struct engine_request q = bed_request(id, 20, 100);
		struct schedule_result *results;

		bed_submit(s, &q, 0);
		results = bed_results(schedule_plan(s, 0, 1));
		if (id == 1)
			results[0].count = 2;
		if (id == 2)
			results[0].count = 0;
		if (id == 3)
			results[0].count = -1;
		if (id == 4)
			results[0].outcome = SCHEDULE_FAILED;
		bed_done(s, results, 0);
		assert_int_equal(results[0].taken, 0);
		assert_int_equal(bed_end(s, id, &end), ENGINE_END_FAILED);
		assert_non_null(
			strstr(end.text, id == 4 ? "every token is excluded" : "wrong number of tokens"));
	}
	schedule_free(&s);
}

static void test_end__a_bias_without_any_token_is_the_requests_own_fault(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 100);
	struct schedule_result *results;
	struct schedule_event end;

	(void)state;
	bed_submit(s, &q, 0);
	results = bed_results(schedule_plan(s, 0, 1));
	results[0].outcome = SCHEDULE_FORBIDDEN;
	bed_done(s, results, 0);
	assert_int_equal(results[0].taken, 0);
	assert_int_equal(bed_end(s, 1, &end), ENGINE_END_REFUSED);
	assert_non_null(strstr(end.text, "logit_bias"));
	schedule_free(&s);
}

static void test_done__results_that_belong_to_no_plan_are_a_bug(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 100);
	struct schedule_result results[2] = {{0}};
	struct error err = {0};

	(void)state;
	assert_int_equal(schedule_done(s, results, 0, 0, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "no step is in flight"));
	error_clear(&err);
	bed_submit(s, &q, 0);
	schedule_plan(s, 0, 1);
	assert_int_equal(schedule_done(s, results, 2, 0, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "step 1 has 1 entries, but 2 results came"));
	bed_check(s);
	schedule_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options__out_of_range_are_refused_by_name),
		cmocka_unit_test(test_submit__impossible_requests_are_refused_with_the_reason),
		cmocka_unit_test(test_submit__the_pool_limits_what_was_asked_for),
		cmocka_unit_test(test_submit__a_full_queue_refuses),
		cmocka_unit_test(test_end__length_and_stop),
		cmocka_unit_test(test_end__a_cancelled_request_leaves_the_queue),
		cmocka_unit_test(test_end__results_after_the_end_are_dropped),
		cmocka_unit_test(test_end__finish_counts_tokens_up_to_the_stop_string),
		cmocka_unit_test(test_end__deadlines_of_waiting_and_running_requests),
		cmocka_unit_test(test_end__pages_of_a_failed_request_are_not_cached),
		cmocka_unit_test(test_end__a_failed_request_leaves_older_pages_in_the_cache),
		cmocka_unit_test(test_end__impossible_results_fail_the_request),
		cmocka_unit_test(test_end__a_bias_without_any_token_is_the_requests_own_fault),
		cmocka_unit_test(test_done__results_that_belong_to_no_plan_are_a_bug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
