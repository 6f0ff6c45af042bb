/* SPDX-License-Identifier: Apache-2.0 */
/* A set's micro-batches one after the other, the next one made by a thread while one is worked on. */
#ifndef TRAIN_FEED_H
#define TRAIN_FEED_H
#include "train/data/pack_batch.h"

struct feed;
struct feed_step {
	uint64_t micro_batches;
	struct fill_size size; /* of all ranks */
};

/* `t` and what it holds outlive the feed. Owner: caller, feed_close. */
enum status feed_open(struct feed **out, const struct sampler *s, const struct tokenised *t,
		      struct error *err);
void feed_close(struct feed **f); /* NULL-safe */
/* Steps of one time over all rows. */
uint64_t feed_steps(const struct feed *f);
enum status feed_step(struct feed *f, uint64_t step, struct feed_step *out, struct error *err);
/* Lent until the next call for another one; *wait_s: how long it was waited for. */
enum status feed_next(struct feed *f, uint64_t step, uint64_t micro, const struct batch **b, double *wait_s,
		      struct error *err);
#endif
