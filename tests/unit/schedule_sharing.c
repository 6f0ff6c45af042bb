/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that requests share, lack and lose. */
#include "schedule_bed.h"

/* Runs request `id` to its end. Returns its cached tokens. */
static int32_t run_alone(struct schedule *s, const struct engine_request *q)
{
	struct schedule_event e;
	int32_t cached = -1;

	bed_submit(s, q, 0);
	while (bed_step(s, 0))
		;
	while (schedule_event(s, &e))
		if (e.kind == SCHEDULE_EVENT_ENDED)
			cached = e.cached_tokens;
	return cached;
}

static void test_cache__a_full_hit_computes_its_last_page_again(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 48, 1);
	const struct schedule_plan *plan;

	(void)state;
	assert_int_equal(run_alone(s, &q), 0);
	assert_int_equal(schedule_facts(s).pages.cached, 3);
	q.id = 2;
	bed_submit(s, &q, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->entries[0].first, 32);
	assert_int_equal(plan->entries[0].rows, 16);
	assert_int_equal(schedule_facts(s).pages.cached, 1); /* the third page is not used */
	bed_done(s, bed_results(plan), 0);
	assert_int_equal(schedule_facts(s).pages.cached, 3); /* and there is no second one like it */
	assert_int_equal(schedule_facts(s).cached_tokens, 32);
	schedule_free(&s);
}

/* The page that was computed again gives way to the older one, while a step in flight still reads it. */
static void test_cache__a_page_that_gives_way_drains(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 48, 1);

	(void)state;
	run_alone(s, &q);
	q.id = 2;
	q.max_tokens = 5;
	bed_submit(s, &q, 0);
	schedule_plan(s, 0, 1);
	schedule_plan(s, 0, 1);
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_int_equal(schedule_facts(s).pages.draining, 1);
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_int_equal(schedule_facts(s).pages.draining, 0);
	schedule_free(&s);
}

/* A conversation goes on: prompt and text of the first turn are in the cache. The text's tokens are 1000
 * each. */
static void test_cache__the_next_turn_finds_the_text(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 20, 40);
	int32_t prompt[100];

	(void)state;
	run_alone(s, &q);
	for (int i = 0; i < 100; i++)
		prompt[i] = i < 20 ? q.prompt[i] : i < 60 ? 1000 : 7;
	q.id = 2;
	q.prompt = prompt;
	q.prompt_count = 100;
	assert_int_equal(run_alone(s, &q), 48); /* 59 positions were computed */
	schedule_free(&s);
}

static void test_cache__salt_and_adapter_separate_requests(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 40, 1);
	struct schedule_event e;
	struct error err = {0};
	uint32_t number;

	(void)state;
	run_alone(s, &q);
	q.id++;
	assert_int_equal(run_alone(s, &q), 32);
	q.id++;
	q.cache_salt = 9;
	assert_int_equal(run_alone(s, &q), 0);
	q.id++;
	q.cache_salt = 0;
	assert_int_equal(schedule_submit(s, &q, 4, 0, &number, &err), STATUS_OK);
	while (bed_step(s, 0))
		;
	assert_true(schedule_event(s, &e));
	assert_int_equal(e.cached_tokens, 0);
	schedule_free(&s);
}

/* Eight equal prompts of 100 pages in one moment: the first computes, the others wait for its pages. */
static void test_cache__a_burst_of_equal_prompts_computes_the_prompt_once(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 1600, 4);
	const struct schedule_plan *plan;
	int32_t rows = 0;
	bool together = false;

	(void)state;
	for (q.id = 1; q.id <= 8; q.id++)
		bed_submit(s, &q, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 1);
	assert_int_equal(schedule_facts(s).waiting, 7);
	for (; plan; plan = schedule_plan(s, 0, 1)) {
		for (int32_t i = 0; i < plan->count; i++)
			rows += plan->entries[i].decodes ? 0 : plan->entries[i].rows;
		together |= plan->count == 8;
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(rows, 1600 + 7 * 16);
	assert_true(together); /* the others begin as soon as the prompt is computed */
	assert_int_equal(schedule_facts(s).ended, 8);
	schedule_free(&s);
}

static void test_cache__the_owner_of_a_page_may_leave(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 1600, 4);
	const struct schedule_plan *plan;

	(void)state;
	for (q.id = 1; q.id <= 3; q.id++)
		bed_submit(s, &q, 0);
	plan = schedule_plan(s, 0, 1);
	assert_true(schedule_cancel(s, 1));
	bed_check(s);
	bed_done(s, bed_results(plan), 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 1);
	assert_int_equal(plan->entries[0].id, 2);
	assert_true(schedule_cancel(s, 3)); /* while it waits for a page */
	bed_check(s);
	bed_done(s, bed_results(plan), 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(schedule_facts(s).ended, 3);
	schedule_free(&s);
}

/* The owner fails: its pages are dropped, and the next one computes them. */
static void test_cache__the_owner_of_a_page_may_fail(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 100, 4);
	struct schedule_result *results;

	(void)state;
	for (q.id = 1; q.id <= 2; q.id++)
		bed_submit(s, &q, 0);
	results = bed_results(schedule_plan(s, 0, 1));
	results[0].finite = false;
	bed_done(s, results, 0);
	assert_int_equal(schedule_plan(s, 0, 1)->entries[0].first, 0);
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(bed_end(s, 2, NULL), ENGINE_END_LENGTH);
	schedule_free(&s);
}

/* A request does not wait for a page whose owner comes later in priority. */
static void test_cache__nobody_waits_for_a_lower_priority(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 1600, 4);

	(void)state;
	q.priority = 3;
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	q.id = 2;
	q.priority = 0;
	bed_submit(s, &q, 0);
	assert_non_null(bed_entry(schedule_plan(s, 0, 1), 2));
	schedule_free(&s);
}

/* Two equal texts at the same time: the second uses the first one's pages, and says which elements changed.
 */
static void test_cache__equal_texts_share_pages_while_they_run(void **state)
{
	struct schedule *s = bed_open(&bed_options);
	struct engine_request q = bed_request(1, 10, 60);
	const struct schedule_plan *plan = NULL;

	(void)state;
	bed_submit(s, &q, 0);
	q.id = 2;
	bed_submit(s, &q, 0);
	for (int i = 0; i < 7; i++)
		bed_step(s, 0); /* 16 positions: the page is full */
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 2);
	assert_int_equal(schedule_facts(s).pages.draining, 0);
	assert_int_equal(plan->entries[0].pages[0], plan->entries[1].pages[0]);
	assert_int_not_equal(plan->entries[0].pages[1], plan->entries[1].pages[1]);
	assert_int_equal(plan->entries[0].pages_from, 1);
	assert_int_equal(plan->entries[1].pages_from, 0);
	schedule_free(&s);
}

static struct schedule_options small(int32_t pages)
{
	struct schedule_options o = bed_options;

	o.pages.pages = pages + 1;
	o.pages_ahead = 1;
	return o;
}

/* Two prompts of 6 of 10 pages: the second waits, though its first piece would fit. */
static void test_admission__the_whole_prompt_must_fit(void **state)
{
	struct schedule_options o = small(10);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 96, 20), b = bed_request(2, 96, 20);

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	bed_step(s, 0);
	assert_int_equal(schedule_facts(s).running, 1);
	while (bed_step(s, 0))
		;
	assert_int_equal(schedule_facts(s).ended, 2);
	assert_int_equal(schedule_facts(s).preemptions, 0);
	schedule_free(&s);
}

/* One page more must be there, unless the request cannot grow into it. */
static void test_admission__leaves_a_page_to_grow(void **state)
{
	struct schedule_options o = small(5);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 40, 2), b = bed_request(2, 20, 20),
			      c = bed_request(3, 20, 4);

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	schedule_plan(s, 0, 1);
	assert_int_equal(schedule_facts(s).running, 1);
	assert_true(schedule_cancel(s, 2));
	bed_submit(s, &c, 0);
	schedule_plan(s, 0, 1);
	assert_int_equal(schedule_facts(s).running, 2);
	schedule_free(&s);
}

/* Cached pages of the prompt count once: as the request's own, not as pages that it may evict. */
static void test_admission__hits_are_not_counted_twice(void **state)
{
	struct schedule_options o = small(10);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 96, 1), b = bed_request(2, 16, 60), c;

	(void)state;
	run_alone(s, &a); /* 6 pages cached */
	bed_submit(s, &b, 0);
	bed_step(s, 0); /* 2 pages used, 2 free */
	bed_step(s, 0);
	c = a;
	c.id = 3;
	c.max_tokens = 60; /* 1 page and one more beyond the 5 that it finds */
	bed_submit(s, &c, 0);
	assert_non_null(bed_entry(schedule_plan(s, 0, 1), 3));
	bed_check(s);
	assert_int_equal(schedule_facts(s).pages.used, 8);
	schedule_free(&s);
}

/* Both decode, and the pool is full: the later request loses its pages, and goes on with all its tokens. */
static void test_preemption__the_later_request_makes_room(void **state)
{
	struct schedule_options o = small(7);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 40, 60), b = bed_request(2, 40, 50);
	struct schedule_event end;
	int32_t tokens[2] = {0};
	bool resumed = false;

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	for (const struct schedule_plan *plan; (plan = schedule_plan(s, 0, 1));) {
		const struct schedule_entry *e = bed_entry(plan, 2);
		struct schedule_result *results = bed_results(plan);

		bed_check(s);
		if (e && e->begins && tokens[1]) {
			resumed = true;
			assert_int_equal(e->known, 40 + tokens[1]);
			assert_int_equal(e->first % P, 0); /* after what is still cached */
			assert_int_equal(e->first + e->rows, e->known);
		}
		if (!bed_entry(plan, 1))
			assert_int_equal(tokens[0], 60);
		for (int32_t i = 0; i < plan->count; i++)
			tokens[plan->entries[i].id - 1] += results[i].count;
		bed_done(s, results, 0);
	}
	assert_true(resumed);
	assert_int_equal(tokens[0], 60);
	assert_int_equal(tokens[1], 50);
	assert_true(schedule_facts(s).preemptions > 0);
	assert_int_equal(bed_end(s, 2, &end), ENGINE_END_LENGTH);
	assert_int_equal(end.tokens, 50);
	assert_int_equal(end.preemptions, schedule_facts(s).preemptions);
	schedule_free(&s);
}

/* The row of a preempted request is in flight: its token counts, and the request resumes only after that
 * step. */
static void test_preemption__a_token_in_flight_counts(void **state)
{
	struct schedule_options o = small(5);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 47, 17), b = bed_request(2, 16, 40);
	const struct schedule_plan *plan;
	struct schedule_result *results;

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	bed_step(s, 0);
	assert_non_null(bed_entry(schedule_plan(s, 0, 1), 2)); /* takes the last page */
	plan = schedule_plan(s, 0, 1);			       /* a needs a page */
	bed_check(s);
	assert_non_null(bed_entry(plan, 1));
	assert_null(bed_entry(plan, 2));
	assert_int_equal(schedule_facts(s).preemptions, 1);
	assert_int_equal(schedule_facts(s).pages.draining, 1);
	results = bed_results(schedule_oldest(s));
	bed_done(s, results, 0);
	assert_int_equal(results[1].taken, 1);
	assert_true(results[1].alive);
	assert_int_equal(schedule_facts(s).pages.draining, 0);
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	while (!bed_entry(plan = schedule_plan(s, 0, 1), 2))
		bed_done(s, bed_results(plan), 0);
	assert_int_equal(bed_entry(plan, 2)->known, 18);
	assert_true(bed_entry(plan, 2)->begins);
	schedule_free(&s);
}

/* The last request in the order waits for a page and keeps those that it has. */
static void test_preemption__the_last_request_waits(void **state)
{
	struct schedule_options o = small(6);
	struct schedule *s = bed_open(&o);
	struct engine_request a = bed_request(1, 47, 17), b = bed_request(2, 30, 40);
	const struct schedule_plan *plan;

	(void)state;
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	for (int i = 0; i < 3; i++)
		bed_step(s, 0); /* a has 4 pages, b has 2 full ones */
	plan = schedule_plan(s, 0, 1);
	assert_null(bed_entry(plan, 2));
	assert_int_equal(schedule_facts(s).preemptions, 0);
	assert_int_equal(schedule_facts(s).running, 2);
	bed_done(s, bed_results(plan), 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(schedule_facts(s).preemptions, 0);
	assert_int_equal(schedule_facts(s).ended, 2);
	schedule_free(&s);
}

/* A cancelled request's pages become free when its step is done. One request waits for them; the next one,
 * which cannot count on them, preempts. */
static void test_preemption__pages_that_drain_are_awaited(void **state)
{
	struct schedule_options o = small(6);

	(void)state;
	for (int lacking = 1; lacking <= 2; lacking++) {
		struct schedule *s = bed_open(&o);
		struct engine_request q[] = {bed_request(1, 31, 17),
					     bed_request(2, lacking == 1 ? 17 : 31, 17),
					     bed_request(3, 5, 11), bed_request(4, 5, 11)};

		for (int i = 0; i < 4; i++)
			bed_submit(s, q + i, 0);
		bed_step(s, 0); /* 2 + 2 + 1 + 1 pages */
		assert_int_equal(schedule_facts(s).running, 4);
		schedule_plan(s, 0, 1);
		schedule_cancel(s, 4);
		assert_int_equal(schedule_facts(s).pages.draining, 1);
		schedule_plan(s, 0, 1);
		bed_check(s);
		assert_int_equal(schedule_facts(s).preemptions, lacking - 1);
		schedule_free(&s);
	}
}

/* The preempted request fits again, but others could not grow: it waits until nothing else runs. */
static void test_preemption__a_resumed_request_leaves_pages_to_grow(void **state)
{
	struct schedule_options o = small(13);
	struct schedule *s;
	struct engine_request a = bed_request(1, 60, 60), x = bed_request(2, 60, 20),
			      b = bed_request(3, 60, 20);

	(void)state;
	o.pages_ahead = 100;
	s = bed_open(&o);
	bed_submit(s, &a, 0);
	bed_submit(s, &x, 0);
	bed_submit(s, &b, 0);
	while (!schedule_facts(s).preemptions)
		assert_true(bed_step(s, 0));
	assert_true(schedule_cancel(s, 2));
	while (schedule_oldest(s))
		bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_true(schedule_facts(s).pages.free + schedule_facts(s).pages.cached > 6);
	for (const struct schedule_plan *plan; (plan = schedule_plan(s, 0, 1));) {
		assert_int_equal(plan->count, 1);
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(schedule_facts(s).preemptions, 1);
	assert_int_equal(schedule_facts(s).ended, 3);
	schedule_free(&s);
}

/* After a preemption nothing of the same or a lower priority is admitted before the preempted request. */
static void test_preemption__the_preempted_request_resumes_first(void **state)
{
	struct schedule_options o = small(9);
	struct schedule *s;
	struct engine_request a = bed_request(1, 60, 60), b = bed_request(2, 60, 30),
			      c = bed_request(3, 4, 4);
	bool late = false;

	(void)state;
	o.bypass_most = 100;
	s = bed_open(&o);
	c.client = 5; /* which has got no token yet */
	bed_submit(s, &a, 0);
	bed_submit(s, &b, 0);
	while (!schedule_facts(s).preemptions)
		assert_true(bed_step(s, 0));
	bed_submit(s, &c, 0);
	for (const struct schedule_plan *plan; (plan = schedule_plan(s, 0, 1));) {
		late |= bed_entry(plan, 2) != NULL;
		assert_true(late || !bed_entry(plan, 3));
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(schedule_facts(s).ended, 3);
	schedule_free(&s);
}

static void test_preemption__log_probabilities_of_the_prompt_come_once(void **state)
{
	struct schedule_options o = small(20);
	struct schedule *s;
	struct engine_request a = bed_request(1, 200, 1), b = bed_request(2, 200, 1);
	int32_t scored = 0;

	(void)state;
	o.places = 1;
	o.budget_idle_ns = 1 * MS + 64 * 10000;
	s = bed_open(&o);
	a.prompt_logprobs = 1;
	bed_submit(s, &a, 0);
	for (int i = 0; bed_end(s, 1, NULL) < 0; i++) {
		const struct schedule_plan *plan = schedule_plan(s, 0, 1);
		const struct schedule_entry *e = bed_entry(plan, 1);

		if (e && e->logits > e->samples) {
			assert_int_equal(e->first + e->logits_first, scored);
			scored += e->logits - e->samples;
		}
		bed_done(s, bed_results(plan), 0);
		b.id = 2;
		b.priority = -3;
		if (i == 1)
			bed_submit(s, &b, 0); /* takes the place */
	}
	assert_int_equal(scored, 199);
	assert_int_equal(schedule_facts(s).preemptions, 1);
	schedule_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache__a_full_hit_computes_its_last_page_again),
		cmocka_unit_test(test_cache__a_page_that_gives_way_drains),
		cmocka_unit_test(test_cache__the_next_turn_finds_the_text),
		cmocka_unit_test(test_cache__salt_and_adapter_separate_requests),
		cmocka_unit_test(test_cache__a_burst_of_equal_prompts_computes_the_prompt_once),
		cmocka_unit_test(test_cache__the_owner_of_a_page_may_leave),
		cmocka_unit_test(test_cache__the_owner_of_a_page_may_fail),
		cmocka_unit_test(test_cache__nobody_waits_for_a_lower_priority),
		cmocka_unit_test(test_cache__equal_texts_share_pages_while_they_run),
		cmocka_unit_test(test_admission__the_whole_prompt_must_fit),
		cmocka_unit_test(test_admission__leaves_a_page_to_grow),
		cmocka_unit_test(test_admission__hits_are_not_counted_twice),
		cmocka_unit_test(test_preemption__the_later_request_makes_room),
		cmocka_unit_test(test_preemption__a_token_in_flight_counts),
		cmocka_unit_test(test_preemption__the_last_request_waits),
		cmocka_unit_test(test_preemption__pages_that_drain_are_awaited),
		cmocka_unit_test(test_preemption__a_resumed_request_leaves_pages_to_grow),
		cmocka_unit_test(test_preemption__the_preempted_request_resumes_first),
		cmocka_unit_test(test_preemption__log_probabilities_of_the_prompt_come_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
