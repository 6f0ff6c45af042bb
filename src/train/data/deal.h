/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the packs of a step among ranks (docs/explanation/design/mesh.md, "Rows"). Halving is the same
 * everywhere: the left half of n numbers has (n + 1) / 2 of them.
 */
#ifndef TRAIN_DATA_DEAL_H
#define TRAIN_DATA_DEAL_H
#include <stdint.h>
#include "core/error.h"

/* A range [first, last). */
struct deal_range {
	uint64_t first, last;
};

/*
 * Orders `count` packs by halving: both halves have nearly equal tokens, and so have their halves, down to
 * single packs. `pack` is rearranged; `tokens` [count] belongs to the given order. The result depends on the
 * tokens and the given order only.
 */
enum status deal_order(uint32_t *pack, const uint64_t *tokens, uint64_t count, struct error *err);
/* The numbers of `count` that belong to `rank` of `world`. With a world of 2^k it is the rank-th range after
 * k halvings. May be empty if count < world. */
struct deal_range deal_range_of(uint64_t count, uint64_t world, uint64_t rank);
/* How many subtrees of two or more numbers end with number `at` of `count`, when they are added along the
 * tree of halves in ascending order. */
unsigned deal_ends(uint64_t count, uint64_t at);
/* Most subtrees that wait for their right half at once: 0 for one number. */
unsigned deal_depth(uint64_t count);
#endif
