/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward, O = softmax(scale Q K^T) V a head, with the logarithm of the sums of exponentials beside
 * it. docs/explanation/design/attention_kernels.md says what each version buys.
 *
 * A row r of q_len sees the keys from r + kv_len - q_len - left to r + kv_len - q_len + right: masks are
 * aligned at the bottom right. ATTENTION_OPEN: no limit on that side; causal is right = 0. A row that sees no
 * key gets zeros, and -inf in lse. Query head h reads key head h / (heads / kv_heads).
 */
#ifndef KERNEL_ATTENTION_FORWARD_ARGS_H
#define KERNEL_ATTENTION_FORWARD_ARGS_H
#include "kernel/args.h"

/* A word of an order of units (gpu/attention/work_order.h): unit `unit` of a sequence, ATTENTION_ORDER_ROWS
 * tokens each. Forward takes queries of that place; backward, whose first keys have most queries, counts them
 * from the end. */
#define ATTENTION_ORDER(sequence, unit) ((uint32_t)(sequence) << 16 | (uint32_t)(unit))
#define ATTENTION_ORDER_SEQUENCE(word) ((word) >> 16)
#define ATTENTION_ORDER_UNIT(word) ((word)&0xffff)
enum { ATTENTION_ORDER_ROWS = 128 };

#define ATTENTION_OPEN (1 << 29) /* a window's side without limit; sequences are shorter than this */

/* Strides in elements; columns of a row stand side by side. */
struct attention_steps {
	int64_t batch, head, row;
};

/*
 * Entries of file attention (portable): naive_TYPE and flash_TYPE_dD, TYPE fp16 or bf16. With starts (batch +
 * 1 rows each), sequence b is rows q_starts[b] .. q_starts[b + 1] of q and o, kv_starts likewise; lengths are
 * then the longest, batch strides are not used, and lse is still [batch, heads, q_len].
 */
struct attention_args {
	DEVICE_PTR(const void) q;
	DEVICE_PTR(const void) k;
	DEVICE_PTR(const void) v;
	DEVICE_PTR(void) o;
	DEVICE_PTR(float) lse; /* may be 0 */
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
	/* naive: a warp a query row; flash: 64 query rows a block of 4 warps, 64 keys at a time */
	ATTENTION_NAIVE_THREADS = 128,
	ATTENTION_FLASH_THREADS = 128,
	ATTENTION_FLASH_ROWS = 64,
	ATTENTION_FLASH_KEYS = 64,
};

/* A CUtensorMap: rank 4, (column, row, head, batch), 64 columns a box, swizzled by 128 bytes. */
#ifdef __CUDACC__
struct __align__(64) tensor_map
{
	uint64_t opaque[16];
};
#else
struct tensor_map {
	_Alignas(64) uint64_t opaque[16];
};
#endif

/*
 * Entries of file attention_sm90, by shape (gpu/attention/own_forward.c has their table); FP8: O in 16 bits.
 * Boxes: Q 64 rows, K and V the entry's keys, O 16 rows. Work is cut in units of one head and groups x passes
 * tiles of 64 query rows.
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
	float scale_log2; /* scale x log2(e), above 0 */
	uint32_t passes;  /* tiles a warpgroup takes one after the other; above 1 all keys of a head fit the
			     slots */
	uint32_t head_units; /* units a head; with an order: of all sequences together */
	uint32_t section;    /* heads whose units are ordered by length together */
	uint32_t zigzag; /* every other round of units is dealt backwards: for masks, whose units differ */
	DEVICE_PTR(const float) descale_q;
	DEVICE_PTR(const float) descale_k; /* FP8: what the stored elements are multiplied by; above 0 */
	DEVICE_PTR(const float) descale_v;
	DEVICE_PTR(const uint32_t)
	order;		/* head_units words, the same for each head; 0: units in their own order */
	uint32_t pairs; /* of a head and a sequence that units are numbered by: batch x heads; heads with an
			   order */
	uint32_t reserved[13];
};
static_assert(sizeof(struct attention_sm90_args) == 704, "layout shared with nvcc");

enum { ATTENTION_SM90_ROWS = 64, ATTENTION_SM90_O_ROWS = 16 }; /* of a warpgroup's tile, of a warp's share */

/* Of the shared memory below what tells units: entries of whole heads have none. */
#define ATTENTION_SM90_UNITS(groups) ((groups)*4 * 128)
/* Dynamic shared memory of an entry whose Q, K and V have elements of `bytes`: slots of keys and of values,
 * queries (`q_slots` a warpgroup) and, where it stands apart from them, O of `rows` a warpgroup, 64 bytes a
 * warp and copy of a unit, barriers, and what aligning to 1024 takes. */
#define ATTENTION_SM90_ROOM(bytes, d, groups, rows, keys, slots, q_slots, o_apart)                           \
	((bytes) * (d) * (2 * (slots) * (keys) + (rows) * (groups) * (q_slots)) +                            \
	 2 * (d) * (rows) * (groups) * !!(o_apart) + ATTENTION_SM90_UNITS(groups) +                          \
	 8 * (((bytes) == 1 ? 5 : 4) * (slots) + 2 * (groups) * (q_slots)) + 1024)
#define ATTENTION_SM90_SHARED(d, groups, keys, slots, q_slots)                                               \
	ATTENTION_SM90_ROOM(2, d, groups, ATTENTION_SM90_ROWS, keys, slots, q_slots, 1)
#endif
