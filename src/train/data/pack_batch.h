/* SPDX-License-Identifier: Apache-2.0 */
/* Packs as one micro-batch: documents end to end, positions and targets of each by itself. */
#ifndef TRAIN_DATA_PACK_BATCH_H
#define TRAIN_DATA_PACK_BATCH_H
#include "model/batch.h"
#include "train/data/sampler.h"
#include "train/data/tokenised.h"

/* The lists of a batch, kept from one to the next. Zeroed is empty. */
struct pack_batch {
	struct batch batch; /* points into what follows */
	int32_t *token, *position, *target, *trained, *doc_start;
	int64_t tokens_room, docs_room;
};

/* Tokens, targets and rows of some packs. */
struct pack_batch_size {
	uint64_t tokens, targets, rows;
};
struct pack_batch_size pack_batch_size(const struct tokenised *t, const struct sampler_epoch *e,
				       struct sampler_span packs);
/* The packs of order [packs.first, packs.last); `row_begin`: the batch's field. */
enum status pack_batch_make(struct pack_batch *f, const struct tokenised *t, const struct sampler_epoch *e,
			    struct sampler_span packs, uint64_t row_begin, struct error *err);
void pack_batch_release(struct pack_batch *f);
#endif
