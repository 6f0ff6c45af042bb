/* SPDX-License-Identifier: Apache-2.0 */
/* The isolation search for one bad member. It leaves out each member in turn, or halves the set of suspects.
 * search_pairs.c searches for bad pairs. */
#include "run/isolate/search_round.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/math/stats.h"

/*
 * The threshold lies at half of the loss. The error of a median of r repeats is sigma sqrt(pi / 2 / r). The
 * error of a comparison of two such medians is sqrt(2) times that. The number of repeats r makes half of the
 * loss equal to 5 deviations of a median, or 3.5 deviations of a comparison, unless r reaches REPEATS_MOST.
 * Formulas: docs/explanation/methods/isolation.md, "Repeats".
 */
#define REPEATS_SHARE 1.6
#define REPEATS_SIGMAS 10.0
#define LOSS_LARGE 0.15
/* At least two repeats: they show the noise, and they catch an intermittent fault more often. A large loss
 * needs only one. */
enum {
	REPEATS_LEAST = 2,
	REPEATS_MOST = 6,
	VARIED_LEAST = 4 /* tests that are enough to estimate the noise */
};

/* Converts the noise of a figure from a share of the figure to a share of the expected rate. Example: noise
 * of 40 % of a figure that is a tenth of the expected rate is 4 % of the expected rate. */
static double of_expected(double figure, double expected, double sigma)
{
	return figure > 0 && figure < expected ? sigma * figure / expected : sigma;
}

static double noise_of(double whole, double expected, double sigma)
{
	double noise = of_expected(whole, expected, sigma);

	return isfinite(noise) && noise > ISOLATE_SEARCH_QUIET ? noise : ISOLATE_SEARCH_QUIET;
}

bool isolate_search_worth(double whole, double expected, double sigma)
{
	double loss = expected > 0 && whole > 0 ? 1 - whole / expected : 0;

	return loss >= fmax(ISOLATE_SEARCH_LEAST, ISOLATE_SEARCH_SIGMAS * noise_of(whole, expected, sigma));
}

static unsigned log2_up(unsigned n)
{
	unsigned bits = 0;

	while ((1u << bits) < n)
		bits++;
	return bits;
}

static bool one_by_one(const struct isolate_search_start *s)
{
	return (s->overlap && s->members <= ISOLATE_SEARCH_OVERLAP) || s->members == 3;
}

unsigned isolate_search_rounds_most(const struct isolate_search_start *s)
{
	/* One by one: a round, its confirmation and a triangle. Each of them may be repeated once. */
	unsigned most = one_by_one(s) ? 6 : 2 * log2_up(s->members) + 1;

	return most + (s->pairs ? s->members - 1 + s->members % 2 + 4 : 0);
}

static unsigned repeats(const struct isolate_search *f)
{
	double r, least = f->loss >= LOSS_LARGE ? 1 : REPEATS_LEAST;

	if (f->start.fault == ISOLATE_SEARCH_WRONG)
		return REPEATS_LEAST;
	r = REPEATS_SIGMAS * noise_of(f->start.whole, f->start.expected, f->start.sigma) / f->loss;
	return (unsigned)fmin(fmax(ceil(REPEATS_SHARE * r * r), least), REPEATS_MOST);
}

bool isolate_search_round(struct isolate_search *f, enum isolate_search_state state,
			  enum isolate_search_traffic traffic, const char *format, ...)
{
	va_list list;

	if (f->round >= f->rounds_most) {
		isolate_search_give_up(f, "the limit of %u rounds is reached", f->round);
		return false;
	}
	f->round++;
	f->state = state;
	f->traffic = traffic;
	f->repeats = repeats(f);
	f->again = false;
	f->at_once = true;
	f->count = f->grouped = 0;
	va_start(list, format);
	vsnprintf(f->what, sizeof(f->what), format, list);
	va_end(list);
	return true;
}

void isolate_search_repeat(struct isolate_search *f)
{
	if (f->round >= f->rounds_most) {
		isolate_search_give_up(f, "the limit of %u rounds is reached", f->round);
		return;
	}
	f->round++;
	f->again = true;
	for (unsigned i = 0; i < f->count; i++) {
		f->test[i].ran = f->test[i].sound = f->test[i].wrong = false;
		f->test[i].figure = f->test[i].variance = 0;
	}
}

void isolate_search_test_begin(struct isolate_search *f)
{
	f->test[f->count++] = (struct isolate_search_test){.first = f->grouped};
}

void isolate_search_test_add(struct isolate_search *f, const uint16_t *m, unsigned count)
{
	memcpy(&f->group[f->grouped], m, count * sizeof(*m));
	f->grouped += count;
	f->test[f->count - 1].count += count;
}

void isolate_search_test_pair(struct isolate_search *f, unsigned a, unsigned b)
{
	const uint16_t pair[2] = {(uint16_t)a, (uint16_t)b};

	isolate_search_test_begin(f);
	isolate_search_test_add(f, pair, 2);
}

void isolate_search_set_add(struct isolate_search_set *s, const uint16_t *m, unsigned count)
{
	memcpy(&s->m[s->count], m, count * sizeof(*m));
	s->count += count;
}

void isolate_search_split(const struct isolate_search_set *from, unsigned at, struct isolate_search_set *a,
			  struct isolate_search_set *b)
{
	a->count = b->count = 0;
	isolate_search_set_add(a, from->m, at);
	isolate_search_set_add(b, from->m + at, from->count - at);
}

/* What a good test of the round reaches, if the caller gave no expectation: the best test of the round. With
 * four pairs or more it is the upper quartile, because the best of many is partly luck. */
static double reference(const struct isolate_search *f)
{
	double x[ISOLATE_SEARCH_MEMBERS / 2], best = 0;

	for (unsigned i = 0; i < f->count; i++) {
		x[i] = f->test[i].figure;
		best = fmax(best, x[i]);
	}
	if (f->state != ISOLATE_SEARCH_PAIRS || f->count < 4) /* with three pairs, all may be bad */
		return f->state == ISOLATE_SEARCH_TRIANGLE && f->turns ? fmax(best, f->without) : best;
	stats_sort(x, f->count);
	return stats_percentile(x, f->count, 0.75);
}

bool isolate_search_bad(const struct isolate_search *f, unsigned test)
{
	const struct isolate_search_test *t = &f->test[test];
	double good = t->expected > 0 ? t->expected : f->reference;

	return f->start.fault == ISOLATE_SEARCH_WRONG ? t->wrong : t->figure < good * (1 - f->loss / 2);
}

double isolate_search_figure(const struct isolate_search *f, unsigned test)
{
	return f->test[test].figure;
}

static void found(struct isolate_search *f, enum isolate_search_kind kind, int a, int b)
{
	f->done = true;
	f->found = kind;
	f->a = a;
	f->b = b;
	f->count = f->grouped = 0;
}

void isolate_search_found(struct isolate_search *f, enum isolate_search_kind kind, int a, int b,
			  const char *format, ...)
{
	va_list list;

	found(f, kind, a, b);
	va_start(list, format);
	vsnprintf(f->why, sizeof(f->why), format, list);
	va_end(list);
}

void isolate_search_give_up(struct isolate_search *f, const char *format, ...)
{
	va_list list;

	found(f, f->held >= 0 ? ISOLATE_SEARCH_MEMBER : ISOLATE_SEARCH_NOBODY, f->held, -1);
	f->with = f->held >= 0 ? f->held_with : 0;
	f->without = f->held >= 0 ? f->held_without : 0;
	va_start(list, format);
	vsnprintf(f->why, sizeof(f->why), format, list);
	va_end(list);
}

/* ---- each left out in turn ---- */

static void add_all_but(struct isolate_search *f, int left_out)
{
	isolate_search_test_begin(f);
	for (unsigned m = 0; m < f->start.members; m++)
		if ((int)m != left_out)
			isolate_search_test_add(f, &(uint16_t){(uint16_t)m}, 1);
}

static void leave_out(struct isolate_search *f)
{
	if (!isolate_search_round(f, ISOLATE_SEARCH_LEFT_OUT, ISOLATE_SEARCH_SAME,
				  "each of %u left out in turn", f->start.members))
		return;
	f->at_once = false;
	for (unsigned m = 0; m < f->start.members; m++)
		add_all_but(f, (int)m);
}

/* Without an expectation, groups that are alike are either all good or all as bad as the whole. True: the
 * latter. */
static bool all_as_the_whole(const struct isolate_search *f)
{
	double best = 0;

	for (unsigned i = 0; i < f->count; i++)
		best = fmax(best, f->test[i].figure);
	return best < (f->start.whole + f->start.expected) / 2;
}

static void look_left_out(struct isolate_search *f)
{
	unsigned good[2] = {0}, n = 0;

	for (unsigned i = 0; i < f->count; i++)
		if (!isolate_search_bad(f, i)) {
			good[n % 2] = i;
			n++;
		}
	if (n == f->count && f->start.fault == ISOLATE_SEARCH_SLOW && all_as_the_whole(f))
		n = 0;
	if (n == 1) {
		f->a = (int)good[0];
		if (!isolate_search_round(f, ISOLATE_SEARCH_LEFT_OUT_AGAIN, ISOLATE_SEARCH_SAME,
					  "without %u, and all members, again", good[0]))
			return;
		f->at_once = false;
		add_all_but(f, f->a);
		add_all_but(f, -1);
	} else if (n == 2) {
		isolate_search_triangle(f, ISOLATE_SEARCH_SAME, good[0], good[1]);
	} else if (n == 0 && f->start.pairs && f->start.members > 3) {
		isolate_search_pairs(f);
	} else if (n == 0) {
		isolate_search_give_up(
			f, "every group with one member left out is bad: more than one member is bad");
	} else if (!f->again) {
		isolate_search_repeat(f);
	} else {
		isolate_search_give_up(
			f, "%u of %u groups with one member left out are good: no single member explains it",
			n, f->count);
	}
}

static void look_left_out_again(struct isolate_search *f)
{
	if (!isolate_search_bad(f, 0) && isolate_search_bad(f, 1)) {
		f->without = isolate_search_figure(f, 0);
		f->with = isolate_search_figure(f, 1);
		isolate_search_found(f, ISOLATE_SEARCH_MEMBER, f->a, -1,
				     "the others are good without it, twice, and bad with it");
	} else if (!f->again) {
		isolate_search_repeat(f);
	} else {
		isolate_search_give_up(f,
				       "one group was good without one member; a repeat did not confirm it");
	}
}

/* ---- halves ---- */

/* Adds a test of the members of `s`. A single member gets a good one as partner, because a collective needs
 * two. *next is the next unused good member. */
static void add_filled(struct isolate_search *f, const struct isolate_search_set *s, unsigned *next)
{
	isolate_search_test_begin(f);
	isolate_search_test_add(f, s->m, s->count);
	if (s->count == 1)
		isolate_search_test_add(f, &f->good.m[(*next)++], 1);
}

static void confirm_member(struct isolate_search *f)
{
	unsigned x = f->suspect.m[0];

	if (f->good.count < 3) {
		isolate_search_give_up(f, "too few good members to confirm member %u with", x);
		return;
	}
	if (!isolate_search_round(f, ISOLATE_SEARCH_HALVES_AGAIN, ISOLATE_SEARCH_SAME,
				  "%u with a good member, compared with two good members", x))
		return;
	isolate_search_test_pair(f, x, f->good.m[0]);
	isolate_search_test_pair(f, f->good.m[1], f->good.m[2]);
}

static void halve(struct isolate_search *f)
{
	struct isolate_search_set a, b;
	unsigned next = 0;

	if (f->suspect.count == 1) {
		confirm_member(f);
		return;
	}
	isolate_search_split(&f->suspect, f->suspect.count / 2, &a, &b);
	if ((a.count == 1) + (b.count == 1) > (int)f->good.count) {
		if (f->start.pairs)
			isolate_search_pairs(f);
		else
			isolate_search_give_up(f,
					       "more than one member is bad, and none is known to be good");
		return;
	}
	if (!isolate_search_round(f, ISOLATE_SEARCH_HALVES, ISOLATE_SEARCH_SAME, "halves of %u",
				  f->suspect.count))
		return;
	add_filled(f, &a, &next);
	add_filled(f, &b, &next);
}

/* Exactly one half is bad, so the members of the other half are good. */
static void narrow(struct isolate_search *f, bool first)
{
	struct isolate_search_set half[2];

	isolate_search_split(&f->suspect, f->suspect.count / 2, &half[0], &half[1]);
	f->suspect = half[!first];
	isolate_search_set_add(&f->good, half[first].m, half[first].count);
	halve(f);
}

/* Both halves are bad, twice: one bad member in each. The second half is searched later, so the limit of
 * rounds grows. */
static void take_two(struct isolate_search *f)
{
	struct isolate_search_set first;

	if (f->pending.count || f->held >= 0) {
		isolate_search_give_up(f, "three or more members are bad: test each of them by itself");
		return;
	}
	isolate_search_split(&f->suspect, f->suspect.count / 2, &first, &f->pending);
	f->suspect = first;
	f->rounds_most += 2 * log2_up(f->start.members) + 1;
	halve(f);
}

static void look_halves(struct isolate_search *f)
{
	bool a = isolate_search_bad(f, 0), b = isolate_search_bad(f, 1);

	if (a != b) {
		narrow(f, a);
	} else if (!f->again) {
		f->first_both = a;
		isolate_search_repeat(f);
	} else if (a != f->first_both) {
		isolate_search_give_up(f, "both halves were %s, then both were %s: the fault is intermittent",
				       a ? "good" : "bad", a ? "bad" : "good");
	} else if (a) {
		take_two(f);
	} else {
		struct isolate_search_set half;

		isolate_search_split(&f->suspect, f->suspect.count / 2, &half, &f->other);
		f->suspect = half;
		isolate_search_cross(f);
	}
}

/* The member is confirmed. If a second half is pending, its search begins now. */
static void take_member(struct isolate_search *f)
{
	int x = f->suspect.m[0];
	double with = isolate_search_figure(f, 0), without = isolate_search_figure(f, 1);

	if (f->pending.count) {
		f->held = x;
		f->held_with = with;
		f->held_without = without;
		f->suspect = f->pending;
		f->pending.count = 0;
		halve(f);
		return;
	}
	f->with = with;
	f->without = without;
	if (f->held >= 0)
		isolate_search_found(f, ISOLATE_SEARCH_TWO, f->held, x,
				     "each is bad with a good member; groups of good members are good");
	else
		isolate_search_found(
			f, ISOLATE_SEARCH_MEMBER, x, -1,
			"each bad half contained it; it is also bad with a good member, and two good members are good");
}

static void look_halves_again(struct isolate_search *f)
{
	if (isolate_search_bad(f, 0) && !isolate_search_bad(f, 1))
		take_member(f);
	else if (!f->again)
		isolate_search_repeat(f);
	else
		isolate_search_give_up(
			f, "the halves led to member %u, but it is good together with a good member",
			f->suspect.m[0]);
}

/* ---- the whole search ---- */

void isolate_search_begin(struct isolate_search *f, const struct isolate_search_start *start)
{
	const struct isolate_search_start *s = start;

	memset(f, 0, sizeof(*f));
	f->start = *s;
	f->a = f->b = f->held = f->slow_a = f->slow_b = -1;
	f->loss = s->fault == ISOLATE_SEARCH_SLOW && s->expected > 0 ? 1 - s->whole / s->expected : 0;
	f->rounds_most = isolate_search_rounds_most(s);
	if (s->fault == ISOLATE_SEARCH_SLOW && !isolate_search_worth(s->whole, s->expected, s->sigma)) {
		isolate_search_give_up(f, "slow once: not seen again when repeated");
		return;
	}
	if (s->members < 3 || s->members > ISOLATE_SEARCH_MEMBERS) {
		isolate_search_give_up(f, "%u members: every group contains the bad one", s->members);
		return;
	}
	for (unsigned m = 0; m < s->members; m++)
		isolate_search_set_add(&f->suspect, &(uint16_t){(uint16_t)m}, 1);
	if (one_by_one(s))
		leave_out(f);
	else
		halve(f);
}

static bool all_sound(const struct isolate_search *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		const struct isolate_search_test *t = &f->test[i];

		if (!t->ran || !t->sound ||
		    (f->start.fault == ISOLATE_SEARCH_SLOW && !(isfinite(t->figure) && t->figure > 0)))
			return false;
	}
	return true;
}

/* The three repeats of the whole may agree by luck. So this also checks the scatter of the tests' own
 * repeats. */
static bool too_noisy(struct isolate_search *f)
{
	double sigma;

	for (unsigned i = 0; i < f->count; i++) {
		const struct isolate_search_test *t = &f->test[i];

		if (isfinite(t->variance) && t->variance > 0) {
			sigma = of_expected(t->figure, f->start.expected, sqrt(t->variance));
			f->variance += sigma * sigma;
			f->varied++;
		}
	}
	if (f->start.fault == ISOLATE_SEARCH_WRONG || f->varied < VARIED_LEAST)
		return false;
	sigma = sqrt(f->variance / f->varied);
	if (f->loss >= ISOLATE_SEARCH_SIGMAS_SEEN * sigma)
		return false;
	isolate_search_give_up(f, "figures scatter by %.1f %%, so a loss of %.1f %% is within the noise",
			       100 * sigma, 100 * f->loss);
	return true;
}

void isolate_search_next(struct isolate_search *f)
{
	static void (*const look[ISOLATE_SEARCH_STATES])(struct isolate_search *) = {
		[ISOLATE_SEARCH_LEFT_OUT] = look_left_out,
		[ISOLATE_SEARCH_LEFT_OUT_AGAIN] = look_left_out_again,
		[ISOLATE_SEARCH_HALVES] = look_halves,
		[ISOLATE_SEARCH_HALVES_AGAIN] = look_halves_again,
		[ISOLATE_SEARCH_CROSS] = isolate_search_check_cross,
		[ISOLATE_SEARCH_CROSS_AGAIN] = isolate_search_recheck_cross,
		[ISOLATE_SEARCH_PAIRS] = isolate_search_look_pairs,
		[ISOLATE_SEARCH_TRIANGLE] = isolate_search_look_triangle,
	};

	if (f->done || too_noisy(f))
		return;
	if (all_sound(f)) {
		f->reference = reference(f);
		look[f->state](f);
	} else if (!f->again) {
		isolate_search_repeat(f);
	} else {
		isolate_search_give_up(f, "a group could not be measured in round %u", f->round);
	}
}
