/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication of a data x shard mesh (dp_shard_size). Neighbouring ranks form a shard group, which divides
 * what zero_stage says. Ranks with equal places in their groups hold equal ranges, and add their sums of
 * them. `border` of an operation has the ranges of one group.
 */
#ifndef TRAIN_MESH_COMM_HYBRID_H
#define TRAIN_MESH_COMM_HYBRID_H
#include "model/backend/comm.h"

/* all: all ranks; shards: this rank's shard group; copies: the ranks that hold its range. Takes ownership of
 * the three, also after an error. Owner: caller, ops->close. */
enum status comm_hybrid_open(struct comm **out, struct comm *all, struct comm *shards, struct comm *copies,
			     struct error *err);
#endif
