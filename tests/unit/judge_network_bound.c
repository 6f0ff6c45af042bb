/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of launched ranks: on one node its NVLinks bound them, on several the nodes' ports, and fewer
 * nodes of the run tell what is expected. */
#include "judge_collective.h"

/* On so many nodes of eight ranks, each with 400 GB/s of ports, or with none that are known. */
static struct record_case *between(unsigned count, const char *size, double gbs, const char *algorithm,
				   bool ports)
{
	struct record_case *c = all_reduce_of("team", 1, 8 * count, size, gbs, 0);

	json_object_set_new((json_t *)c->plan, "layout",
			    json_pack("{s:[{s:i, s:i, s:i, s:i, s:f}]}", "nodes", "nodes", (int)count,
				      "ranks", 8, "gpus", 8, "next", 1, "network", ports ? 400e9 : 0.0));
	c->require = REQUIRE_KNOWN;
	c->where = count == 2 ? "team:0-15" : "team";
	c->target = c->where;
	if (algorithm)
		world_text(c, "once", "algorithm", algorithm);
	else
		json_object_del(world_phase(c, "once")->values, "algorithm");
	return c;
}

static void test_judge_between__ports_bound_what_crosses_them(void **state)
{
	struct record_case *ring = between(4, "8GiB", 381, "ring", true),
			   *tree = between(4, "4GiB", 500, "tree", true),
			   *false_one = between(4, "2GiB", 430, "ring", true),
			   *false_tree = between(4, "1GiB", 560, "tree", true);

	(void)state;
	world_judge(&w);
	assert_float_equal(world_of(&w, ring)->bound.value, 400e9, 1);
	assert_string_equal(world_of(&w, ring)->bound.formula,
			    "ports of a node (sysfs): 400.0 GB/s x 1.000, by rings for 32 ranks on 4 nodes");
	assert_float_equal(world_of(&w, ring)->share_of_bound, 381.0 / 400, 1e-9);
	assert_verdict(&w, ring, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_non_null(strstr(world_of(&w, ring)->reason, "network"));
	assert_float_equal(world_of(&w, tree)->bound.value, 400e9 * 31 / 24, 1);
	assert_verdict(&w, tree, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, false_one, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_verdict(&w, false_tree, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

/* By collnet the network adds; where nothing is told it may. */
static void test_judge_between__a_network_that_adds_explains_more(void **state)
{
	struct record_case *adds = between(4, "8GiB", 600, "collnetchain", true),
			   *untold = between(4, "4GiB", 600, NULL, true),
			   *more = between(4, "2GiB", 800, "collnetchain", true);

	(void)state;
	world_judge(&w);
	assert_float_equal(world_of(&w, adds)->bound.value, 775e9, 1);
	assert_int_equal(world_of(&w, adds)->verdict, VERDICT_MEASURED);
	assert_int_equal(world_of(&w, untold)->verdict, VERDICT_MEASURED);
	assert_verdict(&w, more, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
}

static void test_judge_between__half_of_the_ports_is_looked_into(void **state)
{
	struct record_case *slow = between(4, "8GiB", 190, "ring", true),
			   *fair = between(4, "4GiB", 210, "ring", true),
			   *unknown = between(4, "2GiB", 3, "ring", false);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, slow, VERDICT_WARN, CAUSE_BELOW_BOUND);
	assert_float_equal(world_of(&w, slow)->least.value, 200e9, 1);
	assert_int_equal(world_of(&w, slow)->judged_by, JUDGED_BOUND);
	assert_true(world_of(&w, slow)->low_confidence);
	assert_verdict(&w, fair, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, unknown, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_int_equal(world_of(&w, unknown)->bound.from, BOUND_NONE);
}

/* No port tells its rate: what two nodes reached is all that is known of four. */
static void test_judge_between__fewer_nodes_tell_what_is_expected(void **state)
{
	struct record_case *two = between(2, "8GiB", 300, "ring", false),
			   *four = between(4, "8GiB", 140, "ring", false),
			   *other = between(4, "4GiB", 140, "ring", false);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, two, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	assert_verdict(&w, four, VERDICT_WARN, CAUSE_BELOW_BOUND);
	assert_int_equal(world_of(&w, four)->least.from, EXPECTED_GROUP);
	assert_float_equal(world_of(&w, four)->least.value, 150e9, 1);
	assert_non_null(strstr(world_of(&w, four)->reason,
			       "140 GB/s, under 150 GB/s: no expected range fits this case, and team:0-15 reaches 300 GB/s"));
	assert_verdict(&w, other, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	world_set(four, "sustained", "link_rate", 160e9);
	world_judge(&w);
	assert_verdict(&w, four, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
	two->status = STATUS_MISMATCH; /* what is wrong tells nothing of others */
	world_set(four, "sustained", "link_rate", 140e9);
	world_judge(&w);
	assert_verdict(&w, four, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
}

static void known_is(const struct record_case *c, double share)
{
	const struct expected_before_run *a = &world_of(&w, c)->ahead;

	for (unsigned way = 0; way < FIGURE_WAYS; way++) {
		assert_float_equal(a->way[way].share, share, 1);
		assert_true(!(a->way[way].band > 0) && !(a->way[way].group > 0));
	}
}

static void test_judge_between__ahead_of_the_run_the_ports_are_known(void **state)
{
	struct record_case *all = between(4, "8GiB", 0, NULL, true),
			   *small = between(4, "32MiB", 0, NULL, true),
			   *unknown = between(4, "4GiB", 0, NULL, false);

	(void)state;
	w.ctx.ahead = true;
	world_judge(&w);
	known_is(all, 200e9);
	known_is(small, 0);
	known_is(unknown, 0);
	assert_float_equal(world_of(&w, all)->bound.value, 400e9, 1);
	assert_non_null(strstr(world_of(&w, all)->reason, "slow below 200 GB/s"));
}

/* Launched ranks whose GPUs are one node's. */
static struct record_case *on_one_node(unsigned ranks, const char *size, double gbs, int nvls)
{
	struct record_case *c = all_reduce_of("team", 1, ranks, size, gbs, nvls);
	json_t *gpus = json_array();

	for (unsigned r = 0; r < ranks; r++)
		json_array_append_new(gpus, json_string(w.gpu[r].pci));
	json_object_set_new((json_t *)c->plan, "layout", json_pack("{s:o}", "gpus", gpus));
	c->require = REQUIRE_KNOWN;
	return c;
}

static void test_judge_between__on_one_node_its_nvlinks_bound_a_team(void **state)
{
	struct record_case *fair = on_one_node(4, "8GiB", 363, 0),
			   *false_one = on_one_node(4, "4GiB", 470, 0),
			   *adds = on_one_node(8, "2GiB", 475, 1), *slow = on_one_node(8, "1GiB", 200, 0);

	(void)state;
	world_judge(&w);
	assert_string_equal(world_of(&w, fair)->bound.formula, "18 NVLinks x 26.5625 GB/s x 16/17");
	assert_verdict(&w, false_one, VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND);
	assert_int_equal(world_of(&w, adds)->verdict, VERDICT_PASS);
	assert_verdict(&w, slow, VERDICT_WARN, CAUSE_BELOW_BOUND);
	world_fact(&w.gpu[2], GPU_FACT_nvlink_active, 12);
	world_judge(&w);
	assert_float_equal(world_of(&w, fair)->bound.value, 300e9, 0.1e9); /* a GPU of another rank */
}

/* What the node's GPUs reach in one process is asked of a process each too; of two nodes it is not. */
static void test_judge_between__on_one_node_its_bands_judge_a_team(void **state)
{
	struct record_case *fair = on_one_node(4, "8GiB", 363, 0), *low = on_one_node(4, "9GiB", 340, 0),
			   *far = on_one_node(4, "10GiB", 320, 0),
			   *two = between(2, "8GiB", 363, "ring", true);

	(void)state;
	world_judge(&w);
	assert_verdict(&w, fair, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_non_null(strstr(world_of(&w, fair)->reason, "363 GB/s, in 358 GB/s .. 368 GB/s"));
	assert_verdict(&w, low, VERDICT_WARN, CAUSE_BELOW_BAND); /* a band of one host: 10 % */
	assert_verdict(&w, far, VERDICT_FAIL, CAUSE_BELOW_BAND);
	assert_verdict(&w, two, VERDICT_MEASURED, CAUSE_NO_REFERENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_judge_between__##name, begin_h200, end)
		T(a_network_that_adds_explains_more),	 T(ahead_of_the_run_the_ports_are_known),
		T(fewer_nodes_tell_what_is_expected),	 T(half_of_the_ports_is_looked_into),
		T(on_one_node_its_bands_judge_a_team),	 T(on_one_node_its_nvlinks_bound_a_team),
		T(ports_bound_what_crosses_them),
#undef T
	};

	return cmocka_run_group_tests_name("judge_between", tests, NULL, NULL);
}
