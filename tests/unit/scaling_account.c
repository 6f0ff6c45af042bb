/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a training step on made-up steps of which every part is known. */
#include "team/account/step_breakdown.h"
#include <math.h>
#include <stdint.h>
#include "core/math/random.h"
#include "test.h"

enum { RANKS_MAX = 16, STEPS = 50 };

/* Steps simulated as they happen: each rank computes, the collective ends for all when the last has come. */
struct world {
	unsigned ranks;
	double compute, exposed;
	double slow_share; /* of rank `slow`: so much longer */
	int slow;
	double jitter;	/* share by which every computation scatters, either way */
	double between; /* time of the host that no event sees, a step */
	uint64_t seed;
	double ready[RANKS_MAX * STEPS], drain[RANKS_MAX * STEPS];
};

static struct scaling_trace simulate(struct world *w)
{
	double wall = 0;

	for (unsigned s = 0; s < STEPS; s++) {
		double end = 0;

		for (unsigned r = 0; r < w->ranks; r++) {
			double scatter = 1 + w->jitter * random_f32(w->seed, r, s);
			double a = w->compute * scatter * ((int)r == w->slow ? 1 + w->slow_share : 1);

			w->ready[r * STEPS + s] = a;
			end = fmax(end, a + w->exposed);
		}
		for (unsigned r = 0; r < w->ranks; r++)
			w->drain[r * STEPS + s] = end - w->ready[r * STEPS + s];
		wall += end + w->between;
	}
	return (struct scaling_trace){.ranks = w->ranks,
				      .steps = STEPS,
				      .ready = w->ready,
				      .drain = w->drain,
				      .wall = wall / STEPS};
}

static struct scaling_account account(const struct scaling_trace *t)
{
	struct scaling_account a;
	struct error err = {0};

	if (scaling_account(&a, t, &err))
		fail_msg("%s", err.text);
	return a;
}

static void test_scaling__equal_ranks_lose_what_is_exposed(void **state)
{
	struct world w = {.ranks = 4, .compute = 100e6, .exposed = 12e6, .slow = -1};
	struct scaling_trace t = simulate(&w);
	struct scaling_account a;

	(void)state;
	t.one = 95e6;
	t.together = 98e6;
	t.collective = 40e6;
	t.first_ready = 72e6;
	a = account(&t);
	assert_float_equal(a.compute, 100e6, 1);
	assert_float_equal(a.exposed, 12e6, 1);
	assert_float_equal(a.waiting, 0, 1);
	assert_float_equal(a.step, 112e6, 1);
	assert_float_equal(a.efficiency, 95.0 / 112, 1e-9);
	assert_float_equal(a.lost[SCALING_LOSS_COMPUTE], 3e6, 1);
	assert_float_equal(a.lost[SCALING_LOSS_CONTENTION], 2e6, 1);
	assert_float_equal(a.lost[SCALING_LOSS_COMPUTE] + a.lost[SCALING_LOSS_CONTENTION] +
				   a.lost[SCALING_LOSS_EXPOSED] + a.lost[SCALING_LOSS_WAITING],
			   a.step - t.one, 1);
	assert_float_equal(a.exposed_model, 12e6, 1);
	assert_int_equal(a.largest, SCALING_LOSS_EXPOSED);
	assert_int_equal(a.slowest, -1);
	assert_true(a.explained);
}

/* A rank that computes 10 % longer: 8 to 12 % waiting on the others, and its name; at every size and place.
 */
static void test_scaling__a_slow_rank_is_waited_for_and_named(void **state)
{
	static const unsigned sizes[] = {2, 3, 4, 8, 16};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned slow = 0; slow < sizes[i]; slow++) {
			struct world w = {.ranks = sizes[i],
					  .compute = 80e6,
					  .exposed = 3e6,
					  .slow = (int)slow,
					  .slow_share = 0.1,
					  .jitter = 0.01,
					  .seed = slow};
			struct scaling_trace t = simulate(&w);
			struct scaling_account a;

			t.one = 80e6;
			t.together = 80e6 * (1 + 0.1 / sizes[i]);
			a = account(&t);
			assert_int_equal(a.slowest, (int)slow);
			assert_true(a.slowest_share >= 0.8);
			assert_in_range((unsigned)(1000 * a.waiting_others / 80e6), 80, 120);
			if (sizes[i] > 2) /* of two the other half is the slow rank's own computation */
				assert_int_equal(a.largest, SCALING_LOSS_WAITING);
			assert_true(a.explained);
		}
	}
}

static void test_scaling__nobody_is_named_where_all_are_alike(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct world w = {.ranks = 2 + (unsigned)(seed % 7),
				  .compute = 50e6,
				  .exposed = 5e6,
				  .slow = -1,
				  .jitter = 0.005,
				  .seed = seed};
		struct scaling_trace t = simulate(&w);

		assert_int_equal(account(&t).slowest, -1);
	}
}

/* A tenth of a percent, always the same rank: it costs nothing worth a name. */
static void test_scaling__who_is_last_by_a_hair_is_not_named(void **state)
{
	struct world w = {.ranks = 4, .compute = 50e6, .exposed = 5e6, .slow = 2, .slow_share = 0.001};
	struct scaling_trace t = simulate(&w);
	struct scaling_account a = account(&t);

	(void)state;
	assert_float_equal(a.slowest_share, 1, 1e-9);
	assert_int_equal(a.slowest, -1);
}

static void test_scaling__what_events_do_not_see_is_unexplained(void **state)
{
	struct world w = {.ranks = 2, .compute = 50e6, .exposed = 5e6, .slow = -1, .between = 1e6};
	struct scaling_trace t = simulate(&w);
	struct scaling_account a = account(&t);

	(void)state;
	assert_true(a.explained); /* 1 of 56 */
	assert_float_equal(a.unexplained_share, 1.0 / 56, 1e-9);
	w.between = 3e6;
	t = simulate(&w);
	a = account(&t);
	assert_false(a.explained); /* 3 of 58 */
	t.wall = 0;
	assert_false(account(&t).explained); /* nobody looked at the host's clock */
}

static void test_scaling__one_rank_has_nothing_to_wait_for(void **state)
{
	struct world w = {.ranks = 1, .compute = 50e6, .exposed = 0, .slow = -1};
	struct scaling_trace t = simulate(&w);
	struct scaling_account a;

	(void)state;
	t.one = 50e6;
	a = account(&t);
	assert_float_equal(a.efficiency, 1, 1e-9);
	assert_float_equal(a.waiting, 0, 1e-9);
	assert_int_equal(a.slowest, -1);
	assert_int_equal(a.largest, SCALING_LOSS_NONE);
	assert_float_equal(a.exposed_model, -1, 0);
}

static void test_scaling__what_is_no_trace_is_refused(void **state)
{
	struct world w = {.ranks = 2, .compute = 50e6, .exposed = 5e6, .slow = -1};
	struct scaling_trace t = simulate(&w), none = t;
	struct scaling_account a;
	struct error err = {0};

	(void)state;
	none.ranks = 0;
	assert_int_equal(scaling_account(&a, &none, &err), STATUS_BAD_INPUT);
	none = t;
	none.steps = 0;
	assert_int_equal(scaling_account(&a, &none, &err), STATUS_BAD_INPUT);
	none = t;
	none.wall = -1;
	assert_int_equal(scaling_account(&a, &none, &err), STATUS_BAD_INPUT);
	w.drain[STEPS + 3] = NAN;
	err = (struct error){0};
	assert_int_equal(scaling_account(&a, &t, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "rank 1, step 3"));
}

/* The published case of METHODS, "Scaling": 8 GPUs of one node, then 16 of two. */
static void test_scaling__the_published_case(void **state)
{
	const double tokens = 8 * 512, eight = 331842.0 / 8, sixteen = 136970.0 / 16;
	double ready[1] = {1e9 * tokens / eight}, drain[1] = {1e9 * tokens / sixteen - ready[0]};
	struct scaling_trace t = {.ranks = 1,
				  .steps = 1,
				  .ready = ready,
				  .drain = drain,
				  .wall = 1e9 * tokens / sixteen,
				  .one = ready[0]};
	struct scaling_account a = account(&t);

	(void)state;
	assert_float_equal(a.efficiency, 0.206, 0.0005);
	assert_float_equal(a.step, 478.5e6, 0.1e6);
	assert_float_equal(a.exposed, 379.7e6, 0.1e6);
	assert_int_equal(a.largest, SCALING_LOSS_EXPOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scaling__equal_ranks_lose_what_is_exposed),
		cmocka_unit_test(test_scaling__a_slow_rank_is_waited_for_and_named),
		cmocka_unit_test(test_scaling__nobody_is_named_where_all_are_alike),
		cmocka_unit_test(test_scaling__who_is_last_by_a_hair_is_not_named),
		cmocka_unit_test(test_scaling__what_events_do_not_see_is_unexplained),
		cmocka_unit_test(test_scaling__one_rank_has_nothing_to_wait_for),
		cmocka_unit_test(test_scaling__what_is_no_trace_is_refused),
		cmocka_unit_test(test_scaling__the_published_case),
	};

	return cmocka_run_group_tests_name("scaling_account", tests, NULL, NULL);
}
