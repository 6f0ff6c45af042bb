/* SPDX-License-Identifier: Apache-2.0 */
/* Block lists on the host: made from a pattern or read from a file (docs/explanation/design/attention.md,
 * "Block files"). What a row means stands in kernel/attention/sparse/block_lists.h. */
#ifndef PROBE_ATTENTION_BLOCKS_H
#define PROBE_ATTENTION_BLOCKS_H
#include <signal.h>
#include <stdbool.h>
#include "gpu/attention/problem.h"

struct attention_blocks {
	uint32_t batches, heads, q_blocks, k_blocks, q_block, k_block;
	uint32_t *full_begin, *full, *partial_begin, *partial;
};

struct attention_row { /* lent */
	const uint32_t *full, *partial;
	uint32_t full_count, partial_count;
};

/* MASK: all that the mask leaves. STRIDED: each key block a multiple of 1 / density, rounded, away from the
 * query block's own. RANDOM: each block by itself with that probability. Both within the mask. */
enum attention_pattern { ATTENTION_BY_MASK, ATTENTION_STRIDED, ATTENTION_RANDOM };

struct attention_pattern_of {
	enum attention_pattern pattern;
	uint32_t q_block, k_block;
	double density; /* of the blocks that the mask leaves */
	uint64_t seed;
};

/* Lists for this problem. BAD_INPUT: more blocks than a host goes through in seconds. CANCELLED: *stop came
 * not to be 0 (NULL: never). Owner: caller, attention_blocks_free. */
enum status attention_blocks_build(struct attention_blocks **out, const struct attention_problem *p,
				   const struct attention_pattern_of *how, const volatile sig_atomic_t *stop,
				   struct error *err);
/* A block file's bytes; `place` for messages. Every list is held to its limits, order and ends. */
enum status attention_blocks_parse(struct attention_blocks **out, const char *place, const void *data,
				   size_t size, struct error *err);
enum status attention_blocks_read(struct attention_blocks **out, const char *path, struct error *err);
/* Do these lists belong to this problem: numbers of batches, heads and blocks, no full block that the mask or
 * an end cuts. */
enum status attention_blocks_fit(const struct attention_blocks *l, const struct attention_problem *p,
				 const char *place, struct error *err);
void attention_blocks_free(struct attention_blocks *l); /* NULL is fine */

struct attention_row attention_blocks_row(const struct attention_blocks *l, uint32_t b, uint32_t h,
					  uint32_t q);
/* Listed blocks over all that there are; their number, of all rows of lists. */
double attention_blocks_density(const struct attention_blocks *l);
uint64_t attention_blocks_listed(const struct attention_blocks *l);

/* For the makers of lists: room for `rows` rows, and one more number at the end of a list. */
struct attention_blocks *attention_blocks_create(const struct attention_blocks *sizes);
bool attention_blocks_append(uint32_t **list, uint32_t *count, uint32_t block);
#endif
