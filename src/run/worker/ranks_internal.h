/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a worker's cases: threads of this worker (ranks_threads.c), or the workers of a launched team
 * (ranks_processes.c). */
#ifndef RUN_WORKER_RANKS_INTERNAL_H
#define RUN_WORKER_RANKS_INTERNAL_H
#include "run/worker/ranks.h"

enum { RANKS_STOPPED_MS = 300 }; /* time for the other ranks to leave a case that was stopped */
/* longer than the case's limit: the supervisor's limit comes first, and reports the rank that hangs */
enum { RANKS_BEYOND_MS = 10000 };

struct ranks {
	unsigned size;
	struct team *team;	      /* rank 0's view */
	struct rank_threads *threads; /* the other ranks, if they are threads */
	const struct bench_case *c;   /* set before PREPARE is sent */
	void *answer;		      /* the latest answer, with its samples */
	size_t answer_room;
	bool broken; /* a rank did not answer and may hang forever */
};

/* Makes w->ranks fit the case, with threads of this worker. */
enum status ranks_start_threads(struct measure *w, const struct bench_case *c, struct error *err);
void ranks_end_threads(struct ranks *s);
/* The same for a launched team, which this worker leads. */
enum status ranks_start_team(struct measure *w, const struct bench_case *c, struct error *err);
/* Sends the outcome of this case to the other ranks; *why is the reason if `st` is an error. */
void ranks_report_outcome(struct rank_case *p, enum status st, const struct error *why);
/* Sends a follower's answer with the new samples of the window. */
enum status ranks_answer(struct rank_case *p, struct rank_case_answer *a, struct error *err);
#endif
