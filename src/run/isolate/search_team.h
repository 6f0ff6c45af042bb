/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of search.h where ranks were launched: nodes first, then the ranks of the bad one. Pure: rounds
 * come out in `f`, whose members are nodes or ranks as member_of says, and their answers go in.
 */
#ifndef RUN_ISOLATE_SEARCH_TEAM_H
#define RUN_ISOLATE_SEARCH_TEAM_H
#include "run/isolate/search.h"

enum { ISOLATE_SEARCH_NO_MEMBER = 0xffff, ISOLATE_SEARCH_TEAM_REPEATS = 3 };

struct isolate_search_layout {
	unsigned ranks, nodes;			  /* ranks: launched */
	uint16_t node_of[ISOLATE_SEARCH_MEMBERS]; /* of each rank, below `nodes`; NO_MEMBER: it takes no part
						   */
};

enum isolate_search_team_stage {
	ISOLATE_SEARCH_TEAM_NODES,
	ISOLATE_SEARCH_TEAM_TWO_NODES, /* each by itself */
	ISOLATE_SEARCH_TEAM_ALONE,     /* the bad node by itself, beside a good one */
	ISOLATE_SEARCH_TEAM_RANKS,
	ISOLATE_SEARCH_TEAM_TWO_RANKS, /* each with a rank of the good node */
};

struct isolate_search_team {
	struct isolate_search_layout layout;
	struct isolate_search_start start;	    /* fault, whole, expected, sigma are the caller's */
	struct isolate_search *f;		    /* the round at hand */
	uint16_t member_of[ISOLATE_SEARCH_MEMBERS]; /* of each rank: the member of f that it belongs to */
	bool beside; /* the groups of the round stand on nodes of their own: they may run at one time */

	bool done; /* then: */
	enum isolate_search_kind found;
	bool node;	      /* a and b are nodes, not ranks */
	int a, b;	      /* -1: none */
	double with, without; /* 0: none */
	char why[256];

	/* The search's own. */
	enum isolate_search_team_stage stage;
	unsigned rounds; /* of the stages before */
	unsigned bad, good;
	uint16_t rank_of[ISOLATE_SEARCH_MEMBERS]; /* of a member that is a rank */
};

/* One test of all ranks, in *f: the whole again. */
void isolate_search_team_whole(struct isolate_search_team *t, struct isolate_search *f,
			       const struct isolate_search_layout *layout);
/* Begins at a round, or is done. `s`: fault, and the whole as it was seen again. */
void isolate_search_team_begin(struct isolate_search_team *t, const struct isolate_search_start *s);
void isolate_search_team_next(struct isolate_search_team *t);
/* Are there groups without the bad one? Not of two ranks, nor of two nodes that cannot be held against each
 * other: one has more ranks, or one alone. */
bool isolate_search_team_groups(const struct isolate_search_team *t);
/* The how many-th round of the whole search this is. */
unsigned isolate_search_team_round(const struct isolate_search_team *t);
/* How many ranks of the node take part; *first: the lowest. */
unsigned isolate_search_team_ranks(const struct isolate_search_team *t, unsigned node, unsigned *first);
#endif
