/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention backward: dQ, dK and dV of kernel/attention/forward/args.h's forward from Q, K, V, O, dO and the
 * logarithms of sums. With P = exp(scale Q K^T - lse), which forward's shares are,
 *
 *   D  = rows of dO * O summed           dV = P^T dO
 *   dS = scale P (dO V^T - D)            dK = dS^T Q         dQ = dS K
 *
 * and dK, dV summed over the query heads of a key head. A row or key that nothing is kept of has a gradient
 * of 0.
 *
 * Kernels, in the order of their launches. backward_begin: D and lse in base 2 into padded rows; clears the
 * dQ that is added up. backward_keys: dK and dV, a block of keys at a time; nothing is added by two blocks,
 * so bits are the same on every run. backward_queries: dQ, a block of queries at a time, likewise; scores
 * are made a second time. Or, of sm_90a alone, backward_once: dK and dV as backward_keys, and this block's
 * part of dQ added to a sum in FP32, in any order; then backward_end: that sum to dQ.
 *
 * docs/explanation/design/attention_kernels.md, "Backward".
 */
#ifndef KERNEL_ATTENTION_BACKWARD_ARGS_H
#define KERNEL_ATTENTION_BACKWARD_ARGS_H
#include "kernel/attention/forward/args.h"

/* dO is laid out as O, dQ as Q, dK as K, dV as V. Lengths, starts, sides and heads as in attention_args. */
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
	 * Between the kernels, [heads][rows]: sequence b's first row is b * q_len or starts[b] + 128 b, at
	 * the multiple of 128 above or below it (ATTENTION_BACKWARD_ROW), so that no tile is two sequences'.
	 * lse in base 2, +inf where nothing is kept or no row is; scale D, 0 there.
	 */
	DEVICE_PTR(float) lse2;
	DEVICE_PTR(float) sums;
	DEVICE_PTR(float) sum_q; /* [heads][rows][head_dim], in the matrix unit's order in a tile; 0: none */
	DEVICE_PTR(const uint32_t) q_starts;
	DEVICE_PTR(const uint32_t) kv_starts;
	struct attention_steps q_step, k_step, v_step, o_step;
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	int32_t left, right;
	float scale;
	uint32_t rows;	  /* of lse2, sums and sum_q: all sequences' */
	uint32_t section; /* sm90: heads whose blocks are ordered by length together */
	uint32_t order_count;
	DEVICE_PTR(const uint32_t)
	order; /* sm90: of units of 128 rows, the same for each head; 0: blocks in their own order */
};
static_assert(sizeof(struct attention_backward_args) == 264, "layout shared with nvcc");

/* Maps' boxes: Q and dO a tile's rows of queries, K and V 128 rows. */
struct attention_backward_sm90_args {
	struct tensor_map q_map, k_map, v_map, d_o_map;
	struct attention_backward_args a;
};
static_assert(sizeof(struct attention_backward_sm90_args) == 832, "layout shared with nvcc");

enum {
	ATTENTION_BACKWARD_PAD = 128,
	ATTENTION_BACKWARD_THREADS = 256, /* of begin and end; begin: 128 rows a block, end: a tile */
	ATTENTION_BACKWARD_TILE = 64,	  /* portable: keys of a block of _keys, queries of one of _queries */
	ATTENTION_BACKWARD_KEYS = 128,	  /* sm90: of a block */
};

/* Query rows of a tile of sm90's _keys and _once; _queries: 128. */
#define ATTENTION_BACKWARD_QUERIES(d) ((d) == 64 ? 128 : 64)

/* First padded row of sequence b, which starts at token `start`; start of the sequence behind the last and
 * batch: rows in all. Dense: starts at b times the padded length. */
#define ATTENTION_BACKWARD_ROW(b, start)                                                                     \
	(((start) + (b) * (uint64_t)ATTENTION_BACKWARD_PAD) / ATTENTION_BACKWARD_PAD * ATTENTION_BACKWARD_PAD)

/* Dynamic shared memory. Portable: four tiles of 64 rows and two rows of numbers. */
#define ATTENTION_BACKWARD_SHARED(d) (4 * 64 * (d)*2 + 2 * 64 * 4)
/*
 * sm90. Of _keys: K and V, two slots of Q and of dO with their rows' numbers, `passed` bytes of dS in two
 * turns (and of dQ on its way), barriers, what aligning takes. Of _queries: Q and dO, two slots of K and V.
 */
#define ATTENTION_BACKWARD_SM90_SHARED(d, queries, passed)                                                   \
	(4 * (d) * (128 + 2 * (queries)) + 16 * (queries) + (passed) + 128 + 1024)
#define ATTENTION_BACKWARD_PASSED(d) (2 * 2 * 128 * ATTENTION_BACKWARD_QUERIES(d))
#define ATTENTION_BACKWARD_PASSED_BULK(d) (ATTENTION_BACKWARD_PASSED(d) + 2 * 64 * 64 * 4)
#define ATTENTION_BACKWARD_SM90_SHARED_QUERIES(d) (4 * (d) * (128 + 2 * 128) + 128 + 1024)
#endif
