/* SPDX-License-Identifier: Apache-2.0 */
/* Which request comes first: priority, clients, arrival, age. */
#include "schedule_bed.h"

static struct schedule_options one_place(void)
{
	struct schedule_options o = bed_options;

	o.places = 1;
	return o;
}

static void submit(struct schedule *s, uint64_t id, uint64_t client, int32_t priority, uint64_t now)
{
	struct engine_request q = bed_request(id, 20, 2);

	q.client = client;
	q.priority = priority;
	bed_submit(s, &q, now);
}

/* Ids in the order in which they begin, until nothing is left. */
static void begins(struct schedule *s, const uint64_t *ids, size_t count)
{
	struct schedule_event e;
	size_t i = 0;

	do {
		while (schedule_event(s, &e)) {
			if (e.kind != SCHEDULE_EVENT_BEGUN)
				continue;
			assert_true(i < count);
			assert_int_equal(e.id, ids[i++]);
		}
	} while (bed_step(s, 0));
	assert_int_equal(i, count);
}

static void test_order__priority_then_arrival(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s = bed_open(&o);
	static const uint64_t ids[] = {3, 5, 1, 4, 2};

	(void)state;
	submit(s, 1, 0, 0, 0);
	submit(s, 2, 0, 15, 0);
	submit(s, 3, 0, -16, 0);
	submit(s, 4, 0, 0, 0);
	submit(s, 5, 0, -1, 0);
	begins(s, ids, 5);
	schedule_free(&s);
}

/* Client 7 sends five requests before the others send one each. */
static void test_order__clients_take_turns(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s = bed_open(&o);
	static const uint64_t ids[] = {1, 6, 7, 2, 3, 4, 5};

	(void)state;
	for (uint64_t id = 1; id <= 5; id++)
		submit(s, id, 7, 0, 0);
	submit(s, 6, 8, 0, 0);
	submit(s, 7, 9, 0, 0);
	begins(s, ids, 7);
	schedule_free(&s);
}

/* Turns are counted in tokens: a client with long prompts gets fewer requests through. */
static void test_order__turns_are_counted_in_tokens(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s = bed_open(&o);
	static const uint64_t ids[] = {1, 11, 12, 13, 14, 2, 15, 16};
	struct engine_request q;

	(void)state;
	for (uint64_t id = 1; id <= 2; id++) {
		q = bed_request(id, 86, 2);
		q.client = 1;
		bed_submit(s, &q, 0);
	}
	for (uint64_t id = 11; id <= 16; id++)
		submit(s, id, 2, 0, 0);
	begins(s, ids, 8);
	schedule_free(&s);
}

/* A client that was away does not come back with turns saved up. */
static void test_order__a_new_client_has_nothing_saved_up(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s = bed_open(&o);
	static const uint64_t ids[] = {21, 5, 22, 6, 23, 7};

	(void)state;
	for (uint64_t id = 1; id <= 7; id++)
		submit(s, id, 1, 0, 0);
	for (int i = 0; i < 8; i++)
		bed_step(s, 0);
	while (bed_end(s, 99, NULL) >= 0)
		;
	for (uint64_t id = 21; id <= 23; id++)
		submit(s, id, 2, 0, 0);
	begins(s, ids, 6);
	schedule_free(&s);
}

/* A request that lacks pages may be passed by bypass_most later ones. */
static void test_order__the_head_is_passed_a_limited_number_of_times(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request long_one = bed_request(1, 100, 60), big = bed_request(2, 140, 4);
	const struct schedule_plan *plan;
	int32_t passed = 0;

	(void)state;
	o.pages.pages = 13;
	o.bypass_most = 3;
	s = bed_open(&o);
	bed_submit(s, &long_one, 0);
	bed_step(s, 0);
	bed_submit(s, &big, 0);
	for (uint64_t id = 10; id < 20; id++) {
		struct engine_request q = bed_request(id, 4, 2);

		bed_submit(s, &q, 0);
	}
	for (bool begun = false; (plan = schedule_plan(s, 0, 1));) {
		begun |= bed_entry(plan, 2) != NULL;
		for (uint64_t id = 10; id < 20 && !begun; id++)
			passed += bed_entry(plan, id) && bed_entry(plan, id)->begins;
		bed_done(s, bed_results(plan), 0);
	}
	assert_int_equal(passed, 3);
	assert_int_equal(schedule_facts(s).ended, 12);
	schedule_free(&s);
}

/* Cached tokens cost nothing: client 1 finds most of its prompt from its second request on. */
static void test_order__cached_tokens_are_free(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s = bed_open(&o);
	static const uint64_t ids[] = {1, 11, 12, 2, 3, 4, 13, 14};
	struct engine_request q;

	(void)state;
	for (uint64_t id = 1; id <= 4; id++) {
		q = bed_request(40, 33, 2);
		q.id = id;
		q.client = 1;
		bed_submit(s, &q, 0);
	}
	for (uint64_t id = 11; id <= 14; id++)
		submit(s, id, 2, 0, 0);
	begins(s, ids, 8);
	schedule_free(&s);
}

/* Nobody of a lower priority passes a request that lacks pages. */
static void test_order__a_lower_priority_does_not_pass(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request long_one = bed_request(1, 100, 60), big = bed_request(2, 140, 4);
	const struct schedule_plan *plan;

	(void)state;
	o.pages.pages = 13;
	o.bypass_most = 100;
	s = bed_open(&o);
	bed_submit(s, &long_one, 0);
	bed_step(s, 0);
	bed_submit(s, &big, 0);
	submit(s, 3, 0, 1, 0);
	submit(s, 4, 0, 0, 0);
	plan = schedule_plan(s, 0, 1);
	assert_non_null(bed_entry(plan, 4));
	assert_null(bed_entry(plan, 3));
	assert_null(bed_entry(plan, 2));
	schedule_free(&s);
}

/* A running request of lower priority keeps its pages if they would not be enough. */
static void test_order__nobody_loses_pages_in_vain(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request first = bed_request(1, 100, 20), low = bed_request(2, 20, 20),
			      high = bed_request(3, 130, 4);

	(void)state;
	o.pages.pages = 12;
	s = bed_open(&o);
	first.priority = -2;
	low.priority = 2;
	bed_submit(s, &first, 0);
	bed_submit(s, &low, 0);
	bed_step(s, 0);
	bed_submit(s, &high, 0);
	schedule_plan(s, 0, 1);
	assert_int_equal(schedule_facts(s).running, 2);
	assert_int_equal(schedule_facts(s).preemptions, 0);
	schedule_free(&s);
}

/* An endless flood of higher priority: a request rises by one priority for each age_ns. */
static void test_order__waiting_raises_the_priority(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s;
	struct schedule_event e;
	uint64_t id = 10, begun = 0;

	(void)state;
	o.age_ns = 1000;
	s = bed_open(&o);
	submit(s, 1, 0, 2, 0);
	for (uint64_t now = 0; !begun && now < 100000; now += 100) {
		while (schedule_facts(s).waiting < 4) {
			id++;
			submit(s, id, id, 0, now);
		}
		bed_step(s, now);
		while (schedule_event(s, &e))
			if (e.kind == SCHEDULE_EVENT_BEGUN && e.id == 1)
				begun = now;
	}
	assert_in_range(begun, 2000, 4000); /* two priorities, then its turn by arrival */
	schedule_free(&s);
}

/* Long prompts of higher priority take all the time of each step. A request whose prefill has begun rises
 * too. */
static void test_order__a_prefill_is_not_starved(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct schedule_event e;
	uint64_t id = 10, ended = 0;
	struct engine_request q = bed_request(1, 2000, 2);

	(void)state;
	o.age_ns = 1000;
	o.budget_idle_ns = o.budget_ns = 2 * MS;
	s = bed_open(&o);
	q.priority = 2;
	bed_submit(s, &q, 0);
	bed_step(s, 0);
	assert_int_equal(schedule_facts(s).running, 1);
	for (uint64_t now = 0; !ended && now < 100000; now += 100) {
		while (schedule_facts(s).running + schedule_facts(s).waiting < 4) {
			q = bed_request(++id, 2000, 2);
			bed_submit(s, &q, now);
		}
		bed_step(s, now);
		while (schedule_event(s, &e))
			if (e.kind == SCHEDULE_EVENT_ENDED && e.id == 1)
				ended = now;
	}
	assert_in_range(ended, 2000, 10000);
	assert_int_equal(schedule_facts(s).preemptions, 0);
	schedule_free(&s);
}

/* New clients without end, all of the first priority, have got fewer tokens than the one that waits. After
 * age_ns only its arrival counts. */
static void test_order__new_clients_cannot_keep_an_old_one_waiting(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s;
	struct schedule_event e;
	uint64_t id = 10, begun = 0;
	struct engine_request q = bed_request(1, 2000, 2);

	(void)state;
	o.age_ns = 1000;
	s = bed_open(&o);
	q.client = 1;
	q.priority = ENGINE_PRIORITY_FIRST;
	bed_submit(s, &q, 0); /* a long prompt, so that the client has got many tokens */
	submit(s, 2, 1, ENGINE_PRIORITY_FIRST, 0);
	for (uint64_t now = 0; !begun && now < 100000; now += 100) {
		while (schedule_facts(s).waiting < 30) {
			id++;
			submit(s, id, 1000 + id, ENGINE_PRIORITY_FIRST, now);
		}
		bed_step(s, now);
		while (schedule_event(s, &e))
			if (e.kind == SCHEDULE_EVENT_BEGUN && e.id == 2)
				begun = now;
	}
	assert_in_range(begun, 1000, 1500);
	schedule_free(&s);
}

static void test_order__a_higher_priority_takes_a_place(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	const struct schedule_plan *plan;

	(void)state;
	o.places = 2;
	s = bed_open(&o);
	submit(s, 1, 0, 1, 0);
	submit(s, 2, 0, 0, 0);
	bed_step(s, 0);
	submit(s, 3, 0, 0, 0); /* 2 is not lower, 1 is */
	plan = schedule_plan(s, 0, 1);
	assert_non_null(bed_entry(plan, 3));
	assert_null(bed_entry(plan, 1));
	bed_done(s, bed_results(plan), 0);
	assert_int_equal(schedule_facts(s).preemptions, 1);
	while (bed_step(s, 0))
		;
	assert_int_equal(schedule_facts(s).ended, 3);
	schedule_free(&s);
}

/* With steps in flight the place becomes free later; one victim is enough. */
static void test_order__a_place_is_awaited(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	const struct schedule_plan *plan;

	(void)state;
	o.places = 2;
	s = bed_open(&o);
	for (uint64_t id = 1; id <= 2; id++) {
		struct engine_request q = bed_request(id, 20, 30);

		q.priority = 5;
		bed_submit(s, &q, 0);
	}
	bed_step(s, 0);
	schedule_plan(s, 0, 1);
	submit(s, 3, 0, 0, 0);
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(plan->count, 1);
	assert_non_null(bed_entry(plan, 1));
	plan = schedule_plan(s, 0, 1);
	assert_int_equal(schedule_facts(s).preemptions, 1);
	bed_check(s);
	for (int i = 0; i < 3; i++)
		bed_done(s, bed_results(schedule_oldest(s)), 0);
	assert_non_null(bed_entry(schedule_plan(s, 0, 1), 3));
	schedule_free(&s);
}

static void test_order__a_higher_priority_takes_pages(void **state)
{
	struct schedule_options o = bed_options;
	struct schedule *s;
	struct engine_request low = bed_request(1, 100, 60), high = bed_request(2, 100, 20), same;
	const struct schedule_plan *plan;

	(void)state;
	o.pages.pages = 11;
	s = bed_open(&o);
	bed_submit(s, &low, 0);
	bed_step(s, 0);
	same = bed_request(3, 100, 20);
	bed_submit(s, &same, 0);
	assert_null(bed_entry(schedule_plan(s, 0, 1), 3)); /* an equal priority waits */
	bed_done(s, bed_results(schedule_oldest(s)), 0);
	high.priority = -1;
	bed_submit(s, &high, 0);
	plan = schedule_plan(s, 0, 1);
	assert_non_null(bed_entry(plan, 2));
	assert_int_equal(plan->count, 1);
	bed_done(s, bed_results(plan), 0);
	while (bed_step(s, 0))
		;
	assert_int_equal(schedule_facts(s).ended, 3);
	schedule_free(&s);
}

/* A request that has aged past the others keeps its place against newcomers of a higher priority. */
static void test_order__age_protects_a_running_request(void **state)
{
	struct schedule_options o = one_place();
	struct schedule *s;
	struct engine_request q = bed_request(1, 20, 50);

	(void)state;
	o.age_ns = 1000;
	s = bed_open(&o);
	q.priority = 3;
	submit(s, 2, 0, -16, 0);
	bed_submit(s, &q, 0);
	schedule_plan(s, 0, 1);
	schedule_plan(s, 50000, 1); /* 1 has waited for more than 20 priorities */
	bed_done(s, bed_results(schedule_oldest(s)), 50000);
	bed_done(s, bed_results(schedule_oldest(s)), 50000);
	assert_non_null(bed_entry(schedule_plan(s, 50000, 1), 1));
	bed_done(s, bed_results(schedule_oldest(s)), 50000);
	submit(s, 3, 0, -16, 50000);
	assert_non_null(bed_entry(schedule_plan(s, 50000, 1), 1));
	assert_int_equal(schedule_facts(s).preemptions, 0);
	schedule_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order__priority_then_arrival),
		cmocka_unit_test(test_order__clients_take_turns),
		cmocka_unit_test(test_order__turns_are_counted_in_tokens),
		cmocka_unit_test(test_order__a_new_client_has_nothing_saved_up),
		cmocka_unit_test(test_order__the_head_is_passed_a_limited_number_of_times),
		cmocka_unit_test(test_order__cached_tokens_are_free),
		cmocka_unit_test(test_order__a_lower_priority_does_not_pass),
		cmocka_unit_test(test_order__nobody_loses_pages_in_vain),
		cmocka_unit_test(test_order__waiting_raises_the_priority),
		cmocka_unit_test(test_order__a_prefill_is_not_starved),
		cmocka_unit_test(test_order__new_clients_cannot_keep_an_old_one_waiting),
		cmocka_unit_test(test_order__a_higher_priority_takes_a_place),
		cmocka_unit_test(test_order__a_place_is_awaited),
		cmocka_unit_test(test_order__a_higher_priority_takes_pages),
		cmocka_unit_test(test_order__age_protects_a_running_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
