/* SPDX-License-Identifier: Apache-2.0 */
/* A loss like that of a published case (331,842 tokens/s on 8 GPUs, 136,970 on 16), planted in simulated
 * steps in three ways, and explained: methods, "Scaling". */
#include "judge/compare/scaling.h"
#include <math.h>
#include "test.h"
#include "train/run/rank_account.h"

enum { STEPS = 40, FEW = 8, MANY = 16, TOKENS = 4096, LATE = 11 };
static const double step_few_s = 0.0987, step_many_s = 0.4785;

struct world {
	unsigned ranks;
	double compute_s, exposed_s, late_s; /* late_s: of the host of rank LATE */
	double tokens;
};

/* Steps as they happen, through the account that a training run makes. */
static struct scaled_run simulate(const struct world *w)
{
	struct scaled_run run = {.run = "run", .ranks = w->ranks, .tokens = w->tokens};
	struct rank_figures all[MANY];
	struct rank_window window;
	struct rank_account a;
	struct error err = {0};
	double s;

	assert_int_equal(rank_window_make(&window, w->ranks, &err), STATUS_OK);
	for (unsigned i = 0; i < STEPS; i++) {
		const double end = w->compute_s + w->late_s + w->exposed_s;

		for (unsigned r = 0; r < w->ranks; r++) {
			const double host = r == LATE ? w->late_s : 0;

			all[r] = (struct rank_figures){.step_s = end,
						       .compute_s = w->compute_s,
						       .drain_s = end - w->compute_s - host,
						       .tokens = w->tokens};
		}
		rank_window_add(&window, all);
	}
	assert_int_equal(rank_account_make(&a, &window, &err), STATUS_OK);
	s = rank_parts_all_s(&window.sum);
	run.rate = w->ranks * w->tokens * (STEPS - 1) / s;
	run.share[SCALED_COMPUTE] = window.sum.compute_s / s;
	run.share[SCALED_COMMUNICATION] = window.sum.exposed_s / s;
	run.share[SCALED_WAITING] = window.sum.waiting_s / s;
	run.share[SCALED_HOST] = window.sum.host_s / s;
	if (a.late.rank >= 0)
		snprintf(run.late, sizeof(run.late), "rank %d, by %s", a.late.rank,
			 rank_cause_text(a.late.cause));
	rank_window_release(&window);
	return run;
}

static struct scaled_run explained(const struct world *many)
{
	const struct world few = {
		.ranks = FEW, .compute_s = step_few_s - 0.004, .exposed_s = 0.004, .tokens = TOKENS};
	struct scaled_runs *s = calloc(1, sizeof(*s));
	struct scaled_run second;
	double sum = 0;

	assert_non_null(s);
	s->run[0] = simulate(&few);
	s->run[1] = simulate(many);
	s->count = 2;
	assert_true(fabs(s->run[0].rate - 331842) < 400);
	compare_scaling_explain(s);
	assert_true(s->run[0].efficiency == 1 && !*s->run[0].text);
	second = s->run[1];
	for (int p = 0; p < SCALED_COUNT; p++)
		sum += second.lost[p];
	assert_true(fabs(sum + second.efficiency - 1) < 1e-9);
	free(s);
	return second;
}

static void test_scaling__a_slow_network_is_named(void **state)
{
	const struct world w = {.ranks = MANY,
				.compute_s = step_few_s - 0.004,
				.exposed_s = step_many_s - step_few_s + 0.004,
				.tokens = TOKENS};
	const struct scaled_run r = explained(&w);

	(void)state;
	assert_true(fabs(r.rate - 136970) < 200 && fabs(r.efficiency - 0.206) < 1e-3);
	assert_int_equal(r.largest, SCALED_COMMUNICATION);
	assert_false(r.small_batch);
	assert_non_null(strstr(r.text, "16 ranks reach 20.6 % of the ideal rate, which is 2 times the rate of 8 ranks"));
	assert_non_null(strstr(r.text, "The largest loss is communication: 79.4 % of the time"));
	assert_non_null(strstr(r.text, "the number of nodes"));
}

static void test_scaling__a_late_rank_is_named(void **state)
{
	const struct world w = {.ranks = MANY,
				.compute_s = step_few_s - 0.004,
				.exposed_s = 0.004,
				.late_s = step_many_s - step_few_s,
				.tokens = TOKENS};
	const struct scaled_run r = explained(&w);

	(void)state;
	assert_true(fabs(r.efficiency - 0.206) < 1e-3);
	assert_int_equal(r.largest, SCALED_WAITING);
	assert_non_null(strstr(r.text, "The largest loss is waiting"));
	assert_non_null(strstr(r.text, "Late: rank 11, by host"));
}

/* A fifth of the tokens per rank: the same gradient is summed five times as often. */
static void test_scaling__a_small_batch_is_named(void **state)
{
	const struct world w = {
		.ranks = MANY, .compute_s = 0.0226, .exposed_s = 0.0731, .tokens = 0.2 * TOKENS};
	const struct scaled_run r = explained(&w);

	(void)state;
	assert_true(r.rate > 130000 && r.rate < 140000 && r.efficiency < 0.22);
	assert_true(r.small_batch);
	assert_non_null(strstr(r.text, "A rank has 819 tokens per step instead of 4096"));
	assert_non_null(strstr(r.text, "global_batch_size"));
}

static void test_scaling__nothing_lost_is_said(void **state)
{
	const struct world w = {
		.ranks = MANY, .compute_s = step_few_s - 0.004, .exposed_s = 0.005, .tokens = TOKENS};
	const struct scaled_run r = explained(&w);

	(void)state;
	assert_true(r.efficiency > 0.98);
	assert_non_null(strstr(r.text, "No part loses more than 2 % of the time"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scaling__a_slow_network_is_named),
		cmocka_unit_test(test_scaling__a_late_rank_is_named),
		cmocka_unit_test(test_scaling__a_small_batch_is_named),
		cmocka_unit_test(test_scaling__nothing_lost_is_said),
	};

	return cmocka_run_group_tests_name("compare_scaling", tests, NULL, NULL);
}
