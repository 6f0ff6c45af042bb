/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward: O = softmax(scale Q K^T) V for each head, and lse, the logarithm of the sums of
 * exponentials. docs/explanation/design/attention_kernels.md describes the gain of each version.
 *
 * Row r of q_len queries sees the keys from r + kv_len - q_len - left to r + kv_len - q_len + right, so masks
 * are aligned at the bottom right. ATTENTION_OPEN means no limit on that side; causal is right = 0. A row
 * that sees no key gets zeros in O and -inf in lse. Query head h reads key head h / (heads / kv_heads).
 */
#ifndef KERNEL_ATTENTION_FORWARD_ARGS_H
#define KERNEL_ATTENTION_FORWARD_ARGS_H
#include "kernel/args.h"
#include "kernel/tensor_map.h"

/* One word of an order of units (gpu/attention/work_order.h): unit `unit` of a sequence, where a unit is
 * ATTENTION_ORDER_ROWS tokens. Forward processes the queries at that place. Backward counts units from the
 * end, because a sequence's first keys have the most queries. */
#define ATTENTION_ORDER(sequence, unit) ((uint32_t)(sequence) << 16 | (uint32_t)(unit))
#define ATTENTION_ORDER_SEQUENCE(word) ((word) >> 16)
#define ATTENTION_ORDER_UNIT(word) ((word)&0xffff)
enum { ATTENTION_ORDER_ROWS = 128 };

#define ATTENTION_OPEN (1 << 29) /* no limit on this side of the window; sequences are shorter than this */

/* Strides in elements. The columns of a row are contiguous. */
struct attention_steps {
	int64_t batch, head, row;
};

/*
 * Entries of file attention (portable) are naive_TYPE and flash_TYPE_dD, with TYPE fp16 or bf16. With starts
 * (batch + 1 rows each), sequence b is rows q_starts[b] .. q_starts[b + 1] of q and o; kv_starts works the
 * same way for k and v. The lengths are then those of the longest sequence, batch strides are not used, and
 * lse is still [batch, heads, q_len].
 */
struct attention_args {
	DEVICE_PTR(const void) q;
	DEVICE_PTR(const void) k;
	DEVICE_PTR(const void) v;
	DEVICE_PTR(void) o;
	DEVICE_PTR(float) lse; /* 0: not written */
	DEVICE_PTR(const uint32_t) q_starts;
	DEVICE_PTR(const uint32_t) kv_starts;
	struct attention_steps q_step, k_step, v_step, o_step;
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	int32_t left, right;
	float scale;
	uint32_t reserved;
};
static_assert(sizeof(struct attention_args) == 192, "layout shared with nvcc");

enum {
	/* naive: one warp per query row. flash: a block of 4 warps has 64 query rows and takes 64 keys at a
	 * time. */
	ATTENTION_NAIVE_THREADS = 128,
	ATTENTION_FLASH_THREADS = 128,
	ATTENTION_FLASH_ROWS = 64,
	ATTENTION_FLASH_KEYS = 64,
};

/*
 * Arguments of the entries of file attention_sm90. gpu/attention/own_forward.c has the table of their shapes.
 * With FP8, O has 16 bits. Boxes of the tensor maps: Q 64 rows, K and V the entry's keys, O 16 rows. A unit
 * of work is one head and groups x passes tiles of 64 query rows.
 */
struct attention_sm90_args {
	struct tensor_map q_map, k_map, v_map, o_map;
	DEVICE_PTR(void) o;
	DEVICE_PTR(float) lse;
	DEVICE_PTR(const uint32_t) q_starts;
	DEVICE_PTR(const uint32_t) kv_starts;
	struct attention_steps o_step;
	uint32_t batch, heads, kv_heads, q_len, kv_len;
	int32_t left, right;
	float scale_log2; /* scale x log2(e); above 0 */
	uint32_t passes;  /* tiles that a warpgroup processes one after the other; above 1 only if all keys of
			   * a head fit the slots */
	uint32_t head_units; /* units per head; with an order: of all sequences together */
	uint32_t section;    /* heads whose units are sorted by length together */
	uint32_t zigzag; /* assign every second round of units in reverse; for masks, where units differ in
			  * length */
	DEVICE_PTR(const float) descale_q;
	DEVICE_PTR(const float) descale_k; /* FP8: factors of the stored elements; above 0 */
	DEVICE_PTR(const float) descale_v;
	/* head_units words, the same for each head; 0: units in natural order */
	DEVICE_PTR(const uint32_t) order;
	uint32_t pairs; /* number of (head, sequence) pairs that units are numbered by: batch x heads; with an
			 * order: heads */
	uint32_t reserved[13];
};
static_assert(sizeof(struct attention_sm90_args) == 704, "layout shared with nvcc");

enum { ATTENTION_SM90_ROWS = 64, ATTENTION_SM90_O_ROWS = 16 }; /* rows of a warpgroup, of a warp */

/* The part of the shared memory below that holds units. Entries with whole heads as units do not need it. */
#define ATTENTION_SM90_UNITS(groups) ((groups)*4 * 128)
/* Dynamic shared memory of an entry whose Q, K and V elements have `bytes` bytes. It holds slots of keys and
 * of values, queries (`q_slots` per warpgroup), O of `rows` per warpgroup if it is separate from the queries,
 * 64 bytes per warp and copy of a unit, barriers, and the loss by alignment to 1024. */
#define ATTENTION_SM90_ROOM(bytes, d, groups, rows, keys, slots, q_slots, o_apart)                           \
	((bytes) * (d) * (2 * (slots) * (keys) + (rows) * (groups) * (q_slots)) +                            \
	 2 * (d) * (rows) * (groups) * !!(o_apart) + ATTENTION_SM90_UNITS(groups) +                          \
	 8 * (((bytes) == 1 ? 5 : 4) * (slots) + 2 * (groups) * (q_slots)) + 1024)
#define ATTENTION_SM90_SHARED(d, groups, keys, slots, q_slots)                                               \
	ATTENTION_SM90_ROOM(2, d, groups, ATTENTION_SM90_ROWS, keys, slots, q_slots, 1)
#endif
