/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one node: their places and environment, passed in ASSAY_* variables, and their processes. */
#ifndef LAUNCH_RANKS_H
#define LAUNCH_RANKS_H
#include "core/input/opt.h"
#include "launch/process_group.h"
#include "team/launcher/place.h"

/* This line on stderr marks the start of a node's ranks. Earlier lines come from ssh. */
#define RANKS_BEGIN "assay: the ranks of this node begin"

/* `assay __ranks --shield` prints this on stderr for ranks other than the first, because mpirun reports only
 * the exit code of rank 0. */
#define RANKS_ENDED "rank %u ended with exit code %d"

struct ranks {
	unsigned first, count, size;
	unsigned local_first, local_size; /* on the node; local_size 0: these are all its ranks */
	const char *host;		  /* of rank 0 */
	uint16_t port;			  /* 0: not given */
	const char *const *words;	  /* assay's arguments, end with NULL */
	const volatile sig_atomic_t *stop, *preempted;
	bool saves;   /* as in process_group.h */
	int lifeline; /* as in struct process_group */
	const struct log *log;
};

/* Starts the ranks and waits for them. *told: how they ended (launch/rank_exit.h). They also inherit this
 * process's environment. */
enum status ranks_run(const struct ranks *r, int *told, struct error *err);
/* Turns this process, which a launcher has started, into one rank: sets ASSAY_* from `p` and executes
 * `words`. `tells`: the rank exits with the codes of launch/rank_exit.h. Returns only on failure. */
enum status ranks_become(const struct team_place *p, const char *const *words, bool tells, struct error *err);

/* The secret of the ranks of one start (128 random bits as hexadecimal digits), and a name that distinguishes
 * the team from others at the same ports. */
struct ranks_team {
	char secret[33], job[16];
};
enum status ranks_team(struct ranks_team *t, struct error *err);
/* Puts them into this process's environment, which the ranks inherit. job "": no name. */
void ranks_report(const char *secret, const char *job);
#endif
