/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows a step has: a pure function of seed, epoch and step. Packs are formed and put in order first, of
 * all ranks together; how many ranks share them enters last, so the same rows make a step for any number.
 */
#ifndef TRAIN_DATA_SAMPLER_H
#define TRAIN_DATA_SAMPLER_H
#include <stdbool.h>
#include "train/data/pack.h"

struct sampler {
	uint64_t seed;
	bool shuffle;
	uint64_t room;		  /* tokens of a pack; 0: a row is a pack */
	uint64_t packs_per_micro; /* per_device_train_batch_size */
	uint64_t micros;	  /* gradient_accumulation_steps */
	uint64_t world, rank;
};

/* One time over all rows. */
struct sampler_epoch {
	struct packs packs;
	uint32_t *order; /* [packs.count] */
};
/* `begin`: [rows + 1], as of struct tokenised. Owner: caller, sampler_epoch_release. */
enum status sampler_epoch_make(struct sampler_epoch *e, const struct sampler *s, uint64_t epoch,
			       const uint64_t *begin, uint64_t rows, struct error *err);
void sampler_epoch_release(struct sampler_epoch *e);

/* Places in `order`, [first, last). */
struct sampler_span {
	uint64_t first, last;
};
/* Steps of an epoch; the last one may have fewer packs, so that each row comes once. */
uint64_t sampler_steps(const struct sampler *s, const struct sampler_epoch *e);
/* Packs of all ranks in a step of the epoch. */
struct sampler_span sampler_step(const struct sampler *s, const struct sampler_epoch *e, uint64_t step);
/* Micro-batches of the step; the same for every rank. */
uint64_t sampler_micros(const struct sampler *s, struct sampler_span step);
/* This rank's packs of a micro-batch; none where the last ones are few. */
struct sampler_span sampler_micro(const struct sampler *s, struct sampler_span step, uint64_t micro);
#endif
