/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on all ranks of a case, for measure_case() on rank 0. Each function acts on every rank, or only
 * here if there is one rank. Ranks are threads of this worker, kept from case to case, or the workers of a
 * launched team.
 */
#ifndef RUN_WORKER_RANKS_H
#define RUN_WORKER_RANKS_H
#include "run/worker/rank_case.h"

enum { RANKS_MAX = TARGET_GPUS };

/* These return the worst status, of the lowest rank that has it; *err names the rank. */
enum status ranks_prepare(struct rank_case *p, struct error *err);
enum status ranks_select(struct rank_case *p, unsigned variant, const char **name, struct error *err);
/* Counts the wrong elements of all ranks. The place is that of the first rank that has any. */
enum status ranks_verify(struct rank_case *p, struct wrong *wrong, struct error *err);
enum status ranks_finish(struct rank_case *p, struct error *err);
/* Releases all ranks' parts. The other ranks of a team get the outcome of the case. */
void ranks_release(struct rank_case *p, enum status st, const struct error *why);
/* For a rank of a launched team other than 0: executes the commands of rank 0's worker until the case ends
 * there. */
enum status ranks_follow(struct measure *w, const struct bench_case *c, struct error *err);
/* Whether a rank did not answer. Its thread may still use the case, so this process should end. */
bool ranks_hang(const struct measure *w);
/* Ends the ranks' threads: when the worker ends, and before other GPUs work together. */
void ranks_home(struct measure *w);

/*
 * Sends the command to all other ranks, runs `own` here, then collects the answers. `take` gets the answer of
 * each other rank, in ascending order, with its samples. For meters over several ranks.
 */
enum status
ranks_do(struct rank_case *p, const struct team_command *c, enum status (*own)(void *arg, struct error *err),
	 void (*take)(void *arg, unsigned rank, const struct rank_case_answer *a, const double *sample),
	 void *arg, struct error *err);
/* Makes a meter over all ranks from p->meter and those of the other ranks. It owns p->meter afterwards,
 * unless it fails. */
enum status meter_team_create(struct meter **m, struct rank_case *p, struct error *err);
#endif
