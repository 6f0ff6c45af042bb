/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TRAIN_CROSS_ENTROPY_H
#define KERNEL_TRAIN_CROSS_ENTROPY_H
#include "kernel/train/common.h"

enum { TRAIN_LOSS_THREADS = 1024 };

/*
 * train_cross_entropy computes loss[i] = log(sum(exp(z))) - z[target[row[i]]] in F32, with z = row i of the
 * logits. If grad_scale is above 0, it replaces z by bf16(grad_scale * (softmax(z) - one_hot(target))). A
 * target outside [0, vocab) gives loss 0 and gradient 0. Columns from vocab to ld are not touched.
 * Grid: the number of SMs, or the number of rows if that is smaller; any number is correct. Threads:
 * TRAIN_LOSS_THREADS. Dynamic shared memory: train_loss_shared(vocab, most). It holds as much of a row as
 * fits between the row's two passes; 0 is correct too.
 */
struct train_loss_args {
	DEVICE_PTR(train_real) logits;	  /* (rows, vocab), ld */
	DEVICE_PTR(const int32_t) target; /* indexed by row of the micro-batch */
	DEVICE_PTR(const int32_t) row;	  /* (rows) */
	DEVICE_PTR(float) loss;		  /* (rows), ld_loss */
	int64_t ld, ld_loss;
	uint32_t rows, vocab;
	float grad_scale;
	uint32_t shared_bytes; /* dynamic shared memory of the launch */
};
static_assert(sizeof(struct train_loss_args) == 64, "layout shared with nvcc");

/*
 * The loss if ranks have parts of the vocabulary. This one has ids first, first + 1, ..
 * train_loss_part: part[i] = (maximum, sum of exp(z - maximum), the target's z). The last is 0 if another
 * rank has it. train_loss_join: loss and gradient as train_cross_entropy, from the parts of all ranks, one
 * rank's after another's. Every target must be valid on one rank. Grid and threads: as above; no dynamic
 * shared memory.
 */
struct train_loss_part_args {
	DEVICE_PTR(train_real) logits;	  /* (rows, vocab), ld */
	DEVICE_PTR(const int32_t) target; /* indexed by row of the micro-batch */
	DEVICE_PTR(const int32_t) row;	  /* (rows) */
	DEVICE_PTR(float) part;		  /* (rows, 3), ld_part; join: (ranks * rows, 3) */
	DEVICE_PTR(float) loss;		  /* join: (rows), ld_loss */
	int64_t ld, ld_part, ld_loss;
	uint32_t rows, vocab, ranks;
	int32_t first;
	float grad_scale; /* join; 0: no gradient */
	uint32_t reserved;
};
static_assert(sizeof(struct train_loss_part_args) == 88, "layout shared with nvcc");

/* Dynamic shared memory for the launch. number_bytes: of a logit. most: the device's opt-in shared memory per
 * block (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97). */
static inline unsigned train_loss_shared(uint64_t vocab, unsigned number_bytes, unsigned most)
{
	uint64_t row = (vocab + 7) / 8 * 8 * number_bytes;
	unsigned room = most > 2048 ? (most - 2048) / 16 * 16 : 0; /* minus static shared memory */

	return row < room ? (unsigned)row : room;
}
#endif
