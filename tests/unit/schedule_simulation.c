/* SPDX-License-Identifier: Apache-2.0 */
/* Many requests through the scheduler, with 0, 1, 2 and 16 plans in flight, in roomy and in the tightest pools.
 * usage: test_schedule_simulation [REQUESTS]; by default 32,000 in all. */
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
		      " preemptions, %" PRIu64 " tokens, prompt %" PRIu64 ", cached %" PRIu64 ", again %" PRIu64
		      "; ends %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		      r.requests, r.facts.steps, r.running_most, r.facts.preemptions, r.facts.tokens,
		      r.facts.prompt_tokens, r.facts.cached_tokens, r.facts.recomputed_tokens, r.ends[0], r.ends[1],
		      r.ends[2], r.ends[3], r.ends[5]);
	assert_int_equal(r.in_flight_most, o.depth ? o.depth : 0);
}

static void test_simulation__roomy_pool(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world_options o = world_small(400, 24, depths[i]);

		o.requests = requests / 8;
		o.seed = 100 + i;
		run_world(o);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simulation__roomy_pool),
	};

	if (argc > 1)
		requests = strtoll(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
