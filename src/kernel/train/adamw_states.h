/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW on a part of the flat vector whose moments, gradient or weights are not all F32 (adamw_part in
 * model/backend/ops.h). */
#ifndef KERNEL_TRAIN_ADAMW_STATES_H
#define KERNEL_TRAIN_ADAMW_STATES_H
#include "kernel/train/common.h"

enum { TRAIN_STATES_BLOCK = 256 }; /* elements with one scale */
enum train_moments { TRAIN_MOMENTS_F32, TRAIN_MOMENTS_BF16, TRAIN_MOMENTS_CODES };
/* F32; the halves of F32 (model/params.h, params_join); BF16, rounded stochastically. */
enum train_weight { TRAIN_WEIGHT_F32, TRAIN_WEIGHT_SPLIT, TRAIN_WEIGHT_BF16 };

/*
 * train_adamw_states: moments in F32 or BF16. Grid: train_blocks(1, count) blocks of TRAIN_THREADS.
 * train_adamw_8bit: moments as codes with a scale for each TRAIN_STATES_BLOCK elements. A warp reads a block,
 * steps it, finds the new scales and writes the new codes: each operand is read and written once. Grid:
 * train_states_blocks(count) blocks of TRAIN_THREADS.
 * Any number of blocks gives the same bits. The gradient's norm is handled as in train_adamw. Random numbers
 * depend on (seed, step, first + element) alone.
 */
struct train_states_args {
	DEVICE_PTR(const void) g; /* (count): F32, or BF16 if g_bf16 */
	DEVICE_PTR(void) m;	  /* (count) */
	DEVICE_PTR(void) v;
	DEVICE_PTR(float) m_scale; /* (count / TRAIN_STATES_BLOCK, rounded up); codes only */
	DEVICE_PTR(float) v_scale;
	DEVICE_PTR(void) w;		       /* (count): F32 or BF16 */
	DEVICE_PTR(int16_t) rest;	       /* (count); TRAIN_WEIGHT_SPLIT only */
	DEVICE_PTR(const double) norm_squares; /* device memory */
	uint64_t count, first, seed;
	double max_norm;
	float lr, beta1, beta2, eps, decay, correction1, correction2;
	uint32_t step;
	uint32_t g_bf16, moments, weight; /* enum train_moments, train_weight */
	uint32_t reserved;
};
static_assert(sizeof(struct train_states_args) == 144, "layout shared with nvcc");

static inline unsigned train_states_blocks(uint64_t count)
{
	const uint64_t each = TRAIN_STATES_BLOCK * (TRAIN_THREADS / 32), blocks = (count + each - 1) / each;

	return blocks > 1u << 30 ? 1u << 30 : (unsigned)blocks;
}
#endif
