/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From figures to more cases: which member of a team, or which two of them, makes the whole slow or wrong.
 * Pure: no clock, no random number, no machine. Rounds come out, their answers go in;
 * docs/explanation/design/isolation.md tells the search, METHODS ("Isolation") its thresholds and how often
 * they err.
 */
#ifndef RUN_ISOLATE_SEARCH_H
#define RUN_ISOLATE_SEARCH_H
#include <stdbool.h>
#include <stdint.h>

enum {
	ISOLATE_SEARCH_MEMBERS = 4096,
	ISOLATE_SEARCH_OVERLAP = 32 /* most members that are left out one by one */,
	ISOLATE_SEARCH_FEW = 8
};
#define ISOLATE_SEARCH_LEAST 0.02      /* of the expectation: a smaller loss is not searched */
#define ISOLATE_SEARCH_SIGMAS 4.0      /* nor one within so many deviations of the noise */
#define ISOLATE_SEARCH_SIGMAS_SEEN 3.0 /* of the noise that the search itself sees */
#define ISOLATE_SEARCH_QUIET 0.0025    /* noise is never taken for less */

enum isolate_search_fault { ISOLATE_SEARCH_SLOW, ISOLATE_SEARCH_WRONG };
enum isolate_search_kind {
	ISOLATE_SEARCH_NOBODY,
	ISOLATE_SEARCH_MEMBER,
	ISOLATE_SEARCH_PAIR,
	ISOLATE_SEARCH_TWO /* members, each by itself */
};
/* What a round's tests send: the work that was slow, what uses every pair of the group, one pair alone, or
 * parts that come from one member each, to all. */
enum isolate_search_traffic {
	ISOLATE_SEARCH_SAME,
	ISOLATE_SEARCH_EVERY_PAIR,
	ISOLATE_SEARCH_ONE_PAIR,
	ISOLATE_SEARCH_PARTS
};

struct isolate_search_start {
	unsigned members;
	bool overlap; /* members of one node: each left out in turn, tests one after the other */
	bool pairs;   /* all disjoint pairs may be tested, where groups show nothing */
	enum isolate_search_fault fault;
	/* SLOW: the whole's rate, median of three repeats; what it should reach; noise of one figure as a
	 * share. */
	double whole, expected, sigma;
};

struct isolate_search_test {
	unsigned first, count; /* its members: follow.group[first .. first + count) */
	double expected; /* what a good group of this size reaches; 0: held against the others of its round */
	/* Filled in by the caller. sound: ended well, settled and undisturbed. */
	bool ran, sound, wrong;
	double figure;	 /* a rate, median of follow.repeats */
	double variance; /* of the repeats about their mean, as a share of it squared; 0: not known */
};

enum isolate_search_state {
	ISOLATE_SEARCH_LEFT_OUT,
	ISOLATE_SEARCH_LEFT_OUT_AGAIN,
	ISOLATE_SEARCH_HALVES,
	ISOLATE_SEARCH_HALVES_AGAIN,
	ISOLATE_SEARCH_CROSS,
	ISOLATE_SEARCH_CROSS_AGAIN,
	ISOLATE_SEARCH_PAIRS,
	ISOLATE_SEARCH_TRIANGLE,
	ISOLATE_SEARCH_STATES
};

struct isolate_search_set {
	unsigned count;
	uint16_t m[ISOLATE_SEARCH_MEMBERS];
};

struct isolate_search {
	struct isolate_search_start start;
	double loss;	  /* of the whole, as a share of the expectation */
	unsigned repeats; /* of each test */
	unsigned rounds_most;

	unsigned round; /* 1 first */
	enum isolate_search_traffic traffic;
	bool at_once; /* the round's tests are disjoint: they may run at the same time */
	struct isolate_search_test test[ISOLATE_SEARCH_MEMBERS / 2];
	unsigned count;
	uint16_t group[ISOLATE_SEARCH_MEMBERS];
	char what[96]; /* what the round tries: "halves of 64" */

	bool done; /* then: */
	enum isolate_search_kind found;
	int a, b;	      /* MEMBER: a; PAIR, TWO: both; -1 else */
	double with, without; /* figures of the proof: with what was found, and without; 0: none */
	char why[192];	      /* what shows it, or why nobody is named */

	/* The search's own. */
	enum isolate_search_state state;
	double variance;  /* of the tests so far, summed */
	unsigned varied;  /* tests in it */
	double reference; /* of the round: what its good tests reach */
	bool again;	  /* this round repeats the one before */
	bool first_both;  /* halves: both were bad the first time, not neither */
	bool crossed;
	unsigned grouped;
	struct isolate_search_set suspect, other, pending,
		good; /* other: of a pair; pending: of a second bad member */
	int held;     /* the first of two bad members; -1: none */
	double held_with, held_without;
	unsigned turn, turns; /* of the disjoint pairs */
	unsigned slow_pairs;
	uint16_t slow_of[ISOLATE_SEARCH_MEMBERS]; /* a member's slow pairs */
	int slow_a, slow_b;
	bool matrix; /* what is bad is no single link: all pairs are looked at */
	struct isolate_search_few {
		uint16_t a, b;
		bool wrong;
		double figure;
	} few[ISOLATE_SEARCH_FEW * (ISOLATE_SEARCH_FEW - 1) / 2];
	unsigned few_count;
};

/* Begins at round 1, or is done: too few members, a loss that is not to be told from noise. */
void isolate_search_begin(struct isolate_search *f, const struct isolate_search_start *start);
/* Looks at the answers to the round's tests and writes those of the next, or is done. Total over any
 * answers. */
void isolate_search_next(struct isolate_search *f);
/* The most rounds that such a search takes, repetitions included. */
unsigned isolate_search_rounds_most(const struct isolate_search_start *start);
/* Would begin: a loss of `whole` against `expected` that is worth a search, given the noise. */
bool isolate_search_worth(double whole, double expected, double sigma);
#endif
