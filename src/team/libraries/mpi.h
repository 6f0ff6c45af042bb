/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI among a team's ranks, through its plug-in. In workers only: one worker a rank begins MPI once, keeps it
 * from case to case, and ends it when it ends.
 */
#ifndef TEAM_LIBRARIES_MPI_H
#define TEAM_LIBRARIES_MPI_H
#include "team/team.h"
#include "vendor/mpi_plugin.h"

struct team_mpi {
	struct mpi_plugin call;
	char version[128];
	uint32_t rank, size; /* among all that were launched */
	void *comm;	     /* of this team's ranks, in its order; NULL: all, in MPI's */
	uint32_t *member;    /* whose comm it is: numbers among all; */
	unsigned members;
};

/*
 * For all ranks together: begins MPI where this worker has not, and makes t->mpi->comm the team's.
 * UNSUPPORTED where no MPI launched these ranks, or where MPI has not begun and the team is a part of what
 * was launched: it begins on all at once. UNAVAILABLE where the plug-in, or its MPI, is not there.
 */
enum status team_mpi_join(struct team *t, struct error *err);
/* One collective of the team's ranks; returns when it is done here. VENDOR with MPI's words. */
enum status team_mpi_call(struct team *t, const struct mpi_plugin_call *c, struct error *err);
/* When all ranks have come to it. */
enum status team_mpi_barrier(struct team *t, struct error *err);
/* Ends MPI, with all others that began it. NULL is fine. */
void team_mpi_close(struct team *t);
#endif
