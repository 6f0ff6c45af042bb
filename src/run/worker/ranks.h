/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a case, for who conducts it (measure_case on rank 0): each function does its thing on every
 * rank, or plainly where there is one. Ranks are threads of this worker, kept from case to case, or
 * the workers of a launched team.
 */
#ifndef RUN_WORKER_RANKS_H
#define RUN_WORKER_RANKS_H
#include "run/worker/rank_case.h"

enum { RANKS_MAX = TARGET_GPUS };

/* Each returns the worst status, of the lowest rank; *err names the rank. */
enum status ranks_prepare(struct rank_case *p, struct error *err);
enum status ranks_select(struct rank_case *p, unsigned variant, const char **name, struct error *err);
/* Wrong elements of all ranks; the place is of the first rank that has any. */
enum status ranks_verify(struct rank_case *p, struct wrong *wrong, struct error *err);
enum status ranks_finish(struct rank_case *p, struct error *err);
/* How the case ended goes to the others of a team. */
void ranks_release(struct rank_case *p, enum status st, const struct error *why);
/* A rank of a launched team other than 0: does what rank 0's worker says, and ends as the case ends there. */
enum status ranks_follow(struct measure *w, const struct bench_case *c, struct error *err);
/* A rank did not answer. Its thread may still use the case: this process should end. */
bool ranks_hang(const struct measure *w);
/* At the worker's end, and before other GPUs are to work together. */
void ranks_home(struct measure *w);

/*
 * Says the command to all others, does `own` here, then takes what each answers: `take` is called with every
 * other rank's answer, in order, whose samples follow it. For meters over ranks.
 */
enum status
ranks_do(struct rank_case *p, const struct team_command *c, enum status (*own)(void *arg, struct error *err),
	 void (*take)(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample),
	 void *arg, struct error *err);
/* A meter over all ranks: p->meter and those of the others. Owns p->meter from then on, unless it fails. */
enum status meter_team_create(struct meter **m, struct rank_case *p, struct error *err);
#endif
