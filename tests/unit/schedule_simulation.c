/* SPDX-License-Identifier: Apache-2.0 */
/* Many requests through the scheduler, with 0, 1, 2 and 16 plans in flight, in roomy and in the tightest
 * pools. usage: test_schedule_simulation [REQUESTS]; by default 32,000 in all. */
#include "test.h"

#include <inttypes.h>

#include "schedule_world.h"

static const int32_t depths[] = {0, 1, 2, 16};
static int64_t requests = 32000;

static void run_world(struct world_options o)
{
	struct world_report r;
	struct error err = {0};

	if (world_run(&o, &r, &err))
		fail_msg("%s", err.text);
	print_message("# %" PRId64 " requests in %" PRIu64 " steps, %" PRId32 " running, %" PRIu64
		      " preemptions, %" PRIu64 " tokens, prompt %" PRIu64 ", cached %" PRIu64
		      ", again %" PRIu64 "; ends %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
		      "\n",
		      r.requests, r.facts.steps, r.running_most, r.facts.preemptions, r.facts.tokens,
		      r.facts.prompt_tokens, r.facts.cached_tokens, r.facts.recomputed_tokens, r.ends[0],
		      r.ends[1], r.ends[2], r.ends[3], r.ends[5]);
	assert_int_equal(r.in_flight_most, o.depth ? o.depth : 0);
}

static void run_depths(struct world_options (*make)(int32_t depth), int64_t count)
{
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		struct world_options o = make(depths[i]);

		o.requests = count;
		o.seed = 100 + i;
		run_world(o);
	}
}

static struct world_options roomy(int32_t depth)
{
	return world_small(400, 24, depth);
}

/* Steps whose rows decoding sequences and prompts share. */
static struct world_options mixed(int32_t depth)
{
	struct world_options o = world_small(100, 24, depth);

	o.schedule.mixed_rows = depth % 2 ? 32 : 96;
	o.schedule.backlog_rows = depth % 2 ? 6 * o.schedule.mixed_rows : 0;
	o.schedule.mixed_few = depth % 4;
	o.schedule.mixed_prompt_rows = depth % 3 ? 0 : 30;
	o.schedule.rows_together = 8;
	o.schedule.backlog_every = 5;
	return o;
}

static void test_simulation__mixed_steps(void **state)
{
	(void)state;
	run_depths(mixed, requests / 32);
}

static void test_simulation__roomy_pool(void **state)
{
	(void)state;
	run_depths(roomy, requests * 3 / 32);
}

/* Pages for one longest request and one page more. */
static struct world_options tightest(int32_t depth)
{
	struct world_options o = world_small((160 + 64) / 16 + 1, 8, depth);

	o.recompute_most = 1.5;
	return o;
}

static void test_simulation__pool_of_one_longest_request_and_one_page(void **state)
{
	(void)state;
	run_depths(tightest, requests / 16);
}

/* No page more than the longest request needs. */
static struct world_options exact(int32_t depth)
{
	struct world_options o = world_small((160 + 64) / 16, 8, depth);

	o.recompute_most = 1.5;
	return o;
}

static void test_simulation__pool_of_one_longest_request(void **state)
{
	(void)state;
	run_depths(exact, requests / 32);
}

static struct world_options one_place(int32_t depth)
{
	struct world_options o = world_small(60, 1, depth);

	o.live_most = 4;
	return o;
}

static void test_simulation__one_place(void **state)
{
	(void)state;
	run_depths(one_place, requests / 32);
}

/* Long texts in few pages: decode runs out of pages again and again. Nobody is raised by age. */
static struct world_options crowded(int32_t depth)
{
	struct world_options o = world_small(60, 32, depth);

	o.schedule.age_ns = 0;
	o.schedule.bypass_most = 0;
	o.prompt_most = 60;
	o.text_most = 200;
	o.recompute_most = 1;
	return o;
}

static void test_simulation__more_texts_than_pages(void **state)
{
	(void)state;
	run_depths(crowded, requests / 32);
}

/* The check that finds each planted defect. */
static const char *const found_by[WORLD_FAULTS] = {
	[WORLD_PAGE_LOST] = "free, used, cached and draining pages are all pages",
	[WORLD_REFERENCE_LOST] = "pages_references",
	[WORLD_TWO_WRITERS] = "nobody writes into a page that another request holds",
	[WORLD_EARLY_REUSE] = "a page is not given out while a step in flight may write to it",
	[WORLD_SHARED_OVERWRITE] = "a page holds the tokens of its sequence",
	[WORLD_TWO_ENDS] = "each request ends exactly once",
	[WORLD_END_LOST] = "no request waits for ever",
	[WORLD_FORGOTTEN] = "no request waits for ever",
	[WORLD_OVER_BUDGET] = "a step keeps its budget",
	[WORLD_THRASH] = "recomputation is bounded",
	[WORLD_HELD] = "no decode row waits",
};

static void test_simulation__finds_planted_defects(void **state)
{
	(void)state;
	for (enum world_fault fault = 1; fault < WORLD_FAULTS; fault++) {
		struct world_options o =
			world_small(fault == WORLD_EARLY_REUSE || fault == WORLD_THRASH ? 40 : 200, 24, 2);
		struct world_report r;
		struct error err = {0};

		o.fault = fault;
		o.requests = 400;
		if (fault != WORLD_PAGE_LOST && fault != WORLD_REFERENCE_LOST)
			o.check_every = 0; /* the world's own checks must find it */
		if (fault == WORLD_OVER_BUDGET)
			o.prompt_most = 600;
		if (world_run(&o, &r, &err) != STATUS_MISMATCH)
			fail_msg("defect %d was not found", fault);
		if (!strstr(err.text, found_by[fault]))
			fail_msg("defect %d was found by another check: %s", fault, err.text);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simulation__roomy_pool),
		cmocka_unit_test(test_simulation__mixed_steps),
		cmocka_unit_test(test_simulation__pool_of_one_longest_request_and_one_page),
		cmocka_unit_test(test_simulation__pool_of_one_longest_request),
		cmocka_unit_test(test_simulation__one_place),
		cmocka_unit_test(test_simulation__more_texts_than_pages),
		cmocka_unit_test(test_simulation__finds_planted_defects),
	};

	if (argc > 1)
		requests = strtoll(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
