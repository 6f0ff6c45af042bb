/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the rows of each step: a pure function of seed, epoch and step. Packs of all ranks together are
 * formed and ordered first, and only then divided among ranks. So a step has the same rows for any number of
 * ranks.
 */
#ifndef TRAIN_DATA_SAMPLER_H
#define TRAIN_DATA_SAMPLER_H
#include <stdbool.h>
#include "train/data/pack.h"

struct sampler {
	uint64_t seed;
	bool shuffle;
	uint64_t room;		  /* tokens per pack; 0: one row per pack */
	uint64_t packs_per_micro; /* per_device_train_batch_size */
	uint64_t micros;	  /* gradient_accumulation_steps */
	uint64_t world, rank;
	bool deal; /* deal the packs of each step by tokens, also on one rank (train/data/deal.h) */
};

/* The packs of one epoch and their order. */
struct sampler_epoch {
	struct packs packs;
	uint32_t *order; /* [packs.count] */
};
/* `begin`: [rows + 1], as in struct tokenised. Owner: caller, sampler_epoch_release. */
enum status sampler_epoch_make(struct sampler_epoch *e, const struct sampler *s, uint64_t epoch,
			       const uint64_t *begin, uint64_t rows, struct error *err);
void sampler_epoch_release(struct sampler_epoch *e);

/* A range [first, last) of `order`. */
struct sampler_span {
	uint64_t first, last;
};
/* Steps of an epoch. The last one may have fewer packs, because each row is used exactly once. */
uint64_t sampler_steps(const struct sampler *s, const struct sampler_epoch *e);
/* Packs of all ranks in one step of the epoch. */
struct sampler_span sampler_step(const struct sampler *s, const struct sampler_epoch *e, uint64_t step);
/* This rank's part of a step. May be empty in the last step. */
struct sampler_span sampler_rank(const struct sampler *s, struct sampler_span step);
/* This rank's micro-batches of the step. Ranks may have different numbers. */
uint64_t sampler_micros(const struct sampler *s, struct sampler_span step);
/* Those of the rank that has most. */
uint64_t sampler_micros_most(const struct sampler *s, struct sampler_span step);
/* This rank's packs of a micro-batch; empty beyond its last one. */
struct sampler_span sampler_micro(const struct sampler *s, struct sampler_span step, uint64_t micro);
#endif
