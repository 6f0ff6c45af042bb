/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention backward computes dQ, dK and dV from Q, K, V, O, dO and lse, for the forward pass of
 * kernel/attention/forward/args.h. With P = exp(scale Q K^T - lse), the probabilities of the forward pass:
 *
 *   D  = row sums of dO * O              dV = P^T dO
 *   dS = scale P (dO V^T - D)            dK = dS^T Q         dQ = dS K
 *
 * dK and dV are summed over the query heads of a key head. A row or key without any kept pair has a gradient
 * of 0.
 *
 * Kernels, in the order of their launches:
 * - backward_begin writes D, and lse in base 2, to padded rows. It sets the sum of dQ to zero.
 * - backward_keys computes dK and dV, one block of keys at a time. No two blocks add to the same element, so
 *   the bits are the same on every run.
 * - backward_queries computes dQ, one block of queries at a time, with the same property. It computes the
 *   scores a second time.
 * On sm_90a two kernels can replace the last two:
 * - backward_once computes dK and dV as backward_keys does, and adds the block's part of dQ to a sum in FP32,
 *   in any order.
 * - backward_end converts that sum to dQ.
 *
 * docs/explanation/design/attention_kernels.md, "Backward".
 */
#ifndef KERNEL_ATTENTION_BACKWARD_ARGS_H
#define KERNEL_ATTENTION_BACKWARD_ARGS_H
#include "kernel/attention/forward/args.h"

/* dO has the layout of O, dQ of Q, dK of K, dV of V. Lengths, starts, window sides and heads are as in
 * attention_args. */
struct attention_backward_args {
	DEVICE_PTR(const void) q;
	DEVICE_PTR(const void) k;
	DEVICE_PTR(const void) v;
	DEVICE_PTR(const void) o;
	DEVICE_PTR(const void) d_o;
	DEVICE_PTR(const float) lse;
	DEVICE_PTR(void) d_q;
	DEVICE_PTR(void) d_k;
	DEVICE_PTR(void) d_v;
	/*
	 * Intermediate results, [heads][rows]. Sequence b's first row is ATTENTION_BACKWARD_ROW: b * q_len
	 * rounded up, or starts[b] + 128 b rounded down, to a multiple of 128. So no tile belongs to two
	 * sequences. lse2 is lse in base 2, +inf for rows that do not exist or keep no key. sums is scale D,
	 * 0 for those rows.
	 */
	DEVICE_PTR(float) lse2;
	DEVICE_PTR(float) sums;
	/* [heads][rows][head_dim], order of the matrix unit in a tile; 0: none */
	DEVICE_PTR(float) sum_q;
	DEVICE_PTR(const uint32_t) q_starts;
	DEVICE_PTR(const uint32_t) kv_starts;
	struct attention_steps q_step, k_step, v_step, o_step;
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	int32_t left, right;
	float scale;
	uint32_t rows;	  /* rows of lse2, sums and sum_q for all sequences together */
	uint32_t section; /* sm90: heads whose blocks are sorted by length together */
	uint32_t order_count;
	/* sm90: order of units of 128 rows, the same for each head; 0: natural order */
	DEVICE_PTR(const uint32_t) order;
};
static_assert(sizeof(struct attention_backward_args) == 264, "layout shared with nvcc");

/* Boxes of the tensor maps: for Q and dO the query rows of a tile, for K and V 128 rows. */
struct attention_backward_sm90_args {
	struct tensor_map q_map, k_map, v_map, d_o_map;
	struct attention_backward_args a;
};
static_assert(sizeof(struct attention_backward_sm90_args) == 832, "layout shared with nvcc");

enum {
	ATTENTION_BACKWARD_PAD = 128,
	ATTENTION_BACKWARD_THREADS = 256, /* of begin (128 rows per block) and end (one tile per block) */
	ATTENTION_BACKWARD_TILE = 64,	  /* portable: keys or queries of a block */
	ATTENTION_BACKWARD_KEYS = 128,	  /* sm90: keys of a block */
};

/* Query rows of a tile of sm90's _keys and _once. _queries has 128. */
#define ATTENTION_BACKWARD_QUERIES(d) ((d) == 64 ? 128 : 64)

/* First padded row of sequence b, which starts at token `start`. With the end of the last sequence as `start`
 * and b = batch it gives the number of rows. Sequences of equal length start at b times the padded length. */
#define ATTENTION_BACKWARD_ROW(b, start)                                                                     \
	(((start) + (b) * (uint64_t)ATTENTION_BACKWARD_PAD) / ATTENTION_BACKWARD_PAD * ATTENTION_BACKWARD_PAD)

/* Dynamic shared memory of the portable kernels: four tiles of 64 rows and two rows of floats. */
#define ATTENTION_BACKWARD_SHARED(d) (4 * 64 * (d)*2 + 2 * 64 * 4)
/*
 * Dynamic shared memory of the sm90 kernels. _keys has K and V, two slots of Q and dO with the floats of
 * their rows, `passed` bytes for two alternating buffers of dS (and of outgoing dQ), barriers and alignment.
 * _queries has Q, dO, and two slots of K and V.
 */
#define ATTENTION_BACKWARD_SM90_SHARED(d, queries, passed)                                                   \
	(4 * (d) * (128 + 2 * (queries)) + 16 * (queries) + (passed) + 128 + 1024)
#define ATTENTION_BACKWARD_PASSED(d) (2 * 2 * 128 * ATTENTION_BACKWARD_QUERIES(d))
#define ATTENTION_BACKWARD_PASSED_BULK(d) (ATTENTION_BACKWARD_PASSED(d) + 2 * 64 * 64 * 4)
#define ATTENTION_BACKWARD_SM90_SHARED_QUERIES(d) (4 * (d) * (128 + 2 * 128) + 128 + 1024)
#endif
