/* SPDX-License-Identifier: Apache-2.0 */
/* Block lists on the host: made from a pattern, or read from a file (docs/explanation/design/attention.md,
 * "Block files"). kernel/attention/sparse/block_lists.h defines the meaning of a row. */
#ifndef PROBE_ATTENTION_BLOCKS_H
#define PROBE_ATTENTION_BLOCKS_H
#include <signal.h>
#include <stdbool.h>
#include "gpu/attention/problem.h"

struct attention_blocks {
	uint32_t batches, heads, q_blocks, k_blocks, q_block, k_block;
	uint32_t *full_begin, *full, *partial_begin, *partial;
};

struct attention_row { /* the lists are lent */
	const uint32_t *full, *partial;
	uint32_t full_count, partial_count;
};

/* All patterns stay within the mask. MASK: every block within the mask. STRIDED: key blocks whose distance
 * from the query block's own is a multiple of 1 / density, rounded. RANDOM: each block independently with
 * probability density. */
enum attention_pattern { ATTENTION_BY_MASK, ATTENTION_STRIDED, ATTENTION_RANDOM };

struct attention_pattern_of {
	enum attention_pattern pattern;
	uint32_t q_block, k_block;
	double density; /* share of the blocks within the mask */
	uint64_t seed;
};

/* Makes the lists of this problem. BAD_INPUT: so many blocks that it would take more than seconds. CANCELLED:
 * *stop became nonzero (NULL: never). Owner: caller, attention_blocks_free. */
enum status attention_blocks_build(struct attention_blocks **out, const struct attention_problem *p,
				   const struct attention_pattern_of *how, const volatile sig_atomic_t *stop,
				   struct error *err);
/* Parses the bytes of a block file; `place` names the file in messages. Limits, order and ends of all lists
 * are checked. */
enum status attention_blocks_parse(struct attention_blocks **out, const char *place, const void *data,
				   size_t size, struct error *err);
enum status attention_blocks_read(struct attention_blocks **out, const char *path, struct error *err);
/* Checks that the lists fit this problem: numbers of batches, heads and blocks, and no block listed as full
 * that the mask or the end of a sequence cuts. */
enum status attention_blocks_fit(const struct attention_blocks *l, const struct attention_problem *p,
				 const char *place, struct error *err);
void attention_blocks_free(struct attention_blocks *l); /* accepts NULL */

struct attention_row attention_blocks_row(const struct attention_blocks *l, uint32_t b, uint32_t h,
					  uint32_t q);
/* Listed blocks divided by all blocks; and number of listed blocks in all rows. */
double attention_blocks_density(const struct attention_blocks *l);
uint64_t attention_blocks_listed(const struct attention_blocks *l);

/* For code that makes lists: allocates the rows for these sizes; appends one number to a list (false: no
 * memory). */
struct attention_blocks *attention_blocks_create(const struct attention_blocks *sizes);
bool attention_blocks_append(uint32_t **list, uint32_t *count, uint32_t block);
#endif
