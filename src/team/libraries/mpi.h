/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI between a team's ranks, through the plug-in assay-mpi. Used in workers only, with one worker for each
 * rank. A worker initializes MPI once, keeps it from case to case and finalizes it at its own end.
 */
#ifndef TEAM_LIBRARIES_MPI_H
#define TEAM_LIBRARIES_MPI_H
#include "team/team.h"
#include "vendor/mpi_plugin.h"

struct team_mpi {
	struct mpi_plugin call;
	char version[128];
	uint32_t rank, size; /* among all launched ranks */
	void *comm;	     /* the team's ranks, in its order; NULL: all ranks, in MPI's order */
	uint32_t *member;    /* launched rank of each member of comm */
	unsigned members;
};

/*
 * Initializes MPI if this worker has not done so, and makes t->mpi->comm the team's communicator. All ranks
 * call it together. UNSUPPORTED: no MPI launcher started these ranks; or MPI is not initialized yet and the
 * team has only some of the launched ranks, because MPI must start on all together. UNAVAILABLE: the plug-in
 * or its MPI library was not found.
 */
enum status team_mpi_join(struct team *t, struct error *err);
/* Runs one collective of the team's ranks; returns when this rank's part is done. VENDOR with MPI's message.
 */
enum status team_mpi_call(struct team *t, const struct mpi_plugin_call *c, struct error *err);
/* Some of the team's ranks, in the order of `ranks`, for collectives of their own. Only these ranks call it,
 * together. Owner: caller, team_mpi_group_leave before MPI ends. */
enum status team_mpi_group(struct team *t, const unsigned *ranks, unsigned count, void **group,
			   struct error *err);
enum status team_mpi_group_call(struct team *t, void *group, const struct mpi_plugin_call *c,
				struct error *err);
void team_mpi_group_leave(struct team *t, void *group);
/* Returns when all ranks have called it. */
enum status team_mpi_barrier(struct team *t, struct error *err);
#endif
