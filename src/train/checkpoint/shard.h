/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a range of the flat vector: what one of several ranks writes to a checkpoint, or reads from
 * it. */
#ifndef TRAIN_CHECKPOINT_SHARD_H
#define TRAIN_CHECKPOINT_SHARD_H
#include <jansson.h>
#include "model/params.h"

struct shard {
	size_t begin, end;		      /* elements of the flat vector */
	struct mat state[PARAMS_STATE_COUNT]; /* in host memory: [1, n] of params_part; rows 0: none */
};

/* The range of a rank, if the ranks divide `length` elements equally. */
void shard_range(size_t *begin, size_t *end, size_t length, unsigned rank, unsigned ranks);
/* A view of a range of states, which are complete or the own range of a rank that has it. */
void shard_view(struct shard *s, const struct params *p, size_t begin, size_t end);
/* The shard's states in memory of their own, of shard_bytes; those that are offloaded stay where they are.
 * `memory` NULL: for a plan. */
void shard_place(struct shard *s, const struct params *p, size_t begin, size_t end, void *memory);
uint64_t shard_bytes(const struct params *p, size_t begin, size_t end);

/* Writes the shard to `dir` and flushes it. *report:
 * {"rank","file","begin","count","bytes","sha256","states"}, for manifest_join. Owner: caller. */
enum status shard_write(json_t **report, const char *dir, const struct shard *s, unsigned rank,
			unsigned ranks, struct error *err);
#endif
