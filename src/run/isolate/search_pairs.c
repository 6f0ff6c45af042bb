/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for two members that are bad together alone: their link. A pair between two sets is found by
 * crossing halves of the sets; a pair of all by rounds of disjoint pairs, which is the least where a test
 * shows one pair alone: a round tests N/2 of N(N-1)/2.
 */
#include "run/isolate/search_round.h"
#include <math.h>
#include <stddef.h>

/* ---- crossing: the bad pair has one end in `suspect`, the other in `other` ---- */

static void halves_of(const struct follow_set *s, struct follow_set half[2])
{
	follow_split(s, s->count > 1 ? s->count / 2 : 1, &half[0], &half[1]);
}

/* Two sets in one test, filled up to two members by a good one; false where there is no test. */
static bool add_union(struct follow *f, const struct follow_set *a, const struct follow_set *b,
		      unsigned *next)
{
	unsigned count = a->count + b->count;

	if (!count || (count == 1 && *next >= f->good.count))
		return false;
	follow_test_begin(f);
	follow_test_add(f, a->m, a->count);
	follow_test_add(f, b->m, b->count);
	if (count == 1)
		follow_test_add(f, &f->good.m[(*next)++], 1);
	return true;
}

static void not_shown(struct follow *f)
{
	if (f->start.pairs)
		follow_pairs(f);
	else
		follow_give_up(f, "bad together alone, and in no group of both halves");
}

/* {A0 B0} {A1 B1}, or crossed {A0 B1} {A1 B0}: one of the four holds the pair. */
static void cross(struct follow *f, bool crossed)
{
	struct follow_set a[2], b[2];
	unsigned next = 0;

	if (!follow_round(f, FOLLOW_CROSS, FOLLOW_EVERY_PAIR, "%u x %u, %s", f->suspect.count, f->other.count,
			  crossed ? "crossed" : "straight"))
		return;
	f->crossed = crossed;
	halves_of(&f->suspect, a);
	halves_of(&f->other, b);
	if (!add_union(f, &a[0], &b[crossed], &next)) {
		not_shown(f);
		return;
	}
	add_union(f, &a[1], &b[!crossed], &next);
	if (f->count == 1 && next + 2 <= f->good.count)
		follow_test_pair(f, f->good.m[next], f->good.m[next + 1]);
}

static void confirm_cross(struct follow *f)
{
	unsigned a = f->suspect.m[0], b = f->other.m[0];

	if (f->good.count < 2) {
		follow_give_up(f, "too few good ones to confirm the pair of %u and %u with", a, b);
		return;
	}
	if (!follow_round(f, FOLLOW_CROSS_AGAIN, FOLLOW_EVERY_PAIR, "%u and %u, each with a good one", a, b))
		return;
	follow_test_pair(f, a, f->good.m[0]);
	follow_test_pair(f, b, f->good.m[1]);
	if (f->good.count >= 4)
		follow_test_pair(f, f->good.m[2], f->good.m[3]);
}

void follow_cross(struct follow *f)
{
	if (f->suspect.count == 1 && f->other.count == 1)
		confirm_cross(f);
	else
		cross(f, false);
}

void follow_look_cross(struct follow *f)
{
	struct follow_set a[2], b[2];
	bool bad[2] = {follow_bad(f, 0), f->count > 1 && follow_bad(f, 1)};
	unsigned x = bad[0] ? 0 : 1, y = f->crossed ? !x : x;

	halves_of(&f->suspect, a);
	halves_of(&f->other, b);
	if (bad[0] && bad[1]) {
		if (!f->again)
			follow_repeat(f);
		else
			follow_give_up(f, "more than one pair is bad");
		return;
	}
	if (!bad[0] && !bad[1]) {
		if (!f->crossed)
			cross(f, true);
		else
			not_shown(f);
		return;
	}
	if (!a[x].count || !b[y].count) { /* what was taken from the good ones is slow: not the pair */
		not_shown(f);
		return;
	}
	f->with = follow_figure(f, x);
	f->suspect = a[x];
	f->other = b[y];
	follow_set_add(&f->good, a[!x].m, a[!x].count);
	follow_set_add(&f->good, b[!y].m, b[!y].count);
	follow_cross(f);
}

void follow_look_cross_again(struct follow *f)
{
	int a = f->suspect.m[0], b = f->other.m[0];
	bool bad_a = follow_bad(f, 0), bad_b = follow_bad(f, 1);

	if (!bad_a && !bad_b) {
		f->without = follow_figure(f, 0);
		follow_found(f, FOLLOW_PAIR, a, b,
			     "bad in each group that holds both; each is good with others");
	} else if (!f->again) {
		follow_repeat(f);
	} else if (bad_a && bad_b) {
		f->with = follow_figure(f, 0);
		follow_found(f, FOLLOW_TWO, a, b, "each is bad with a good one too");
	} else {
		f->with = follow_figure(f, bad_a ? 0 : 1);
		f->without = follow_figure(f, bad_a ? 1 : 0);
		follow_found(f, FOLLOW_MEMBER, bad_a ? a : b, -1, "bad with others too, twice");
	}
}

/* ---- rounds of disjoint pairs, by the circle method ---- */

/* The n-th seat of the circle in this turn: the first stays, the others move on by one a turn. */
static unsigned seat(const struct follow *f, unsigned n)
{
	return n ? 1 + (n - 1 + f->turn) % f->turns : 0;
}

static void next_pairs(struct follow *f)
{
	unsigned n = f->start.members, even = n + n % 2;

	if (!follow_round(f, FOLLOW_PAIRS, FOLLOW_ONE_PAIR, "disjoint pairs, %u of %u", f->turn + 1,
			  f->turns))
		return;
	for (unsigned i = 0; i < even / 2; i++) {
		unsigned a = seat(f, i), b = seat(f, even - 1 - i);

		if (a < n && b < n) /* the one beside an empty seat rests */
			follow_test_pair(f, a < b ? a : b, a < b ? b : a);
	}
}

void follow_pairs(struct follow *f)
{
	f->turn = 0;
	f->turns = f->start.members - 1 + f->start.members % 2;
	next_pairs(f);
}

static void take_slow(struct follow *f, unsigned a, unsigned b, double figure)
{
	f->slow_of[a]++;
	f->slow_of[b]++;
	f->slow_pairs++;
	f->slow_a = (int)a;
	f->slow_b = (int)b;
	f->with = figure;
}

static void forget_slow(struct follow *f)
{
	f->slow_of[f->slow_a] = f->slow_of[f->slow_b] = 0;
	f->slow_pairs = 0;
}

/* Every pair was looked at: which ends do the bad ones share? */
static void look_matrix(struct follow *f)
{
	unsigned n = f->start.members, all[2] = {0}, whole = 0;

	for (unsigned m = 0; m < n; m++)
		if (f->slow_of[m] == n - 1)
			all[whole++ % 2] = m;
	if (!f->slow_pairs)
		follow_give_up(f, "no two of them are bad by themselves");
	else if (whole == 1 && f->slow_pairs == n - 1)
		follow_found(f, FOLLOW_MEMBER, (int)all[0], -1, "bad in all its %u pairs, and no other is",
			     n - 1);
	else if (whole == 2 && f->slow_pairs == 2 * n - 3)
		follow_found(f, FOLLOW_TWO, (int)all[0], (int)all[1], "each bad in all its %u pairs", n - 1);
	else if (f->slow_pairs == 1 && !f->matrix)
		follow_triangle(f, FOLLOW_ONE_PAIR, (unsigned)f->slow_a, (unsigned)f->slow_b);
	else
		follow_give_up(f, "%u pairs are bad, and not those of one or two members", f->slow_pairs);
}

/* A round of two or three pairs may hold no good one: few members are judged when all pairs were seen. */
static bool is_few(const struct follow *f)
{
	return f->start.members < FOLLOW_FEW;
}

static void look_few(struct follow *f)
{
	double good = 0;

	for (unsigned i = 0; i < f->few_count; i++)
		good = fmax(good, f->few[i].figure);
	for (unsigned i = 0; i < f->few_count; i++) {
		const struct follow_few *p = &f->few[i];

		if (f->start.fault == FOLLOW_WRONG ? p->wrong : p->figure < good * (1 - f->loss / 2))
			take_slow(f, p->a, p->b, p->figure);
	}
	f->without = good;
	look_matrix(f);
}

static void go_on(struct follow *f)
{
	if (++f->turn < f->turns)
		next_pairs(f);
	else if (is_few(f) && !f->matrix)
		look_few(f);
	else
		look_matrix(f);
}

void follow_look_pairs(struct follow *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		const uint16_t *m = &f->group[f->test[i].first];

		if (is_few(f))
			f->few[f->few_count++] = (struct follow_few){
				.a = m[0], .b = m[1], .figure = f->test[i].figure, .wrong = f->test[i].wrong};
		else if (follow_bad(f, i))
			take_slow(f, m[0], m[1], follow_figure(f, i));
		else
			f->without = follow_figure(f, i);
	}
	/* One alone: is it a link? Several are judged when all pairs were seen. */
	if (f->slow_pairs == 1 && !f->matrix)
		follow_triangle(f, FOLLOW_ONE_PAIR, (unsigned)f->slow_a, (unsigned)f->slow_b);
	else
		go_on(f);
}

/* ---- three members: the two that may be a pair, and one that seems good ---- */

void follow_triangle(struct follow *f, enum follow_traffic traffic, unsigned a, unsigned b)
{
	unsigned c = 0;

	while (c == a || c == b)
		c++;
	f->a = (int)a;
	f->b = (int)b;
	if (!follow_round(f, FOLLOW_TRIANGLE, traffic, "%u and %u, each with the other and with %u", a, b, c))
		return;
	f->at_once = false;
	follow_test_pair(f, a, b);
	follow_test_pair(f, a, c);
	follow_test_pair(f, b, c);
}

/* No pair after all: of the disjoint ones the rest remains. */
static void no_pair(struct follow *f, bool ab)
{
	bool more = f->turns && f->turn + 1 < f->turns;

	f->matrix = f->matrix || ab;
	if (!more) {
		follow_give_up(f, "%d and %d: good without either, and no two of three tell which", f->a,
			       f->b);
		return;
	}
	if (!ab)
		forget_slow(f);
	go_on(f);
}

void follow_look_triangle(struct follow *f)
{
	bool ab = follow_bad(f, 0), ac = follow_bad(f, 1), bc = follow_bad(f, 2);
	double with = follow_figure(f, 0), without = follow_figure(f, ac ? 2 : 1);

	if (!ab || (ac && bc)) {
		if (f->again)
			no_pair(f, ab);
		else
			follow_repeat(f);
		return;
	}
	f->with = with;
	f->without = without;
	if (ac || bc)
		follow_found(f, FOLLOW_MEMBER, ac ? f->a : f->b, -1,
			     "bad with either of two, which are good together");
	else
		follow_found(f, FOLLOW_PAIR, f->a, f->b, "bad together, twice, and each good with another");
}
