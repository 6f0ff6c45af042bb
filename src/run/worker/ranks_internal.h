/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that a worker's cases have: threads of its own (ranks_threads.c), or the workers of a team
 * (ranks_processes.c). */
#ifndef RUN_WORKER_RANKS_INTERNAL_H
#define RUN_WORKER_RANKS_INTERNAL_H
#include "run/worker/ranks.h"

enum { RANKS_STOPPED_MS = 300 };  /* for the others to leave a case that was stopped */
enum { RANKS_BEYOND_MS = 10000 }; /* over a case's limit: the supervisor's comes first, and tells who hangs */

struct ranks {
	unsigned size;
	struct team *team;	    /* rank 0's view */
	struct crowd *crowd;	    /* the others, where they are threads */
	const struct bench_case *c; /* set before PREPARE is posted */
	void *answer;		    /* the newest, with its samples */
	size_t answer_room;
	bool broken; /* a rank did not answer: it may hang for ever */
};

/* Makes w->ranks fit the case: threads of this worker. */
enum status ranks_start_threads(struct measure *w, const struct bench_case *c, struct error *err);
void ranks_end_threads(struct ranks *s);
/* The same of a launched team: this worker conducts it. */
enum status ranks_start_team(struct measure *w, const struct bench_case *c, struct error *err);
/* Ends the others' cases as this one has ended: *why, where `st` is none. */
void ranks_tell_outcome(struct rank_case *p, enum status st, const struct error *why);
/* A follower's answer; the new samples of the window go with it. */
enum status ranks_answer(struct rank_case *p, struct rank_case_answer *a, struct error *err);
#endif
