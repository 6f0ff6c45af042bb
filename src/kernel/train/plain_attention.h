/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal attention within the documents of a packed micro-batch, of any length and any head_dim that is a
 * multiple of 8 up to TRAIN_HEAD_DIM_MAX: plain and right everywhere, where the fast kernels do not go.
 * Bit-equal from run to run.
 *
 * Order: train_attention; then, backward, train_attention_delta, train_attention_bwd_kv,
 * train_attention_bwd_q. Grid: ((doc_len_max + TRAIN_ATTENTION_ROWS - 1) / TRAIN_ATTENTION_ROWS, heads
 * (bwd_kv: kv_heads), docs), of TRAIN_ATTENTION_THREADS, shared memory train_attention_shared(head_dim);
 * train_attention_delta: train_blocks(rows, heads * 64) of TRAIN_THREADS, or any.
 */
#ifndef KERNEL_TRAIN_PLAIN_ATTENTION_H
#define KERNEL_TRAIN_PLAIN_ATTENTION_H
#include "kernel/train/common.h"

enum { TRAIN_ATTENTION_ROWS = 32, TRAIN_ATTENTION_THREADS = 256 };

struct train_attention_args {
	DEVICE_PTR(const uint16_t) qkv;	     /* (rows, (heads + 2 kv_heads) head_dim), ld_qkv */
	DEVICE_PTR(uint16_t) o;		     /* (rows, heads head_dim), ld_o; backward reads it */
	DEVICE_PTR(float) lse;		     /* (rows, heads), ld_lse: natural log; backward reads it */
	DEVICE_PTR(const int32_t) doc_start; /* (docs + 1), device memory */
	DEVICE_PTR(const uint16_t) d_o;	     /* (rows, heads head_dim), ld_d_o; backward */
	DEVICE_PTR(uint16_t) dqkv;	     /* (rows, (heads + 2 kv_heads) head_dim), ld_dqkv: all written */
	DEVICE_PTR(float) delta;	     /* (rows, heads), without gaps: sum of o * d_o */
	int64_t ld_qkv, ld_o, ld_lse, ld_d_o, ld_dqkv;
	uint32_t rows, docs, heads, kv_heads, head_dim;
	float scale;
};
static_assert(sizeof(struct train_attention_args) == 120, "layout shared with nvcc");

static inline unsigned train_attention_shared(uint64_t head_dim)
{
	/* four tiles of rows in BF16, padded, and two of scores in F32, padded */
	return (unsigned)(4 * TRAIN_ATTENTION_ROWS * (head_dim + 8) * 2 +
			  2 * TRAIN_ATTENTION_ROWS * (TRAIN_ATTENTION_ROWS + 1) * 4);
}
#endif
