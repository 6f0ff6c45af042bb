/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes block lists on the device. A warp reads a row of blocks 32 at a time and compacts it by ballots, once
 * to count and once to write. In the launch between, one block sums the counts while all others rank units by
 * their counts. So no count goes back to the host. Host reference: tests/gpu/ref_attention_lists.c.
 */
#include "kernel/attention/sparse/make_lists.h"
#include "kernel/philox.cuh"

/* -- the part of a block that mask and lengths leave -- */

struct row_place {
	uint32_t batch, head, q; /* position in the lists */
	int q_len, kv_len;	 /* lengths of its sequence */
};

static __device__ row_place place_of(const attention_lists_args &a, uint32_t row)
{
	const uint32_t pair = row / a.lists.q_blocks;
	row_place p;

	p.q = row - pair * a.lists.q_blocks;
	p.batch = pair / a.lists.heads;
	p.head = pair - p.batch * a.lists.heads;
	p.q_len = a.q_starts ? a.q_starts[p.batch + 1] - a.q_starts[p.batch] : a.q_len;
	p.kv_len = a.q_starts ? a.kv_starts[p.batch + 1] - a.kv_starts[p.batch] : a.kv_len;
	return p;
}

struct keys {
	int from, to; /* 0, 0: no keys */
};

static __device__ keys keys_of(const attention_lists_args &a, const row_place &p, int row)
{
	const int at = row + p.kv_len - p.q_len;
	keys k = {max(at - a.left, 0), min(at + a.right + 1, p.kv_len)};

	if (k.from >= k.to)
		k.from = k.to = 0;
	return k;
}

/* Keys of the query block's first and last row. Between these rows both ends move by at most one key per row,
 * so the two ranges decide for every block. */
struct row_keys {
	keys top, bottom;
	bool cut; /* the end of the queries cuts the query block */
	int own;  /* key block of the last query's own position */
};

static __device__ row_keys row_keys_of(const attention_lists_args &a, const row_place &p)
{
	const int from = p.q * a.lists.q_block, to = from + a.lists.q_block, last = min(to, p.q_len) - 1;
	const int place = last + p.kv_len - p.q_len;
	row_keys r = {};

	r.cut = to > p.q_len;
	r.own = place > 0 ? place / (int)a.lists.k_block : 0;
	if (from < p.q_len) {
		r.top = keys_of(a, p, from);
		r.bottom = keys_of(a, p, last);
	}
	return r;
}

enum left { LEFT_NOTHING, LEFT_PART, LEFT_ALL };

static __device__ left left_of(const attention_lists_args &a, const row_keys &r, uint32_t k)
{
	const int first = k * a.lists.k_block, end = first + a.lists.k_block;

	if (r.bottom.to <= first || r.top.from >= end || r.bottom.to == 0)
		return LEFT_NOTHING;
	return !r.cut && r.bottom.from <= first && r.top.to >= end ? LEFT_ALL : LEFT_PART;
}

/* -- the source's choice for a block -- */

static __device__ lists_block kept_of(const attention_lists_args &a, const row_keys &r, uint32_t row, uint32_t k)
{
	const uint64_t index = (uint64_t)row * a.lists.k_blocks + k;
	uint4 words;
	uint32_t word;

	switch (a.source) {
	case LISTS_STRIDED:
		return abs(r.own - (int)k) % a.stride == 0 ? LISTS_KEPT : LISTS_DROPPED;
	case LISTS_RANDOM:
		words = philox_words(a.seed, ATTENTION_BLOCK_STREAM, index / 4);
		word = index % 4 < 2 ? (index % 4 ? words.y : words.x) : (index % 4 == 2 ? words.z : words.w);
		return word < a.below ? LISTS_KEPT : LISTS_DROPPED;
	case LISTS_MAP:
		return (lists_block)a.map[index];
	default:
		return LISTS_KEPT;
	}
}

static __device__ left class_of(const attention_lists_args &a, const row_keys &r, uint32_t row, uint32_t k)
{
	const left l = k < a.lists.k_blocks ? left_of(a, r, k) : LEFT_NOTHING;

	if (l == LEFT_NOTHING)
		return l;
	switch (kept_of(a, r, row, k)) {
	case LISTS_DROPPED:
		return LEFT_NOTHING;
	case LISTS_PART:
		return LEFT_PART;
	default:
		return l;
	}
}

/* -- count, place, write -- */

static __device__ uint32_t rows_of(const attention_lists_args &a)
{
	return a.lists.batches * a.lists.heads * a.lists.q_blocks;
}

extern "C" __global__ void __launch_bounds__(LISTS_THREADS) lists_count(attention_lists_args a)
{
	const uint32_t row = blockIdx.x * LISTS_ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
	uint32_t full = 0, partial = 0;

	if (row >= rows_of(a))
		return;
	const row_keys r = row_keys_of(a, place_of(a, row));
	for (uint32_t k = 0; k < a.lists.k_blocks; k += 32) {
		const left l = class_of(a, r, row, k + lane);

		full += __popc(__ballot_sync(~0u, l == LEFT_ALL));
		partial += __popc(__ballot_sync(~0u, l == LEFT_PART));
	}
	if (lane == 0)
		*(uint2 *)(a.counts + 2 * (uint64_t)row) = make_uint2(full, partial);
}

/* Prefix sums of the counts, by one block: each thread sums a contiguous part of the rows, then the sums are
 * combined. */
static __device__ void begin_rows(const attention_lists_args &a)
{
	__shared__ uint2 sums[LISTS_THREADS / 32];
	const uint32_t rows = rows_of(a), run = (rows + LISTS_THREADS - 1) / LISTS_THREADS;
	const uint32_t first = min(threadIdx.x * run, rows), end = min(first + run, rows), lane = threadIdx.x % 32;
	const uint2 *counts = (const uint2 *)a.counts;
	uint32_t *full_begin = (uint32_t *)a.lists.full_begin, *partial_begin = (uint32_t *)a.lists.partial_begin;
	uint2 own = {0, 0}, before;

	for (uint32_t i = first; i < end; i++) {
		own.x += counts[i].x;
		own.y += counts[i].y;
	}
	before = own;
#pragma unroll
	for (int step = 1; step < 32; step *= 2) {
		const uint32_t x = __shfl_up_sync(~0u, before.x, step), y = __shfl_up_sync(~0u, before.y, step);

		if (lane >= step) {
			before.x += x;
			before.y += y;
		}
	}
	if (lane == 31)
		sums[threadIdx.x / 32] = before;
	__syncthreads();
	before.x -= own.x;
	before.y -= own.y;
	for (uint32_t w = 0; w < threadIdx.x / 32; w++) {
		before.x += sums[w].x;
		before.y += sums[w].y;
	}
	for (uint32_t i = first; i < end; i++) {
		full_begin[i] = before.x;
		partial_begin[i] = before.y;
		before.x += counts[i].x;
		before.y += counts[i].y;
	}
	if (end == rows) { /* if this holds for several threads, each of them has the total */
		full_begin[rows] = before.x;
		partial_begin[rows] = before.y;
	}
}

/* Number of blocks listed for a unit (a query block of a batch and head of the problem). */
static __device__ uint32_t unit_count(const attention_lists_args &a, uint32_t unit)
{
	const uint32_t pair = unit / a.lists.q_blocks, q = unit - pair * a.lists.q_blocks;
	const uint32_t b = pair / a.heads, h = pair - b * a.heads;
	const uint32_t row = ((b % a.lists.batches) * a.lists.heads + h % a.lists.heads) * a.lists.q_blocks + q;
	const uint2 c = ((const uint2 *)a.counts)[row];

	return c.x + c.y;
}

/* A unit's rank in its section: the number of units with more blocks, or with as many blocks and a lower
 * number. */
static __device__ void order_units(const attention_lists_args &a, uint32_t block)
{
	__shared__ uint32_t counts[LISTS_THREADS];
	const uint32_t wide = a.section * a.lists.q_blocks, across = (wide + LISTS_THREADS - 1) / LISTS_THREADS;
	const uint32_t first = block / across * wide;
	const uint32_t end = min(first + wide, a.batch * a.heads * a.lists.q_blocks);
	const uint32_t unit = first + block % across * LISTS_THREADS + threadIdx.x;
	const uint32_t own = unit < end ? unit_count(a, unit) : 0;
	uint32_t rank = 0;

	for (uint32_t from = first; from < end; from += LISTS_THREADS) {
		const uint32_t there = min(end - from, (uint32_t)LISTS_THREADS);

		__syncthreads();
		if (threadIdx.x < there)
			counts[threadIdx.x] = unit_count(a, from + threadIdx.x);
		__syncthreads();
		for (uint32_t i = 0; i < there; i++)
			rank += counts[i] > own || (counts[i] == own && from + i < unit);
	}
	if (unit < end)
		a.order[first + rank] = unit;
}

extern "C" __global__ void __launch_bounds__(LISTS_THREADS) lists_place(attention_lists_args a)
{
	if (blockIdx.x == 0)
		begin_rows(a);
	else
		order_units(a, blockIdx.x - 1);
}

extern "C" __global__ void __launch_bounds__(LISTS_THREADS) lists_write(attention_lists_args a)
{
	const uint32_t row = blockIdx.x * LISTS_ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t below = (1u << lane) - 1;

	if (row >= rows_of(a))
		return;
	uint32_t *full = (uint32_t *)a.lists.full + a.lists.full_begin[row];
	uint32_t *partial = (uint32_t *)a.lists.partial + a.lists.partial_begin[row];
	const row_keys r = row_keys_of(a, place_of(a, row));
	for (uint32_t k = 0; k < a.lists.k_blocks; k += 32) {
		const left l = class_of(a, r, row, k + lane);
		const uint32_t all = __ballot_sync(~0u, l == LEFT_ALL), part = __ballot_sync(~0u, l == LEFT_PART);

		if (l == LEFT_ALL)
			full[__popc(all & below)] = k + lane;
		if (l == LEFT_PART)
			partial[__popc(part & below)] = k + lane;
		full += __popc(all);
		partial += __popc(part);
	}
}

/* -- masks of elements -- */

/* Returns 32 elements of the mask from `column` on, for a row of a block, one bit each. Elements outside the
 * lengths are 0 in the result and in `there`. Every lane must call it. */
static __device__ uint32_t mask_bits(const attention_lists_args &a, const row_place &p, int row, int column,
				     uint32_t *there)
{
	const int lane = threadIdx.x % 32;
	const bool inside = row < p.q_len && column + lane < p.kv_len;
	const uint64_t line = ((uint64_t)p.batch * a.lists.heads + p.head) * a.q_len + row;
	const bool kept = inside && a.mask[line * a.kv_len + column + lane];

	*there = __ballot_sync(~0u, inside);
	return __ballot_sync(~0u, kept);
}

/* Each thread block makes one block of the map. */
extern "C" __global__ void __launch_bounds__(LISTS_THREADS) lists_classify(attention_lists_args a)
{
	const uint32_t row = blockIdx.x, k = blockIdx.y, words = a.lists.k_block / 32;
	const row_place p = place_of(a, row);
	bool some = false, lacks = false;

	for (uint32_t i = threadIdx.x / 32; i < a.lists.q_block * words; i += LISTS_THREADS / 32) {
		uint32_t there, bits = mask_bits(a, p, p.q * a.lists.q_block + i / words,
						 k * a.lists.k_block + i % words * 32, &there);

		some = some || bits;
		lacks = lacks || bits != there;
	}
	some = __syncthreads_or(some);
	lacks = __syncthreads_or(lacks);
	if (threadIdx.x == 0)
		a.map[(uint64_t)row * a.lists.k_blocks + k] = !some ? LISTS_DROPPED : (lacks ? LISTS_PART : LISTS_KEPT);
}

/* Writes the bits of the row's partial block number blockIdx.y, if the row has that many. */
extern "C" __global__ void __launch_bounds__(LISTS_THREADS) lists_bits(attention_lists_args a)
{
	const uint32_t row = blockIdx.x, words = a.lists.k_block / 32, each = a.lists.q_block * words;
	const uint32_t number = a.lists.partial_begin[row] + blockIdx.y;
	const row_place p = place_of(a, row);

	if (number >= a.lists.partial_begin[row + 1])
		return;
	const uint32_t k = a.lists.partial[number];
	for (uint32_t i = threadIdx.x / 32; i < each; i += LISTS_THREADS / 32) {
		uint32_t there, bits = mask_bits(a, p, p.q * a.lists.q_block + i / words,
						 k * a.lists.k_block + i % words * 32, &there);

		if (threadIdx.x % 32 == 0)
			a.bits[(uint64_t)number * each + i] = bits;
	}
}
