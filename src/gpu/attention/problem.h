/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definition of an attention problem, for every engine: cuDNN, our kernels and the CPU reference. Pure: no
 * library, no device. For each batch and query head, with rows of Q, K and V of head_dim elements,
 *
 *   S[i][j] = scale * sum_d Q[i][d] K[j][d]     over the pairs (i, j) that the mask keeps
 *   lse[i]  = ln sum_j exp S[i][j]
 *   O[i]    = sum_j exp(S[i][j] - lse[i]) V[j]
 *
 * A row that keeps no key has O = 0 and lse = -inf. Query head h reads key and value head h / (heads /
 * kv_heads). docs/explanation/methods/attention.md.
 */
#ifndef GPU_ATTENTION_PROBLEM_H
#define GPU_ATTENTION_PROBLEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "gpu/device/gpu.h"

/* name, text, bytes per element */
#define ATTENTION_TYPES(X)                                                                                   \
	X(F16, "fp16", 2)                                                                                    \
	X(BF16, "bf16", 2)                                                                                   \
	X(E4M3, "e4m3", 1)
#define X(name, ...) ATTENTION_##name,
enum attention_type { ATTENTION_TYPES(X) ATTENTION_TYPE_COUNT };
#undef X

/*
 * The pairs that a mask keeps. Masks are aligned at the bottom right: query i of q_len is at key position p =
 * i + kv_len - q_len. So the last query sees the last key even if the lengths differ. If Q is longer and the
 * mask is causal, the first q_len - kv_len rows keep nothing.
 * CAUSAL keeps j <= p. WINDOW keeps p - window_left <= j <= p + window_right. Columns: name, text
 */
#define ATTENTION_MASKS(X)                                                                                   \
	X(FULL, "none")                                                                                      \
	X(CAUSAL, "causal")                                                                                  \
	X(WINDOW, "window")
#define X(name, ...) ATTENTION_##name,
enum attention_mask { ATTENTION_MASKS(X) ATTENTION_MASK_COUNT };
#undef X

#define ATTENTION_UNBOUNDED UINT32_MAX /* no limit on this side of a window */
enum { ATTENTION_HEAD_DIM_MAX = 256 };

/* Elements from one batch, head and row (token) to the next. The last dimension is contiguous. All 0 means
 * packed: [batch][head][row][head_dim], or with starts [token][head][head_dim]. */
struct attention_strides {
	uint64_t batch, head, row;
};

struct attention_problem {
	enum attention_type type;     /* type of Q, K and V */
	enum attention_type out_type; /* type of O; equal to `type` if that has 16 bits */
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	enum attention_mask mask;
	uint32_t window_left, window_right; /* WINDOW only */
	double scale;			    /* 0: 1 / sqrt(head_dim) */
	struct attention_strides q, k, v, o;
	/*
	 * Sequences of different length: batch + 1 token offsets each, from 0, in host memory. An engine
	 * reads them on the device too (attention_operands). Tokens of all sequences are contiguous, the
	 * batch stride is not used, and q_len and kv_len are the maximum lengths. If both are NULL, all
	 * sequences have q_len and kv_len. Lent.
	 */
	const uint32_t *q_starts, *kv_starts;
	bool want_lse; /* lse is FP32, [batch][heads][q_len]; rows past a sequence's end are not written */
};

/* Device addresses. 0 if the problem does not have the operand. */
struct attention_operands {
	gpu_ptr q, k, v, o, lse;
	gpu_ptr q_starts, kv_starts; /* the problem's starts, uint32 */
	/* Optional, if queries and keys have the same starts: the order in which our kernels process units
	 * (gpu/attention/work_order.h). */
	gpu_ptr order;
	uint32_t order_count;
	/* FP8: one float each. Stored elements are multiplied by the descale factors. FP8 outputs are
	 * multiplied by scale_o before rounding. */
	gpu_ptr descale_q, descale_k, descale_v, scale_o;
};

/* Checks the problem for consistency. BAD_INPUT: err is one sentence that names the bad property. Limits of
 * an engine are checked by the engine. */
enum status attention_check(const struct attention_problem *p, struct error *err);
/* For example "B16 H96/8 S512x512 D64 fp16 causal", for messages and kernel names. */
void attention_describe(const struct attention_problem *p, char *text, size_t size);
double attention_scale(const struct attention_problem *p); /* the scale, with the default applied */
/* Strides, with the defaults applied. */
struct attention_strides attention_q_strides(const struct attention_problem *p);
struct attention_strides attention_k_strides(const struct attention_problem *p);
struct attention_strides attention_v_strides(const struct attention_problem *p);
struct attention_strides attention_o_strides(const struct attention_problem *p);
/* Elements from the first to the last of a tensor, for allocation. */
uint64_t attention_q_count(const struct attention_problem *p);
uint64_t attention_k_count(const struct attention_problem *p);
uint64_t attention_v_count(const struct attention_problem *p);
uint64_t attention_o_count(const struct attention_problem *p);
uint64_t attention_lse_count(const struct attention_problem *p);
/* Lengths of one sequence. */
uint32_t attention_q_len(const struct attention_problem *p, uint32_t batch);
uint32_t attention_kv_len(const struct attention_problem *p, uint32_t batch);

/* Keys [from, to) that query `row` of sequence `batch` keeps; from == to if none. */
struct attention_keys {
	uint32_t from, to;
};
struct attention_keys attention_keys(const struct attention_problem *p, uint32_t batch, uint32_t row);
/* Number of kept (query, key) pairs over all sequences and query heads. */
double attention_pairs(const struct attention_problem *p);
/* Floating-point operations: 4 head_dim per kept pair, for two GEMMs with a multiplication and an addition
 * each. exp and the rest are not counted. Backward has five GEMMs: 10 head_dim. */
double attention_flop(const struct attention_problem *p);
double attention_flop_backward(const struct attention_problem *p);
/* Bytes for reading Q, K and V once and writing O (and lse) once. */
double attention_bytes(const struct attention_problem *p);

const char *attention_type_name(enum attention_type type);
unsigned attention_type_bytes(enum attention_type type);
const char *attention_mask_name(enum attention_mask mask);
#endif
