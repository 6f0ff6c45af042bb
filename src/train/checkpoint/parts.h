/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor parallel: which part of each tensor each rank of a copy of the model holds, as checkpoints name it
 * (docs/explanation/design/checkpoints.md, "Parts of tensors"). */
#ifndef TRAIN_CHECKPOINT_PARTS_H
#define TRAIN_CHECKPOINT_PARTS_H
#include "model/decoder/split.h"
#include "model/params.h"

struct model;
struct checkpoint_parts {
	unsigned ranks, rank; /* that share a copy; this one's place among them */
	/* Tables of a part, equal on all ranks, and of the undivided model: lent. Their states have types and
	 * full lengths, and no memory. */
	struct params local, whole;
	struct split_part *place; /* [ranks][local.count]: of each part's tensors in the whole ones; owned */
};

/* After model_place, of a model with tensor parallel. Owner: caller, checkpoint_parts_release. */
enum status checkpoint_parts_make(struct checkpoint_parts *p, const struct model *m, struct error *err);
void checkpoint_parts_release(struct checkpoint_parts *p);
/* The place of tensor number i of a part. */
const struct split_part *checkpoint_parts_place(const struct checkpoint_parts *p, unsigned part, int i);
#endif
