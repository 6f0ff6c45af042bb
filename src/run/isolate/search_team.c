/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes and ranks are tested. The steps: docs/explanation/design/isolation.md, "Launched
 * ranks". */
#include "run/isolate/search_team.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"
#include "run/isolate/search_round.h"
#include "run/isolate/search_two.h"

unsigned isolate_search_team_ranks(const struct isolate_search_team *t, unsigned node, unsigned *first)
{
	unsigned count = 0;

	for (unsigned r = t->layout.ranks; r-- > 0;)
		if (t->layout.node_of[r] == node) {
			*first = r;
			count++;
		}
	return count;
}

unsigned isolate_search_team_round(const struct isolate_search_team *t)
{
	return t->rounds + t->f->round;
}

static void nobody_takes_part(struct isolate_search_team *t)
{
	for (unsigned r = 0; r < ISOLATE_SEARCH_MEMBERS; r++)
		t->member_of[r] = ISOLATE_SEARCH_NO_MEMBER;
}

/* All ranks of the node together are one member. */
static void take_node(struct isolate_search_team *t, unsigned node, unsigned member)
{
	for (unsigned r = 0; r < t->layout.ranks; r++)
		if (t->layout.node_of[r] == node)
			t->member_of[r] = (uint16_t)member;
}

/* Each rank of the node is a member; `first` is the number of the first one. */
static void take_ranks(struct isolate_search_team *t, unsigned node, unsigned first)
{
	for (unsigned r = 0; r < t->layout.ranks; r++)
		if (t->layout.node_of[r] == node) {
			t->rank_of[first] = (uint16_t)r;
			t->member_of[r] = (uint16_t)first++;
		}
}

/* Begins a round that search.c does not plan. */
static void round_begin(struct isolate_search_team *t, enum isolate_search_team_stage stage,
			const char *format, ...) __attribute__((format(printf, 3, 4)));
static void round_begin(struct isolate_search_team *t, enum isolate_search_team_stage stage,
			const char *format, ...)
{
	struct isolate_search *f = t->f;
	va_list list;

	t->rounds += f->round;
	t->stage = stage;
	t->beside = stage != ISOLATE_SEARCH_TEAM_TWO_RANKS;
	memset(f, 0, sizeof(*f));
	f->round = 1;
	f->repeats = ISOLATE_SEARCH_TEAM_REPEATS;
	f->at_once = t->beside;
	va_start(list, format);
	vsnprintf(f->what, sizeof(f->what), format, list);
	va_end(list);
	nobody_takes_part(t);
}

static void test_member(struct isolate_search *f, unsigned member)
{
	isolate_search_test_begin(f);
	isolate_search_test_add(f, &(uint16_t){(uint16_t)member}, 1);
}

void isolate_search_team_whole(struct isolate_search_team *t, struct isolate_search *f,
			       const struct isolate_search_layout *layout)
{
	memset(t, 0, sizeof(*t));
	memset(f, 0, sizeof(*f));
	t->layout = *layout;
	t->f = f;
	t->a = t->b = -1;
	round_begin(t, ISOLATE_SEARCH_TEAM_NODES, "all members again");
	f->round = 0;
	for (unsigned n = 0; n < layout->nodes; n++)
		take_node(t, n, 0);
	test_member(f, 0);
}

static void finish(struct isolate_search_team *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void finish(struct isolate_search_team *t, const char *format, ...)
{
	va_list list;

	t->done = true;
	va_start(list, format);
	vsnprintf(t->why, sizeof(t->why), format, list);
	va_end(list);
}

/* Records the bad node that is known so far. */
static void name_node(struct isolate_search_team *t, unsigned node, double with, double without,
		      const char *why)
{
	t->found = ISOLATE_SEARCH_MEMBER;
	t->node = true;
	t->a = (int)node;
	t->with = with;
	t->without = without;
	text_copy(t->why, sizeof(t->why), why);
}

/* Ends the search inside the bad node. A node that was already named stays named. */
static void end_inside(struct isolate_search_team *t, const char *why)
{
	char before[sizeof(t->why)];

	text_copy(before, sizeof(before), t->why);
	if (t->found == ISOLATE_SEARCH_NOBODY)
		finish(t, "%.200s", why);
	else
		finish(t, "%.120s; %.120s", before, why);
}

static void name_rank(struct isolate_search_team *t, enum isolate_search_kind kind, int a, int b,
		      const char *why)
{
	t->found = kind;
	t->node = false;
	t->a = t->rank_of[a];
	t->b = b < 0 ? -1 : t->rank_of[b];
	finish(t, "%.200s", why);
}

/* ---- ranks of one node ---- */

static void look_ranks(struct isolate_search_team *t)
{
	const struct isolate_search *f = t->f;

	if (!f->done)
		return;
	if (f->found == ISOLATE_SEARCH_NOBODY) {
		end_inside(t, f->why);
		return;
	}
	t->with = f->with;
	t->without = f->without;
	name_rank(t, f->found, f->a, f->b, f->why);
}

static void begin_ranks(struct isolate_search_team *t, unsigned node, double whole, double expected,
			double sigma)
{
	struct isolate_search_start s = t->start;
	unsigned first;

	t->rounds += t->f->round;
	t->stage = ISOLATE_SEARCH_TEAM_RANKS;
	t->beside = false;
	nobody_takes_part(t);
	take_ranks(t, node, 0);
	s.members = isolate_search_team_ranks(t, node, &first);
	s.overlap = s.pairs = true;
	s.whole = whole;
	s.expected = expected;
	s.sigma = sigma;
	isolate_search_begin(t->f, &s);
	look_ranks(t);
}

/* Tests {x, good} and {y, good} to find out which of the node's two ranks is bad. */
static void begin_two_ranks(struct isolate_search_team *t)
{
	round_begin(t, ISOLATE_SEARCH_TEAM_TWO_RANKS, "each rank of node %u with a rank of node %u", t->bad,
		    t->good);
	take_ranks(t, t->bad, 0);
	take_ranks(t, t->good, 2);
	isolate_search_test_pair(t->f, 0, 2);
	isolate_search_test_pair(t->f, 1, 3);
}

static void inside(struct isolate_search_team *t, double whole, double expected, double sigma)
{
	unsigned first;

	if (isolate_search_team_ranks(t, t->bad, &first) == 2)
		begin_two_ranks(t);
	else
		begin_ranks(t, t->bad, whole, expected, sigma);
}

/* ---- two members that are compared with each other ---- */

static bool both_sound(const struct isolate_search_team *t)
{
	for (unsigned i = 0; i < 2; i++)
		if (!t->f->test[i].ran || !t->f->test[i].sound ||
		    (t->start.fault == ISOLATE_SEARCH_SLOW && !(t->f->test[i].figure > 0)))
			return false;
	return true;
}

/* The index of the bad test of the two; -1: the tests are alike. */
static int one_of_two(const struct isolate_search_team *t)
{
	const struct isolate_search_test *x = t->f->test;
	const struct isolate_search_two_row row = {.what = "does the same",
						   .alone = true,
						   .of = {x[0].figure, x[1].figure},
						   .wrong = {x[0].wrong, x[1].wrong}};
	struct isolate_search_two two;

	if (t->start.fault == ISOLATE_SEARCH_WRONG)
		return x[0].wrong == x[1].wrong ? -1 : x[1].wrong;
	isolate_search_two(&two, &row, 1);
	return two.found == ISOLATE_SEARCH_MEMBER ? two.a : -1;
}

static double noise_of_two(const struct isolate_search_team *t)
{
	return sqrt(
		fmax(t->start.sigma * t->start.sigma, fmax(t->f->test[0].variance, t->f->test[1].variance)));
}

static void look_two_ranks(struct isolate_search_team *t)
{
	int bad = both_sound(t) ? one_of_two(t) : -1;

	if (bad < 0) {
		end_inside(t, "its two ranks are alike when each runs with a rank of another node");
		return;
	}
	if (t->start.fault == ISOLATE_SEARCH_SLOW) {
		t->with = t->f->test[bad].figure;
		t->without = t->f->test[!bad].figure;
	}
	name_rank(
		t, ISOLATE_SEARCH_MEMBER, bad, -1,
		"its node is bad by itself; with a rank of another node it is bad, and the node's other rank is good");
}

static void look_two_nodes(struct isolate_search_team *t)
{
	const struct isolate_search_test *x = t->f->test;
	int bad = both_sound(t) ? one_of_two(t) : -1;

	if (bad < 0) {
		finish(t, "both nodes are alike by themselves: the fault is in both, or between them");
		return;
	}
	t->bad = (unsigned)bad;
	t->good = !bad;
	name_node(t, t->bad, x[bad].figure, x[!bad].figure,
		  "bad by itself, compared with the other node by itself");
	inside(t, x[bad].figure, x[!bad].figure, noise_of_two(t));
}

static void look_alone(struct isolate_search_team *t)
{
	const struct isolate_search_test *x = t->f->test;
	double sigma = noise_of_two(t);
	bool bad = both_sound(t) && (t->start.fault == ISOLATE_SEARCH_WRONG
					     ? x[0].wrong && !x[1].wrong
					     : isolate_search_worth(x[0].figure, x[1].figure, sigma));

	if (bad)
		inside(t, x[0].figure, x[1].figure, sigma);
	else if (!both_sound(t))
		end_inside(t, "its ranks could not be measured without the other nodes");
	else
		end_inside(
			t,
			t->start.fault == ISOLATE_SEARCH_WRONG
				? "by itself its data are right"
				: "by itself it is as fast as another node: its path to the other nodes is slow");
}

/* ---- nodes ---- */

/* A good node with the same number of ranks, for comparison; t->layout.nodes: there is none. */
static unsigned alike(const struct isolate_search_team *t, unsigned node)
{
	unsigned first, n = 0, ranks = isolate_search_team_ranks(t, node, &first);

	while (n < t->layout.nodes && (n == node || isolate_search_team_ranks(t, n, &first) != ranks))
		n++;
	return n;
}

static void begin_alone(struct isolate_search_team *t, enum isolate_search_team_stage stage, unsigned a,
			unsigned b)
{
	round_begin(t, stage, "nodes %u and %u, each by itself", a, b);
	take_node(t, a, 0);
	take_node(t, b, 1);
	test_member(t->f, 0);
	test_member(t->f, 1);
}

static void look_nodes(struct isolate_search_team *t)
{
	const struct isolate_search *f = t->f;
	unsigned first;

	if (!f->done)
		return;
	if (f->found != ISOLATE_SEARCH_MEMBER) {
		t->found = f->found;
		t->node = true;
		t->a = f->a;
		t->b = f->b;
		t->with = f->with;
		t->without = f->without;
		finish(t, "%.200s", f->why);
		return;
	}
	name_node(t, (unsigned)f->a, f->with, f->without, f->why);
	t->bad = (unsigned)f->a;
	t->good = alike(t, t->bad);
	if (isolate_search_team_ranks(t, t->bad, &first) < 2)
		t->done = true;
	else if (t->good == t->layout.nodes)
		end_inside(t, "no other node has the same number of ranks");
	else
		begin_alone(t, ISOLATE_SEARCH_TEAM_ALONE, t->bad, t->good);
}

static void begin_nodes(struct isolate_search_team *t)
{
	struct isolate_search_start s = t->start;

	t->rounds += t->f->round;
	t->stage = ISOLATE_SEARCH_TEAM_NODES;
	t->beside = true;
	nobody_takes_part(t);
	for (unsigned n = 0; n < t->layout.nodes; n++)
		take_node(t, n, n);
	s.members = t->layout.nodes;
	s.overlap = false;
	s.pairs = true;
	isolate_search_begin(t->f, &s);
	look_nodes(t);
}

bool isolate_search_team_groups(const struct isolate_search_team *t)
{
	unsigned first, ranks = isolate_search_team_ranks(t, 0, &first);

	return t->layout.nodes == 2 ? ranks > 1 && alike(t, 0) == 1 : t->layout.nodes > 2 || ranks > 2;
}

void isolate_search_team_begin(struct isolate_search_team *t, const struct isolate_search_start *s)
{
	t->start = *s;
	t->rounds = t->f->round = 0;
	if (s->fault == ISOLATE_SEARCH_SLOW && !isolate_search_worth(s->whole, s->expected, s->sigma))
		finish(t, "slow once: not seen again when repeated");
	else if (t->layout.nodes > 2)
		begin_nodes(t);
	else if (t->layout.nodes < 2)
		begin_ranks(t, 0, s->whole, s->expected, s->sigma);
	else if (isolate_search_team_groups(t))
		begin_alone(t, ISOLATE_SEARCH_TEAM_TWO_NODES, 0, 1);
	else
		finish(t, "the two nodes cannot be compared: they differ in ranks, or have one each");
}

void isolate_search_team_next(struct isolate_search_team *t)
{
	static void (*const look[])(struct isolate_search_team *) = {
		[ISOLATE_SEARCH_TEAM_NODES] = look_nodes,
		[ISOLATE_SEARCH_TEAM_TWO_NODES] = look_two_nodes,
		[ISOLATE_SEARCH_TEAM_ALONE] = look_alone,
		[ISOLATE_SEARCH_TEAM_RANKS] = look_ranks,
		[ISOLATE_SEARCH_TEAM_TWO_RANKS] = look_two_ranks,
	};

	if (t->done)
		return;
	if (t->stage == ISOLATE_SEARCH_TEAM_NODES || t->stage == ISOLATE_SEARCH_TEAM_RANKS)
		isolate_search_next(t->f);
	look[t->stage](t);
}
