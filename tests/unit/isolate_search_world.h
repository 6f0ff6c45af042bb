/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up world for the search: members of which some are bad, figures with noise, and its answers to rounds. */
#ifndef TESTS_FOLLOW_WORLD_H
#define TESTS_FOLLOW_WORLD_H
#include <math.h>
#include "core/math/random.h"
#include "core/math/stats.h"
#include "run/isolate/search.h"

enum { RATES_MAX = 256 };

/* A team whose groups answer: what is planted, how strongly, how noisily. */
struct world {
	unsigned members;
	bool overlap, pairs;
	enum isolate_search_kind planted; /* NOBODY, MEMBER a, PAIR a b, TWO a b */
	unsigned a, b;
	double effect, sigma; /* as shares */
	bool told;	      /* groups come with what good ones of their size reach */
	bool rings;	      /* only the two alone show a bad pair, no larger group does */
	bool dead;	      /* groups that hold `a` cannot be measured */
	enum isolate_search_fault fault;
	/* Recorded spreads, as multiples of their median; NULL: normal noise. `bad`: with the fault in it. */
	const double *good, *bad;
	size_t good_count, bad_count;
	uint64_t seed, drawn;
};

static inline double uniform(struct world *w)
{
	return (random_u32(w->seed, 7, w->drawn++) + 0.5) / 4294967296.0;
}

static inline double normal(struct world *w)
{
	double u = uniform(w);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * uniform(w));
}

static inline unsigned below(struct world *w, unsigned n)
{
	return (unsigned)(uniform(w) * n);
}

static inline bool holds(const uint16_t *m, unsigned count, unsigned who)
{
	for (unsigned i = 0; i < count; i++)
		if (m[i] == who)
			return true;
	return false;
}

static inline bool is_bad(const struct world *w, const uint16_t *m, unsigned count, enum isolate_search_traffic traffic)
{
	bool a = holds(m, count, w->a), b = holds(m, count, w->b);

	switch (w->planted) {
	case ISOLATE_SEARCH_MEMBER:
		return a;
	case ISOLATE_SEARCH_TWO:
		return a || b;
	case ISOLATE_SEARCH_PAIR:
		return a && b && (!w->rings || count == 2 || count == w->members) &&
		       (!w->rings || traffic == ISOLATE_SEARCH_ONE_PAIR || count == w->members);
	default:
		return false;
	}
}

static inline double once(struct world *w, bool bad)
{
	if (bad && w->bad)
		return w->bad[below(w, (unsigned)w->bad_count)];
	return (bad ? 1 - w->effect : 1) *
	       (w->good ? w->good[below(w, (unsigned)w->good_count)] : 1 + w->sigma * normal(w));
}

static inline struct stats repeated(struct world *w, bool bad, unsigned repeats)
{
	double x[16];

	for (unsigned i = 0; i < repeats; i++)
		x[i] = once(w, bad);
	return stats_of(x, repeats);
}

static inline void check_round(const struct isolate_search *f)
{
	bool used[ISOLATE_SEARCH_MEMBERS] = {false};

	assert_in_range(f->count, 1, ISOLATE_SEARCH_MEMBERS / 2);
	assert_in_range(f->round, 1, f->rounds_most);
	assert_in_range(f->repeats, 1, 6);
	for (unsigned i = 0; i < f->count; i++) {
		const struct isolate_search_test *t = &f->test[i];

		assert_in_range(t->count, 2, f->start.members);
		assert_true(t->first + t->count <= ISOLATE_SEARCH_MEMBERS);
		if (!f->at_once)
			memset(used, 0, sizeof(used));
		for (unsigned k = 0; k < t->count; k++) {
			unsigned m = f->group[t->first + k];

			assert_in_range(m, 0, f->start.members - 1);
			assert_false(used[m]); /* once a test; of tests at the same time, in one of them */
			used[m] = true;
		}
	}
}

static inline void answer(struct world *w, struct isolate_search *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct isolate_search_test *t = &f->test[i];
		const uint16_t *m = &f->group[t->first];
		bool bad = is_bad(w, m, t->count, f->traffic);
		struct stats s;

		t->ran = true;
		t->sound = !(w->dead && holds(m, t->count, w->a));
		t->expected = w->told ? 1 : 0;
		t->wrong = w->fault == ISOLATE_SEARCH_WRONG && bad;
		s = repeated(w, w->fault == ISOLATE_SEARCH_SLOW && bad, f->repeats);
		t->figure = s.median;
		t->variance = s.stddev * s.stddev / (s.mean * s.mean);
	}
}

static inline void search(struct world *w, struct isolate_search *f)
{
	struct isolate_search_start start = {.members = w->members,
				     .overlap = w->overlap,
				     .pairs = w->pairs,
				     .fault = w->fault,
				     .expected = 1,
				     .sigma = w->sigma};
	unsigned most = isolate_search_rounds_most(&start);

	start.whole = repeated(w, w->planted && w->fault == ISOLATE_SEARCH_SLOW, 3).median;
	isolate_search_begin(f, &start);
	while (!f->done) {
		check_round(f);
		answer(w, f);
		isolate_search_next(f);
	}
	assert_in_range(f->round, 0, 2 * most);
	assert_true(*f->why != '\0');
}

static inline bool is_named(const struct world *w, const struct isolate_search *f)
{
	int a = (int)(w->a < w->b ? w->a : w->b), b = (int)(w->a < w->b ? w->b : w->a);
	int first = f->a < f->b ? f->a : f->b, second = f->a < f->b ? f->b : f->a;

	if (f->found != w->planted)
		return false;
	return f->found == ISOLATE_SEARCH_MEMBER ? f->a == (int)w->a : first == a && second == b;
}

static inline void plant(struct world *w, enum isolate_search_kind kind)
{
	w->planted = kind;
	w->a = below(w, w->members);
	do
		w->b = below(w, w->members);
	while (w->b == w->a);
}

static inline unsigned log2_up(unsigned n)
{
	return (unsigned)ceil(log2(n));
}

static const unsigned sizes[] = {3, 4, 5, 6, 7, 8, 9, 64, 250, 256};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
static const struct {
	double effect, sigma;
} strengths[] = {{0.5, 0.01}, {0.1, 0.01}, {0.07, 0.01}, {0.15, 0.02}, {0.03, 0.0025}};
enum { STRENGTHS = sizeof(strengths) / sizeof(strengths[0]) };

/* One planted fault of a kind; the size and strength follow from the number of the trial. */
static inline struct world planted(unsigned trial, enum isolate_search_kind kind, bool overlap)
{
	struct world w = {.members = sizes[trial % SIZES],
			  .overlap = overlap,
			  .effect = strengths[trial % STRENGTHS].effect,
			  .sigma = strengths[trial % STRENGTHS].sigma,
			  .told = trial % 2,
			  .seed = 100 + trial};

	if (overlap)
		w.members = 3 + trial % 14;
	if (kind == ISOLATE_SEARCH_PAIR && w.members < 4)
		w.members = 12;
	plant(&w, kind);
	return w;
}
#endif
