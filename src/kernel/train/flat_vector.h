/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on the flat F32 vectors of parameters, gradients and moments. */
#ifndef KERNEL_TRAIN_FLAT_VECTOR_H
#define KERNEL_TRAIN_FLAT_VECTOR_H
#include "kernel/train/common.h"

enum { TRAIN_REDUCE_BLOCKS = 1024 }; /* fixed, so the order of addition does not depend on the device */

/*
 * train_reduce: sums[block] = the sum, in double, of the elements of the block's part of x, or of their
 * squares. Grid: exactly TRAIN_REDUCE_BLOCKS blocks of TRAIN_THREADS.
 * train_reduce_end then adds all of `sums` to *sum in order. It takes the same arguments and one block of
 * TRAIN_THREADS.
 */
struct train_reduce_args {
	DEVICE_PTR(const void) x; /* (count), F32 or BF16 */
	DEVICE_PTR(double) sums;  /* (TRAIN_REDUCE_BLOCKS) */
	DEVICE_PTR(double) sum;	  /* device memory */
	uint64_t count;
	uint32_t squares;
	uint32_t bf16; /* x is BF16 */
};
static_assert(sizeof(struct train_reduce_args) == 40, "layout shared with nvcc");

/* The BF16 copy of a tensor of the flat vector, which GEMMs read. Entries are sorted by `begin`. Tensors
 * without a copy (to = 0) and elements outside all tensors are skipped. */
struct train_live {
	uint64_t begin;		 /* element of the flat vector */
	uint64_t count;		 /* rows * cols */
	DEVICE_PTR(uint16_t) to; /* (rows, cols), ld: BF16, multiplied by scale */
	int64_t ld;
	uint32_t cols;
	float scale; /* 1; for B of a K-extension: the adapter's scale */
	float decay; /* the tensor's factor of the weight decay: 1 or 0 */
	uint32_t reserved;
};
static_assert(sizeof(struct train_live) == 48, "layout shared with nvcc");

/*
 * train_adamw makes one step of adamw (model/backend/ops.h) on elements [begin, begin + count) of the flat
 * vector, and updates their BF16 copies in the same pass. `norm_squares` is a double in device memory with
 * the sum of squares of the gradient. If it is given, clip_scale = max_norm / (norm + 1e-6) if max_norm > 0
 * and that value is below 1, else 1. If the norm is not finite the kernel does nothing. Without
 * `norm_squares` the argument clip_scale applies. `decay` is multiplied by the tensor's factor (1 outside the
 * tensors of the table).
 * train_live_refresh takes the same arguments and only updates the BF16 copies, after loading or resuming.
 * Grid: train_blocks(1, count) blocks of TRAIN_THREADS; any number is correct.
 */
struct train_adamw_args {
	DEVICE_PTR(float) g; /* all four: (count), from element `begin` on */
	DEVICE_PTR(float) m;
	DEVICE_PTR(float) v;
	DEVICE_PTR(float) master;
	DEVICE_PTR(const struct train_live) live; /* (tensors), device memory */
	DEVICE_PTR(const double) norm_squares;	  /* 0: clip_scale applies */
	uint64_t begin, count;
	uint32_t tensors;
	uint32_t zero_gradient; /* set g to 0 after the step */
	double max_norm;
	float lr, beta1, beta2, eps, decay, clip_scale, correction1, correction2;
};
static_assert(sizeof(struct train_adamw_args) == 112, "layout shared with nvcc");
#endif
