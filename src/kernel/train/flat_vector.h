/* SPDX-License-Identifier: Apache-2.0 */
/* On the flat F32 vectors of parameters, gradient and moments. */
#ifndef KERNEL_TRAIN_FLAT_VECTOR_H
#define KERNEL_TRAIN_FLAT_VECTOR_H
#include "kernel/train/common.h"

enum { TRAIN_REDUCE_BLOCKS = 1024 }; /* fixed, so that the order of addition is no device's */

/*
 * train_reduce: sums[block] = sum in double over the block's run of x, of elements or of their squares.
 * Grid: TRAIN_REDUCE_BLOCKS, exactly, of TRAIN_THREADS; then train_reduce_end, one block of TRAIN_THREADS,
 * same arguments: *sum += all of `sums`, in order.
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

/* Where a tensor of the flat vector has its copy that products read. In ascending order of `begin`; tensors
 * without a copy (to = 0) and elements in no tensor are passed over. */
struct train_live {
	uint64_t begin;		 /* element of the flat vector */
	uint64_t count;		 /* rows * cols */
	DEVICE_PTR(uint16_t) to; /* (rows, cols), ld: BF16, times scale */
	int64_t ld;
	uint32_t cols;
	float scale; /* 1; of a K-extension's B: the adapter's */
	float decay; /* the tensor's factor of weight decay: 1, or 0 */
	uint32_t reserved;
};
static_assert(sizeof(struct train_live) == 48, "layout shared with nvcc");

/*
 * train_adamw: one step of model/backend/ops.h's adamw on elements [begin, begin + count) of the flat vector,
 * and their live copies in the same pass. With `norm_squares` (a device's double: the sum of squares of the
 * gradient) the kernel computes clip_scale = max_norm / (norm + 1e-6) where max_norm > 0 and that is below 1,
 * and does nothing where the norm is not finite; without it clip_scale is taken. `decay` is multiplied by the
 * tensor's factor (by 1 outside the table's tensors). train_live_refresh: the live copies alone (after
 * loading, resume). Same arguments. Grid: train_blocks(1, count), or any, of TRAIN_THREADS.
 */
struct train_adamw_args {
	DEVICE_PTR(float) g; /* each (count), from element `begin` on */
	DEVICE_PTR(float) m;
	DEVICE_PTR(float) v;
	DEVICE_PTR(float) master;
	DEVICE_PTR(const struct train_live) live; /* (tensors), device memory */
	DEVICE_PTR(const double) norm_squares;	  /* 0: clip_scale */
	uint64_t begin, count;
	uint32_t tensors;
	uint32_t zero_gradient; /* g = 0 behind the step */
	double max_norm;
	float lr, beta1, beta2, eps, decay, clip_scale, correction1, correction2;
};
static_assert(sizeof(struct train_adamw_args) == 112, "layout shared with nvcc");
#endif
