/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward on Hopper: kernel shapes, shared-memory layout and units of work. */
#ifndef KERNEL_ATTENTION_FORWARD_SM90_SHAPE_CUH
#define KERNEL_ATTENTION_FORWARD_SM90_SHAPE_CUH
#include "kernel/attention/forward/args.h"
#include "kernel/hopper.cuh"
#include "kernel/wgmma.cuh"

enum how {
	HOW_Q_REGISTERS = 1, /* queries are register operands, so their slot is free after the first scores */
	HOW_STALE = 2,	     /* exponents relative to the first block's maximum while sums stay small */
	HOW_O_IN_Q = 8,	     /* O is stored through the slot of its queries, if there is no room for both */
	HOW_PAIR = 4,	     /* tiles of 128 rows; a warpgroup's two halves alternate (sm90_pair.cuh) */
	HOW_PREFETCH = 16,   /* prefetch the next head's keys and values into the L2 one head early */
	HOW_STREAM = 64,     /* twice as many blocks of keys as slots, so keys stream through the slots */
	HOW_DOWN = 128,	     /* causal: a head's longest tiles and last keys first (sm90_down.cuh) */
	HOW_FIXED = 256,     /* shared memory begins at a fixed address, so places are constants */
	HOW_WHOLE = 32,	     /* units are whole heads (sm90_head.cuh), so shared memory holds no units */
};

/* OUT is the 16-bit type of O. With FP8, values are transposed in their slot (turn_values), so KEYS is D. */
template <typename T_, int D_, int GROUPS_, int KEYS_, int SLOTS_, unsigned HOW_, typename OUT_ = T_>
struct attention_shape {
	typedef T_ T;
	typedef OUT_ OUT;
	typedef attention_sm90_args ARGS;
	enum {
		D = D_,
		GROUPS = GROUPS_,
		KEYS = KEYS_,
		SLOTS = SLOTS_,
		HOW = HOW_,
		Q_REGISTERS = !!(HOW_ & HOW_Q_REGISTERS),
		STALE = !!(HOW_ & HOW_STALE),
		O_IN_Q = !!(HOW_ & HOW_O_IN_Q),
		PAIR = !!(HOW_ & HOW_PAIR),
		PREFETCH = !!(HOW_ & HOW_PREFETCH),
		WHOLE = !!(HOW_ & HOW_WHOLE),
		EARLY = 0, /* begins before the grid ahead has ended, and lets the next one do so */
		STREAM = !!(HOW_ & HOW_STREAM),
		DOWN = !!(HOW_ & HOW_DOWN),
		FIXED = !!(HOW_ & HOW_FIXED),
		ORDERED = GROUPS_ * 64 == ATTENTION_ORDER_ROWS && !WHOLE && !PAIR, /* units may have an order */
		THREADS = 128 * (GROUPS_ + 1),
		BYTES = sizeof(T_),
		FP8 = BYTES == 1,
		OFFSET = FP8 ? 4 : 0, /* E4M3 ranges from 2^-9 to 448; a maximum of 2^4 leaves room on both sides */
		REGISTERS = (GROUPS_ == 2 ? 240 : (GROUPS_ == 3 ? 160 : 112)) - FP8 * 8, /* of a consumer thread */
		LOAD_REGISTERS = FP8 ? 40 : (GROUPS_ == 2 ? 24 : 32),
		ROWS = HOW_ & HOW_PAIR ? 128 : 64,
		CHUNK = D_ * BYTES < 128 ? D_ * BYTES : 128, /* contiguous bytes of a row, swizzled together */
		CHUNKS = D_ * BYTES / CHUNK,
		O_CHUNKS = D_ / 64,
		PAIRS = KEYS_ * BYTES / 8,    /* registers of probabilities per thread */
		QUERIES = D_ * BYTES / 8,     /* registers of queries per thread */
		STEP = CHUNK / 32,	      /* wgmma steps along k per chunk; each takes 32 bytes */
		KV_BYTES = KEYS_ * D_ * BYTES,
		Q_BYTES = ROWS * D_ * BYTES,
		O_BYTES = ROWS * D_ * 2,
		Q_SLOTS = HOW_ & (HOW_Q_REGISTERS | HOW_O_IN_Q) && !DOWN ? 1 : 2,
		UNIT_BYTES = 64,
		UNITS = WHOLE ? 0 : 2, /* per consumer warp */
		/* offsets in shared memory */
		K_AT = 0,
		V_AT = SLOTS_ * KV_BYTES,
		Q_AT = 2 * SLOTS_ * KV_BYTES,
		O_AT = Q_AT + !O_IN_Q * GROUPS_ * Q_SLOTS * Q_BYTES,
		UNITS_AT = O_AT + GROUPS_ * O_BYTES, /* one copy per consumer warp, because registers are scarce */
		BARRIERS_AT = UNITS_AT + GROUPS_ * 4 * UNITS * UNIT_BYTES,
		FULL_K = 0,
		EMPTY_K = FULL_K + SLOTS_,
		FULL_V = EMPTY_K + SLOTS_,
		EMPTY_V = FULL_V + SLOTS_,
		FULL_Q = EMPTY_V + SLOTS_,
		EMPTY_Q = FULL_Q + GROUPS_ * Q_SLOTS,
		RAW_V = EMPTY_Q + GROUPS_ * Q_SLOTS,
		BARRIERS = RAW_V + FP8 * SLOTS_,
		SHARED_BYTES = BARRIERS_AT + BARRIERS * 8 + 1024, /* 1024: for alignment */
	};
};

/* Addresses in shared memory. */
template <typename C> struct attention_room {
	uint32_t base;

	__device__ uint32_t k(unsigned slot) const { return base + C::K_AT + slot * C::KV_BYTES; }
	__device__ uint32_t v(unsigned slot) const { return base + C::V_AT + slot * C::KV_BYTES; }
	__device__ uint32_t q(unsigned group, unsigned slot) const
	{
		return base + C::Q_AT + (group * C::Q_SLOTS + slot) * C::Q_BYTES;
	}
	__device__ uint32_t o(unsigned group) const { return base + C::O_AT + group * C::O_BYTES; }
	__device__ unsigned units() const { return C::UNITS_AT + (threadIdx.x / 32 - 4) * C::UNITS * C::UNIT_BYTES; }
	__device__ uint32_t barrier(unsigned number) const { return base + C::BARRIERS_AT + number * 8; }
};

/* Loads a warp's 16 rows of a tile of queries as register operands. */
template <typename C>
static __device__ __forceinline__ void queries_load(uint32_t tile, unsigned warp, unsigned lane, uint32_t *to)
{
	const unsigned row = warp * 16 + lane % 16;

#pragma unroll
	for (int i = 0; i < C::QUERIES / 4; i++) {
		uint32_t four[4];

		matrix_load(four, tile + row * C::CHUNK + i / C::STEP * 64 * C::CHUNK +
					  swizzled<C::CHUNK>(row, i % C::STEP * 2 + lane / 16));
#pragma unroll
		for (int e = 0; e < 4; e++)
			to[4 * i + e] = four[e];
	}
}

/* -- units of work and the keys that they see -- */

struct attention_unit {
	int batch, head, kv_head; /* coordinates in the tensor maps; batch is 0 if sequences are packed */
	int sequence;		  /* batch element */
	int q_row, kv_row;	  /* first row of the sequence in the maps */
	int q_len, kv_len;
	int tile, tiles; /* first tile, number of tiles */
	int from, to; /* blocks of keys that any of its tiles sees */
};

struct attention_range {
	int from, to;
};

template <typename C>
static __device__ __forceinline__ attention_range tile_range(const attention_sm90_args &a, int kv_len, int q_len,
							     int tile)
{
	const int shift = kv_len - q_len, last = min(tile * C::ROWS + C::ROWS, q_len) - 1;
	const int low = max(tile * C::ROWS + shift - a.left, 0), high = min(last + shift + a.right, kv_len - 1);
	attention_range r;

	r.from = low / C::KEYS;
	r.to = high < low ? r.from : high / C::KEYS + 1;
	return r;
}

/* Returns false if the unit's rows are past the end of a shorter sequence. */
template <typename C>
static __device__ __forceinline__ bool unit_find(const attention_sm90_args &a, int number, attention_unit &u)
{
	const int all = a.pairs, per = a.section * a.head_units, section = number / per;
	const int rest = number - section * per, wide = min((int)a.section, all - section * (int)a.section);
	const int across = rest / wide, pair = section * a.section + rest - across * wide;
	const int most = C::GROUPS * a.passes;

	u.sequence = pair / (int)a.heads;
	u.head = pair - u.sequence * a.heads;
	u.tile = (a.head_units - 1 - across) * most;
	if (C::ORDERED && a.order) {
		const uint32_t word = a.order[across];

		u.sequence = ATTENTION_ORDER_SEQUENCE(word);
		u.tile = ATTENTION_ORDER_UNIT(word) * most;
	}
	u.kv_head = u.head / (int)(a.heads / a.kv_heads);
	u.batch = a.q_starts ? 0 : u.sequence;
	u.q_row = a.q_starts ? (int)a.q_starts[u.sequence] : 0;
	u.kv_row = a.q_starts ? (int)a.kv_starts[u.sequence] : 0;
	u.q_len = a.q_starts ? (int)a.q_starts[u.sequence + 1] - u.q_row : (int)a.q_len;
	u.kv_len = a.q_starts ? (int)a.kv_starts[u.sequence + 1] - u.kv_row : (int)a.kv_len;
	if (u.tile * C::ROWS >= u.q_len)
		return false;
	u.tiles = min(most, (u.q_len + C::ROWS - 1) / C::ROWS - u.tile);
	u.from = tile_range<C>(a, u.kv_len, u.q_len, u.tile).from;
	u.to = max(tile_range<C>(a, u.kv_len, u.q_len, u.tile + u.tiles - 1).to, u.from);
	return true;
}

/* Unit of round i, or -1 if there is none. */
static __device__ __forceinline__ int unit_of_round(const attention_sm90_args &a, int round)
{
	const int units = a.pairs * a.head_units;
	const int place = a.zigzag && round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
	const int number = round * gridDim.x + place;

	return number < units ? number : -1;
}

static __device__ __forceinline__ int unit_rounds(const attention_sm90_args &a)
{
	return (a.pairs * a.head_units + gridDim.x - 1) / gridDim.x;
}

/*
 * A warpgroup's i-th tile of a unit; `tiles` or more means none. If all warpgroups have the same number of
 * tiles, the direction of assignment alternates, with the longest tiles last. So the short and long tiles of
 * a mask give each warpgroup the same work. Otherwise tiles are assigned in rotation across units; `turn`,
 * the number of tiles of the units before, selects the first warpgroup.
 */
template <typename C> static __device__ __forceinline__ int tile_dealt(int tiles, int turn, int i, int group)
{
	if (tiles % C::GROUPS == 0)
		return i * C::GROUPS + (i % 2 ? C::GROUPS - 1 - group : group);
	return i * C::GROUPS + (group + C::GROUPS - turn) % C::GROUPS;
}

/* -- causal heads of eight tiles, each as large as a block of keys (sm90_down.cuh) -- */

enum { DOWN_PASSES = 4 };

/* The (batch, head) pair of a thread block in a round; below 0: none. */
static __device__ __forceinline__ int down_pair(const attention_sm90_args &a, int round)
{
	const int pairs = a.batch * a.heads, blocks = gridDim.x, block = blockIdx.x, full = pairs / blocks;
	const int rest = pairs - full * blocks, first = full * blocks, later = round - full;

	if (later < 0)
		return round * blocks + block;
	return later == 0 && block < rest ? first + block : -1;
}

static __device__ __forceinline__ int down_rounds(const attention_sm90_args &a)
{
	return a.batch * a.heads / gridDim.x + 2;
}

/* A warpgroup's i-th tile, longest first; 15: none. Each of the three shares has twelve blocks. */
static __device__ __forceinline__ int tile_down(int share, int i)
{
	const unsigned tiles = share == 0 ? 0xfff37 : share == 1 ? 0xfff46 : 0xf0125;

	return tiles >> 4 * i & 15;
}
#endif
