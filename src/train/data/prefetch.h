/* SPDX-License-Identifier: Apache-2.0 */
/* A set's micro-batches one after the other, the next one made by a thread while one is worked on. */
#ifndef TRAIN_DATA_PREFETCH_H
#define TRAIN_DATA_PREFETCH_H
#include "train/data/pack_batch.h"

struct prefetch;
struct prefetch_step {
	uint64_t micro_batches;
	struct pack_batch_size size; /* of all ranks */
};

/* `t` and what it holds outlive the feed. Owner: caller, prefetch_close. */
enum status prefetch_open(struct prefetch **out, const struct sampler *s, const struct tokenised *t,
			  struct error *err);
void prefetch_close(struct prefetch **f); /* NULL-safe */
/* Steps of one time over all rows. */
uint64_t prefetch_steps(const struct prefetch *f);
enum status prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err);
/* Lent until the next call for another one; *wait_s: how long it was waited for. */
enum status prefetch_next(struct prefetch *f, uint64_t step, uint64_t micro, const struct batch **b,
			  double *wait_s, struct error *err);
#endif
