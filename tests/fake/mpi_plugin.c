/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI plug-in as another assay would have it: every function, of a border that is not ours. None but that
 * one is to be called. */
#include "vendor/mpi.h"

#define X(need, ret, field, symbol, params) ret symbol params;
MPI_PLUGIN_FUNCTIONS(X)
#undef X

unsigned assay_mpi_border(void)
{
	return MPI_PLUGIN_BORDER + 1;
}

int assay_mpi_version(char *text, uint32_t room)
{
	(void)text, (void)room;
	abort();
}

int assay_mpi_open(uint32_t *rank, uint32_t *size, char *text, uint32_t room)
{
	(void)rank, (void)size, (void)text, (void)room;
	abort();
}

int assay_mpi_subset(void **comm, const uint32_t *ranks, uint32_t count, char *text, uint32_t room)
{
	(void)comm, (void)ranks, (void)count, (void)text, (void)room;
	abort();
}

int assay_mpi_collective(void *comm, const struct mpi_plugin_call *call, char *text, uint32_t room)
{
	(void)comm, (void)call, (void)text, (void)room;
	abort();
}

int assay_mpi_barrier(void *comm, char *text, uint32_t room)
{
	(void)comm, (void)text, (void)room;
	abort();
}

void assay_mpi_leave(void *comm)
{
	(void)comm;
	abort();
}

void assay_mpi_close(void)
{
	abort();
}
