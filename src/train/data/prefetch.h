/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-batches of a set in order. With `ahead`, a thread prepares the next one while the caller uses the
 * current one; without, the caller waits while each is prepared. */
#ifndef TRAIN_DATA_PREFETCH_H
#define TRAIN_DATA_PREFETCH_H
#include "train/data/pack_batch.h"

struct prefetch;
struct prefetch_step {
	uint64_t micro_batches;	     /* of this rank */
	uint64_t micro_most;	     /* of the rank that has most */
	struct pack_batch_size size; /* sum over all ranks */
	uint64_t packs;		     /* of all ranks */
	uint64_t first, own;	     /* number of this rank's first pack among them; number of its packs */
};

/* `t` and its memory must outlive the object. Owner: caller, prefetch_close. */
enum status prefetch_open(struct prefetch **out, const struct sampler *s, const struct tokenised *t,
			  bool ahead, struct error *err);
void prefetch_close(struct prefetch **f); /* NULL-safe */
/* Packs and steps per epoch. */
uint64_t prefetch_packs(const struct prefetch *f);
uint64_t prefetch_steps(const struct prefetch *f);
enum status prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err);
/* The micro-batch is lent until a call for another one. *wait_s: time spent waiting for it. */
enum status prefetch_next(struct prefetch *f, uint64_t step, uint64_t micro, const struct batch **b,
			  double *wait_s, struct error *err);
#endif
