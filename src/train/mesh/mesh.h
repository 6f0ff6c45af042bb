/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh of a training run: its ranks, and how the packs of a step are divided among them
 * (docs/explanation/design/mesh.md). */
#ifndef TRAIN_MESH_MESH_H
#define TRAIN_MESH_MESH_H
#include <stdbool.h>
#include "model/tensor/tensor.h"
#include "train/config/config.h"

struct mesh {
	unsigned rank, size; /* on the data axis: copies of the model, which divide the packs */
	/* Ranks that share one copy (tensor parallel), and this rank's place among them. Rank number rank *
	 * tensor + tensor_rank of `ranks`. */
	unsigned tensor, tensor_rank, ranks;
	/* Ranks of a shard group, which are on the data axis: this one is place shard_rank of group `copy`
	 * (`rank` is copy * shard + shard_rank). shard 1: nothing is divided. */
	unsigned shard, shard_rank, copy;
	uint64_t packs;		  /* of all ranks, in one step */
	uint64_t packs_per_micro; /* most packs of a micro-batch of one rank */
	uint64_t micros;	  /* micro-batches of a rank in a step that is not the last of an epoch */
	/* One pack is one micro-batch, and gradients are added along a fixed tree (deterministic, on CPUs).
	 */
	bool each_pack;
};

/* Ranks on the data axis of a configuration; at least 1. */
unsigned mesh_copies(const struct config *c);
/* Whether the ranks form more than one shard group. */
bool mesh_is_hybrid(const struct mesh *m);
/* Ranks of one axis: count of them, from first in steps of stride. */
struct mesh_group {
	unsigned first, stride, count;
};
/* The ranks that share this rank's copy of the model; those that hold the same part of it in all copies; of
 * these, its shard group, and those with its place in all shard groups. */
struct mesh_group mesh_tensor_group(const struct mesh *m);
struct mesh_group mesh_data_group(const struct mesh *m);
struct mesh_group mesh_shard_group(const struct mesh *m);
struct mesh_group mesh_place_group(const struct mesh *m);
/* The type of the gradient's numbers between ranks. */
enum dtype mesh_travels(const struct config *c);

/* The mesh of the configuration on its number of ranks. BAD_INPUT: the packs of a step cannot be divided
 * among the ranks, or their gradients cannot be added; the message names the settings. */
enum status mesh_of(struct mesh *m, const struct config *c, struct error *err);
/* BAD_INPUT: an epoch has fewer packs than there are ranks. */
enum status mesh_check_rows(const struct mesh *m, uint64_t packs, uint64_t rows, struct error *err);
#endif
