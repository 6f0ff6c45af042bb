/* SPDX-License-Identifier: Apache-2.0 */
/* The search among launched ranks, on made-up figures: nodes first, then the ranks of the bad one. */
#include "test.h"

#include <math.h>
#include "core/math/random.h"
#include "core/math/stats.h"
#include "run/isolate/search_team.h"

enum plant { CLEAN, RANK, NODE, WAY /* of node a to the others */, LINK /* of nodes a and b */, TWO, RANDOM };

struct world {
	unsigned nodes, each; /* ranks of each node, one behind the other */
	enum plant plant;
	unsigned a, b; /* RANK: a rank; else nodes */
	enum isolate_search_fault fault;
	bool dead; /* node b cannot be measured by itself */
	uint64_t seed, drawn;
	unsigned rounds, beside; /* seen; of them with groups at one time */
};

static double uniform(struct world *w)
{
	return (random_u32(w->seed, 7, w->drawn++) + 0.5) / 4294967296.0;
}

static double noise(struct world *w)
{
	double u = uniform(w);

	return 0.005 * sqrt(-2 * log(u)) * cos(2 * M_PI * uniform(w));
}

/* Is a group of these ranks bad? `in`: by rank. */
static bool is_bad(struct world *w, const bool *in)
{
	bool node[ISOLATE_SEARCH_MEMBERS] = {false};
	unsigned count = 0;

	for (unsigned r = 0; r < w->nodes * w->each; r++)
		if (in[r] && !node[r / w->each]) {
			node[r / w->each] = true;
			count++;
		}
	switch (w->plant) {
	case RANK:
		return in[w->a];
	case NODE:
		return node[w->a];
	case WAY:
		return node[w->a] && count > 1;
	case LINK:
		return node[w->a] && node[w->b];
	case TWO:
		return node[w->a] || node[w->b];
	case RANDOM:
		return uniform(w) < 0.5;
	default:
		return false;
	}
}

/* The ranks of a test; they stand on nodes that no other test of a round at one time uses. */
static void ranks_of(const struct isolate_search_team *t, unsigned test, bool *in)
{
	const struct isolate_search_test *x = &t->f->test[test];
	unsigned found = 0;

	memset(in, 0, ISOLATE_SEARCH_MEMBERS * sizeof(*in));
	for (unsigned k = 0; k < x->count; k++)
		for (unsigned r = 0; r < t->layout.ranks; r++)
			if (t->member_of[r] == t->f->group[x->first + k]) {
				assert_false(in[r]);
				in[r] = true;
				found++;
			}
	assert_in_range(found, 2, t->layout.ranks); /* nothing travels in less */
}

static double once(struct world *w, bool bad)
{
	return (bad && w->fault == ISOLATE_SEARCH_SLOW ? 0.7 : 1) * (1 + noise(w));
}

static void answer(struct world *w, struct isolate_search_team *t)
{
	bool in[ISOLATE_SEARCH_MEMBERS], used[ISOLATE_SEARCH_MEMBERS] = {false};

	for (unsigned i = 0; i < t->f->count; i++) {
		struct isolate_search_test *x = &t->f->test[i];
		double rate[8];
		struct stats s;
		bool bad;

		ranks_of(t, i, in);
		for (unsigned r = 0; r < t->layout.ranks; r++)
			if (in[r] && t->beside && t->f->at_once) {
				assert_false(used[r]);
				used[r] = true;
			}
		bad = is_bad(w, in);
		for (unsigned k = 0; k < t->f->repeats; k++)
			rate[k] = once(w, bad);
		s = stats_of(rate, t->f->repeats);
		x->ran = true;
		x->sound = !(w->dead && t->f->count == 2 && x->count == 1 && in[w->b * w->each] &&
			     !in[w->a * w->each]);
		x->wrong = bad && w->fault == ISOLATE_SEARCH_WRONG;
		x->figure = s.median;
		x->variance = t->f->repeats > 1 ? s.stddev * s.stddev / (s.mean * s.mean) : 0;
	}
}

static void search(struct world *w, struct isolate_search_team *t)
{
	static struct isolate_search f;
	struct isolate_search_layout layout = {.ranks = w->nodes * w->each, .nodes = w->nodes};
	struct isolate_search_start s = {.fault = w->fault, .whole = 0.7, .expected = 1, .sigma = 0.005};
	unsigned round = 0;

	for (unsigned r = 0; r < layout.ranks; r++)
		layout.node_of[r] = (uint16_t)(r / w->each);
	isolate_search_team_whole(t, &f, &layout);
	assert_int_equal(isolate_search_team_round(t), 0);
	if (w->fault == ISOLATE_SEARCH_SLOW && w->plant != RANDOM) { /* all of them, once more */
		f.repeats = 3;
		answer(w, t);
		s.whole = f.test[0].figure;
	}
	for (isolate_search_team_begin(t, &s); !t->done; isolate_search_team_next(t)) {
		assert_int_equal(isolate_search_team_round(t), ++round); /* counted through all stages */
		w->beside += t->beside && f.at_once && f.count > 1;
		assert_in_range(round, 1, 100 + 2 * layout.ranks);
		answer(w, t);
	}
	w->rounds = round;
	assert_true(*t->why != '\0');
	if (t->found != ISOLATE_SEARCH_NOBODY) {
		assert_in_range(t->a, 0, (t->node ? w->nodes : layout.ranks) - 1);
		assert_in_range(t->b + 1, 0, t->node ? w->nodes : layout.ranks);
	}
}

static void named(struct world *w, enum isolate_search_kind found, bool node, int a, int b)
{
	static struct isolate_search_team t;

	search(w, &t);
	if (t.found != found || t.node != node || t.a != a || t.b != b)
		fail_msg("%u nodes of %u: found %d, node %d, %d and %d: %s", w->nodes, w->each, t.found, t.node, t.a, t.b,
			 t.why);
	if (found == ISOLATE_SEARCH_MEMBER && w->fault == ISOLATE_SEARCH_SLOW)
		assert_true(t.with > 0 && t.without > 1.2 * t.with);
}

static const struct {
	unsigned nodes, each;
} shapes[] = {{1, 4}, {2, 2}, {2, 8}, {3, 2}, {4, 1}, {4, 2}, {4, 8}, {5, 3}, {32, 8}, {256, 1}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_follow_team__a_rank_is_named_on_each_shape(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SHAPES; i++)
		for (unsigned trial = 0; trial < 12; trial++) {
			unsigned ranks = shapes[i].nodes * shapes[i].each;
			struct world w = {.nodes = shapes[i].nodes,
					  .each = shapes[i].each,
					  .plant = RANK,
					  .a = trial < 2 ? trial * (ranks - 1) : trial * 7919 % ranks,
					  .fault = trial % 2 ? ISOLATE_SEARCH_WRONG : ISOLATE_SEARCH_SLOW,
					  .seed = 100 + trial};

			/* Where a node has one rank, it is the node. */
			named(&w, ISOLATE_SEARCH_MEMBER, w.each == 1, (int)w.a, -1);
		}
}

static void test_follow_team__a_node_of_which_each_rank_is_slow(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 4; a++) {
		struct world w = {.nodes = 4, .each = 2, .plant = NODE, .a = a, .seed = a};
		struct world larger = {.nodes = 4, .each = 8, .plant = NODE, .a = a, .seed = a};

		named(&w, ISOLATE_SEARCH_MEMBER, true, (int)a, -1);
		named(&larger, ISOLATE_SEARCH_MEMBER, true, (int)a, -1);
		assert_true(w.beside > 2);
	}
}

static void test_follow_team__a_node_whose_way_to_the_others_is_slow(void **state)
{
	static struct isolate_search_team t;

	(void)state;
	for (unsigned a = 0; a < 4; a++) {
		struct world w = {.nodes = 4, .each = 4, .plant = WAY, .a = a, .seed = a};

		named(&w, ISOLATE_SEARCH_MEMBER, true, (int)a, -1);
		search(&w, &t);
		assert_non_null(strstr(t.why, "its path to the other nodes"));
		w.fault = ISOLATE_SEARCH_WRONG;
		search(&w, &t);
		assert_non_null(strstr(t.why, "by itself its data are right"));
	}
}

static void test_follow_team__a_link_between_two_nodes(void **state)
{
	(void)state;
	for (unsigned trial = 0; trial < 12; trial++) {
		struct world w = {.nodes = 8, .each = 1 + trial % 3, .plant = LINK, .a = trial % 7, .b = 7, .seed = trial};

		named(&w, ISOLATE_SEARCH_PAIR, true, (int)w.a, 7);
	}
}

static void test_follow_team__two_nodes(void **state)
{
	struct world w = {.nodes = 8, .each = 2, .plant = TWO, .a = 1, .b = 6, .seed = 5};

	(void)state;
	named(&w, ISOLATE_SEARCH_TWO, true, 1, 6);
}

static void test_follow_team__no_group_is_without_the_bad_one(void **state)
{
	static struct isolate_search_team t;
	struct world pair = {.nodes = 2, .each = 1, .plant = RANK, .a = 1};
	struct world between = {.nodes = 2, .each = 4, .plant = WAY, .a = 0};
	struct world node = {.nodes = 1, .each = 2, .plant = RANK, .a = 1};

	(void)state;
	named(&pair, ISOLATE_SEARCH_NOBODY, false, -1, -1);
	search(&pair, &t);
	assert_non_null(strstr(t.why, "the two nodes cannot be compared"));
	named(&between, ISOLATE_SEARCH_NOBODY, false, -1, -1);
	named(&node, ISOLATE_SEARCH_NOBODY, false, -1, -1);
}

/* A good node of another size is no measure: the bad one stays named, and its ranks are not looked at. */
static void test_follow_team__nodes_of_different_sizes(void **state)
{
	static struct isolate_search_team t;
	static struct isolate_search f;
	struct world w = {.nodes = 1, .each = 9, .plant = RANK, .a = 1, .fault = ISOLATE_SEARCH_WRONG};
	struct isolate_search_layout layout = {.ranks = 9, .nodes = 4, .node_of = {0, 0, 0, 1, 1, 2, 3, ISOLATE_SEARCH_NO_MEMBER, 3}};
	const struct isolate_search_start s = {.fault = ISOLATE_SEARCH_WRONG, .expected = 1};

	(void)state;
	isolate_search_team_whole(&t, &f, &layout);
	assert_int_equal(t.member_of[7], ISOLATE_SEARCH_NO_MEMBER);
	for (isolate_search_team_begin(&t, &s); !t.done; isolate_search_team_next(&t))
		answer(&w, &t);
	assert_int_equal(t.found, ISOLATE_SEARCH_MEMBER);
	assert_true(t.node);
	assert_int_equal(t.a, 0);
	assert_non_null(strstr(t.why, "no other node has the same number of ranks"));
}

static void test_follow_team__what_cannot_be_measured_names_no_rank(void **state)
{
	static struct isolate_search_team t;
	struct world w = {.nodes = 2, .each = 4, .plant = RANK, .a = 0, .b = 1, .dead = true};
	struct world beside = {.nodes = 4, .each = 4, .plant = NODE, .a = 0, .b = 1, .dead = true};

	(void)state;
	named(&w, ISOLATE_SEARCH_NOBODY, false, -1, -1);
	named(&beside, ISOLATE_SEARCH_MEMBER, true, 0, -1); /* the node is known by then */
	search(&beside, &t);
	assert_non_null(strstr(t.why, "its ranks could not be measured without the other nodes"));
}

/* The whole is as it should be now. */
static void test_follow_team__slow_once_is_not_searched(void **state)
{
	struct world w = {.nodes = 4, .each = 2, .plant = CLEAN};

	(void)state;
	named(&w, ISOLATE_SEARCH_NOBODY, false, -1, -1);
	assert_int_equal(w.rounds, 0);
}

static void test_follow_team__ends_whatever_is_answered(void **state)
{
	static struct isolate_search_team t;

	(void)state;
	for (unsigned trial = 0; trial < 3000; trial++) {
		struct world w = {.nodes = 1 + trial % 9,
				  .each = 1 + trial % 5,
				  .plant = RANDOM,
				  .fault = trial % 2 ? ISOLATE_SEARCH_WRONG : ISOLATE_SEARCH_SLOW,
				  .seed = trial};

		if (w.nodes * w.each > 1)
			search(&w, &t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follow_team__a_rank_is_named_on_each_shape),
		cmocka_unit_test(test_follow_team__a_node_of_which_each_rank_is_slow),
		cmocka_unit_test(test_follow_team__a_node_whose_way_to_the_others_is_slow),
		cmocka_unit_test(test_follow_team__a_link_between_two_nodes),
		cmocka_unit_test(test_follow_team__two_nodes),
		cmocka_unit_test(test_follow_team__no_group_is_without_the_bad_one),
		cmocka_unit_test(test_follow_team__nodes_of_different_sizes),
		cmocka_unit_test(test_follow_team__what_cannot_be_measured_names_no_rank),
		cmocka_unit_test(test_follow_team__slow_once_is_not_searched),
		cmocka_unit_test(test_follow_team__ends_whatever_is_answered),
	};

	return cmocka_run_group_tests_name("follow_team", tests, NULL, NULL);
}
