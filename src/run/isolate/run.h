/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search within a run. When a case of several GPUs was slow or wrong, the run repeats it on groups
 * of those GPUs until one of them is named (docs/explanation/design/isolation.md). This header is shared by
 * run.c (the search), test_cases.c (its tests as cases of the run), launched_ranks.c (launched ranks),
 * two_gpus.c (two GPUs of one node, where every group contains the bad one) and two_ranks.c (two launched
 * ranks).
 */
#ifndef RUN_ISOLATE_RUN_H
#define RUN_ISOLATE_RUN_H
#include "run/isolate/search_team.h"
#include "run/supervisor/supervisor.h"

/* Name of a member and the PCI address of its GPU; pci is "" if the member has no GPU of its own, or several.
 */
struct isolate_run_place {
	char place[72], pci[24];
};
struct isolate_run;
typedef struct isolate_run_place isolate_run_namer(const struct isolate_run *h, unsigned member);

struct isolate_run {
	struct run *r;
	const struct bench_case *trigger;
	enum isolate_search_fault fault;
	double expected; /* SLOW: the rate that the trigger's case should reach */
	uint64_t begin_ns, end_ns;
	struct isolate_search f;
	struct isolate_search_team team; /* launched ranks: the search that `f` is one round of */
	/* number of each of the layout's nodes in the team's shape */
	unsigned node_of[ISOLATE_SEARCH_MEMBERS];
	unsigned tests, waves; /* cases run so far; waves: groups that run simultaneously count as one */
	char stopped[256];     /* why the search stopped early; "": it did not */
	/* names the trigger's GPUs, launched ranks, or nodes while team.node is set */
	isolate_run_namer *name;
};

/* A round as rank 0 sends it to every rank. */
struct isolate_run_order {
	struct run *r;
	const struct bench_case *trigger;
	enum isolate_search_fault fault;
	enum isolate_search_traffic traffic;
	unsigned round, repeats;
	const char *what;
};

/* One group of a round. */
struct isolate_run_group {
	const char *text; /* the target as text */
	json_t *gpus;	  /* owned; isolate_run_case() takes it */
	unsigned ranks, team;
};

/* Result of a search. The run writes it to the journal as phase "isolated" of the trigger. */
struct isolate_run_finding {
	enum isolate_search_kind found;
	const char *of; /* kind of member that was searched: "gpu", "rank", "node" */
	char place[160], pci[64];
	/* rates of the trigger's case with the named member and without it; 0: unknown */
	double with, without;
	char why[256];
};

/* Writes the names of member a, or of a and b, into `out`. Does nothing if `found` is ISOLATE_SEARCH_NOBODY.
 */
void isolate_run_name(const struct isolate_run *h, enum isolate_search_kind found, int a, int b,
		      struct isolate_run_finding *out);
/* Prepares a round that has one test with all members. */
void isolate_run_all(struct isolate_search *f, unsigned members, const char *what);
/* Runs the tests of h->f `repeats` times: each test once, then each again. *first is the id of the first
 * case. False: the run or the search cannot continue. */
bool isolate_run_tests(struct isolate_run *h, unsigned repeats, unsigned *first);
/* Reads the outcomes of those cases into h->f. */
void isolate_run_answers(struct isolate_run *h, unsigned first);
unsigned isolate_run_round(const struct isolate_run *h);
/* Makes the trigger's case for this group, measured in a burst. The caller releases `out`. */
enum status isolate_run_case(const struct isolate_run_order *o, const struct isolate_run_group *g,
			     struct bench_case *out, struct error *err);
/* Value of a search case's journal field `follows`. The caller owns it. */
json_t *isolate_run_mark(const struct isolate_run_order *o);

/* launched_ranks.c: the search that rank 0 leads, and the rounds that it sends to all ranks. */
isolate_run_namer isolate_ranks_name;
void isolate_ranks_whole(struct isolate_run *h);
bool isolate_ranks_tests(struct isolate_run *h, const struct isolate_run_order *o);
void isolate_ranks_search(struct isolate_run *h, const struct isolate_search_start *s,
			  struct isolate_run_finding *out);
/* Always returns false. If the team has ended, it records that as the reason why the search stopped. */
bool isolate_ranks_over(struct isolate_run *h);
/* Whether the ranks of this case can be searched. An engine whose ranks cannot form groups is searched for
 * wrong data only. */
bool isolate_ranks_can(const struct run *r, const struct bench_case *c, enum isolate_search_fault fault);
/* Sends a round that consists of no groups to every rank. Takes `round` and adds the order's fields to it.
 * False: the team has ended. */
bool isolate_ranks_order(struct isolate_run *h, const struct isolate_run_order *o, json_t *round);
/* Exchanges one JSON value per rank; *all is an array by rank. Takes `mine`; the caller decrefs *all. False:
 * the team has ended. */
bool isolate_ranks_figures(struct run *r, json_t *mine, json_t **all, struct error *why);

/* two_ranks.c: the search for ranks that groups cannot separate. False: groups can. */
bool isolate_ranks_pair(struct isolate_run *h, const struct isolate_search_start *s,
			struct isolate_run_finding *out);
/* On every rank: measures the rank's own work and exchanges the rates. False: the search is over. */
bool isolate_ranks_works(const struct isolate_run_order *o, json_t **all);
/* isolate_ranks_end: rank 0 tells the others that no more rounds follow. isolate_ranks_follow_rounds: every
 * other rank runs all rounds until then. */
void isolate_ranks_end(struct run *r);
void isolate_ranks_follow_rounds(struct run *r);

/* The search between two GPUs of one node: the work that each does by itself, and the links between them. */
void isolate_run_two(struct isolate_run *h, struct isolate_run_finding *out);
/* Whether the groups of the current round run simultaneously. */
bool isolate_run_in_parallel(const struct isolate_run *h);
/* Number of waves that `repeats` of the current round need. Groups that run simultaneously are one wave. */
unsigned isolate_run_waves(const struct isolate_run *h, unsigned repeats);
/* Whether there is time for `waves` more waves, each as long as the average so far. */
bool isolate_run_has_time(const struct isolate_run *h, unsigned waves);
#endif
