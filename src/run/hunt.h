/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of follow.h bound to a run: a case of several GPUs that was slow or wrong is followed by groups
 * of them until the one is named that makes it so (docs/design/isolation.md). What follow_run.c (the search),
 * follow_tests.c (its tests as cases), follow_two.c (two GPUs, of which no group can be without the bad one)
 * and follow_ranks.c (launched ranks) share.
 */
#ifndef RUN_HUNT_H
#define RUN_HUNT_H
#include "run/follow_team.h"
#include "run/supervisor.h"

struct hunt {
	struct run *r;
	const struct bench_case *trigger;
	enum follow_fault fault;
	double expected; /* SLOW: what the trigger's case should reach */
	uint64_t begin_ns, end_ns;
	struct follow f;
	struct follow_team team;	  /* of launched ranks: the search of which `f` is a round */
	unsigned node_of[FOLLOW_MEMBERS]; /* of the layout's nodes: their numbers in the team's shape */
	unsigned tests, waves; /* run so far: cases, and their turns: groups at one time take one */
	char stopped[256];     /* why it goes no further */
};

/* A round as it is told to every rank. */
struct hunt_order {
	struct run *r;
	const struct bench_case *trigger;
	enum follow_fault fault;
	enum follow_traffic traffic;
	unsigned round, repeats;
	const char *what;
};

/* One group of it. */
struct hunt_group {
	const char *text; /* target */
	json_t *gpus;	  /* owned */
	unsigned ranks, team;
};

/* What is found goes into the record of the trigger: its phase "isolated". */
struct hunt_finding {
	enum follow_kind found;
	const char *of; /* what was searched: "gpu", "rank", "node" */
	char place[160], pci[64];
	double with, without; /* the trigger's figure as rates: with what was found, and without; 0: none */
	char why[256];
};

/* How a member is called, and the PCI address of its GPU; "": it has none of its own, or several. */
struct hunt_place {
	char place[72], pci[24];
};
typedef struct hunt_place hunt_namer(const struct hunt *h, unsigned member);
/* Member a, or a and b, as `found` says; of FOLLOW_NOBODY neither is looked at. */
void hunt_name(const struct hunt *h, hunt_namer *name, enum follow_kind found, int a, int b,
	       struct hunt_finding *out);
/* A round whose one test is of all members. */
void hunt_all(struct follow *f, unsigned members, const char *what);
/* Runs the tests of h->f; *first: the id of the first, then test after test, and all again for each repeat.
 * False: nothing runs any more. */
bool hunt_tests(struct hunt *h, unsigned repeats, unsigned *first);
/* What they came to, into h->f. */
void hunt_answers(struct hunt *h, unsigned first);
unsigned hunt_round(const struct hunt *h);
/* The trigger's case for this group, as a burst. */
enum status hunt_case(const struct hunt_order *o, const struct hunt_group *g, struct bench_case *out,
		      struct error *err);
json_t *hunt_mark(const struct hunt_order *o);

/* follow_ranks.c: rank 0's search, and what it asks of all. */
void ranks_whole(struct hunt *h);
bool ranks_tests(struct hunt *h, const struct hunt_order *o);
void ranks_search(struct hunt *h, const struct follow_start *s, struct hunt_finding *out);
/* Can groups of its ranks do it? */
bool ranks_can(const struct run *r, const struct bench_case *c);
/* Rank 0: there are no more rounds. The others: all rounds, until there are no more. */
void ranks_end(struct run *r);
void ranks_obey(struct run *r);

/* The search where the trigger has two GPUs: what each does by itself, and the links between them. */
void hunt_two(struct hunt *h, struct hunt_finding *out);
/* Do the groups of the round at hand run at one time? */
bool hunt_beside(const struct hunt *h);
/* What `repeats` of the round at hand take: what runs at one time is one wave. */
unsigned hunt_waves(const struct hunt *h, unsigned repeats);
/* Is there time for so many more of them, each as long as those so far? */
bool hunt_has_time(const struct hunt *h, unsigned waves);
#endif
