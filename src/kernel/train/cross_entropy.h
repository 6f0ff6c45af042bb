/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TRAIN_CROSS_ENTROPY_H
#define KERNEL_TRAIN_CROSS_ENTROPY_H
#include "kernel/train/common.h"

enum { TRAIN_LOSS_THREADS = 1024 };

/*
 * train_cross_entropy: loss[i] = log(sum(exp(z))) - z[target[row[i]]] of row i of the logits z, in F32; where
 * grad_scale is above 0, z = bf16(grad_scale * (softmax(z) - one at the target)). A target outside [0, vocab)
 * gives loss 0 and gradient 0. Columns from vocab to ld are not touched. Grid: the device's SMs, or rows
 * where they are fewer (any number is right); TRAIN_LOSS_THREADS threads. Shared memory:
 * train_loss_shared(vocab, most), where a row is kept between its two passes as far as it goes; 0 is right
 * too.
 */
struct train_loss_args {
	DEVICE_PTR(uint16_t) logits;	  /* (rows, vocab), ld */
	DEVICE_PTR(const int32_t) target; /* by row of the micro-batch */
	DEVICE_PTR(const int32_t) row;	  /* (rows) */
	DEVICE_PTR(float) loss;		  /* (rows), ld_loss */
	int64_t ld, ld_loss;
	uint32_t rows, vocab;
	float grad_scale;
	uint32_t shared_bytes; /* what the launch gave */
};
static_assert(sizeof(struct train_loss_args) == 64, "layout shared with nvcc");

/* most: the device's opt-in shared memory of a block (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
 * 97). */
static inline unsigned train_loss_shared(uint64_t vocab, unsigned most)
{
	uint64_t row = (vocab + 7) / 8 * 16;
	unsigned room = most > 2048 ? (most - 2048) / 16 * 16 : 0; /* less what the kernel has of its own */

	return row < room ? (unsigned)row : room;
}
#endif
