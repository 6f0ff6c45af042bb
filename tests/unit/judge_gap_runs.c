/* SPDX-License-Identifier: Apache-2.0 */
/* The host link's chain, and what the same work reached elsewhere in the run: alone, from another node,
 * again. */
#include "judge_bed.h"

static const struct factor *shown(const struct record_case *c, const char *name)
{
	const struct judgement *j = world_of(&w, c);

	for (size_t i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name))
			return &j->gap[i];
	return NULL;
}

static void test_gap_runs__a_host_copy_prints_its_share_and_is_not_called_explained(void **state)
{
	struct record_case *c = world_case(&w, "link", "gpu0", "link.d2h", "direction=d2h memory=pinned");
	const struct judgement *j;

	(void)state;
	c->work_link = 1e9;
	world_verified(c);
	world_set(c, "sustained", "link_rate", 55.3e9);
	world_set(c, "once", "pcie_width_loaded", 16);
	world_set(c, "once", "pcie_gen_loaded", 5);
	world_judge(&w);
	j = world_of(&w, c);
	assert_false(j->explained);
	assert_float_equal(shown(c, "packets")->value, 256.0 / 282, 1e-9);
	assert_float_equal(j->unexplained, 55.3 / 63.0154 / (256.0 / 282), 0.001);
	world_set(c, "once", "pcie_max_payload", 256);
	world_judge(&w);
	j = world_of(&w, c);
	assert_int_equal(j->explained, j->unexplained >= 0.97);
	assert_true(j->has_explained_share);
	assert_float_equal(j->explained_share, 63.0154 * (26.0 / 282) / (63.0154 - 55.3), 0.001);
	assert_float_equal(j->assumed_share, j->explained_share, 1e-12);
	world_set(c, "sustained", "link_rate", 64e9); /* above the bound: no gap */
	world_judge(&w);
	assert_false(world_of(&w, c)->has_explained_share);
}

static struct record_case *host_copy(const char *target, const char *options, double gb_s, unsigned step)
{
	struct record_case *c = world_case(&w, "link", target, "link.h2d", options);

	c->work_link = 1e9;
	c->step = step;
	world_verified(c);
	world_set(c, "sustained", "link_rate", gb_s * 1e9);
	world_set(c, "once", "pcie_width_loaded", 16);
	world_set(c, "once", "pcie_gen_loaded", 5);
	return c;
}

static double world_bound(const struct record_case *c)
{
	struct subject s;
	struct bound b;

	subject_of(&s, &w.ctx, c);
	bound_of(&s, &b);
	return b.value;
}

static void test_gap_runs__what_ran_together_is_held_against_the_same_alone(void **state)
{
	struct record_case *alone = host_copy("gpu0", "direction=h2d size=1GiB", 55, 0), *both, *other, *lone;
	double residual;

	(void)state;
	host_copy("gpu0", "direction=h2d size=4KiB", 20, 0); /* other work */
	both = host_copy("gpu0", "direction=h2d size=1GiB", 44, 7);
	world_judge(&w);
	residual = world_of(&w, both)->unexplained;
	assert_null(shown(both, "siblings"));
	both->together = true;
	world_judge(&w);
	assert_null(shown(both, "siblings")); /* together with nobody */
	other = host_copy("gpu1", "direction=h2d size=1GiB", 44, 7);
	other->together = true;
	lone = host_copy("gpu1", "direction=h2d size=2GiB", 44, 7);
	lone->together = true;
	world_judge(&w);
	assert_float_equal(shown(both, "siblings")->value, 0.8, 1e-9);
	assert_true(shown(both, "siblings")->shown_only);
	assert_non_null(strstr(shown(both, "siblings")->signal, "2 others at once over alone (case 0"));
	both->together = other->together = lone->together = false;
	both->lockstep = other->lockstep = lone->lockstep = true; /* in step are those of one key */
	world_judge(&w);
	assert_non_null(strstr(shown(both, "siblings")->signal, "1 others at once over alone (case 0"));
	assert_null(shown(alone, "siblings"));
	assert_null(shown(other, "siblings")); /* never alone in this run */
	assert_float_equal(world_of(&w, both)->unexplained, residual, 1e-12);
	alone->ending = ENDING_CRASHED;
	world_judge(&w);
	assert_null(shown(both, "siblings"));
}

/* The suite searches the product alone, and takes the first plan of it together: the same product. */
static void test_gap_runs__a_product_together_is_held_against_the_one_that_was_searched(void **state)
{
	struct record_case *alone = world_gemm(&w, "gpu0", "bf16", 8192, 690, 1395, 695, 0.918);
	struct record_case *both = world_gemm(&w, "gpu0", "bf16", 8192, 621, 1260, 695, 0.918);
	struct record_case *other = world_gemm(&w, "gpu1", "bf16", 8192, 640, 1290, 695, 0.918);

	(void)state;
	json_object_set_new(json_object_get((json_t *)alone->plan, "options"), "search", json_string("top"));
	both->together = other->together = true;
	other->step = both->step;
	world_judge(&w);
	assert_float_equal(shown(both, "siblings")->value, 0.9, 1e-9);
	json_object_set_new(json_object_get((json_t *)alone->plan, "options"), "data", json_string("zeros"));
	world_judge(&w);
	assert_null(shown(both, "siblings"));
}

static void test_gap_runs__a_copy_is_held_against_the_best_nodes(void **state)
{
	struct record_case *near = host_copy("gpu0", "direction=h2d size=1GiB numa=0", 55, 0), *far;

	(void)state;
	host_copy("gpu0", "direction=h2d size=1GiB numa=auto", 60, 1); /* no node's */
	world_judge(&w);
	assert_null(shown(near, "numa"));
	far = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 44, 2);
	world_judge(&w);
	assert_float_equal(shown(far, "numa")->value, 0.8, 1e-9);
	assert_float_equal(shown(near, "numa")->value, 1, 1e-9);
	assert_true(shown(far, "numa")->shown_only && shown(near, "numa")->shown_only);
	assert_string_equal(shown(far, "numa")->signal,
			    "node 1 (case 2) over the best node 0 (case 0 of this run)");
	world_set(near, "verify", "wrong_count", 1);
	world_judge(&w);
	assert_null(shown(far, "numa"));
}

/* With a second window of its own, what a node costs is a factor: free of the rate that it explains. */
static void test_gap_runs__a_slow_node_measured_again_is_a_factor_of_the_link(void **state)
{
	struct record_case *near = host_copy("gpu0", "direction=h2d size=1GiB numa=0", 55, 0);
	struct record_case *far = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 44, 1);
	struct record_case *again = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 44.2, 2);
	const double packets = 256.0 / 282, bound = world_bound(far);
	double numa;

	(void)state;
	world_judge(&w);
	numa = shown(far, "numa")->value;
	assert_float_equal(numa, 44.2 / 55, 1e-9);
	assert_float_equal(shown(again, "numa")->value, 44.0 / 55, 1e-9);
	assert_false(shown(far, "numa")->shown_only || shown(again, "numa")->shown_only);
	assert_true(shown(near, "numa")->shown_only); /* one window: it shows that it is the best */
	assert_float_equal(world_of(&w, far)->unexplained, 44e9 / (bound * packets * numa), 1e-9);
	/* the near node's share is what packets cost, the far one's what its node costs as well */
	assert_float_equal(world_of(&w, near)->assumed_share, bound * (1 - packets) / (bound - 55e9), 1e-9);
	assert_float_equal(world_of(&w, near)->explained_share, 0, 1e-9); /* the payload is assumed */
	assert_float_equal(world_of(&w, far)->explained_share, bound * (1 - numa) / (bound - 44e9), 1e-9);
	assert_float_equal(world_of(&w, far)->assumed_share, bound * (1 - packets * numa) / (bound - 44e9),
			   1e-9);
	assert_true(world_of(&w, far)->explained_share > world_of(&w, near)->explained_share);
	/* its own rate enters the residual alone */
	world_set(far, "sustained", "link_rate", 33e9);
	world_judge(&w);
	assert_float_equal(shown(far, "numa")->value, numa, 1e-12);
	assert_float_equal(world_of(&w, far)->unexplained, 33e9 / (bound * packets * numa), 1e-9);
}

/* A copy of 10 % more than was moved, in every window: no ratio of rates hides it. */
static void test_gap_runs__a_miscount_shows_through_the_factor_of_a_node(void **state)
{
	struct record_case *copies[3];
	double was;

	(void)state;
	copies[0] = host_copy("gpu0", "direction=h2d memory=pinned size=1GiB numa=0", 55, 0);
	copies[1] = host_copy("gpu0", "direction=h2d memory=pinned size=1GiB numa=1", 44, 1);
	copies[2] = host_copy("gpu0", "direction=h2d memory=pinned size=1GiB numa=1", 44, 2);
	for (size_t i = 0; i < 3; i++)
		world_set(copies[i], "once", "pcie_max_payload", 256);
	world_judge(&w);
	was = world_of(&w, copies[1])->unexplained;
	assert_true(was > 0.95 && was < 0.97); /* the host's part has no signal: told, no warning */
	assert_verdict(&w, copies[0], VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	for (size_t i = 0; i < 3; i++)
		world_set(copies[i], "sustained", "link_rate", (i ? 44e9 : 55e9) * 1.10);
	world_judge(&w);
	assert_float_equal(world_of(&w, copies[1])->unexplained, 1.10 * was, 1e-9);
	assert_verdict(&w, copies[0], VERDICT_WARN, CAUSE_UNEXPLAINED);
}

/* What a node costs and what the others cost are each counted once. */
static void test_gap_runs__siblings_and_node_multiply_without_counting_twice(void **state)
{
	struct record_case *far = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 33, 7), *again, *other;
	double bound = world_bound(far);

	(void)state;
	host_copy("gpu0", "direction=h2d size=1GiB numa=0", 55, 0);
	host_copy("gpu0", "direction=h2d size=1GiB numa=1", 44, 1);
	other = host_copy("gpu1", "direction=h2d size=1GiB numa=1", 33, 7);
	far->together = other->together = true;
	world_judge(&w);
	assert_true(shown(far, "siblings")->shown_only); /* its own rate */
	assert_false(shown(far, "numa")->shown_only);	 /* of two others */
	assert_float_equal(shown(far, "numa")->value, 44.0 / 55, 1e-9);
	again = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 33.4, 9);
	again->together = true;
	world_judge(&w);
	assert_false(shown(far, "siblings")->shown_only || shown(far, "numa")->shown_only);
	assert_float_equal(shown(far, "siblings")->value, 33.4 / 44, 1e-9);
	assert_float_equal(world_of(&w, far)->unexplained,
			   33e9 / (bound * 256 / 282 * (33.4 / 44) * (44.0 / 55)), 1e-9);
}

/* Where no node ran alone but this one, siblings hold all that is known: the node is shown. */
static void test_gap_runs__a_node_that_siblings_hold_is_shown(void **state)
{
	struct record_case *far = host_copy("gpu0", "direction=h2d size=1GiB numa=1", 33, 7), *near, *other;

	(void)state;
	host_copy("gpu0", "direction=h2d size=1GiB numa=1", 44, 1);
	near = host_copy("gpu0", "direction=h2d size=1GiB numa=0", 50, 8);
	other = host_copy("gpu1", "direction=h2d size=1GiB numa=1", 33, 7);
	far->together = near->together = other->together = true;
	host_copy("gpu0", "direction=h2d size=1GiB numa=1", 33, 9)->together = true;
	world_judge(&w);
	assert_false(shown(far, "siblings")->shown_only);
	assert_true(shown(far, "numa")->shown_only);
	assert_float_equal(shown(far, "numa")->value, 33.0 / 50, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_gap_runs__##name, begin_one, end)
		T(a_host_copy_prints_its_share_and_is_not_called_explained),
		T(what_ran_together_is_held_against_the_same_alone),
		T(a_product_together_is_held_against_the_one_that_was_searched),
		T(a_copy_is_held_against_the_best_nodes),
		T(a_slow_node_measured_again_is_a_factor_of_the_link),
		T(a_miscount_shows_through_the_factor_of_a_node),
		T(siblings_and_node_multiply_without_counting_twice),
		T(a_node_that_siblings_hold_is_shown),
#undef T
	};

	return cmocka_run_group_tests_name("judge_gap_runs", tests, NULL, NULL);
}
