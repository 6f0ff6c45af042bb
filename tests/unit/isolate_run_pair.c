/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launched ranks of which groups tell nothing: rank 0's search, with faults planted in the figures that come
 * back. What a round does (isolate_run_tests, works_run) and what the others say (control_gather) are the test's own.
 */
#include "test.h"

#include "core/text/text.h"
#include "machine/machine.h"
#include "run/isolate/two_gpus.h"
#include "run/probe.h"
#include "team/control/control.h"

enum { RANKS_MOST = 8 };
static struct world {
	unsigned ranks, nodes;
	double memory[2], product[2]; /* of the two, each by itself */
	double there, back;	      /* copies between them; 0: rank 0 does not see both GPUs */
	struct case_outcome parts[2];	      /* both repeats of the all-gather */
	unsigned tests, orders, own, between; /* asked for */
	bool over;			      /* the others say nothing any more */
	char order[400];		      /* what all were told last */
	struct team_rank rank[RANKS_MOST];
	struct team_node node[RANKS_MOST];
	struct team_shape shape;
} w;
static struct isolate_run h;
static struct run r;
static struct case_outcome notes[16];
static struct bench_case trigger;
static struct engine engine = {.name = "nccl", .targets = TARGET_TEAM};
static const struct probe collective = {.name = "collective"};

static uint64_t now(void *arg)
{
	(void)arg;
	return 1;
}
static const struct clock still = {.now_ns = now};
static int there;
static const struct run_options options = {.clock = &still, .control = (struct control *)&there};

const struct team_shape *__wrap_control_shape(const struct control *c);
const struct team_shape *__wrap_control_shape(const struct control *c)
{
	(void)c;
	return &w.shape;
}

/* Of the machine that rank 0 is on. */
static struct gpu gpus[2];
unsigned __wrap_machine_gpu_count(const struct machine *m);
unsigned __wrap_machine_gpu_count(const struct machine *m)
{
	(void)m;
	return w.there > 0 ? 2 : 1;
}
const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index);
const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index)
{
	(void)m;
	snprintf(gpus[index].pci, sizeof(gpus[index].pci), "0000:0%u:00.0", index);
	return &gpus[index];
}

enum status __wrap_control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
				  struct error *err);
enum status __wrap_control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
				  struct error *err)
{
	bool order = !strcmp(what, "the next round of an isolation search");
	char *text = json_dumps(mine, JSON_COMPACT | JSON_SORT_KEYS);

	(void)c, (void)limit_ms;
	if (order) {
		text_copy(w.order, sizeof(w.order), text);
		w.orders++;
	}
	free(text);
	if (w.over) {
		json_decref(mine);
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "rank 1 is gone");
	}
	*all = json_pack("[o, o]", mine,
			 order ? json_object()
			       : json_pack("{s:{s:f, s:b}, s:{s:f, s:b}}", "memory", "rate", w.memory[1], "wrong", 0,
					   "product", "rate", w.product[1], "wrong", 0));
	return STATUS_OK;
}

bool __wrap_isolate_run_tests(struct isolate_run *hunt, unsigned repeats, unsigned *first);
bool __wrap_isolate_run_tests(struct isolate_run *hunt, unsigned repeats, unsigned *first)
{
	assert_int_equal(hunt->f.traffic, ISOLATE_SEARCH_PARTS);
	assert_int_equal(repeats, 2);
	*first = 4;
	memcpy(&notes[4], w.parts, sizeof(w.parts));
	w.tests++;
	return true;
}

bool __wrap_works_run(const struct isolate_run_order *o, const uint16_t *gpu, unsigned count, bool between,
		      struct isolate_search_two_row rows[WORKS], unsigned *cases);
bool __wrap_works_run(const struct isolate_run_order *o, const uint16_t *gpu, unsigned count, bool between,
		      struct isolate_search_two_row rows[WORKS], unsigned *cases)
{
	static const char *const does[WORKS] = {"is sent", "reads", "runs a GEMM", "writes", "loads"};

	(void)o;
	for (unsigned i = 0; i < WORKS; i++) {
		rows[i].what = does[i];
		rows[i].link = i == WORK_LINK;
		rows[i].alone = i == WORK_MEMORY || i == WORK_GEMM;
	}
	*cases = between ? 6 : 2;
	w.own += !between;
	w.between += between;
	if (between) {
		assert_int_equal(count, 2);
		assert_int_equal(gpu[0], 0);
		assert_int_equal(gpu[1], 1);
		rows[WORK_LINK].of[0] = w.there;
		rows[WORK_LINK].of[1] = w.back;
		return true;
	}
	assert_int_equal(count, 1);
	rows[WORK_MEMORY].of[0] = w.memory[0];
	rows[WORK_GEMM].of[0] = w.product[0];
	return true;
}

/* Ranks on so many nodes, the first of them with what is left over; each with a GPU. */
static void set(unsigned ranks, unsigned nodes, enum isolate_search_fault fault)
{
	struct isolate_search_layout layout = {.ranks = ranks, .nodes = nodes};

	w = (struct world){.ranks = ranks,
			   .nodes = nodes,
			   .memory = {4e12, 4.02e12},
			   .product = {7e14, 7.05e14}};
	w.shape = (struct team_shape){.size = ranks, .nodes = nodes, .rank = w.rank, .node = w.node};
	for (unsigned n = 0; n < nodes; n++) {
		snprintf(w.node[n].shown, sizeof(w.node[n].shown), "node-%c", 'a' + n);
		h.node_of[n] = n;
	}
	for (unsigned i = 0; i < ranks; i++) {
		unsigned n = i + nodes < ranks ? 0 : nodes - (ranks - i);

		w.rank[i] = (struct team_rank){.node = n, .gpu_count = 1};
		snprintf(w.rank[i].pci[0], CONTROL_PCI, "0000:0%u:00.0", i);
		layout.node_of[i] = (uint16_t)n;
	}
	engine.once = false;
	trigger = (struct bench_case){.team = 1,
				      .probe = &collective,
				      .engine = &engine,
				      .target = {.kind = TARGET_TEAM, .ranks = ranks, .gpu_count = 1}};
	memset(notes, 0, sizeof(notes));
	r = (struct run){.o = &options, .note = notes};
	h = (struct isolate_run){.r = &r, .trigger = &trigger, .fault = fault, .end_ns = 1000, .name = isolate_ranks_name};
	isolate_search_team_whole(&h.team, &h.f, &layout);
}

static struct isolate_run_finding search(void)
{
	const struct isolate_search_start s = {.fault = h.fault, .whole = 0.7, .expected = 1, .sigma = 0.005};
	struct isolate_run_finding found = {.of = "rank"};

	isolate_ranks_search(&h, &s, &found);
	return found;
}

static void is(const struct isolate_run_finding *f, enum isolate_search_kind kind, const char *place, const char *why)
{
	if (f->found != kind || strcmp(f->place, place) || !strstr(f->why, why))
		fail_msg("%d, \"%s\": %s", f->found, f->place, f->why);
}

static struct case_outcome part_of(unsigned from, unsigned ranks, unsigned first)
{
	return (struct case_outcome){.done = true,
			     .status = STATUS_MISMATCH,
			     .suspect = (int)from + 1,
			     .wrong_ranks = ranks,
			     .wrong_rank = first};
}

static void test_hunt_pair__who_is_slow_by_itself(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 2, ISOLATE_SEARCH_SLOW);
	w.product[1] = 4e14;
	f = search();
	is(&f, ISOLATE_SEARCH_MEMBER, "rank 1 on node-b", "by itself it runs a GEMM 43 % more slowly than the other");
	assert_string_equal(f.of, "rank");
	assert_string_equal(f.pci, "0000:01:00.0");
	assert_int_equal(w.orders, 1); /* all are told */
	assert_non_null(strstr(w.order, "\"works\":true"));
	assert_non_null(strstr(w.order, "\"round\":1"));
	assert_int_equal(w.own, 1);
	assert_int_equal(h.tests, 4);
	set(2, 1, ISOLATE_SEARCH_SLOW);
	w.memory[0] = 2e12;
	f = search();
	is(&f, ISOLATE_SEARCH_MEMBER, "rank 0 on node-a", "by itself it reads 50 % more slowly");
}

static void test_hunt_pair__two_that_are_alike_are_both_told(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 2, ISOLATE_SEARCH_SLOW);
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "",
	   "rank 0 on node-a and rank 1 on node-b cannot be told apart: each does its own work alike");
	set(2, 2, ISOLATE_SEARCH_SLOW);
	memset(w.memory, 0, sizeof(w.memory));
	memset(w.product, 0, sizeof(w.product));
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "cannot be told apart: their own work could not be measured");
}

/* Rank 0 sees both GPUs: it copies between them. */
static void test_hunt_pair__a_slow_way_between_gpus_of_one_node(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 1, ISOLATE_SEARCH_SLOW);
	w.there = 390e9;
	w.back = 190e9;
	f = search();
	is(&f, ISOLATE_SEARCH_PAIR, "rank 1 on node-a > rank 0 on node-a", "copies in this direction are 51 % slower than copies back");
	assert_int_equal(w.between, 1);
	set(2, 2, ISOLATE_SEARCH_SLOW); /* of two nodes nobody sees both */
	w.there = 390e9;
	w.back = 190e9;
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "cannot be told apart");
	assert_int_equal(w.between, 0);
}

static void test_hunt_pair__slow_once_is_not_searched(void **state)
{
	const struct isolate_search_start s = {.whole = 0.999, .expected = 1, .sigma = 0.005};
	struct isolate_run_finding f = {.of = "rank"};

	(void)state;
	set(2, 1, ISOLATE_SEARCH_SLOW);
	isolate_ranks_search(&h, &s, &f);
	is(&f, ISOLATE_SEARCH_NOBODY, "", "slow once");
	assert_int_equal(w.orders, 0);
}

static void test_hunt_pair__whose_part_is_wrong(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	for (unsigned bad = 0; bad < 2; bad++) {
		set(2, 2, ISOLATE_SEARCH_WRONG);
		w.parts[0] = w.parts[1] = part_of(bad, 2, 0);
		f = search();
		is(&f, ISOLATE_SEARCH_MEMBER, bad ? "rank 1 on node-b" : "rank 0 on node-a",
		   "its part of an all-gather is wrong, the other part is right");
		assert_int_equal(w.orders, 0); /* what each does by itself is not asked for */
	}
	set(2, 1, ISOLATE_SEARCH_WRONG);
	w.parts[0] = part_of(1, 1, 0); /* once of twice, and on the other alone */
	w.parts[1] = (struct case_outcome){.done = true};
	f = search();
	is(&f, ISOLATE_SEARCH_PAIR, "rank 1 on node-a > rank 0 on node-a", "arrives wrong on the other");
}

static void test_hunt_pair__parts_that_contradict_each_other_tell_nothing(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 2, ISOLATE_SEARCH_WRONG);
	w.parts[0] = part_of(0, 2, 0);
	w.parts[1] = part_of(1, 2, 0);
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "cannot be told apart: each does its own work alike, and in the parts");
	assert_int_equal(w.own, 1);
	set(2, 2, ISOLATE_SEARCH_WRONG);
	w.parts[0] = w.parts[1] = part_of(0, 2, 0);
	w.parts[1].suspect = 0; /* of both */
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "cannot be told apart");
	assert_int_equal(w.between, 0);
}

/* Parts are right; in the sum that was wrong everybody missed the same share. */
static void test_hunt_pair__whose_share_was_missing(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 2, ISOLATE_SEARCH_WRONG);
	w.parts[0] = w.parts[1] = (struct case_outcome){.done = true};
	notes[0] = part_of(1, 2, 0);
	f = search();
	is(&f, ISOLATE_SEARCH_MEMBER, "rank 1 on node-b", "the error of the sum is its share");
}

/* One node has one rank more: no group of either is a measure for the other, but parts tell. */
static void test_hunt_pair__two_nodes_that_are_not_alike(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(5, 2, ISOLATE_SEARCH_WRONG);
	w.parts[0] = w.parts[1] = part_of(3, 5, 0);
	f = search();
	is(&f, ISOLATE_SEARCH_MEMBER, "rank 3 on node-a", "its part of an all-gather is wrong on 5 of 5 members");
	set(5, 2, ISOLATE_SEARCH_SLOW);
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "node-a and node-b (rank 4): the two nodes cannot be compared");
	assert_int_equal(w.tests, 0);
}

/* MPI begins on all ranks at once: there are no groups, of however many. */
static void test_hunt_pair__an_engine_without_groups(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(4, 1, ISOLATE_SEARCH_WRONG);
	engine.once = true;
	w.parts[0] = w.parts[1] = part_of(2, 4, 0);
	f = search();
	is(&f, ISOLATE_SEARCH_MEMBER, "rank 2 on node-a", "its part of an all-gather is wrong on 4 of 4 members, and no other part is wrong");
	set(4, 1, ISOLATE_SEARCH_WRONG);
	engine.once = true;
	w.parts[0] = w.parts[1] = (struct case_outcome){.done = true};
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "the parts of an all-gather show no bad rank");
	assert_int_equal(w.orders, 0);
	assert_true(isolate_ranks_can(&r, &trigger, ISOLATE_SEARCH_WRONG));
	assert_false(isolate_ranks_can(&r, &trigger, ISOLATE_SEARCH_SLOW)); /* it is measured, not judged */
	r.teams[0].lost = true;
	assert_false(isolate_ranks_can(&r, &trigger, ISOLATE_SEARCH_WRONG));
}

static void test_hunt_pair__the_team_ends_in_the_middle(void **state)
{
	struct isolate_run_finding f;

	(void)state;
	set(2, 2, ISOLATE_SEARCH_SLOW);
	r.out = &(struct run_summary){0};
	w.over = true;
	f = search();
	is(&f, ISOLATE_SEARCH_NOBODY, "", "the team has ended: rank 1 is gone");
	assert_int_equal(w.between, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hunt_pair__who_is_slow_by_itself),
		cmocka_unit_test(test_hunt_pair__two_that_are_alike_are_both_told),
		cmocka_unit_test(test_hunt_pair__a_slow_way_between_gpus_of_one_node),
		cmocka_unit_test(test_hunt_pair__slow_once_is_not_searched),
		cmocka_unit_test(test_hunt_pair__whose_part_is_wrong),
		cmocka_unit_test(test_hunt_pair__parts_that_contradict_each_other_tell_nothing),
		cmocka_unit_test(test_hunt_pair__whose_share_was_missing),
		cmocka_unit_test(test_hunt_pair__two_nodes_that_are_not_alike),
		cmocka_unit_test(test_hunt_pair__an_engine_without_groups),
		cmocka_unit_test(test_hunt_pair__the_team_ends_in_the_middle),
	};

	return cmocka_run_group_tests_name("hunt_pair", tests, NULL, NULL);
}
