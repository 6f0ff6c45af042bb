/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The isolation search for two members that are bad only together, so their link is bad. If the bad pair lies
 * between two sets, crossed halves of the sets find it. Otherwise rounds of disjoint pairs test all pairs. A
 * round tests N/2 of the N(N-1)/2 pairs, so no other order needs fewer rounds.
 */
#include "run/isolate/search_round.h"
#include <math.h>
#include <stddef.h>

/* ---- crossing: the bad pair has one end in `suspect`, the other in `other` ---- */

static void halves_of(const struct isolate_search_set *s, struct isolate_search_set half[2])
{
	isolate_search_split(s, s->count > 1 ? s->count / 2 : 1, &half[0], &half[1]);
}

/* Adds a test of two sets. A single member gets a good one as partner. False: no test is possible. */
static bool add_union(struct isolate_search *f, const struct isolate_search_set *a,
		      const struct isolate_search_set *b, unsigned *next)
{
	unsigned count = a->count + b->count;

	if (!count || (count == 1 && *next >= f->good.count))
		return false;
	isolate_search_test_begin(f);
	isolate_search_test_add(f, a->m, a->count);
	isolate_search_test_add(f, b->m, b->count);
	if (count == 1)
		isolate_search_test_add(f, &f->good.m[(*next)++], 1);
	return true;
}

static void not_shown(struct isolate_search *f)
{
	if (f->start.pairs)
		isolate_search_pairs(f);
	else
		isolate_search_give_up(
			f, "bad only all together: no group with members of both halves shows it");
}

/* Tests {A0 B0} {A1 B1}, or crossed {A0 B1} {A1 B0}. One of the four groups contains the bad pair. */
static void cross(struct isolate_search *f, bool crossed)
{
	struct isolate_search_set a[2], b[2];
	unsigned next = 0;

	if (!isolate_search_round(f, ISOLATE_SEARCH_CROSS, ISOLATE_SEARCH_EVERY_PAIR, "%u x %u, %s",
				  f->suspect.count, f->other.count, crossed ? "crossed" : "straight"))
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
		isolate_search_test_pair(f, f->good.m[next], f->good.m[next + 1]);
}

static void confirm_cross(struct isolate_search *f)
{
	unsigned a = f->suspect.m[0], b = f->other.m[0];

	if (f->good.count < 2) {
		isolate_search_give_up(f, "too few good members to confirm the pair of %u and %u with", a, b);
		return;
	}
	if (!isolate_search_round(f, ISOLATE_SEARCH_CROSS_AGAIN, ISOLATE_SEARCH_EVERY_PAIR,
				  "%u and %u, each with a good member", a, b))
		return;
	isolate_search_test_pair(f, a, f->good.m[0]);
	isolate_search_test_pair(f, b, f->good.m[1]);
	if (f->good.count >= 4)
		isolate_search_test_pair(f, f->good.m[2], f->good.m[3]);
}

void isolate_search_cross(struct isolate_search *f)
{
	if (f->suspect.count == 1 && f->other.count == 1)
		confirm_cross(f);
	else
		cross(f, false);
}

void isolate_search_check_cross(struct isolate_search *f)
{
	struct isolate_search_set a[2], b[2];
	bool bad[2] = {isolate_search_bad(f, 0), f->count > 1 && isolate_search_bad(f, 1)};
	unsigned x = bad[0] ? 0 : 1, y = f->crossed ? !x : x;

	halves_of(&f->suspect, a);
	halves_of(&f->other, b);
	if (bad[0] && bad[1]) {
		if (!f->again)
			isolate_search_repeat(f);
		else
			isolate_search_give_up(f, "more than one pair is bad");
		return;
	}
	if (!bad[0] && !bad[1]) {
		if (!f->crossed)
			cross(f, true);
		else
			not_shown(f);
		return;
	}
	/* the slow group has a member of one set only, so it does not contain the pair */
	if (!a[x].count || !b[y].count) {
		not_shown(f);
		return;
	}
	f->with = isolate_search_figure(f, x);
	f->suspect = a[x];
	f->other = b[y];
	isolate_search_set_add(&f->good, a[!x].m, a[!x].count);
	isolate_search_set_add(&f->good, b[!y].m, b[!y].count);
	isolate_search_cross(f);
}

void isolate_search_recheck_cross(struct isolate_search *f)
{
	int a = f->suspect.m[0], b = f->other.m[0];
	bool bad_a = isolate_search_bad(f, 0), bad_b = isolate_search_bad(f, 1);

	if (!bad_a && !bad_b) {
		f->without = isolate_search_figure(f, 0);
		isolate_search_found(f, ISOLATE_SEARCH_PAIR, a, b,
				     "every group with both is bad; each is good with other members");
	} else if (!f->again) {
		isolate_search_repeat(f);
	} else if (bad_a && bad_b) {
		f->with = isolate_search_figure(f, 0);
		isolate_search_found(f, ISOLATE_SEARCH_TWO, a, b, "each is also bad with a good member");
	} else {
		f->with = isolate_search_figure(f, bad_a ? 0 : 1);
		f->without = isolate_search_figure(f, bad_a ? 1 : 0);
		isolate_search_found(f, ISOLATE_SEARCH_MEMBER, bad_a ? a : b, -1,
				     "also bad with other members, twice");
	}
}

/* ---- rounds of disjoint pairs, by the circle method ---- */

/* The member on seat n of the circle in this turn. The first member stays; the others move on by one seat a
 * turn. */
static unsigned seat(const struct isolate_search *f, unsigned n)
{
	return n ? 1 + (n - 1 + f->turn) % f->turns : 0;
}

static void next_pairs(struct isolate_search *f)
{
	unsigned n = f->start.members, even = n + n % 2;

	if (!isolate_search_round(f, ISOLATE_SEARCH_PAIRS, ISOLATE_SEARCH_ONE_PAIR,
				  "disjoint pairs, %u of %u", f->turn + 1, f->turns))
		return;
	for (unsigned i = 0; i < even / 2; i++) {
		unsigned a = seat(f, i), b = seat(f, even - 1 - i);

		if (a < n && b < n) /* the member opposite the empty seat rests */
			isolate_search_test_pair(f, a < b ? a : b, a < b ? b : a);
	}
}

void isolate_search_pairs(struct isolate_search *f)
{
	f->turn = 0;
	f->turns = f->start.members - 1 + f->start.members % 2;
	next_pairs(f);
}

static void take_slow(struct isolate_search *f, unsigned a, unsigned b, double figure)
{
	f->slow_of[a]++;
	f->slow_of[b]++;
	f->slow_pairs++;
	f->slow_a = (int)a;
	f->slow_b = (int)b;
	f->with = figure;
}

static void forget_slow(struct isolate_search *f)
{
	f->slow_of[f->slow_a] = f->slow_of[f->slow_b] = 0;
	f->slow_pairs = 0;
}

/* All pairs are tested. Decides which members the bad pairs have in common. */
static void look_matrix(struct isolate_search *f)
{
	unsigned n = f->start.members, all[2] = {0}, whole = 0;

	for (unsigned m = 0; m < n; m++)
		if (f->slow_of[m] == n - 1)
			all[whole++ % 2] = m;
	if (!f->slow_pairs)
		isolate_search_give_up(f, "no pair is bad by itself");
	else if (whole == 1 && f->slow_pairs == n - 1)
		isolate_search_found(f, ISOLATE_SEARCH_MEMBER, (int)all[0], -1,
				     "bad in all its %u pairs, and no other pair is bad", n - 1);
	else if (whole == 2 && f->slow_pairs == 2 * n - 3)
		isolate_search_found(f, ISOLATE_SEARCH_TWO, (int)all[0], (int)all[1],
				     "each bad in all its %u pairs", n - 1);
	else if (f->slow_pairs == 1 && !f->matrix)
		isolate_search_triangle(f, ISOLATE_SEARCH_ONE_PAIR, (unsigned)f->slow_a, (unsigned)f->slow_b);
	else
		isolate_search_give_up(f, "%u pairs are bad, and they do not share one or two members",
				       f->slow_pairs);
}

/* A round of two or three pairs may contain no good pair. So few members are judged when all pairs are
 * tested. */
static bool is_few(const struct isolate_search *f)
{
	return f->start.members < ISOLATE_SEARCH_FEW;
}

static void look_few(struct isolate_search *f)
{
	double good = 0;

	for (unsigned i = 0; i < f->few_count; i++)
		good = fmax(good, f->few[i].figure);
	for (unsigned i = 0; i < f->few_count; i++) {
		const struct isolate_search_few *p = &f->few[i];

		if (f->start.fault == ISOLATE_SEARCH_WRONG ? p->wrong : p->figure < good * (1 - f->loss / 2))
			take_slow(f, p->a, p->b, p->figure);
	}
	f->without = good;
	look_matrix(f);
}

static void go_on(struct isolate_search *f)
{
	if (++f->turn < f->turns)
		next_pairs(f);
	else if (is_few(f) && !f->matrix)
		look_few(f);
	else
		look_matrix(f);
}

void isolate_search_look_pairs(struct isolate_search *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		const uint16_t *m = &f->group[f->test[i].first];

		if (is_few(f))
			f->few[f->few_count++] = (struct isolate_search_few){
				.a = m[0], .b = m[1], .figure = f->test[i].figure, .wrong = f->test[i].wrong};
		else if (isolate_search_bad(f, i))
			take_slow(f, m[0], m[1], isolate_search_figure(f, i));
		else
			f->without = isolate_search_figure(f, i);
	}
	/* A single bad pair is checked as a link at once. Several are judged when all pairs are tested. */
	if (f->slow_pairs == 1 && !f->matrix)
		isolate_search_triangle(f, ISOLATE_SEARCH_ONE_PAIR, (unsigned)f->slow_a, (unsigned)f->slow_b);
	else
		go_on(f);
}

/* ---- three members: the two that may be a bad pair, and one that seems good ---- */

void isolate_search_triangle(struct isolate_search *f, enum isolate_search_traffic traffic, unsigned a,
			     unsigned b)
{
	unsigned c = 0;

	while (c == a || c == b)
		c++;
	f->a = (int)a;
	f->b = (int)b;
	if (!isolate_search_round(f, ISOLATE_SEARCH_TRIANGLE, traffic, "all pairs of %u, %u and %u", a, b, c))
		return;
	f->at_once = false;
	isolate_search_test_pair(f, a, b);
	isolate_search_test_pair(f, a, c);
	isolate_search_test_pair(f, b, c);
}

/* The triangle shows no bad pair. The search goes on with the remaining disjoint pairs, if there are any. */
static void no_pair(struct isolate_search *f, bool ab)
{
	bool more = f->turns && f->turn + 1 < f->turns;

	f->matrix = f->matrix || ab;
	if (!more) {
		isolate_search_give_up(
			f, "groups without %d or without %d are good, but pairs do not show which is bad",
			f->a, f->b);
		return;
	}
	if (!ab)
		forget_slow(f);
	go_on(f);
}

void isolate_search_look_triangle(struct isolate_search *f)
{
	bool ab = isolate_search_bad(f, 0), ac = isolate_search_bad(f, 1), bc = isolate_search_bad(f, 2);
	double with = isolate_search_figure(f, 0), without = isolate_search_figure(f, ac ? 2 : 1);

	if (!ab || (ac && bc)) {
		if (f->again)
			no_pair(f, ab);
		else
			isolate_search_repeat(f);
		return;
	}
	f->with = with;
	f->without = without;
	if (ac || bc)
		isolate_search_found(f, ISOLATE_SEARCH_MEMBER, ac ? f->a : f->b, -1,
				     "bad with each of two members that are good together");
	else
		isolate_search_found(f, ISOLATE_SEARCH_PAIR, f->a, f->b,
				     "bad together, twice, and each is good with another member");
}
