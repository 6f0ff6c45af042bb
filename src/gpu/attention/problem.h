/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an attention is, for every engine: the library's, our kernels and the CPU's reference. Pure: no
 * library, no device. For each batch and query head, with rows of Q, K and V of head_dim elements,
 *
 *   S[i][j] = scale * sum_d Q[i][d] K[j][d]     over the pairs (i, j) that the mask keeps
 *   lse[i]  = ln sum_j exp S[i][j]
 *   O[i]    = sum_j exp(S[i][j] - lse[i]) V[j]
 *
 * A row that keeps no key has O = 0 and lse = -inf. Query head h reads key and value head
 * h / (heads / kv_heads). METHODS "Attention".
 */
#ifndef GPU_ATTENTION_PROBLEM_H
#define GPU_ATTENTION_PROBLEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "gpu/device/gpu.h"

/* name, text, bytes an element */
#define ATTENTION_TYPES(X)                                                                                   \
	X(F16, "fp16", 2)                                                                                    \
	X(BF16, "bf16", 2)                                                                                   \
	X(E4M3, "e4m3", 1)
#define X(name, ...) ATTENTION_##name,
enum attention_type { ATTENTION_TYPES(X) ATTENTION_TYPE_COUNT };
#undef X

/*
 * Which pairs are kept. Masks are aligned at the bottom right: query i of q_len stands at key
 * p = i + kv_len - q_len, so that the last query sees the last key however the lengths differ (and the first
 * q_len - kv_len rows of a longer Q keep nothing where the mask is causal).
 * CAUSAL: j <= p. WINDOW: p - window_left <= j <= p + window_right, both ends kept. name, text
 */
#define ATTENTION_MASKS(X)                                                                                   \
	X(FULL, "none")                                                                                      \
	X(CAUSAL, "causal")                                                                                  \
	X(WINDOW, "window")
#define X(name, ...) ATTENTION_##name,
enum attention_mask { ATTENTION_MASKS(X) ATTENTION_MASK_COUNT };
#undef X

#define ATTENTION_UNBOUNDED UINT32_MAX /* a window's side without an end */
enum { ATTENTION_HEAD_DIM_MAX = 256 };

/* Elements from one batch, head and row (token) to the next; the last dimension is dense. All 0: packed as
 * [batch][head][row][head_dim], or with lengths as [token][head][head_dim]. */
struct attention_strides {
	uint64_t batch, head, row;
};

struct attention_problem {
	enum attention_type type;     /* of Q, K, V */
	enum attention_type out_type; /* of O: type, where that is of 16 bits */
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	enum attention_mask mask;
	uint32_t window_left, window_right; /* WINDOW's */
	double scale;			    /* 0: 1 / sqrt(head_dim) */
	struct attention_strides q, k, v, o;
	/*
	 * Sequences of different length: batch + 1 token offsets each, from 0, on the host (an engine reads
	 * them on the device too: attention_operands). Tokens of all sequences stand one after the other, the
	 * batch stride is not used, and q_len and kv_len are the longest. NULL, both: all have q_len and
	 * kv_len. Lent.
	 */
	const uint32_t *q_starts, *kv_starts;
	bool want_lse; /* FP32, dense [batch][heads][q_len]; rows beyond a sequence's length are not written
			*/
};

/* Device addresses. 0 where the problem has no such thing. */
struct attention_operands {
	gpu_ptr q, k, v, o, lse;
	gpu_ptr q_starts, kv_starts; /* the problem's, uint32 */
	/* Optional, where queries and keys have the same starts: in which order our kernels work
	 * (gpu/attention/work_order.h). */
	gpu_ptr order;
	uint32_t order_count;
	/* FP8: one float each. What the stored elements are multiplied by; FP8 outputs are multiplied before
	 * they are rounded. */
	gpu_ptr descale_q, descale_k, descale_v, scale_o;
};

/* BAD_INPUT: one sentence that names what does not fit. What an engine cannot do is the engine's to say. */
enum status attention_check(const struct attention_problem *p, struct error *err);
/* "B16 H96/8 S512x512 D64 fp16 causal", for messages and kernels' names. */
void attention_describe(const struct attention_problem *p, char *text, size_t size);
double attention_scale(const struct attention_problem *p); /* the default filled in */
/* Strides with the defaults filled in. */
struct attention_strides attention_q_strides(const struct attention_problem *p);
struct attention_strides attention_k_strides(const struct attention_problem *p);
struct attention_strides attention_v_strides(const struct attention_problem *p);
struct attention_strides attention_o_strides(const struct attention_problem *p);
/* Elements from the first to the last of a tensor: what to allocate. */
uint64_t attention_q_count(const struct attention_problem *p);
uint64_t attention_k_count(const struct attention_problem *p);
uint64_t attention_v_count(const struct attention_problem *p);
uint64_t attention_o_count(const struct attention_problem *p);
uint64_t attention_lse_count(const struct attention_problem *p);
/* Lengths of one sequence. */
uint32_t attention_q_len(const struct attention_problem *p, uint32_t batch);
uint32_t attention_kv_len(const struct attention_problem *p, uint32_t batch);

/* Keys [from, to) that query `row` of sequence `batch` keeps; from == to: none. */
struct attention_keys {
	uint32_t from, to;
};
struct attention_keys attention_keys(const struct attention_problem *p, uint32_t batch, uint32_t row);
/* Kept (query, key) pairs of all sequences and query heads. */
double attention_pairs(const struct attention_problem *p);
/* 4 head_dim a kept pair: two products, a multiplication and an addition each. exp and the rest are not
 * counted. Backward is five products: 10 head_dim. */
double attention_flop(const struct attention_problem *p);
double attention_flop_backward(const struct attention_problem *p);
/* Q, K, V read once and O (and lse) written once. */
double attention_bytes(const struct attention_problem *p);

const char *attention_type_name(enum attention_type type);
unsigned attention_type_bytes(enum attention_type type);
const char *attention_mask_name(enum attention_mask mask);
#endif
