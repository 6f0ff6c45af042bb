/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal attention within the documents of a packed micro-batch. Documents may have any length, head_dim is a
 * multiple of 8 up to TRAIN_HEAD_DIM_MAX. This plain version covers the cases that the fast kernels do not
 * support. Results are bit-equal from run to run.
 *
 * Order of launches: train_attention; for the backward pass then train_attention_delta,
 * train_attention_bwd_kv and train_attention_bwd_q.
 * Grid: ((doc_len_max + TRAIN_ATTENTION_ROWS - 1) / TRAIN_ATTENTION_ROWS, heads (bwd_kv: kv_heads), docs) of
 * TRAIN_ATTENTION_THREADS, with shared memory train_attention_shared(head_dim).
 * train_attention_delta: train_blocks(rows, heads * 64) blocks of TRAIN_THREADS; any number is correct.
 */
#ifndef KERNEL_TRAIN_PLAIN_ATTENTION_H
#define KERNEL_TRAIN_PLAIN_ATTENTION_H
#include "kernel/train/common.h"

enum { TRAIN_ATTENTION_ROWS = 32, TRAIN_ATTENTION_THREADS = 256 };

struct train_attention_args {
	DEVICE_PTR(const train_real) qkv;    /* (rows, (heads + 2 kv_heads) head_dim), ld_qkv */
	DEVICE_PTR(train_real) o;	     /* (rows, heads head_dim), ld_o; an input of backward */
	DEVICE_PTR(float) lse;		     /* (rows, heads), ld_lse: natural log; an input of backward */
	DEVICE_PTR(const int32_t) doc_start; /* (docs + 1), device memory */
	DEVICE_PTR(const train_real) d_o;    /* (rows, heads head_dim), ld_d_o; backward only */
	/* (rows, (heads + 2 kv_heads) head_dim), ld_dqkv: output */
	DEVICE_PTR(train_real) dqkv;
	DEVICE_PTR(float) delta; /* (rows, heads), contiguous: row sums of o * d_o */
	int64_t ld_qkv, ld_o, ld_lse, ld_d_o, ld_dqkv;
	uint32_t rows, docs, heads, kv_heads, head_dim;
	float scale;
};
static_assert(sizeof(struct train_attention_args) == 120, "layout shared with nvcc");

/* number_bytes: of an element of q, k and v. */
static inline unsigned train_attention_shared(uint64_t head_dim, unsigned number_bytes)
{
	/* four padded tiles of rows, and two padded tiles of scores in F32 */
	return (unsigned)(4 * TRAIN_ATTENTION_ROWS * (head_dim + 8) * number_bytes +
			  2 * TRAIN_ATTENTION_ROWS * (TRAIN_ATTENTION_ROWS + 1) * 4);
}
#endif
