/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of teams compared: each node with its own. */
#include "compare_bed.h"

/* Runs of teams: node-a has GPU-1, node-b GPU-2, unless a test says otherwise. */
static struct record_node nodes[2][3];

static void team(size_t run, size_t count, const char *const *names, const char *const *uuids,
		 const char *const *vbios)
{
	for (size_t i = 0; i < count; i++) {
		nodes[run][i] = (struct record_node){.machine = facts(names[i], uuids[i], vbios[i])};
		snprintf(nodes[run][i].name, sizeof(nodes[run][i].name), "%s", names[i]);
	}
	w[run].r.node = nodes[run];
	w[run].r.node_count = count;
}

static void no_teams(void)
{
	for (size_t run = 0; run < 2; run++)
		for (size_t i = 0; i < w[run].r.node_count; i++)
			json_decref(nodes[run][i].machine);
	for (size_t run = 0; run < 2; run++) {
		w[run].r.node = NULL;
		w[run].r.node_count = 0;
	}
}

/* The second node's VBIOS is another; its journal says the nodes in another order. */
static void test_compare__nodes_are_held_against_their_own(void **state)
{
	(void)state;
	team(0, 2, (const char *const[]){"node-a", "node-b"}, (const char *const[]){"GPU-1", "GPU-2"},
	     (const char *const[]){"96.00", "96.00"});
	team(1, 2, (const char *const[]){"node-b", "node-a"}, (const char *const[]){"GPU-2", "GPU-1"},
	     (const char *const[]){"97.00", "96.00"});
	gemm(0, 690, 1410);
	gemm(1, 691, 1410);
	compare(2, COMPARE_AUTO);
	assert_false(result.fleet); /* each node is the same machine */
	assert_int_equal(result.difference_count, 1);
	assert_string_equal(result.difference[0].node, "node-b");
	assert_int_equal(result.difference[0].nodes, 1);
	assert_string_equal(result.difference[0].path, "gpus[0].vbios");
	assert_string_equal(result.difference[0].before, "96.00");
	assert_string_equal(result.difference[0].after, "97.00");
	no_teams();
}

/* Other names go by their order; the same change on both is one row; a third node is another. */
static void test_compare__nodes_of_other_names_go_by_order(void **state)
{
	(void)state;
	team(0, 2, (const char *const[]){"node-a", "node-b"}, (const char *const[]){"GPU-1", "GPU-2"},
	     (const char *const[]){"96.00", "96.00"});
	team(1, 3, (const char *const[]){"n1", "n2", "n3"}, (const char *const[]){"GPU-3", "GPU-4", "GPU-5"},
	     (const char *const[]){"97.00", "97.00", "97.00"});
	gemm(0, 690, 1410);
	gemm(1, 691, 1410);
	compare(2, COMPARE_AUTO);
	assert_true(result.fleet);
	assert_int_equal(result.difference_count, 2);
	assert_string_equal(result.difference[0].node, "node-a");
	assert_int_equal(result.difference[0].nodes, 2);
	assert_string_equal(result.difference[0].after, "97.00");
	assert_string_equal(result.difference[1].path, "node");
	assert_string_equal(result.difference[1].node, "n3");
	assert_string_equal(result.difference[1].before, "absent");
	assert_string_equal(result.difference[1].after, "there");
	no_teams();
}

/* A node whose journal did not come has no facts: that is told, and nothing else of it. */
static void test_compare__a_node_without_facts_is_told(void **state)
{
	(void)state;
	team(0, 2, (const char *const[]){"node-a", "node-b"}, (const char *const[]){"GPU-1", "GPU-2"},
	     (const char *const[]){"96.00", "96.00"});
	team(1, 2, (const char *const[]){"node-a", "node-b"}, (const char *const[]){"GPU-1", "GPU-2"},
	     (const char *const[]){"96.00", "96.00"});
	json_decref(nodes[1][1].machine);
	nodes[1][1].machine = NULL;
	gemm(0, 690, 1410);
	gemm(1, 691, 1410);
	compare(2, COMPARE_HISTORY);
	assert_int_equal(result.difference_count, 1);
	assert_string_equal(result.difference[0].node, "node-b");
	assert_string_equal(result.difference[0].after, "there, its facts not known");
	no_teams();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_compare__##name, begin, end)
		T(nodes_are_held_against_their_own),
		T(nodes_of_other_names_go_by_order),
		T(a_node_without_facts_is_told),
#undef T
	};

	return cmocka_run_group_tests_name("compare_nodes", tests, NULL, NULL);
}
