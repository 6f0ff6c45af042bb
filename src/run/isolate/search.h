/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From figures to more cases: which member of a team, or which two of them, makes the whole slow or wrong.
 * Pure: no clock, no random number, no machine. Rounds come out, their answers go in;
 * docs/explanation/design/isolation.md tells the search, METHODS ("Isolation") its thresholds and how often they err.
 */
#ifndef RUN_FOLLOW_H
#define RUN_FOLLOW_H
#include <stdbool.h>
#include <stdint.h>

enum {
	FOLLOW_MEMBERS = 4096,
	FOLLOW_OVERLAP = 32 /* most members that are left out one by one */,
	FOLLOW_FEW = 8
};
#define FOLLOW_LEAST 0.02      /* of the expectation: a smaller loss is not searched */
#define FOLLOW_SIGMAS 4.0      /* nor one within so many deviations of the noise */
#define FOLLOW_SIGMAS_SEEN 3.0 /* of the noise that the search itself sees */
#define FOLLOW_QUIET 0.0025    /* noise is never taken for less */

enum follow_fault { FOLLOW_SLOW, FOLLOW_WRONG };
enum follow_kind { FOLLOW_NOBODY, FOLLOW_MEMBER, FOLLOW_PAIR, FOLLOW_TWO /* members, each by itself */ };
/* What a round's tests send: the work that was slow, what uses every pair of the group, one pair alone, or
 * parts that come from one member each, to all. */
enum follow_traffic { FOLLOW_SAME, FOLLOW_EVERY_PAIR, FOLLOW_ONE_PAIR, FOLLOW_PARTS };

struct follow_start {
	unsigned members;
	bool overlap; /* members of one node: each left out in turn, tests one after the other */
	bool pairs;   /* all disjoint pairs may be tested, where groups show nothing */
	enum follow_fault fault;
	/* SLOW: the whole's rate, median of three repeats; what it should reach; noise of one figure as a
	 * share. */
	double whole, expected, sigma;
};

struct follow_test {
	unsigned first, count; /* its members: follow.group[first .. first + count) */
	double expected; /* what a good group of this size reaches; 0: held against the others of its round */
	/* Filled in by the caller. sound: ended well, settled and undisturbed. */
	bool ran, sound, wrong;
	double figure;	 /* a rate, median of follow.repeats */
	double variance; /* of the repeats about their mean, as a share of it squared; 0: not known */
};

enum follow_state {
	FOLLOW_LEFT_OUT,
	FOLLOW_LEFT_OUT_AGAIN,
	FOLLOW_HALVES,
	FOLLOW_HALVES_AGAIN,
	FOLLOW_CROSS,
	FOLLOW_CROSS_AGAIN,
	FOLLOW_PAIRS,
	FOLLOW_TRIANGLE,
	FOLLOW_STATES
};

struct follow_set {
	unsigned count;
	uint16_t m[FOLLOW_MEMBERS];
};

struct follow {
	struct follow_start start;
	double loss;	  /* of the whole, as a share of the expectation */
	unsigned repeats; /* of each test */
	unsigned rounds_most;

	unsigned round; /* 1 first */
	enum follow_traffic traffic;
	bool at_once; /* the round's tests are disjoint: they may run at the same time */
	struct follow_test test[FOLLOW_MEMBERS / 2];
	unsigned count;
	uint16_t group[FOLLOW_MEMBERS];
	char what[96]; /* what the round tries: "halves of 64" */

	bool done; /* then: */
	enum follow_kind found;
	int a, b;	      /* MEMBER: a; PAIR, TWO: both; -1 else */
	double with, without; /* figures of the proof: with what was found, and without; 0: none */
	char why[192];	      /* what shows it, or why nobody is named */

	/* The search's own. */
	enum follow_state state;
	double variance;  /* of the tests so far, summed */
	unsigned varied;  /* tests in it */
	double reference; /* of the round: what its good tests reach */
	bool again;	  /* this round repeats the one before */
	bool first_both;  /* halves: both were bad the first time, not neither */
	bool crossed;
	unsigned grouped;
	struct follow_set suspect, other, pending,
		good; /* other: of a pair; pending: of a second bad member */
	int held;     /* the first of two bad members; -1: none */
	double held_with, held_without;
	unsigned turn, turns; /* of the disjoint pairs */
	unsigned slow_pairs;
	uint16_t slow_of[FOLLOW_MEMBERS]; /* a member's slow pairs */
	int slow_a, slow_b;
	bool matrix; /* what is bad is no single link: all pairs are looked at */
	struct follow_few {
		uint16_t a, b;
		bool wrong;
		double figure;
	} few[FOLLOW_FEW * (FOLLOW_FEW - 1) / 2];
	unsigned few_count;
};

/* Begins at round 1, or is done: too few members, a loss that is not to be told from noise. */
void follow_begin(struct follow *f, const struct follow_start *start);
/* Looks at the answers to the round's tests and writes those of the next, or is done. Total over any
 * answers. */
void follow_next(struct follow *f);
/* The most rounds that such a search takes, repetitions included. */
unsigned follow_rounds_most(const struct follow_start *start);
/* Would begin: a loss of `whole` against `expected` that is worth a search, given the noise. */
bool follow_worth(double whole, double expected, double sigma);
#endif
