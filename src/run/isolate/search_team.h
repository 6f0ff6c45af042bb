/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search among launched ranks: first the nodes, then the ranks of the bad node. It is pure. Rounds
 * come out in `f`. Their members are nodes or ranks; member_of maps ranks to members. The caller fills in the
 * results.
 */
#ifndef RUN_ISOLATE_SEARCH_TEAM_H
#define RUN_ISOLATE_SEARCH_TEAM_H
#include "run/isolate/search.h"

enum { ISOLATE_SEARCH_NO_MEMBER = 0xffff, ISOLATE_SEARCH_TEAM_REPEATS = 3 };

struct isolate_search_layout {
	unsigned ranks, nodes; /* ranks: number of launched ranks */
	/* node of each rank, below `nodes`; NO_MEMBER: the rank takes no part */
	uint16_t node_of[ISOLATE_SEARCH_MEMBERS];
};

enum isolate_search_team_stage {
	ISOLATE_SEARCH_TEAM_NODES,
	ISOLATE_SEARCH_TEAM_TWO_NODES, /* each by itself */
	ISOLATE_SEARCH_TEAM_ALONE,     /* the bad node by itself, compared with a good one by itself */
	ISOLATE_SEARCH_TEAM_RANKS,
	ISOLATE_SEARCH_TEAM_TWO_RANKS, /* each with a rank of the good node */
};

struct isolate_search_team {
	struct isolate_search_layout layout;
	struct isolate_search_start start;	    /* the caller sets fault, whole, expected and sigma */
	struct isolate_search *f;		    /* the current round */
	uint16_t member_of[ISOLATE_SEARCH_MEMBERS]; /* member of `f` that each rank belongs to */
	bool beside; /* each group of the round has nodes of its own, so the groups may run simultaneously */

	bool done; /* if true, the fields below are the result */
	enum isolate_search_kind found;
	bool node;	      /* a and b are nodes, not ranks */
	int a, b;	      /* -1: none */
	double with, without; /* rates; 0: unknown */
	char why[256];

	/* Private fields of the search. */
	enum isolate_search_team_stage stage;
	unsigned rounds; /* of the previous stages */
	unsigned bad, good;
	uint16_t rank_of[ISOLATE_SEARCH_MEMBERS]; /* rank of a member that is a rank */
};

/* Prepares one test of all ranks in *f: the whole again. */
void isolate_search_team_whole(struct isolate_search_team *t, struct isolate_search *f,
			       const struct isolate_search_layout *layout);
/* Begins with a round, or ends at once. `s` has the fault and the rate of the repeated whole. */
void isolate_search_team_begin(struct isolate_search_team *t, const struct isolate_search_start *s);
void isolate_search_team_next(struct isolate_search_team *t);
/* Whether groups without the bad member exist. They do not for two ranks, nor for two nodes that differ in
 * their number of ranks or have one rank each. */
bool isolate_search_team_groups(const struct isolate_search_team *t);
/* Number of the current round, counted over all stages. */
unsigned isolate_search_team_round(const struct isolate_search_team *t);
/* Number of the node's ranks that take part; *first: the lowest of them. */
unsigned isolate_search_team_ranks(const struct isolate_search_team *t, unsigned node, unsigned *first);
#endif
