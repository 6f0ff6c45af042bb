/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of search.h bound to a run: a case of several GPUs that was slow or wrong is followed by groups
 * of them until the one is named that makes it so (docs/explanation/design/isolation.md). What run.c
 * (the search), test_cases.c (its tests as cases), launched_ranks.c (launched ranks), two_gpus.c (two GPUs,
 * of which no group can be without the bad one) and two_ranks.c (two launched ranks) share.
 */
#ifndef RUN_ISOLATE_RUN_H
#define RUN_ISOLATE_RUN_H
#include "run/isolate/search_team.h"
#include "run/supervisor/supervisor.h"

/* How a member is called, and the PCI address of its GPU; "": it has none of its own, or several. */
struct isolate_run_place {
	char place[72], pci[24];
};
struct isolate_run;
typedef struct isolate_run_place isolate_run_namer(const struct isolate_run *h, unsigned member);

struct isolate_run {
	struct run *r;
	const struct bench_case *trigger;
	enum isolate_search_fault fault;
	double expected; /* SLOW: what the trigger's case should reach */
	uint64_t begin_ns, end_ns;
	struct isolate_search f;
	struct isolate_search_team team;	  /* of launched ranks: the search of which `f` is a round */
	unsigned node_of[ISOLATE_SEARCH_MEMBERS]; /* of the layout's nodes: their numbers in the team's shape
						   */
	unsigned tests, waves;	 /* run so far: cases, and their turns: groups at one time take one */
	char stopped[256];	 /* why it goes no further */
	isolate_run_namer *name; /* of the trigger's GPUs; of launched ranks, or of nodes while team.node */
};

/* A round as it is told to every rank. */
struct isolate_run_order {
	struct run *r;
	const struct bench_case *trigger;
	enum isolate_search_fault fault;
	enum isolate_search_traffic traffic;
	unsigned round, repeats;
	const char *what;
};

/* One group of it. */
struct isolate_run_group {
	const char *text; /* target */
	json_t *gpus;	  /* owned */
	unsigned ranks, team;
};

/* What is found goes into the record of the trigger: its phase "isolated". */
struct isolate_run_finding {
	enum isolate_search_kind found;
	const char *of; /* what was searched: "gpu", "rank", "node" */
	char place[160], pci[64];
	double with, without; /* the trigger's figure as rates: with what was found, and without; 0: none */
	char why[256];
};

/* Member a, or a and b, as `found` says; of ISOLATE_SEARCH_NOBODY neither is looked at. */
void isolate_run_name(const struct isolate_run *h, enum isolate_search_kind found, int a, int b,
		      struct isolate_run_finding *out);
/* A round whose one test is of all members. */
void isolate_run_all(struct isolate_search *f, unsigned members, const char *what);
/* Runs the tests of h->f; *first: the id of the first, then test after test, and all again for each repeat.
 * False: nothing runs any more. */
bool isolate_run_tests(struct isolate_run *h, unsigned repeats, unsigned *first);
/* What they came to, into h->f. */
void isolate_run_answers(struct isolate_run *h, unsigned first);
unsigned isolate_run_round(const struct isolate_run *h);
/* The trigger's case for this group, as a burst. */
enum status isolate_run_case(const struct isolate_run_order *o, const struct isolate_run_group *g,
			     struct bench_case *out, struct error *err);
json_t *isolate_run_mark(const struct isolate_run_order *o);

/* launched_ranks.c: rank 0's search, and what it asks of all. */
isolate_run_namer isolate_ranks_name;
void isolate_ranks_whole(struct isolate_run *h);
bool isolate_ranks_tests(struct isolate_run *h, const struct isolate_run_order *o);
void isolate_ranks_search(struct isolate_run *h, const struct isolate_search_start *s,
			  struct isolate_run_finding *out);
/* Where the team is over, the search stops for that. False. */
bool isolate_ranks_over(struct isolate_run *h);
/* Can its ranks be searched? Where no groups of them can do it, for wrong data alone. */
bool isolate_ranks_can(const struct run *r, const struct bench_case *c, enum isolate_search_fault fault);
/* A round that is no groups' (`round` gains what it is; owned), told to every rank. False: the team is over.
 */
bool isolate_ranks_order(struct isolate_run *h, const struct isolate_run_order *o, json_t *round);
/* What each rank says of it, by rank; takes `mine`, caller decrefs *all. False: the team is over. */
bool isolate_ranks_figures(struct run *r, json_t *mine, json_t **all, struct error *why);

/* two_ranks.c: the search where groups tell nothing. False: they do. */
bool isolate_ranks_pair(struct isolate_run *h, const struct isolate_search_start *s,
			struct isolate_run_finding *out);
/* On every rank: what it does by itself, told to all. False: the search is over. */
bool isolate_ranks_works(const struct isolate_run_order *o, json_t **all);
/* Rank 0: there are no more rounds. The others: all rounds, until there are no more. */
void isolate_ranks_end(struct run *r);
void isolate_ranks_obey(struct run *r);

/* The search where the trigger has two GPUs: what each does by itself, and the links between them. */
void isolate_run_two(struct isolate_run *h, struct isolate_run_finding *out);
/* Do the groups of the round at hand run at one time? */
bool isolate_run_beside(const struct isolate_run *h);
/* What `repeats` of the round at hand take: what runs at one time is one wave. */
unsigned isolate_run_waves(const struct isolate_run *h, unsigned repeats);
/* Is there time for so many more of them, each as long as those so far? */
bool isolate_run_has_time(const struct isolate_run *h, unsigned waves);
#endif
