/* SPDX-License-Identifier: Apache-2.0 */
/* Turns packs into one micro-batch: rows end to end, each with its own positions and targets. */
#ifndef TRAIN_DATA_PACK_BATCH_H
#define TRAIN_DATA_PACK_BATCH_H
#include "model/batch.h"
#include "train/data/sampler.h"
#include "train/data/tokenised.h"

/* The lists of a micro-batch; the memory is reused for the next one. Zeroed is empty. */
struct pack_batch {
	struct batch batch; /* its pointers are the lists below */
	int32_t *token, *position, *target, *trained, *doc_start;
	int64_t tokens_room, docs_room;
};

/* Tokens, targets and rows of a range of packs. */
struct pack_batch_size {
	uint64_t tokens, targets, rows;
};
struct pack_batch_size pack_batch_size(const struct tokenised *t, const struct sampler_epoch *e,
				       struct sampler_span packs);
/* Makes the packs at [packs.first, packs.last) of the epoch's order into a micro-batch. `row_begin` becomes
 * the batch's field of that name. */
enum status pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			    struct sampler_span packs, uint64_t row_begin, struct error *err);
void pack_batch_release(struct pack_batch *f);
#endif
