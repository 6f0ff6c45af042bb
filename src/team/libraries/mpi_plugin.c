/* SPDX-License-Identifier: Apache-2.0 */
/* Module assay-mpi: collectives of the MPI that it is built with. It links no code of the program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vendor/mpi_plugin.h"

#define X(need, ret, field, symbol, params) __attribute__((visibility("default"))) ret symbol params;
MPI_PLUGIN_FUNCTIONS(X)
#undef X

/* `comm` of the plug-in's functions points to it. */
struct mpi_group {
	MPI_Comm comm;
};

enum { TAG = 1 };

static MPI_Comm comm_of(void *comm)
{
	return comm ? ((struct mpi_group *)comm)->comm : MPI_COMM_WORLD;
}

static int say(int code, const char *call, char *text, uint32_t room)
{
	char why[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (code == MPI_SUCCESS)
		return 0;
	MPI_Error_string(code, why, &length);
	why[strcspn(why, "\n")] = '\0'; /* MPICH appends its call stack */
	snprintf(text, room, "%s: %s", call, *why ? why : "an error without a message");
	return -1;
}

unsigned assay_mpi_border(void)
{
	return MPI_PLUGIN_BORDER;
}

int assay_mpi_version(char *text, uint32_t room)
{
	char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length = 0, code = MPI_Get_library_version(words, &length);

	if (code != MPI_SUCCESS) {
		snprintf(text, room, "MPI does not report its version (error %d)", code);
		return -1;
	}
	words[strcspn(words, "\n,")] =
		'\0'; /* "Open MPI v4.1.4, package: .."; MPICH's next line is its date */
	for (char *tab = words; (tab = strchr(tab, '\t'));)
		*tab = ' ';
	snprintf(text, room, "%s", words);
	return 0;
}

/* -- begin and end -- */

/*
 * PMIx accepts one process in each rank slot. A second process is aborted inside MPI_Init, even if the first
 * has ended. So the first process leaves a mark file in the launcher's own folder, which the launcher
 * removes.
 */
static int take_slot(char *text, uint32_t room)
{
	const char *folder = getenv("PMIX_SERVER_TMPDIR"), *job = getenv("PMIX_NAMESPACE"),
		   *rank = getenv("PMIX_RANK");
	char path[PATH_MAX];
	int fd;

	if (!folder || !job || !rank || *folder != '/' || strchr(job, '/') || strchr(rank, '/'))
		return 0;
	snprintf(path, sizeof(path), "%s/assay-mpi-%s-%s", folder, job, rank);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) {
		snprintf(
			text, room,
			"another process initialized MPI in rank slot %s before; MPI starts only once in each slot",
			rank);
		return -1;
	}
	if (fd >= 0)
		close(fd);
	return 0; /* go on without a mark if it cannot be written */
}

int assay_mpi_open(uint32_t *rank, uint32_t *size, char *text, uint32_t room)
{
	int on = 0, over = 0, threads, n[2] = {0, 0}, code;

	MPI_Initialized(&on);
	MPI_Finalized(&over);
	if (on || over) {
		snprintf(text, room, "MPI was already %s in this process; it starts only once",
			 over ? "finalized" : "initialized");
		return -1;
	}
	if (take_slot(text, room))
		return -1;
	code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(MPI_COMM_WORLD, &n[0]);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(MPI_COMM_WORLD, &n[1]);
	*rank = (uint32_t)n[0];
	*size = (uint32_t)n[1];
	return say(code, "MPI_Init_thread", text, room);
}

void assay_mpi_close(void)
{
	int on = 0, over = 0;

	MPI_Initialized(&on);
	MPI_Finalized(&over);
	if (on && !over)
		MPI_Finalize();
}

/* -- groups -- */

int assay_mpi_subset(void **comm, const uint32_t *ranks, uint32_t count, char *text, uint32_t room)
{
	MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
	struct mpi_group *c = calloc(1, sizeof(*c));
	int *list = calloc(count ? count : 1, sizeof(*list)), code;

	*comm = NULL;
	if (!c || !list) {
		snprintf(text, room, "no memory for a communicator of %u ranks", count);
		free(c);
		free(list);
		return -1;
	}
	for (uint32_t i = 0; i < count; i++)
		list[i] = (int)ranks[i];
	c->comm = MPI_COMM_NULL;
	code = MPI_Comm_group(MPI_COMM_WORLD, &world);
	if (code == MPI_SUCCESS)
		code = MPI_Group_incl(world, (int)count, list, &group);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &c->comm);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	if (group != MPI_GROUP_NULL)
		MPI_Group_free(&group);
	if (world != MPI_GROUP_NULL)
		MPI_Group_free(&world);
	free(list);
	if (code != MPI_SUCCESS) {
		free(c);
		return say(code, "MPI_Comm_create_group", text, room);
	}
	*comm = c;
	return 0;
}

void assay_mpi_leave(void *comm)
{
	struct mpi_group *c = comm;

	if (c && c->comm != MPI_COMM_NULL)
		MPI_Comm_free(&c->comm);
	free(c);
}

int assay_mpi_barrier(void *comm, char *text, uint32_t room)
{
	return say(MPI_Barrier(comm_of(comm)), "MPI_Barrier", text, room);
}

/* -- collectives -- */

/* Arguments of a collective as MPI takes them. */
struct mpi_arguments {
	const void *send; /* or MPI_IN_PLACE */
	void *receive;
	int count, root, in_place;
	MPI_Datatype type;
	MPI_Op op;
	MPI_Comm comm;
};

static int all_reduce(const struct mpi_arguments *d)
{
	return MPI_Allreduce(d->send, d->receive, d->count, d->type, d->op, d->comm);
}

static int all_gather(const struct mpi_arguments *d)
{
	return MPI_Allgather(d->send, d->count, d->type, d->receive, d->count, d->type, d->comm);
}

static int reduce_scatter(const struct mpi_arguments *d)
{
	return MPI_Reduce_scatter_block(d->send, d->receive, d->count, d->type, d->op, d->comm);
}

static int all_to_all(const struct mpi_arguments *d)
{
	return MPI_Alltoall(d->send, d->count, d->type, d->receive, d->count, d->type, d->comm);
}

static int is_root(const struct mpi_arguments *d)
{
	int rank = -1;

	MPI_Comm_rank(d->comm, &rank);
	return rank == d->root;
}

/* MPI_Bcast takes one buffer; it only reads the root's. */
static int broadcast(const struct mpi_arguments *d)
{
	void *buffer = d->receive;

	if (!d->in_place && is_root(d))
		memcpy(&buffer, &d->send, sizeof(buffer));
	return MPI_Bcast(buffer, d->count, d->type, d->root, d->comm);
}

/* Only the root may pass MPI_IN_PLACE. */
static int reduce(const struct mpi_arguments *d)
{
	int root = is_root(d);
	const void *send = d->in_place && !root ? d->receive : d->send;

	return MPI_Reduce(send, root ? d->receive : NULL, d->count, d->type, d->op, d->root, d->comm);
}

static int send_receive(const struct mpi_arguments *d)
{
	int rank, size;

	MPI_Comm_rank(d->comm, &rank);
	MPI_Comm_size(d->comm, &size);
	return MPI_Sendrecv(d->send, d->count, d->type, (rank + 1) % size, TAG, d->receive, d->count, d->type,
			    (rank + size - 1) % size, TAG, d->comm, MPI_STATUS_IGNORE);
}

static const struct {
	int (*call)(const struct mpi_arguments *d);
	const char *name;
} collectives[MPI_PLUGIN_WHATS] = {
	[MPI_PLUGIN_ALL_REDUCE] = {all_reduce, "MPI_Allreduce"},
	[MPI_PLUGIN_ALL_GATHER] = {all_gather, "MPI_Allgather"},
	[MPI_PLUGIN_REDUCE_SCATTER] = {reduce_scatter, "MPI_Reduce_scatter_block"},
	[MPI_PLUGIN_ALL_TO_ALL] = {all_to_all, "MPI_Alltoall"},
	[MPI_PLUGIN_BROADCAST] = {broadcast, "MPI_Bcast"},
	[MPI_PLUGIN_REDUCE] = {reduce, "MPI_Reduce"},
	[MPI_PLUGIN_SEND_RECEIVE] = {send_receive, "MPI_Sendrecv"},
};

/* A switch, because MPI's handles are not constants in every MPI. */
static MPI_Datatype type_of(uint32_t type)
{
	switch (type) {
	case MPI_PLUGIN_F32:
		return MPI_FLOAT;
	case MPI_PLUGIN_F64:
		return MPI_DOUBLE;
	case MPI_PLUGIN_S8:
		return MPI_INT8_T;
	case MPI_PLUGIN_U8:
		return MPI_UINT8_T;
	case MPI_PLUGIN_S32:
		return MPI_INT32_T;
	case MPI_PLUGIN_S64:
		return MPI_INT64_T;
	default:
		return MPI_DATATYPE_NULL;
	}
}

static MPI_Op op_of(uint32_t op)
{
	return op == MPI_PLUGIN_SUM   ? MPI_SUM
	       : op == MPI_PLUGIN_MIN ? MPI_MIN
	       : op == MPI_PLUGIN_MAX ? MPI_MAX
				      : MPI_OP_NULL;
}

int assay_mpi_collective(void *comm, const struct mpi_plugin_call *c, char *text, uint32_t room)
{
	struct mpi_arguments d = {
		.send = c->in_place ? MPI_IN_PLACE : c->send,
		.receive = c->receive,
		.count = (int)c->count,
		.root = (int)c->root,
		.in_place = c->in_place != 0,
		.type = type_of(c->type),
		.op = op_of(c->op),
		.comm = comm_of(comm),
	};

	if (c->what >= MPI_PLUGIN_WHATS || d.type == MPI_DATATYPE_NULL || d.op == MPI_OP_NULL ||
	    (c->in_place && c->what == MPI_PLUGIN_SEND_RECEIVE)) {
		snprintf(text, room,
			 "the MPI plug-in does not support collective %u of type %u with operation %u%s",
			 c->what, c->type, c->op, c->in_place ? " in place" : "");
		return -1;
	}
	if (c->count > INT_MAX) {
		snprintf(text, room, "%s takes at most %d elements, and %llu were requested",
			 collectives[c->what].name, INT_MAX, (unsigned long long)c->count);
		return -1;
	}
	return say(collectives[c->what].call(&d), collectives[c->what].name, text, room);
}
