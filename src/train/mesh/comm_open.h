/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the back ends of model/backend/comm.h for the ranks of a team. */
#ifndef TRAIN_MESH_COMM_OPEN_H
#define TRAIN_MESH_COMM_OPEN_H
#include "model/backend/comm.h"
#include "team/team.h"

struct backend;

/*
 * MPI between CPU ranks. One thread makes all calls, from MPI_Init to MPI_Finalize, and uses `team` from now
 * on, so the caller may not. Sums over ranks are added along a fixed tree. UNSUPPORTED: no MPI launcher
 * started these ranks. UNAVAILABLE: the plug-in or its MPI is missing. Owner: caller, ops->close.
 */
enum status comm_mpi_open(struct comm **out, struct team *team, struct error *err);
/* Ranks of a group: first, first + stride, .. */
struct comm_members {
	unsigned first, stride, count;
	/* Every rank is in such a group, and all groups make the same collectives. Then they are compared
	 * between all ranks, and recorded. equal: the sizes of their all-reduces are equal too. */
	bool alike, equal;
};
/* A group of the ranks of `all`, which comm_mpi_open made. Only its members call this, together. Its
 * collectives are not compared between the ranks, if they are not alike. Owner: caller, ops->close before
 * that of `all`. */
enum status comm_mpi_group(struct comm **out, struct comm *all, const struct comm_members *members,
			   struct error *err);
/*
 * NCCL between GPU ranks, on a stream of its own. gather and share use the team's connections, and work at
 * once; the others need comm_nccl_device, which all ranks call together when their back ends are open. Owner:
 * caller, ops->close before the back end is released.
 */
enum status comm_nccl_open(struct comm **out, struct team *team, struct error *err);
enum status comm_nccl_device(struct comm *c, struct backend *back, struct error *err);
/* A group of the ranks of `all`, after comm_nccl_device. All ranks call this together, each for its own
 * group. The same holds for its `gather`. The collectives of all groups run one after the other, in the order
 * of the calls. Owner: caller, ops->close before that of `all`. */
enum status comm_nccl_group(struct comm **out, struct comm *all, const struct comm_members *members,
			    struct error *err);
/* GPU memory of one rank's collectives: NCCL itself, its buffers of each communicator, and one piece of the
 * gradient in BF16 if it travels so. Set comm->travels before comm_nccl_device. */
uint64_t comm_nccl_bytes(uint64_t communicators, enum dtype travels);

/* Rates of the links between planned ranks, in B/s and one way; 0: unknown. */
struct comm_links {
	unsigned local, nodes;
	double link;	/* of a GPU, to the others of its node */
	double network; /* of a node: all of its ports together */
};
/* Counts operations, bytes, and if the rates are known the time, without doing anything (comm_plan.c;
 * methods: training, "Communication"). Owner: caller, ops->close. */
enum status comm_plan_open(struct comm **out, const struct comm_links *links, struct error *err);
#endif
