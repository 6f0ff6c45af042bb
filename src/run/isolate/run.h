/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of follow.h bound to a run: a case of several GPUs that was slow or wrong is followed by groups
 * of them until the one is named that makes it so (docs/explanation/design/isolation.md). What follow_run.c (the search),
 * follow_tests.c (its tests as cases), follow_ranks.c (launched ranks), hunt_two.c (two GPUs, of which no
 * group can be without the bad one) and hunt_pair.c (two launched ranks) share.
 */
#ifndef RUN_HUNT_H
#define RUN_HUNT_H
#include "run/isolate/search_team.h"
#include "run/supervisor/supervisor.h"

/* How a member is called, and the PCI address of its GPU; "": it has none of its own, or several. */
struct hunt_place {
	char place[72], pci[24];
};
struct hunt;
typedef struct hunt_place hunt_namer(const struct hunt *h, unsigned member);

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
	hunt_namer *name;      /* of the trigger's GPUs; of launched ranks, or of nodes while team.node */
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

/* Member a, or a and b, as `found` says; of FOLLOW_NOBODY neither is looked at. */
void hunt_name(const struct hunt *h, enum follow_kind found, int a, int b, struct hunt_finding *out);
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
hunt_namer ranks_name;
void ranks_whole(struct hunt *h);
bool ranks_tests(struct hunt *h, const struct hunt_order *o);
void ranks_search(struct hunt *h, const struct follow_start *s, struct hunt_finding *out);
/* Where the team is over, the search stops for that. False. */
bool ranks_over(struct hunt *h);
/* Can its ranks be searched? Where no groups of them can do it, for wrong data alone. */
bool ranks_can(const struct run *r, const struct bench_case *c, enum follow_fault fault);
/* A round that is no groups' (`round` gains what it is; owned), told to every rank. False: the team is over.
 */
bool ranks_order(struct hunt *h, const struct hunt_order *o, json_t *round);
/* What each rank says of it, by rank; takes `mine`, caller decrefs *all. False: the team is over. */
bool ranks_figures(struct run *r, json_t *mine, json_t **all, struct error *why);

/* hunt_pair.c: the search where groups tell nothing. False: they do. */
bool ranks_pair(struct hunt *h, const struct follow_start *s, struct hunt_finding *out);
/* On every rank: what it does by itself, told to all. False: the search is over. */
bool ranks_works(const struct hunt_order *o, json_t **all);
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
