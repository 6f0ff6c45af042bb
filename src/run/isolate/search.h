/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search: finds the member of a team, or the two members, that make the whole slow or wrong. It is
 * pure: it uses no clock, no random number and no machine. The search gives the tests of a round, and the
 * caller fills in their results. The steps: docs/explanation/design/isolation.md. Thresholds and error rates:
 * docs/explanation/methods/isolation.md.
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
#define ISOLATE_SEARCH_LEAST 0.02      /* as a share of the expected rate: a smaller loss is not searched */
#define ISOLATE_SEARCH_SIGMAS 4.0      /* a loss below this many deviations of the noise is not searched */
#define ISOLATE_SEARCH_SIGMAS_SEEN 3.0 /* the same limit for the noise that the tests themselves show */
#define ISOLATE_SEARCH_QUIET 0.0025    /* the noise is assumed to be at least this large */

enum isolate_search_fault { ISOLATE_SEARCH_SLOW, ISOLATE_SEARCH_WRONG };
enum isolate_search_kind {
	ISOLATE_SEARCH_NOBODY,
	ISOLATE_SEARCH_MEMBER,
	ISOLATE_SEARCH_PAIR,
	ISOLATE_SEARCH_TWO /* two members, each bad by itself */
};
/* Traffic of a round's tests: the slow case's own, traffic between every pair of the group, between one pair,
 * or an all-gather in which each part comes from one member. */
enum isolate_search_traffic {
	ISOLATE_SEARCH_SAME,
	ISOLATE_SEARCH_EVERY_PAIR,
	ISOLATE_SEARCH_ONE_PAIR,
	ISOLATE_SEARCH_PARTS
};

struct isolate_search_start {
	unsigned members;
	/* members share links (one node): each is left out in turn, and the tests run one after the other */
	bool overlap;
	bool pairs; /* all disjoint pairs may be tested if groups show nothing */
	enum isolate_search_fault fault;
	/* SLOW only: rate of the whole (median of three repeats), the rate it should reach, and the noise of
	 * one figure as a share of the expected rate. */
	double whole, expected, sigma;
};

struct isolate_search_test {
	unsigned first, count; /* its members: group[first .. first + count) of the search */
	/* rate of a good group of this size; 0: unknown, the other tests of the round are the reference */
	double expected;
	/* The caller fills these in. sound: the test ended without error, settled and undisturbed. */
	bool ran, sound, wrong;
	double figure;	 /* a rate: median of the round's repeats */
	double variance; /* variance of the repeats as a share of their squared mean; 0: unknown */
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
	double loss;	  /* loss of the whole, as a share of the expected rate */
	unsigned repeats; /* of each test */
	unsigned rounds_most;

	unsigned round; /* begins with 1 */
	enum isolate_search_traffic traffic;
	bool at_once; /* the round's tests have no member in common, so they may run simultaneously */
	struct isolate_search_test test[ISOLATE_SEARCH_MEMBERS / 2];
	unsigned count;
	uint16_t group[ISOLATE_SEARCH_MEMBERS];
	char what[96]; /* description of the round: "halves of 64" */

	bool done; /* if true, the fields below are the result */
	enum isolate_search_kind found;
	int a, b;	      /* MEMBER: a; PAIR and TWO: a and b; otherwise -1 */
	double with, without; /* rates of the confirmation with the named member and without it; 0: unknown */
	char why[192];	      /* the evidence, or why nobody is named */

	/* Private fields of the search. */
	enum isolate_search_state state;
	double variance;  /* sum over the tests so far */
	unsigned varied;  /* number of tests in `variance` */
	double reference; /* rate of a good test of this round */
	bool again;	  /* this round repeats the previous one */
	bool first_both;  /* halves: both were bad the first time, not both good */
	bool crossed;
	unsigned grouped;
	/* suspect: may be bad; other: the other end of a pair; pending: searched later for a second bad
	 * member
	 */
	struct isolate_search_set suspect, other, pending, good;
	int held; /* the first of two bad members; -1: none yet */
	double held_with, held_without;
	unsigned turn, turns; /* number of the round of disjoint pairs, and of all such rounds */
	unsigned slow_pairs;
	uint16_t slow_of[ISOLATE_SEARCH_MEMBERS]; /* number of slow pairs of each member */
	int slow_a, slow_b;
	bool matrix; /* a single link does not explain the fault, so all pairs are tested */
	struct isolate_search_few {
		uint16_t a, b;
		bool wrong;
		double figure;
	} few[ISOLATE_SEARCH_FEW * (ISOLATE_SEARCH_FEW - 1) / 2];
	unsigned few_count;
};

/* Begins with round 1. Ends at once if there are too few members or if the loss is within the noise. */
void isolate_search_begin(struct isolate_search *f, const struct isolate_search_start *start);
/* Evaluates the results of the round's tests, then prepares the next round or ends. Accepts any results. */
void isolate_search_next(struct isolate_search *f);
/* The largest number of rounds of such a search, repeated rounds included. */
unsigned isolate_search_rounds_most(const struct isolate_search_start *start);
/* Whether the loss of `whole` compared with `expected` is large enough for a search, given the noise `sigma`.
 */
bool isolate_search_worth(double whole, double expected, double sigma);
#endif
