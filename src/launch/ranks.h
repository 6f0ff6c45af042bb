/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one node: their places and environment, told by ASSAY_*, and their processes. */
#ifndef LAUNCH_RANKS_H
#define LAUNCH_RANKS_H
#include "core/input/opt.h"
#include "launch/process_group.h"
#include "team/launcher/place.h"

/* The line that says on stderr that the ranks of a node are started: what ssh says comes before it. */
#define RANKS_BEGIN "assay: the ranks of this node begin"

/* What `assay __ranks --shield` says on stderr of a rank but the first, for who reads mpirun's: a rank and
 * its exit code. */
#define RANKS_ENDED "rank %u ended with exit code %d"

struct ranks {
	unsigned first, count, size;
	unsigned local_first, local_size; /* of the node; 0: these are all of it */
	const char *host;		  /* of rank 0 */
	uint16_t port;			  /* 0: not told */
	const char *const *words;	  /* of assay, NULL ends */
	const volatile sig_atomic_t *stop;
	int lifeline; /* as crowd's */
	const struct log *log;
};

/* Starts them, waits, says how they ended (*told: launch/rank_exit.h). What else they are to find in their
 * environment is in ours. */
enum status ranks_run(const struct ranks *r, int *told, struct error *err);
/* One rank in the place of this process, which its launcher has started: sets ASSAY_* as `p` says and
 * executes `words`; `tells`: it ends as launch/rank_exit.h has it. Returns only where that failed. */
enum status ranks_become(const struct team_place *p, const char *const *words, bool tells, struct error *err);

/* What the ranks of one start know and no others: 128 random bits as digits, and a name that tells them from
 * other teams at the same ports. */
struct ranks_team {
	char secret[33], job[16];
};
enum status ranks_team(struct ranks_team *t, struct error *err);
/* Into our own environment, which the ranks inherit. job "": none is told. */
void ranks_tell(const char *secret, const char *job);
#endif
