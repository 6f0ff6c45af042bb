/* SPDX-License-Identifier: Apache-2.0 */
/* How far a search among launched ranks comes in its time: rank 0's rounds, run by a clock of the test's own.
 */
#include "test.h"

#include "core/text/text.h"
#include "run/isolate/run.h"
#include "run/probe.h"
#include "team/control/control.h"

#define BUDGET_NS (240 * 1000000000ull) /* the most that a search takes */
#define LEAST_NS (60 * 1000000000ull)	/* and the least */
#define WAVE_NS 2000000000ull		/* 64 nodes have 63 rounds of disjoint pairs at most */
#define SHORT_WAVE_NS 800000000ull	/* and 256 have 255 */

/* Nodes of one rank each. The link of two of them is bad; only the whole, and the two alone, show it. */
struct world {
	unsigned nodes, a, b;
	bool beside; /* groups may run at one time */
	uint64_t now_ns, wave_ns;
	unsigned rounds, pair_rounds;
	struct team_rank rank[ISOLATE_SEARCH_MEMBERS];
	struct team_node node[ISOLATE_SEARCH_MEMBERS];
	struct team_shape shape;
};
static struct world w;
static struct isolate_run h;
static struct run r;
static struct bench_case trigger;
static const struct engine engine;

static uint64_t now(void *arg)
{
	(void)arg;
	return w.now_ns;
}

static const struct clock world_clock = {.now_ns = now};
static const struct run_options options = {.clock = &world_clock};

const struct team_shape *__wrap_control_shape(const struct control *c);
const struct team_shape *__wrap_control_shape(const struct control *c)
{
	(void)c;
	return &w.shape;
}

static bool is_bad(const struct isolate_search_test *t)
{
	bool a = false, b = false;

	for (unsigned i = 0; i < t->count; i++) {
		a = a || h.f.group[t->first + i] == w.a;
		b = b || h.f.group[t->first + i] == w.b;
	}
	return a && b && (t->count == 2 || t->count == w.nodes);
}

/* Each repeat of a round of disjoint groups is one wave; else each group is one. */
bool __wrap_isolate_ranks_tests(struct isolate_run *hunt, const struct isolate_run_order *o);
bool __wrap_isolate_ranks_tests(struct isolate_run *hunt, const struct isolate_run_order *o)
{
	const struct isolate_search *f = &hunt->f;
	bool at_one_time = w.beside && f->at_once && f->count > 1;

	assert_ptr_equal(hunt, &h);
	assert_int_equal(run_reserve(&r, r.next_id + f->count * o->repeats, NULL), STATUS_OK);
	for (unsigned k = 0; k < o->repeats; k++)
		for (unsigned i = 0; i < f->count; i++)
			r.note[r.next_id++] =
				(struct case_outcome){.done = true, .rate = is_bad(&f->test[i]) ? 0.7 : 1};
	w.now_ns += w.wave_ns * o->repeats * (at_one_time ? 1 : f->count);
	w.rounds++;
	w.pair_rounds += f->count > 2 && f->test[0].count == 2;
	return true;
}

static void set(unsigned nodes, unsigned a, unsigned b)
{
	struct isolate_search_layout layout = {.ranks = nodes, .nodes = nodes};

	w = (struct world){.nodes = nodes,
			   .a = a,
			   .b = b,
			   .beside = true,
			   .wave_ns = nodes > 64 ? SHORT_WAVE_NS : WAVE_NS};
	w.shape = (struct team_shape){.size = nodes, .nodes = nodes, .rank = w.rank, .node = w.node};
	for (unsigned n = 0; n < nodes; n++) {
		w.rank[n].node = n;
		snprintf(w.node[n].shown, sizeof(w.node[n].shown), "node-%u", n);
		layout.node_of[n] = (uint16_t)n;
		h.node_of[n] = n;
	}
	trigger = (struct bench_case){.team = 1, .engine = &engine, .target = {.kind = TARGET_TEAM, .ranks = nodes}};
	r = (struct run){.o = &options};
	h.r = &r;
	h.trigger = &trigger;
	h.fault = ISOLATE_SEARCH_SLOW;
	h.name = isolate_ranks_name;
	h.begin_ns = 0;
	h.end_ns = BUDGET_NS;
	h.tests = h.waves = 0;
	*h.stopped = '\0';
	isolate_search_team_whole(&h.team, &h.f, &layout);
}

/* As follow_run.c does: the whole three times more, then the rounds. */
static struct isolate_run_finding search(void)
{
	const struct isolate_search_start s = {.whole = 0.7, .expected = 1, .sigma = 0.005};
	struct isolate_run_finding found = {0};
	unsigned first;

	assert_true(isolate_run_tests(&h, 3, &first));
	isolate_ranks_search(&h, &s, &found);
	free(r.note);
	free(r.attempt);
	free(r.done);
	return found;
}

static void named(unsigned nodes, unsigned a, unsigned b, uint64_t budget_ns)
{
	struct isolate_run_finding found;
	char place[64];

	set(nodes, a, b);
	h.end_ns = budget_ns;
	found = search();
	snprintf(place, sizeof(place), "node-%u (rank %u) <> node-%u (rank %u)", a, a, b, b);
	if (found.found != ISOLATE_SEARCH_PAIR || strcmp(found.place, place))
		fail_msg("%u nodes: \"%s\", %u rounds, %u of pairs: %s", nodes, found.place, w.rounds,
			 w.pair_rounds, found.why);
	assert_true(w.pair_rounds > 0);
	assert_true(w.now_ns < budget_ns + 10 * WAVE_NS);
}

static void test_hunt_clock__disjoint_pairs_fit_the_time(void **state)
{
	(void)state;
	named(8, 1, 6, BUDGET_NS);
	named(64, 3, 40, BUDGET_NS);
	named(64, 0, 63, BUDGET_NS);
	named(256, 10, 11, BUDGET_NS);
}

/* One after the other the 128 pairs of a round were minutes. */
static void test_hunt_clock__a_short_run_has_its_rounds_of_pairs(void **state)
{
	(void)state;
	named(64, 0, 63, LEAST_NS);
	named(256, 0, 255, LEAST_NS);
}

/* The whole has taken nearly all of it. */
static void test_hunt_clock__a_round_for_which_there_is_no_time(void **state)
{
	struct isolate_run_finding found;

	(void)state;
	set(64, 3, 40);
	h.end_ns = 3 * WAVE_NS + WAVE_NS / 2;
	found = search();
	assert_int_equal(found.found, ISOLATE_SEARCH_NOBODY);
	assert_string_equal(found.why, "no time for round 1");
	assert_int_equal(w.rounds, 1); /* the whole */
}

/* Groups of one node's ranks work one after the other, and are counted so. */
static void test_hunt_clock__groups_in_turn_are_charged_each(void **state)
{
	(void)state;
	set(8, 1, 6);
	h.f.count = 4;
	h.f.at_once = true;
	assert_true(isolate_run_in_parallel(&h));
	assert_int_equal(isolate_run_waves(&h, 3), 3);
	h.team.beside = false;
	assert_int_equal(isolate_run_waves(&h, 3), 12);
	h.team.beside = true;
	h.f.at_once = false;
	assert_int_equal(isolate_run_waves(&h, 3), 12);
	h.f.at_once = true;
	trigger.team = 0; /* a node's own GPUs */
	assert_int_equal(isolate_run_waves(&h, 3), 12);
	h.waves = 5;
	w.now_ns = 5 * WAVE_NS;
	h.end_ns = 15 * WAVE_NS + 1;
	assert_true(isolate_run_has_time(&h, 10));
	assert_false(isolate_run_has_time(&h, 11));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hunt_clock__disjoint_pairs_fit_the_time),
		cmocka_unit_test(test_hunt_clock__a_short_run_has_its_rounds_of_pairs),
		cmocka_unit_test(test_hunt_clock__a_round_for_which_there_is_no_time),
		cmocka_unit_test(test_hunt_clock__groups_in_turn_are_charged_each),
	};

	return cmocka_run_group_tests_name("hunt_clock", tests, NULL, NULL);
}
