/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of several ranks: the GPUs of a node, and ranks that were launched. */
#include "plan_bed.h"
#include "team/control/control.h"

static struct team_rank ranks[4];
static struct team_node nodes[2];
static struct team_shape shape;

/* Four ranks on so many nodes of the same machine; rank r has GPU r where `gpus`. */
static struct plan_options launched(unsigned rank, unsigned count, bool gpus)
{
	memset(ranks, 0, sizeof(ranks));
	memset(nodes, 0, sizeof(nodes));
	for (unsigned r = 0; r < 4; r++) {
		ranks[r].node = r * count / 4;
		ranks[r].local_rank = r % (4 / count);
		if (gpus) {
			ranks[r].gpu_count = 1;
			text_copy(ranks[r].pci[0], CONTROL_PCI, machine.gpu[r].pci);
		}
	}
	for (unsigned n = 0; n < count; n++)
		nodes[n] = (struct team_node){.leader = n * 4 / count, .ranks = 4 / count};
	shape = (struct team_shape){.size = 4, .nodes = count, .rank = ranks, .node = nodes};
	return (struct plan_options){.team = &shape, .rank = rank};
}

static void test_plan_team__a_node_has_a_rank_a_gpu(void **state)
{
	(void)state;
	fake_machine_init(&machine, 4);
	machine.gpu[1].granted = false;
	assert_int_equal(build("  - {probe: ring, engine: joint, target: [node, \"node:0,2-3\", \"node:0,1\"]}\n"),
			 STATUS_OK);
	assert_int_equal(plan.case_count, 3);
	assert_int_equal(nth(0)->skip, STATUS_OK);
	assert_int_equal(nth(0)->target.ranks, 3);
	assert_string_equal(nth(1)->target_text, "node:0,2-3");
	assert_int_equal(nth(1)->target.ranks, 3);
	assert_int_equal(nth(1)->target.gpu[2], 3);
	assert_string_equal(nth(1)->skip_reason, "case 0 is the same measurement"); /* the list is the node */
	assert_int_equal(nth(1)->team, 0);
	assert_int_equal(nth(2)->skip_cause, CAUSE_NOT_GRANTED);
	plan_release(&plan);
	fake_machine_init(&machine, 1);
	assert_int_equal(build("  - {probe: ring, engine: joint}\n"), STATUS_OK);
	expect(0, "ring engine=joint deep=false kind=red size=4KiB", "node", STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE);
	assert_non_null(strstr(nth(0)->skip_reason, "one GPU"));
	plan_release(&plan);
	fake_machine_init(&machine, 0);
	assert_int_equal(build("  - {probe: ring, engine: joint, target: [node, team]}\n"), STATUS_OK);
	assert_non_null(strstr(nth(0)->skip_reason, "no NVIDIA GPU"));
	assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_ASKED);
	plan_release(&plan);
}

static void test_plan_team__words_that_are_no_list_are_refused(void **state)
{
	static const char *const wrong[] = {"node:", "node:0,", "node:2-1", "node:a", "team:", "team:1-", "team:0-4096",
					    "teams", "node:0-16"};

	(void)state;
	fake_machine_init(&machine, 4);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char suite[80];

		snprintf(suite, sizeof(suite), "  - {probe: ring, target: \"%s\"}\n", wrong[i]);
		assert_int_equal(build(suite), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "team:LIST"));
	}
}

static void test_plan_team__a_member_named_twice_is_refused(void **state)
{
	static const char *const wrong[][2] = {{"node:0,0", "GPU 0 twice"},
					       {"node:0,0,1", "GPU 0 twice"},
					       {"node:0-2,1", "GPU 1 twice"},
					       {"team:3,1-3", "rank 3 twice"}};

	(void)state;
	fake_machine_init(&machine, 4);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char suite[80];

		snprintf(suite, sizeof(suite), "  - {probe: ring, target: \"%s\"}\n", wrong[i][0]);
		assert_int_equal(build(suite), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, wrong[i][0]));
		assert_non_null(strstr(err.text, wrong[i][1]));
	}
}

static void test_plan_team__all_ranks_have_the_same_cases_of_the_team(void **state)
{
	const char *suite = "  - {probe: ring, engine: joint, target: [team, \"team:0,2-3\"]}\n"
			    "  - {probe: thing, target: cpu}\n"
			    "  - {probe: ring, engine: crowd, target: [team, node]}\n";
	char hash[65] = "";

	(void)state;
	fake_machine_init(&machine, 4);
	for (unsigned rank = 0; rank < 4; rank++) {
		struct plan_options w = launched(rank, 1, true);

		assert_int_equal(build_with(suite, &w), STATUS_OK);
		assert_int_equal(plan.case_count, 5);
		assert_int_equal(nth(0)->target.ranks, 4);
		assert_int_equal(nth(0)->target.gpu_count, 1);
		assert_int_equal(nth(0)->target.gpu[0], rank);
		assert_int_equal(nth(0)->team, 1);
		assert_int_equal(nth(0)->line, 1);
		assert_int_equal(nth(1)->team, 2);
		assert_int_equal(nth(1)->target.ranks, 3);
		assert_int_equal(nth(2)->team, 0);
		assert_int_equal(nth(2)->line, 2);
		assert_int_equal(nth(2)->skip_cause, rank ? CAUSE_NOT_ASKED : CAUSE_NONE);
		assert_int_equal(nth(3)->team, 3);
		assert_int_equal(nth(4)->team, 4);
		assert_int_equal(nth(4)->target.ranks, 4);
		assert_string_not_equal(plan.hash, hash);
		text_copy(hash, sizeof(hash), plan.hash);
		plan_release(&plan);
	}
}

static void test_plan_team__what_is_not_of_all_is_done_once(void **state)
{
	const char *suite = "  - {probe: ecc}\n  - {probe: limits}\n  - {probe: thing, target: [cpu, gpu]}\n"
			    "  - {probe: ring, engine: joint, target: node}\n"
			    "  - {probe: ring, engine: crowd, target: node}\n";
	unsigned done[2][16] = {{0}}, cases = 0;

	(void)state;
	fake_machine_init(&machine, 4);
	for (unsigned rank = 0; rank < 4; rank++) {
		struct plan_options w = launched(rank, 2, true);

		assert_int_equal(build_with(suite, &w), STATUS_OK);
		cases = (unsigned)plan.case_count;
		for (unsigned k = 0; k < cases; k++)
			done[rank / 2][k] += !nth(k)->skip;
		assert_non_null(strstr(nth(cases - 1)->skip_reason, "2 nodes"));
		plan_release(&plan);
	}
	assert_int_equal(cases, 4 + 1 + 1 + 4 + 1 + 1);
	/* Once a node, its GPUs that no rank was given too; but what needs all ranks on one node. */
	for (unsigned n = 0; n < 2; n++)
		for (unsigned k = 0; k < cases; k++)
			assert_int_equal(done[n][k], k == cases - 1 ? 0 : 1);
}

static void test_plan_team__a_rank_of_gpus_has_one(void **state)
{
	struct plan_options w = launched(1, 1, false);

	(void)state;
	fake_machine_init(&machine, 4);
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: team}\n", &w), STATUS_OK);
	assert_int_equal(nth(0)->skip_cause, CAUSE_NO_HARDWARE);
	assert_string_equal(nth(0)->skip_reason, "rank 1 has no GPU");
	plan_release(&plan);
	w = launched(1, 1, true);
	ranks[1].gpu_count = 2;
	text_copy(ranks[1].pci[1], CONTROL_PCI, machine.gpu[0].pci);
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: team}\n", &w), STATUS_OK);
	assert_string_equal(nth(0)->skip_reason, "rank 1 has 2 GPUs: launch a rank for each");
	plan_release(&plan);
	assert_int_equal(build_with("  - {probe: ring, target: \"team:0-4\"}\n", &w), STATUS_BAD_INPUT);
	w = launched(1, 1, true);
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: [\"team:1-3\", \"team:0,2\", \"team:0\"]}\n", &w),
			 STATUS_OK);
	assert_string_equal(nth(0)->skip_reason, "rank 0 leads the case, so the target must contain it");
	assert_string_equal(nth(1)->skip_reason, "rank 1 is not in this target");
	assert_int_equal(nth(1)->team, 2);
	assert_non_null(strstr(nth(2)->skip_reason, "one rank"));
	plan_release(&plan);
}

/* Where nobody names one: by the GPUs that ranks have, whatever each has in libraries and finds on its bus. */
static void test_plan_team__all_ranks_choose_the_same_engine(void **state)
{
	static const struct {
		const char *target;
		unsigned have, in_machine; /* ranks with a GPU, as bits; GPUs on each rank's bus */
		const struct engine *engine;
	} row[] = {
		{"team", 0xf, 4, &joint},	  {"team", 0, 4, &crowd}, {"team", 0, 0, &crowd},
		{"team", 0x1, 1, &joint},	  {"node", 0xf, 4, &joint}, {"node", 0, 0, &crowd},
		{"node", 0x1, 1, &crowd},	  {"\"team:0,2\"", 0x5, 4, &joint},
		{"\"team:0,2\"", 0xa, 4, &crowd},
	};
	char suite[80];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (unsigned rank = 0; rank < 4; rank++) {
			struct plan_options w;

			fake_machine_init(&machine, 4);
			w = launched(rank, 1, true);
			for (unsigned r = 0; r < 4; r++)
				ranks[r].gpu_count = row[i].have >> r & 1;
			machine.gpus = row[i].in_machine;
			joint_missing = rank == 2;
			snprintf(suite, sizeof(suite), "  - {probe: ring, target: %s}\n", row[i].target);
			assert_int_equal(build_with(suite, &w), STATUS_OK);
			assert_ptr_equal(nth(0)->engine, row[i].engine);
			plan_release(&plan);
		}
}

/* What is missing is told of the engine chosen. */
static void test_plan_team__a_rank_without_its_library_is_skipped_by_name(void **state)
{
	struct plan_options w;

	(void)state;
	fake_machine_init(&machine, 4);
	joint_missing = true;
	w = launched(2, 1, true);
	assert_int_equal(build_with("  - {probe: ring, target: team}\n", &w), STATUS_OK);
	expect(0, "ring engine=joint deep=false kind=red size=4KiB", "team", STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING);
	assert_string_equal(nth(0)->skip_reason, "libjoint.so is not here");
	plan_release(&plan);
	ranks[2].gpu_count = 0;
	assert_int_equal(build_with("  - {probe: ring, target: team}\n", &w), STATUS_OK);
	expect(0, "ring engine=joint deep=false kind=red size=4KiB", "team", STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE);
	assert_string_equal(nth(0)->skip_reason, "rank 2 has no GPU, but other ranks have: use an engine that needs no GPU");
	plan_release(&plan);
}

/* A suite for any count says neither 2 nor 4. */
static void test_plan_team__doubling_is_the_first_of_them_and_all(void **state)
{
	static const char *const of_nodes[][3] = {{"team"}, {"team:0,1", "team"}};
	struct plan_options w;

	(void)state;
	fake_machine_init(&machine, 7);
	machine.gpu[1].granted = false;
	assert_int_equal(build("  - {probe: ring, engine: joint, target: node-doubling}\n"), STATUS_OK);
	assert_int_equal(plan.case_count, 3);
	assert_string_equal(nth(0)->target_text, "node:0,2");
	assert_string_equal(nth(1)->target_text, "node:0,2-4");
	assert_int_equal(nth(1)->target.ranks, 4);
	assert_int_equal(nth(1)->target.gpu[3], 4);
	assert_string_equal(nth(2)->target_text, "node");
	assert_int_equal(nth(2)->target.ranks, 6);
	plan_release(&plan);
	fake_machine_init(&machine, 2);
	assert_int_equal(build("  - {probe: ring, engine: joint, target: [node-doubling, team-doubling]}\n"),
			 STATUS_OK);
	assert_int_equal(plan.case_count, 2);
	assert_string_equal(nth(0)->target_text, "node");
	assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_ASKED); /* nobody launched */
	plan_release(&plan);
	fake_machine_init(&machine, 4);
	for (unsigned count = 1; count <= 2; count++) {
		w = launched(0, count, true);
		assert_int_equal(build_with("  - {probe: ring, engine: joint, target: team-doubling}\n", &w),
				 STATUS_OK);
		assert_int_equal(plan.case_count, count);
		for (unsigned k = 0; k < count; k++) {
			assert_string_equal(nth(k)->target_text, of_nodes[count - 1][k]);
			assert_int_equal(nth(k)->skip, STATUS_OK);
		}
		assert_int_equal(nth(count - 1)->target.ranks, 4);
		plan_release(&plan);
	}
}

static void layout_is(unsigned n, const char *text)
{
	json_t *expected = json_loads(text, 0, NULL);

	assert_non_null(expected);
	if (!json_equal(nth(n)->layout, expected))
		fail_msg("%s", json_dumps(nth(n)->layout, JSON_COMPACT));
	json_decref(expected);
}

/* On one node its GPUs; on several what each has: for a bound of what moves between them. */
static void test_plan_team__where_ranks_stand_is_in_the_plan(void **state)
{
	static const char doubling[] = "  - {probe: ring, engine: joint, target: team-doubling}\n";
	struct plan_options w;
	char gpus[96];

	(void)state;
	fake_machine_init(&machine, 4);
	w = launched(0, 2, true);
	nodes[0] = (struct team_node){.boot = "a", .ranks = 2, .network = 4e11, .gpus = 8};
	nodes[1] = (struct team_node){.boot = "b", .ranks = 2, .network = 4e11, .gpus = 8};
	assert_int_equal(build_with(doubling, &w), STATUS_OK);
	snprintf(gpus, sizeof(gpus), "{\"gpus\": [\"%s\", \"%s\"]}", machine.gpu[0].pci, machine.gpu[1].pci);
	layout_is(0, gpus);
	layout_is(1,
		  "{\"nodes\": [{\"nodes\": 2, \"ranks\": 2, \"gpus\": 8, \"next\": 1, \"network\": 4e11}]}");
	plan_release(&plan);
	nodes[1].network = 2e11; /* unlike; and ranks go round the nodes */
	ranks[1].node = 1;
	ranks[2].node = 0;
	assert_int_equal(build_with(doubling, &w), STATUS_OK);
	layout_is(1, "{\"nodes\": [{\"nodes\": 1, \"ranks\": 2, \"gpus\": 8, \"next\": 2, \"network\": 4e11},"
		     " {\"nodes\": 1, \"ranks\": 2, \"gpus\": 8, \"next\": 2, \"network\": 2e11}]}");
	plan_release(&plan);
	text_copy(nodes[1].boot, sizeof(nodes[1].boot),
		  "a"); /* one machine: its ports are not between them */
	nodes[1].network = 4e11;
	assert_int_equal(build_with(doubling, &w), STATUS_OK);
	layout_is(1,
		  "{\"nodes\": [{\"nodes\": 2, \"ranks\": 2, \"gpus\": 8, \"next\": 2, \"network\": 0.0}]}");
	plan_release(&plan);
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: node}\n", NULL), STATUS_OK);
	assert_null(nth(0)->layout);
	plan_release(&plan);
}

/* Ranks that went round the nodes; a list that is too long for a target's name. */
static void test_plan_team__the_ranks_of_the_first_nodes_are_a_list(void **state)
{
	static struct team_rank many[TARGET_MEMBERS];
	static struct team_node each[4];
	struct plan_options w = launched(0, 2, true);

	(void)state;
	fake_machine_init(&machine, 4);
	ranks[1].node = 1;
	ranks[2].node = 0;
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: team-doubling}\n", &w), STATUS_OK);
	assert_string_equal(nth(0)->target_text, "team:0,2");
	plan_release(&plan);
	for (unsigned r = 0; r < TARGET_MEMBERS; r++) {
		many[r] = (struct team_rank){.node = r % 2, .gpu_count = 1};
		snprintf(many[r].pci[0], CONTROL_PCI, "%04x:1b:00.0", r);
	}
	shape = (struct team_shape){.size = TARGET_MEMBERS, .nodes = 2, .rank = many, .node = each};
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: team-doubling}\n", &w), STATUS_OK);
	assert_non_null(strstr(nth(0)->skip_reason, "is too long"));
	assert_int_equal(nth(1)->skip, STATUS_OK);
	assert_int_equal(nth(1)->target.ranks, TARGET_MEMBERS);
	plan_release(&plan);
}

/* A node by threads and the same GPUs by processes: one of them will do, whichever stands first. */
static void test_plan_team__a_team_that_is_the_node_is_planned_once(void **state)
{
	static const char *const lines[] = {"  - {probe: ring, engine: joint, target: [node, team]}\n",
					    "  - {probe: ring, engine: joint, target: [team, node]}\n"};
	struct plan_options w;

	(void)state;
	fake_machine_init(&machine, 4);
	for (unsigned i = 0; i < 2; i++) {
		w = launched(0, 1, true);
		assert_int_equal(build_with(lines[i], &w), STATUS_OK);
		assert_int_equal(nth(0)->skip, STATUS_OK);
		assert_int_equal(nth(1)->skip_cause, CAUSE_NOT_ASKED);
		assert_string_equal(nth(1)->skip_reason, "case 0 is the same measurement");
		plan_release(&plan);
		w = launched(0, 2, true); /* the others' GPUs are elsewhere */
		assert_int_equal(build_with(lines[i], &w), STATUS_OK);
		assert_int_equal(nth(1)->skip, STATUS_OK);
		plan_release(&plan);
	}
	w = launched(0, 1, true);
	shape.size = 3; /* the node has a GPU more */
	assert_int_equal(build_with(lines[0], &w), STATUS_OK);
	assert_int_equal(nth(1)->skip, STATUS_OK);
	plan_release(&plan);
}

/* A GPU of several ranks is no case of any of them, and each says so; the lowest reads it. */
static void test_plan_team__what_several_ranks_have_is_not_measured(void **state)
{
	const char *suite = "  - {probe: ring, engine: joint, target: [team, node]}\n"
			    "  - {probe: thing, engine: big, target: gpu, options: {size: 8}}\n  - {probe: ecc}\n";
	unsigned reads = 0;

	(void)state;
	fake_machine_init(&machine, 4);
	for (unsigned rank = 0; rank < 4; rank++) {
		struct plan_options w = launched(rank, 1, true);

		text_copy(nodes[0].shown, sizeof(nodes[0].shown), "node-a");
		for (unsigned r = 0; r < 3; r++)
			text_copy(ranks[r].pci[0], CONTROL_PCI, machine.gpu[2].pci);
		assert_int_equal(build_with(suite, &w), STATUS_OK);
		assert_int_equal(plan.case_count, 2 + 4 + 4);
		assert_int_equal(nth(0)->skip_cause, rank < 3 ? CAUSE_GPU_SHARED : CAUSE_NONE);
		assert_int_equal(nth(0)->skip, rank < 3 ? STATUS_UNAVAILABLE : STATUS_OK);
		assert_int_equal(nth(1)->skip_cause, rank ? CAUSE_NOT_ASKED : CAUSE_GPU_SHARED);
		assert_int_equal(nth(2 + 2)->skip_cause, rank < 3 ? CAUSE_GPU_SHARED : CAUSE_NOT_ASKED);
		assert_int_equal(nth(2 + 3)->skip_cause, rank < 3 ? CAUSE_NOT_ASKED : CAUSE_NONE);
		if (rank < 3) {
			char words[80];

			snprintf(words, sizeof(words), "ranks 0-2 of node-a all have the GPU %s", machine.gpu[2].pci);
			assert_string_equal(nth(0)->skip_reason, words);
		}
		reads += !nth(2 + 4 + 2)->skip;
		plan_release(&plan);
	}
	assert_int_equal(reads, 1);
}

static void test_plan_team__an_engine_has_presets_of_its_own(void **state)
{
	struct plan_options w = launched(0, 1, true);

	(void)state;
	fake_machine_init(&machine, 4);
	assert_int_equal(build_with("  - {probe: ring, engine: [joint, crowd], target: team}\n"
				    "  - {probe: ring, engine: crowd, target: team, options: {kind: red}}\n",
				    &w),
			 STATUS_OK);
	assert_string_equal(nth(0)->key, "ring engine=joint deep=false kind=red size=4KiB");
	assert_string_equal(nth(1)->key, "ring engine=crowd deep=false kind=green size=4KiB");
	assert_string_equal(nth(2)->key, "ring engine=crowd deep=false kind=red size=4KiB");
	plan_release(&plan);
}

static void test_plan_team__a_case_of_ranks_is_read_back(void **state)
{
	static const char *const texts[] = {"node:0,2", "team:0,2-3", "team", "node"};
	struct plan_options w = launched(2, 1, true);

	(void)state;
	fake_machine_init(&machine, 4);
	assert_int_equal(build_with("  - {probe: ring, engine: joint, target: [\"node:0,2\", \"team:0,2-3\", team, node]}\n",
				    &w),
			 STATUS_OK);
	for (unsigned k = 0; k < 4; k++) {
		json_t *j = case_json(nth(k), &machine);
		struct bench_case c;

		assert_int_equal(case_from_json(&c, j, &machine, registry, &err), STATUS_OK);
		assert_string_equal(c.target_text, texts[k]);
		assert_int_equal(c.target.kind, nth(k)->target.kind);
		assert_int_equal(c.target.ranks, nth(k)->target.ranks);
		assert_int_equal(c.target.gpu_count, nth(k)->target.gpu_count);
		assert_int_equal(c.team, nth(k)->team);
		assert_true(nth(k)->layout ? json_equal(c.layout, nth(k)->layout) : !c.layout);
		assert_memory_equal(c.target.member, nth(k)->target.member, sizeof(c.target.member));
		case_release(&c);
		json_decref(j);
	}
	plan_release(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup(test_plan_team__##name, setup)
		test(a_node_has_a_rank_a_gpu),
		test(words_that_are_no_list_are_refused),
		test(a_member_named_twice_is_refused),
		test(all_ranks_have_the_same_cases_of_the_team),
		test(what_is_not_of_all_is_done_once),
		test(a_rank_of_gpus_has_one),
		test(all_ranks_choose_the_same_engine),
		test(a_rank_without_its_library_is_skipped_by_name),
		test(doubling_is_the_first_of_them_and_all),
		test(the_ranks_of_the_first_nodes_are_a_list),
		test(where_ranks_stand_is_in_the_plan),
		test(a_team_that_is_the_node_is_planned_once),
		test(what_several_ranks_have_is_not_measured),
		test(an_engine_has_presets_of_its_own),
		test(a_case_of_ranks_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
