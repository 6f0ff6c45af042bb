/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of follow.h where ranks were launched: nodes first, then the ranks of the bad one. Pure: rounds
 * come out in `f`, whose members are nodes or ranks as member_of says, and their answers go in.
 */
#ifndef RUN_FOLLOW_TEAM_H
#define RUN_FOLLOW_TEAM_H
#include "run/isolate/search.h"

enum { FOLLOW_NO_MEMBER = 0xffff, FOLLOW_TEAM_REPEATS = 3 };

struct follow_layout {
	unsigned ranks, nodes;		  /* ranks: launched */
	uint16_t node_of[FOLLOW_MEMBERS]; /* of each rank, below `nodes`; NO_MEMBER: it takes no part */
};

enum follow_team_stage {
	FOLLOW_TEAM_NODES,
	FOLLOW_TEAM_TWO_NODES, /* each by itself */
	FOLLOW_TEAM_ALONE,     /* the bad node by itself, beside a good one */
	FOLLOW_TEAM_RANKS,
	FOLLOW_TEAM_TWO_RANKS, /* each with a rank of the good node */
};

struct follow_team {
	struct follow_layout layout;
	struct follow_start start;	    /* fault, whole, expected, sigma are the caller's */
	struct follow *f;		    /* the round at hand */
	uint16_t member_of[FOLLOW_MEMBERS]; /* of each rank: the member of f that it belongs to */
	bool beside; /* the groups of the round stand on nodes of their own: they may run at one time */

	bool done; /* then: */
	enum follow_kind found;
	bool node;	      /* a and b are nodes, not ranks */
	int a, b;	      /* -1: none */
	double with, without; /* 0: none */
	char why[256];

	/* The search's own. */
	enum follow_team_stage stage;
	unsigned rounds; /* of the stages before */
	unsigned bad, good;
	uint16_t rank_of[FOLLOW_MEMBERS]; /* of a member that is a rank */
};

/* One test of all ranks, in *f: the whole again. */
void follow_team_whole(struct follow_team *t, struct follow *f, const struct follow_layout *layout);
/* Begins at a round, or is done. `s`: fault, and the whole as it was seen again. */
void follow_team_begin(struct follow_team *t, const struct follow_start *s);
void follow_team_next(struct follow_team *t);
/* Are there groups without the bad one? Not of two ranks, nor of two nodes that cannot be held against each
 * other: one has more ranks, or one alone. */
bool follow_team_groups(const struct follow_team *t);
/* The how many-th round of the whole search this is. */
unsigned follow_team_round(const struct follow_team *t);
/* How many ranks of the node take part; *first: the lowest. */
unsigned follow_team_ranks(const struct follow_team *t, unsigned node, unsigned *first);
#endif
