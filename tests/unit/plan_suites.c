/* SPDX-License-Identifier: Apache-2.0 */
/* What the built-in suites come to on several GPUs and nodes: how long they take, and which cases a team
 * adds. */
#include <jansson.h>
#include "core/text/text.h"
#include "machine/machine.h"
#include "probe/registry.h"
#include "run/plan/case.h"
#include "team/control/control.h"
#include "test.h"

static struct plan plan;

/* A recorded machine as if it were this one: of a recording every case is skipped. With this much memory a
 * GPU; 0: as recorded. */
static struct machine *live_with(const char *recording, double memory)
{
	struct machine *m = NULL, *now = NULL;
	struct error err = {0};
	char path[256];
	json_t *facts;

	snprintf(path, sizeof(path), SOURCE_DIR "/tests/replay/%s", recording);
	if (machine_read(&m, LAYER_SOFTWARE, path, NULL, &err))
		fail_msg("%s", err.text);
	facts = json_deep_copy(machine_json(m));
	json_object_set_new(facts, "live", json_true());
	for (size_t i = 0; memory > 0 && i < json_array_size(json_object_get(facts, "gpus")); i++) {
		json_t *g = json_object_get(json_array_get(json_object_get(facts, "gpus"), i), "facts");

		json_object_set_new(g, "memory_bytes", json_real(memory));
		json_object_set_new(g, "memory_free_bytes", json_real(memory - 1e9));
	}
	if (machine_from_json(&now, facts, &err))
		fail_msg("%s", err.text);
	json_decref(facts);
	machine_free(m);
	return now;
}

static struct machine *live(const char *recording)
{
	return live_with(recording, 0);
}

static void plan_suite(const char *name, const struct machine *m, const struct plan_options *wishes)
{
	struct suite *s = NULL;
	struct error err = {0};

	if (suite_read(&s, name, &err) || plan_build(&plan, s, m, probe_list, wishes, &err))
		fail_msg("%s", err.text);
	suite_free(s);
}

static const struct bench_case *nth(size_t n)
{
	for (size_t i = 0; i < plan.count; n -= plan.steps[i++].count)
		if (n < plan.steps[i].count)
			return &plan.steps[i].cases[n];
	return NULL;
}

/* -- how long -- */

static void test_plan_suites__quick_and_full_take_no_longer_than_they_say(void **state)
{
	static const struct {
		const char *machine, *suite;
		double most_s;
	} rows[] = {
		{"h200-sxm-1", "acceptance", 120},
		{"derived-h100-sxm-8", "acceptance", 240},
		{"h200-sxm-1", "quick", 60},
		{"derived-h200-sxm-4", "quick", 90},
		{"derived-h100-sxm-8", "quick", 120},
		{"h200-sxm-1", "full", 600},
		{"derived-h200-sxm-4", "full", 600},
		{"derived-h100-sxm-8", "full", 600},
		{"h200-sxm-1", "attention", 180},
		{"derived-h200-sxm-4", "links", 60},
		{"derived-h100-sxm-8", "links", 60},
		{"h200-sxm-1", "comprehensive-devices", 30},
		{"derived-h100-sxm-8", "comprehensive-devices", 60},
		{"h200-sxm-1", "comprehensive-links", 15},
		{"derived-h100-sxm-8", "comprehensive-links", 60},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *m = live(rows[i].machine);

		plan_suite(rows[i].suite, m, NULL);
		print_message("# %s on %s: %.0f s\n", rows[i].suite, rows[i].machine, plan.seconds_expected);
		if (!(plan.seconds_expected > 0 && plan.seconds_expected <= rows[i].most_s))
			fail_msg("%s on %s takes %.1f s by its plan, %.0f at most", rows[i].suite,
				 rows[i].machine, plan.seconds_expected, rows[i].most_s);
		plan_release(&plan);
		machine_free(m);
	}
}

/* Does it stand in the plan and run? */
static bool runs(const struct bench_case *c, const char *probe, const char *word)
{
	return !c->skip && !strcmp(c->probe->name, probe) && strstr(c->key, word);
}

static unsigned count(const char *probe, const char *target, const char *word)
{
	unsigned found = 0;

	for (size_t i = 0; i < plan.case_count; i++)
		found += runs(nth(i), probe, word) && !strcmp(nth(i)->target_text, target);
	return found;
}

static void test_plan_suites__the_matrix_and_every_collective_fit_a_minute(void **state)
{
	static const char *const ops[] = {"op=allreduce ", "op=allgather ", "op=reducescatter ",
					  "op=alltoall ",  "op=broadcast ", "op=reduce ",
					  "op=sendrecv "};
	struct machine *m = live("derived-h200-sxm-4");
	double seconds = 0;

	(void)state;
	plan_suite("full", m, NULL);
	for (unsigned from = 0; from < 4; from++)
		for (unsigned to = 0; to < 4; to++) {
			char pair[16];

			snprintf(pair, sizeof(pair), "gpu%u>gpu%u", from, to);
			if (from != to)
				assert_true(count("p2p", pair, "engine=driver direction=to pattern=pair") >=
					    1);
		}
	/* A line needs three points, and each has two protocols at least. */
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		assert_true(count("collective", "node", ops[i]) >= (i < 3 ? 10 : 7));
	for (size_t i = 0; i < plan.case_count; i++)
		if (runs(nth(i), "p2p", "") ||
		    (runs(nth(i), "collective", "") && !strstr(nth(i)->key, "search=top")))
			seconds += plan_case_seconds(nth(i));
	if (seconds > 60)
		fail_msg("%.1f s", seconds);
	plan_release(&plan);
	machine_free(m);
}

/* 16 GiB to send and 16 to receive: a GPU of 40 GB has room for them, one of 32 has not. */
static void test_plan_suites__the_largest_all_reduce_is_where_memory_allows(void **state)
{
	static const double memory[] = {80e9, 40e9, 32e9};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct machine *m = live_with("derived-h200-sxm-4", memory[i]);
		const struct bench_case *largest = NULL;

		plan_suite("full", m, NULL);
		for (size_t k = 0; k < plan.case_count; k++)
			if (!strcmp(nth(k)->probe->name, "collective") && strstr(nth(k)->key, "size=16GiB"))
				largest = nth(k);
		assert_non_null(largest);
		assert_int_equal(largest->skip_cause, i < 2 ? CAUSE_NONE : CAUSE_NO_MEMORY);
		assert_true(i < 2 || strstr(largest->skip_reason, "of device memory"));
		plan_release(&plan);
		machine_free(m);
	}
}

/* -- launched ranks -- */

enum { RANKS = 16 };
static struct team_rank ranks[RANKS];
static struct team_node nodes[RANKS];
static struct team_shape shape;

/* So many nodes like this machine, a rank for each of its GPUs. */
static struct plan_options launched(unsigned rank, unsigned count, const struct machine *m)
{
	unsigned gpus = machine_gpu_count(m);

	memset(ranks, 0, sizeof(ranks));
	for (unsigned r = 0; r < count * gpus; r++) {
		ranks[r] = (struct team_rank){.node = r / gpus, .local_rank = r % gpus, .gpu_count = 1};
		text_copy(ranks[r].pci[0], CONTROL_PCI, machine_gpu(m, r % gpus)->pci);
	}
	for (unsigned n = 0; n < count; n++)
		nodes[n] = (struct team_node){.leader = n * gpus, .ranks = gpus};
	shape = (struct team_shape){.size = count * gpus, .nodes = count, .rank = ranks, .node = nodes};
	return (struct plan_options){.team = &shape, .rank = rank};
}

static bool of_gpus_of_a_team(const struct bench_case *c)
{
	return c->team && !c->engine->launched;
}

/* What a rank of the team does of its own node, and of the team. */
static void done_of(unsigned *node, unsigned *team)
{
	*node = *team = 0;
	for (size_t i = 0; i < plan.case_count; i++) {
		const struct bench_case *c = nth(i);

		*node += !c->skip && c->engine && c->target.kind == TARGET_NODE;
		*team += !c->skip && of_gpus_of_a_team(c);
	}
}

static void test_plan_suites__a_node_is_measured_by_its_lowest_rank_and_all_of_them_by_the_team(void **state)
{
	struct machine *m = live("derived-h100-sxm-8");
	static const char *const suites[] = {"quick", "full"};
	static const unsigned of_first[] = {1, 4};
	unsigned node, team, first = 0;

	(void)state;
	for (size_t s = 0; s < 2; s++)
		for (unsigned rank = 0; rank < RANKS; rank += 4) {
			struct plan_options w = launched(rank, 2, m);

			plan_suite(suites[s], m, &w);
			done_of(&node, &team);
			assert_true(rank % 8 ? !node : node > 0);
			first = rank ? first : team;
			/* The eight of the first node are node 0's own case: rank 0 says so, the others learn
			 * it. */
			assert_int_equal(team, first + (rank == 4 ? of_first[s] : 0));
			assert_true(team >= (s ? 50 : 3));
			plan_release(&plan);
		}
	machine_free(m);
}

static void test_plan_suites__on_one_node_nothing_is_measured_twice(void **state)
{
	struct machine *m = live("derived-h200-sxm-4");
	struct plan_options w = launched(0, 1, m);
	unsigned same = 0;

	(void)state;
	plan_suite("full", m, &w);
	for (size_t i = 0; i < plan.case_count; i++)
		if (of_gpus_of_a_team(nth(i))) {
			assert_int_equal(nth(i)->skip_cause, CAUSE_NOT_ASKED);
			assert_non_null(strstr(nth(i)->skip_reason, "is the same measurement"));
			same++;
		}
	assert_true(same >= 50);
	plan_release(&plan);
	/* Ranks on half of the GPUs are another case than the node. */
	shape.size = 2;
	plan_suite("quick", m, &w);
	assert_int_equal(count("collective", "team", "engine=nccl"), 3);
	plan_release(&plan);
	machine_free(m);
}

int main(void)
{
#define test(name) cmocka_unit_test(test_plan_suites__##name)
	const struct CMUnitTest tests[] = {
		test(quick_and_full_take_no_longer_than_they_say),
		test(the_matrix_and_every_collective_fit_a_minute),
		test(the_largest_all_reduce_is_where_memory_allows),
		test(a_node_is_measured_by_its_lowest_rank_and_all_of_them_by_the_team),
		test(on_one_node_nothing_is_measured_twice),
	};

	return cmocka_run_group_tests_name("plan_suites", tests, NULL, NULL);
}
