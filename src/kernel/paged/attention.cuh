/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention over a paged KV cache by mma.sync, for a block of PAGED_WARPS warps (kernel/paged/attention.h).
 *
 * Each warp takes every PAGED_WARPSth tile of a unit's keys, with its own ring of tiles in shared memory, so
 * no barrier is needed within a unit. The ring goes on into the next units, so the memory stays busy while a
 * unit's results are joined. In attend_late the warps go on too: a unit's results are joined
 * when the next unit's are there, and its queries were requested during the unit before. Scores are computed transposed, keys x columns, because a product is 16 keys x 8
 * columns. One row of seven query heads almost fills these. Of each eight columns a thread has the scores of
 * keys lane / 4 and lane / 4 + 8 for columns 2 (lane % 4) and 2 (lane % 4) + 1.
 *
 * A column's result does not depend on other columns. Functions take D and the like as constants and are
 * inlined. The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_PAGED_ATTENTION_CUH
#define KERNEL_PAGED_ATTENTION_CUH
#include "kernel/paged/attention.h"
#include "kernel/paged/warp_matrix.cuh"

#define PAGED_COL_TILES (PAGED_COLS / 8) /* groups of eight columns of a unit at most */
#define PAGED_D 128		     /* largest head size */

/* -- a warp's ring of tiles -- */

struct ring {
	uint32_t base, bytes, depth; /* its place in shared memory; bytes of a slot */
	uint32_t taken;		     /* place of the next tile to process */
	uint32_t filled;	     /* place of the next tile to load */
	/* the next tile to load */
	uint32_t unit, units; /* its unit, and the end of the block's units */
	int32_t key, end;     /* its first key; end of the unit's keys */
	int32_t older;	/* the sequence's keys before this one are older than the step */
	uint32_t page, kv_head;
	uint32_t turn;	/* lane that has the tile's page number */
	int32_t number; /* page numbers of 32 tiles, one per lane */
};

/* The order of pieces of 16 bytes in a row of `bytes` bytes spreads eight rows over all banks: piece p of a row
 * is in place p ^ order. */
static __device__ __forceinline__ uint32_t order_of(uint32_t row, uint32_t bytes)
{
	return bytes >= 128 ? row % 8 : row / 2 % 4;
}

/* Address of a piece in a tile. That of the piece 2 i further, for an even piece 2 i, is this one ^ 32 i,
 * because tiles begin at multiples of `bytes`. */
static __device__ __forceinline__ uint32_t piece_at(uint32_t tile, uint32_t row, uint32_t piece, uint32_t bytes)
{
	return tile + row * bytes + (piece ^ order_of(row, bytes)) * 16;
}

static __device__ __forceinline__ void ring_numbers(const struct paged_attention_args *a, struct ring *r)
{
	const int32_t key = r->key + (int32_t)(threadIdx.x % 32) * PAGED_WARPS * PAGED_TILE;

	r->turn = 0;
	r->number = key < r->end ? a->page[r->page + (uint32_t)(key >> a->page_bits)] : 0;
}

/* Goes on with a unit. False: it has no tile for this warp. */
static __device__ __forceinline__ bool ring_enter(const struct paged_attention_args *a, struct ring *r, const struct paged_unit *u)
{
	r->key = u->begin + (int32_t)(threadIdx.x / 32) * PAGED_TILE;
	r->end = u->end;
	r->older = u->position;
	r->page = u->page;
	r->kv_head = u->kv_head;
	if (r->key >= r->end)
		return false;
	ring_numbers(a, r);
	return true;
}

/* Finds the next unit that has a tile for this warp. */
static __device__ __forceinline__ void ring_open(const struct paged_attention_args *a, struct ring *r)
{
	while (++r->unit < r->units && !ring_enter(a, r, a->unit + r->unit))
		;
}

static __device__ __forceinline__ void ring_next(const struct paged_attention_args *a, struct ring *r)
{
	r->key += PAGED_WARPS * PAGED_TILE;
	if (r->key >= r->end)
		ring_open(a, r);
	else if (++r->turn == 32)
		ring_numbers(a, r);
}

static __device__ __forceinline__ uint32_t ring_after(const struct ring *r, uint32_t place)
{
	return place + r->bytes == r->base + r->depth * r->bytes ? r->base : place + r->bytes;
}

/* Requests keys and values of a tile. The unit has `count` keys of it, and WHOLE says that these are all. The lane's first piece goes
 * to `place`. */
static __device__ __forceinline__ void tile_request(const struct paged_attention_args *a, uint32_t place, const uint8_t *keys,
						    const uint8_t *values, uint32_t count, const int D, const bool E4M3,
						    const bool WHOLE)
{
	const uint32_t lane = threadIdx.x % 32, bytes = (uint32_t)D * (E4M3 ? 1 : 2), pieces = bytes / 16;
	const uint64_t ld = a->ld_kv * (E4M3 ? 1 : 2);

#pragma unroll
	for (uint32_t i = 0; i < pieces / 2; i++) {
		const uint32_t first = i * (32 / pieces), to = (place ^ order_of(first, bytes) * 16) + first * bytes;
		const bool there = WHOLE || first + lane / pieces < count;

		copy16(to, keys + first * ld, there, bytes == 256);
		copy16(to + PAGED_TILE * bytes, values + first * ld, there, bytes == 256);
	}
}

/* Requests the tile's scales: 16 bytes for each of eight lanes, those of keys, then those of values. */
static __device__ __forceinline__ void scales_request(const struct paged_attention_args *a, uint32_t to, uint32_t page, uint32_t within,
						      uint32_t kv_head, uint32_t count, const bool WHOLE)
{
	const uint32_t lane = threadIdx.x % 32, head = kv_head + lane / 4 * a->kv_heads, key = lane % 4 * 4;
	const uint32_t held = WHOLE ? 4 : count < key ? 0 : count - key < 4 ? count - key : 4;

	if (lane < 8)
		copy_some(to + lane * 16, a->scale + paged_scale_of(page, within + key, head, a->ld_scale, a->page_bits), held * 4);
}

/* Requests the next tile. Keys from the unit's end on become zeros, whatever the page holds. A group of copies
 * ends even if there is no tile, so that groups can be counted. */
static __device__ __forceinline__ void ring_fill(const struct paged_attention_args *a, struct ring *r, const int D,
						 const bool E4M3)
{
	const uint32_t lane = threadIdx.x % 32, bytes = (uint32_t)D * (E4M3 ? 1 : 2), pieces = bytes / 16;

	if (r->unit < r->units) {
		const uint32_t page = (uint32_t)lane_value(r->number, r->turn), within = (uint32_t)r->key & ((1u << a->page_bits) - 1);
		const uint64_t row = ((uint64_t)page << a->page_bits) + within;
		const uint32_t count = (uint32_t)(r->end - r->key), at = shared_address(r->filled);
		const uint32_t place = piece_at(at, lane / pieces, lane % pieces, bytes), scales = at + 2 * PAGED_TILE * bytes;
		const uint64_t ld = a->ld_kv * (E4M3 ? 1 : 2);
		const uint8_t *keys = a->kv + (row + lane / pieces) * ld + r->kv_head * bytes + lane % pieces * 16;
		const uint8_t *values = keys + a->kv_heads * bytes;

		if (count >= PAGED_TILE) {
			tile_request(a, place, keys, values, count, D, E4M3, true);
			if (E4M3)
				scales_request(a, scales, page, within, r->kv_head, count, true);
		} else {
			tile_request(a, place, keys, values, count, D, E4M3, false);
			if (E4M3)
				scales_request(a, scales, page, within, r->kv_head, count, false);
		}
		ring_next(a, r);
	}
	r->filled = ring_after(r, r->filled);
	copy_commit();
}

/* Whether all keys of the next tile are older than the step. */
static __device__ __forceinline__ bool ring_is_older(const struct ring *r)
{
	return r->unit < r->units && r->key + PAGED_TILE <= r->older;
}

/* -- columns -- */

/* A unit as its threads use it. The state of columns 2 (lane % 4) and the next one of each group of eight. */
struct columns {
	int32_t position; /* position of the unit's first column */
	uint32_t first;	  /* number of the first column within its row */
	float top[PAGED_COL_TILES][2], sum[PAGED_COL_TILES][2];
};

/* Position of a column of the unit. */
static __device__ __forceinline__ int32_t column_position(const struct paged_attention_args *a, const struct columns *c,
							  uint32_t column)
{
	return c->position + (int32_t)((c->first + column) / a->group);
}

static __device__ __forceinline__ const uint32_t *query_of(const struct paged_attention_args *a, const struct paged_unit *u,
							   uint32_t column, const int D)
{
	const uint32_t c = u->col + column, row = c / a->group, head = u->kv_head * a->group + c % a->group;

	return (const uint32_t *)a->q + ((uint64_t)(u->row + (int32_t)row) * a->ld_q >> 1) + (uint64_t)head * ((uint32_t)D / 2);
}

/* Word `half` of the two words of queries that a thread multiplies in a product of 16 elements. A word has two
 * elements. The keys' registers decide which words: with E4M3 they hold four neighbours. */
static __device__ __forceinline__ uint32_t query_word(uint32_t step, uint32_t half, uint32_t thread, const bool E4M3)
{
	return E4M3 ? 8 * step + 2 * thread + half : 8 * step + 4 * half + thread;
}

/* E4M3 keys are multiplied as FP16, so queries become FP16 too. One beyond its range becomes infinite. */
static __device__ __forceinline__ uint32_t query_operand(uint32_t word, const bool E4M3)
{
	return E4M3 ? pack_f16(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)) : word;
}

/* Eight columns of queries, as they are in memory; columns beyond the unit's are zeros. */
static __device__ __forceinline__ void queries_fetch(const struct paged_attention_args *a, const struct paged_unit *u, uint32_t *q,
						     const int D, const bool E4M3)
{
	const uint32_t lane = threadIdx.x % 32;
	const bool there = lane / 4 < u->cols;
	const uint32_t *from = query_of(a, u, there ? lane / 4 : 0, D);

#pragma unroll
	for (int i = 0; i < D / 8; i++)
		q[i] = there ? from[query_word((uint32_t)i / 2, (uint32_t)i % 2, lane % 4, E4M3)] : 0;
}

static __device__ __forceinline__ void queries_become(uint32_t *q, const uint32_t *words, const int D, const bool E4M3)
{
#pragma unroll
	for (int i = 0; i < D / 8; i++)
		q[i] = query_operand(words[i], E4M3);
}

/* Eight columns of queries as operands. */
static __device__ __forceinline__ void queries_load(const struct paged_attention_args *a, const struct paged_unit *u, uint32_t *q,
						    const int D, const bool E4M3)
{
	queries_fetch(a, u, q, D, E4M3);
	queries_become(q, q, D, E4M3);
}

/* Copies all columns of queries to shared memory, in the order that makes matrix4 return operands. */
static __device__ __forceinline__ void queries_place(const struct paged_attention_args *a, const struct paged_unit *u, uint32_t to,
						     const int D, const bool E4M3)
{
	const uint32_t words = (uint32_t)D / 2;

	for (uint32_t i = threadIdx.x; i < PAGED_COLS * words; i += PAGED_THREADS) {
		const uint32_t column = i / words, word = i % words, step = word / 8, half = word / 4 % 2;
		const uint32_t at = piece_at(to, column, word / 4, (uint32_t)D * 2) + word % 4 * 4;

		*(uint32_t *)shared_bytes(at) =
			column < u->cols ? query_operand(query_of(a, u, column, D)[query_word(step, half, word % 4, E4M3)],
							 E4M3)
					 : 0;
	}
}

/* -- one tile of keys -- */

/* Four E4M3 registers become the operands of two products. */
static __device__ __forceinline__ void keys_widen(const uint32_t *r, uint32_t *k0, uint32_t *k1)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		k0[i] = widen_e4m3(r[i]);
		k0[i + 2] = widen_e4m3(r[i] >> 16);
		k1[i] = widen_e4m3(r[i + 2]);
		k1[i + 2] = widen_e4m3(r[i + 2] >> 16);
	}
}

/* A column's exponent rises only if a score is further than TOP_RISE above the last largest one. So most tiles need no maximum
 * over lanes and multiply no sums. */
#define TOP_RISE 4.0f

/* E4M3 values are multiplied as they are. The other operand is an FP16 number, a weight: an exponential times the scale of the
 * key's values. A column's exponent is that of its largest weight, less WEIGHT_TOP. So weights are at most 2^15, whatever the
 * scales are. The largest weight is at least 2^11, and FP16 rounds in steps of 2^-24 at least. So a small weight is wrong by at
 * most 2^-36 of the largest one. */
#define WEIGHT_TOP 11.0f

/* Smaller scales of values count as this one. So sums of exponentials, which are weights divided by scales, have room. */
#define SCALE_LEAST 0x1p-80f

/* Two E4M3 registers, of 8 keys each, become one operand: rows are the even and the odd elements. */
static __device__ __forceinline__ void values_widen(const uint32_t *r, uint32_t *v)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		v[2 * i] = widen_e4m3(pick_bytes(r[i], 0x4420));
		v[2 * i + 1] = widen_e4m3(pick_bytes(r[i], 0x4431));
	}
}

static __device__ __forceinline__ void product(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, const bool E4M3)
{
	if (E4M3)
		matrix_step_f16(c, a, b0, b1);
	else
		matrix_step(c, a, b0, b1);
}

/* Products of 16 elements of all keys of the tile with all columns. */
static __device__ __forceinline__ void scores_step(float (*s)[4], const uint32_t *k, const uint32_t *q, uint32_t queries, int step,
						   const int D, const bool E4M3, const int TILES)
{
	if (TILES == 1) {
		product(s[0], k, q[2 * step], q[2 * step + 1], E4M3);
		return;
	}
#pragma unroll
	for (int n = 0; n < TILES; n += 2) {
		uint32_t b[4];

		matrix4(b, (queries ^ (uint32_t)step * 32) + (uint32_t)(n * 8 * D * 2));
		product(s[n], k, b[0], b[1], E4M3);
		product(s[n + 1], k, b[2], b[3], E4M3);
	}
}

static __device__ __forceinline__ void scores_of(float (*s)[4], uint32_t tile, const uint32_t *q, uint32_t queries, const int D,
						 const bool E4M3, const int TILES)
{
	const uint32_t lane = threadIdx.x % 32, bytes = (uint32_t)D * (E4M3 ? 1 : 2);
	const uint32_t keys = piece_at(tile, lane % 16, lane / 16, bytes);
	const uint32_t columns = piece_at(queries, lane / 16 * 8 + lane % 8, lane / 8 % 2, (uint32_t)D * 2);

#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[i][e] = 0;
#pragma unroll
	for (uint32_t i = 0; i < bytes / 32; i++) {
		uint32_t r[4], k[4];

		matrix4(r, keys ^ i * 32);
		if (E4M3) {
			uint32_t first[4];

			keys_widen(r, first, k);
			scores_step(s, first, q, columns, (int)(2 * i), D, E4M3, TILES);
			scores_step(s, k, q, columns, (int)(2 * i + 1), D, E4M3, TILES);
		} else {
			scores_step(s, r, q, columns, (int)i, D, E4M3, TILES);
		}
	}
}

/* The scales of the values of a thread's two keys. */
struct weights {
	float log2[2], inverse[2];
};

static __device__ __forceinline__ struct weights weights_of(const float *value_scale)
{
	struct weights w;

#pragma unroll
	for (uint32_t e = 0; e < 2; e++) {
		const float scale = larger_or_nan(value_scale[threadIdx.x % 32 / 4 + e * 8], SCALE_LEAST);

		w.log2[e] = log2_fast(scale);
		w.inverse[e] = reciprocal_fast(scale);
	}
	return w;
}

/* Multiplies the scores by `scale`, and by those of E4M3 keys, and hides keys that come after a column's position. Scores of an
 * E4M3 cache become logarithms of weights. */
static __device__ __forceinline__ void scores_mask(const struct paged_attention_args *a, const struct columns *c, float (*s)[4],
						   int32_t key, const float *key_scale, const struct weights *w, const bool E4M3,
						   const int TILES)
{
	const uint32_t lane = threadIdx.x % 32;
	const float scale[2] = {a->scale_log2 * (E4M3 ? key_scale[lane / 4] : 1),
				a->scale_log2 * (E4M3 ? key_scale[lane / 4 + 8] : 1)};

#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[i][e] = E4M3 ? fmaf(s[i][e], scale[e / 2], w->log2[e / 2]) : s[i][e] * scale[e / 2];
	if (key + PAGED_TILE - 1 <= c->position)
		return;
#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (key + (int32_t)lane / 4 + e / 2 * 8 >
			    column_position(a, c, (uint32_t)i * 8 + lane % 4 * 2 + (uint32_t)e % 2))
				s[i][e] = -INFINITY;
}

/* Largest, or sum, over the lanes that have the same columns. */
static __device__ __forceinline__ float lanes_top(float v)
{
	v = fmaxf(v, __shfl_xor_sync(~0u, v, 4));
	v = fmaxf(v, __shfl_xor_sync(~0u, v, 8));
	return fmaxf(v, __shfl_xor_sync(~0u, v, 16));
}

static __device__ __forceinline__ float lanes_sum(float v)
{
	v += __shfl_xor_sync(~0u, v, 4);
	v += __shfl_xor_sync(~0u, v, 8);
	return v + __shfl_xor_sync(~0u, v, 16);
}

/* Raises the exponents of the columns that have a score too far above theirs, and multiplies the columns' sums by the
 * factors that this needs. It is 1 for the other columns, so that a column does not depend on them. */
static __device__ __forceinline__ void tops_raise(struct columns *c, float (*s)[4], float (*o)[PAGED_COL_TILES][4], const int D,
						  const bool E4M3, const int TILES)
{
	const float below = E4M3 ? WEIGHT_TOP : 0;
	float factor[PAGED_COL_TILES][2];

#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 2; e++) {
			const float most = lanes_top(fmaxf(s[i][e], s[i][e + 2]));
			const float top = most > c->top[i][e] + (below + TOP_RISE) ? most - below : c->top[i][e];

			factor[i][e] = exp2_fast(c->top[i][e] - (top == -INFINITY ? 0 : top));
			c->top[i][e] = top;
			c->sum[i][e] *= factor[i][e];
		}
#pragma unroll
	for (int d = 0; d < D / 16; d++)
#pragma unroll
		for (int i = 0; i < TILES; i++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				o[d][i][e] *= factor[i][e % 2];
}

/* Scores become exponentials, or weights. */
static __device__ __forceinline__ void scores_exp(struct columns *c, float (*s)[4], float (*o)[PAGED_COL_TILES][4],
						  const struct weights *w, const int D, const bool E4M3, const int TILES)
{
	const float rise = (E4M3 ? WEIGHT_TOP : 0) + TOP_RISE;
	bool above = false;

#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 2; e++)
			above |= fmaxf(s[i][e], s[i][e + 2]) > c->top[i][e] + rise;
	if (warp_any(above))
		tops_raise(c, s, o, D, E4M3, TILES);
#pragma unroll
	for (int i = 0; i < TILES; i++)
#pragma unroll
		for (int e = 0; e < 2; e++) {
			const float base = c->top[i][e] == -INFINITY ? 0 : c->top[i][e];

			s[i][e] = exp2_fast(s[i][e] - base);
			s[i][e + 2] = exp2_fast(s[i][e + 2] - base);
			c->sum[i][e] += E4M3 ? fmaf(s[i][e], w->inverse[0], s[i][e + 2] * w->inverse[1]) : s[i][e] + s[i][e + 2];
		}
}

/* Adds exponentials, or weights, times values. */
static __device__ __forceinline__ void values_add(float (*o)[PAGED_COL_TILES][4], float (*s)[4], uint32_t tile, const int D,
						  const bool E4M3, const int TILES)
{
	const uint32_t lane = threadIdx.x % 32, bytes = (uint32_t)D * (E4M3 ? 1 : 2);
	const uint32_t values = E4M3 ? piece_at(tile, lane % 16, lane / 16, bytes)
				     : piece_at(tile, lane / 16 * 8 + lane % 8, lane / 8 % 2, bytes);
	uint32_t p[PAGED_COL_TILES][2];

#pragma unroll
	for (int e = 0; e < 2; e++)
#pragma unroll
		for (int i = 0; i < TILES; i++)
			p[i][e] = matrix_turn(E4M3 ? pack_f16(s[i][2 * e], s[i][2 * e + 1])
						   : pack_bf16(s[i][2 * e], s[i][2 * e + 1]));
#pragma unroll
	for (uint32_t d = 0; d < bytes / 32; d++) {
		uint32_t r[4], v[4];

		if (E4M3) {
			matrix4_turned(r, values ^ d * 32);
#pragma unroll
			for (uint32_t h = 0; h < 2; h++) {
				values_widen(r + 2 * h, v);
#pragma unroll
				for (int i = 0; i < TILES; i++)
					matrix_step_f16(o[2 * d + h][i], v, p[i][0], p[i][1]);
			}
		} else {
			matrix4_turned(r, values ^ d * 32);
#pragma unroll
			for (int i = 0; i < TILES; i++)
				matrix_step(o[d][i], r, p[i][0], p[i][1]);
		}
	}
}

static __device__ __forceinline__ void tile_take(const struct paged_attention_args *a, struct ring *r, struct columns *c,
						 int32_t key, const uint32_t *q, uint32_t queries, float (*o)[PAGED_COL_TILES][4],
						 const int D, const bool E4M3, const int TILES)
{
	const uint32_t keys = r->taken, bytes = (uint32_t)D * (E4M3 ? 1 : 2);
	const float *scale = (const float *)shared_bytes(keys + 2 * PAGED_TILE * bytes);
	float s[PAGED_COL_TILES][4];
	struct weights w;

	copy_wait(r->depth - 1);
	__syncwarp();
	scores_of(s, shared_address(keys), q, shared_address(queries), D, E4M3, TILES);
	if (E4M3)
		w = weights_of(scale + PAGED_TILE);
	scores_mask(a, c, s, key, scale, &w, E4M3, TILES);
	scores_exp(c, s, o, &w, D, E4M3, TILES);
	values_add(o, s, shared_address(keys + PAGED_TILE * bytes), D, E4M3, TILES);
	__syncwarp();
	r->taken = ring_after(r, r->taken);
	ring_fill(a, r, D, E4M3);
}

/* -- results of warps, splits and units -- */

/* Four elements of a column's result: sums of values relative to the largest exponent. */
struct result {
	float o[4], top, sum;
};

/* x, then y. The order matters for the bits. */
static __device__ __forceinline__ void result_add(struct result *x, const struct result *y)
{
	const float top = fmaxf(x->top, y->top), base = top == -INFINITY ? 0 : top;
	const float fx = exp2_fast(x->top - base), fy = exp2_fast(y->top - base);

#pragma unroll
	for (int e = 0; e < 4; e++)
		x->o[e] = x->o[e] * fx + y->o[e] * fy;
	x->sum = x->sum * fx + y->sum * fy;
	x->top = top;
}

/* A warp's results of eight columns in shared memory, and behind them the columns' tops and sums. */
static __device__ __forceinline__ float *warp_result(uint32_t join, uint32_t warp, const int D)
{
	return (float *)shared_bytes(join) + warp * (8 * ((uint32_t)D + 4) + 16);
}

/* A warp's results for eight columns. */
static __device__ __forceinline__ void warp_put(uint32_t join, const struct columns *c, float (*o)[PAGED_COL_TILES][4], int n,
						const int D, const bool E4M3)
{
	const uint32_t lane = threadIdx.x % 32, column = lane % 4 * 2, stride = (uint32_t)D + 4;
	float *to = warp_result(join, threadIdx.x / 32, D);

#pragma unroll
	for (int d = 0; d < D / 16; d++)
#pragma unroll
		for (uint32_t e = 0; e < 4; e++) {
			const uint32_t row = E4M3 ? lane / 4 * 2 + e / 2 : lane / 4 + e / 2 * 8;

			to[(column + e % 2) * stride + (uint32_t)d * 16 + row] = o[d][n][e];
		}
#pragma unroll
	for (uint32_t e = 0; e < 2; e++) {
		const float sum = lanes_sum(c->sum[n][e]);

		if (lane < 4) {
			to[8 * stride + column + e] = c->top[n][e];
			to[8 * stride + 8 + column + e] = sum;
		}
	}
}

/* The sum over the warps that had a tile. */
static __device__ __forceinline__ void warps_join(uint32_t join, uint32_t warps, uint32_t column, uint32_t element,
						  struct result *x, const int D)
{
	const uint32_t stride = (uint32_t)D + 4;

	x->top = -INFINITY;
	for (uint32_t w = 0; w < warps; w++)
		x->top = fmaxf(x->top, warp_result(join, w, D)[8 * stride + column]);
	x->sum = x->o[0] = x->o[1] = x->o[2] = x->o[3] = 0;
	for (uint32_t w = 0; w < warps; w++) {
		const float *from = warp_result(join, w, D);
		const float base = x->top == -INFINITY ? 0 : x->top;
		const float factor = exp2_fast(from[8 * stride + column] - base);
		const float4 o = *(const float4 *)(from + column * stride + element);

		x->sum += from[8 * stride + 8 + column] * factor;
		x->o[0] += o.x * factor;
		x->o[1] += o.y * factor;
		x->o[2] += o.z * factor;
		x->o[3] += o.w * factor;
	}
}

static __device__ __forceinline__ void result_store(float *place, uint32_t column, uint32_t element, const struct result *x,
						    const int D)
{
	*(float4 *)(place + column * (uint32_t)D + element) = make_float4(x->o[0], x->o[1], x->o[2], x->o[3]);
	if (element == 0) {
		place[PAGED_COLS * D + column] = x->top;
		place[PAGED_COLS * (D + 1) + column] = x->sum;
	}
}

static __device__ __forceinline__ void result_load(const float *place, uint32_t column, uint32_t element, struct result *x,
						   const int D)
{
	const float4 o = __ldcg((const float4 *)(place + column * (uint32_t)D + element));

	x->o[0] = o.x;
	x->o[1] = o.y;
	x->o[2] = o.z;
	x->o[3] = o.w;
	x->top = __ldcg(place + PAGED_COLS * D + column);
	x->sum = __ldcg(place + PAGED_COLS * (D + 1) + column);
}

/* Writes four elements of O. */
static __device__ __forceinline__ void result_finish(const struct paged_attention_args *a, const struct paged_unit *u,
						     uint32_t column, uint32_t element, const struct result *x, const int D)
{
	const uint32_t c = u->col + column, row = c / a->group, head = u->kv_head * a->group + c % a->group;
	const float inverse = x->sum == 0 ? 0 : 1 / x->sum;
	uint2 v;

	v.x = pack_bf16(x->o[0] * inverse, x->o[1] * inverse);
	v.y = pack_bf16(x->o[2] * inverse, x->o[3] * inverse);
	*(uint2 *)(a->o + (uint64_t)(u->row + (int32_t)row) * a->ld_o + (uint64_t)head * (uint32_t)D + element) = v;
}

/* Joins the warps' results for one split of the unit. Splits are added in their order; the sum so far is in
 * the block's own place of the partial results. */
static __device__ __forceinline__ void split_join(const struct paged_attention_args *a, const struct paged_unit *u, uint32_t join,
						  uint32_t warps, uint32_t n, bool first, bool last, const int D)
{
	const uint32_t cols = u->cols - n * 8 < 8 ? u->cols - n * 8 : 8;
	float *own = a->partial + (uint64_t)(a->places + blockIdx.x) * PAGED_PARTIAL(D);
	float *part = a->partial + (uint64_t)(u->place + u->part) * PAGED_PARTIAL(D);

	const uint32_t column = threadIdx.x / ((uint32_t)D / 4), element = threadIdx.x % ((uint32_t)D / 4) * 4;
	struct result x;

	if (column < cols)
		warps_join(join, warps, column, element, &x, D);
	if (!first) {
		if (column < cols) {
			struct result before;

			result_load(own, n * 8 + column, element, &before, D);
			result_add(&before, &x);
			x = before;
		}
		__syncthreads(); /* all threads of a column read its largest exponent */
	}
	if (column >= cols)
		return;
	if (!last)
		result_store(own, n * 8 + column, element, &x, D);
	else if (u->parts > 1)
		result_store(part, n * 8 + column, element, &x, D);
	else
		result_finish(a, u, n * 8 + column, element, &x, D);
}

enum { JOIN_AT_ONCE = 8 }; /* partial results that a thread has in flight */

/* Adds the parts of the unit's columns in order. */
static __device__ __forceinline__ void parts_join(const struct paged_attention_args *a, uint32_t unit, const int D)
{
	const struct paged_unit u = a->unit[unit];
	const float *place = a->partial + (uint64_t)u.place * PAGED_PARTIAL(D);

	for (uint32_t i = threadIdx.x; i < u.cols * ((uint32_t)D / 4); i += PAGED_THREADS) {
		const uint32_t column = i / ((uint32_t)D / 4), element = i % ((uint32_t)D / 4) * 4;
		struct result x = {{0, 0, 0, 0}, -INFINITY, 0}, y[JOIN_AT_ONCE];

		for (uint32_t first = 0; first < u.parts; first += JOIN_AT_ONCE) {
#pragma unroll
			for (uint32_t j = 0; j < JOIN_AT_ONCE; j++)
				if (first + j < u.parts)
					result_load(place + (uint64_t)(first + j) * PAGED_PARTIAL(D), column, element, &y[j],
						    D);
#pragma unroll
			for (uint32_t j = 0; j < JOIN_AT_ONCE; j++)
				if (first + j < u.parts)
					result_add(&x, &y[j]);
		}
		result_finish(a, &u, column, element, &x, D);
	}
}

/* The block whose part arrives last joins all parts, and leaves the counter at zero. */
static __device__ __forceinline__ void part_arrive(const struct paged_attention_args *a, uint32_t unit, uint32_t place,
						   uint32_t parts, uint32_t join, const int D)
{
	uint32_t *last = (uint32_t *)shared_bytes(join + paged_join_bytes((uint32_t)D) - 16);

	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		*last = atomicAdd(a->arrived + place, 1) + 1 == parts;
		if (*last)
			a->arrived[place] = 0;
		__threadfence();
	}
	__syncthreads();
	if (*last)
		parts_join(a, unit, D);
}

/* -- units -- */

static __device__ __forceinline__ void columns_clear(struct columns *c, float (*o)[PAGED_COL_TILES][4], const int D, const int TILES)
{
#pragma unroll
	for (int i = 0; i < TILES; i++) {
		c->top[i][0] = c->top[i][1] = -INFINITY;
		c->sum[i][0] = c->sum[i][1] = 0;
#pragma unroll
		for (int d = 0; d < D / 16; d++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				o[d][i][e] = 0;
	}
}

/* Warps that have a tile of these keys. */
static __device__ __forceinline__ uint32_t warps_of(int32_t begin, int32_t end)
{
	const uint32_t tiles = (uint32_t)(end - begin + PAGED_TILE - 1) / PAGED_TILE;

	return tiles < PAGED_WARPS ? tiles : PAGED_WARPS;
}

/* The warp's tiles of one split. */
static __device__ __forceinline__ void split_run(const struct paged_attention_args *a, struct ring *r, const struct paged_unit *u,
						 struct columns *c, int32_t begin, int32_t end, uint32_t join, const uint32_t *q,
						 const int D, const bool E4M3, const int TILES)
{
	float o[PAGED_D / 16][PAGED_COL_TILES][4];

	columns_clear(c, o, D, TILES);
#pragma unroll 1
	for (int32_t key = begin + (int32_t)(threadIdx.x / 32) * PAGED_TILE; key < end; key += PAGED_WARPS * PAGED_TILE)
		tile_take(a, r, c, key, q, join, o, D, E4M3, TILES);
	if (TILES > 1)
		__syncthreads(); /* the queries are where the results go */
#pragma unroll
	for (int n = 0; n < TILES; n++) {
		warp_put(join, c, o, n, D, E4M3);
		__syncthreads();
		if ((uint32_t)n * 8 < u->cols)
			split_join(a, u, join, warps_of(begin, end), (uint32_t)n, begin == u->begin, end == u->end, D);
		__syncthreads();
	}
}

static __device__ __forceinline__ void unit_run(const struct paged_attention_args *a, struct ring *r, const struct paged_unit *u,
						 uint32_t join, const int D, const bool E4M3, const int TILES)
{
	struct columns c;
	uint32_t q[PAGED_D / 8];

	c.position = u->position + (int32_t)(u->col / a->group);
	c.first = u->col % a->group;
	if (TILES == 1)
		queries_load(a, u, q, D, E4M3);
#pragma unroll 1
	for (int32_t begin = u->begin; begin < u->end; begin += a->split) {
		if (TILES > 1) {
			queries_place(a, u, join, D, E4M3);
			__syncthreads();
		}
		split_run(a, r, u, &c, begin, u->end - begin > a->split ? begin + a->split : u->end, join, q, D, E4M3, TILES);
	}
}

/* -- blocks -- */

/* The block's ring before its first unit. */
static __device__ __forceinline__ struct ring ring_of_block(const struct paged_attention_args *a, uint32_t slot)
{
	const uint32_t base = threadIdx.x / 32 * a->depth * slot;
	const struct ring r = {base, slot, a->depth, base, base, a->block[blockIdx.x], a->block[blockIdx.x + 1], 0, 0, 0, 0, 0, 0, 0};

	return r;
}

/* The first kernel of a step is not launched early. So lists and the keys of earlier steps are older than the grid
 * ahead; the step's own keys and queries are not. Requests older tiles and returns their number. */
static __device__ __forceinline__ uint32_t ring_fill_older(const struct paged_attention_args *a, struct ring *r, const struct paged_unit *u,
							   const int D, const bool E4M3)
{
	uint32_t filled = 0;

	if (!ring_enter(a, r, u))
		ring_open(a, r);
	for (; filled < a->depth && ring_is_older(r); filled++)
		ring_fill(a, r, D, E4M3);
	return filled;
}

static __device__ __forceinline__ void attend(const struct paged_attention_args *a, const int D, const bool E4M3)
{
	const uint32_t slot = paged_slot_bytes((uint32_t)D, E4M3 ? 1 : 2), join = PAGED_WARPS * a->depth * slot;
	struct paged_unit u = a->first[blockIdx.x]; /* does not wait for the unit's number */
	struct ring r = ring_of_block(a, slot);
	uint32_t unit = r.unit, filled;

	if (shared_address(0) % 256)
		__trap(); /* piece_at */
	grid_release();
	filled = ring_fill_older(a, &r, &u, D, E4M3);
	grid_wait();
	for (; filled < a->depth; filled++)
		ring_fill(a, &r, D, E4M3);
	while (unit < r.units) {
		if (u.cols <= 8)
			unit_run(a, &r, &u, join, D, E4M3, 1);
		else if (u.cols <= 16)
			unit_run(a, &r, &u, join, D, E4M3, 2);
		else
			unit_run(a, &r, &u, join, D, E4M3, 4);
		if (u.parts > 1)
			part_arrive(a, unit, u.place, u.parts, join, D);
		if (++unit < r.units)
			u = a->unit[unit];
	}
	copy_wait(0);
}

/* -- units whose results are joined late -- */

/* The warps' results of the block's unit number n are in area n % 2 of shared memory. A phase of the area's barrier `put`
 * ends when all warps have put their results there, and one of `free` when all have read them. So a warp is at most one
 * unit ahead of another one. */
struct late {
	uint32_t join, barriers; /* first area; address of the barriers put, put, free, free */
	uint32_t count;		 /* units whose results this warp has put */
	bool waits;		 /* the last one of them is not joined yet: */
	struct paged_unit unit;
};

static __device__ __forceinline__ void late_init(uint32_t barriers)
{
	if (threadIdx.x < 4)
		phase_init(barriers + 8 * threadIdx.x, PAGED_WARPS);
	__syncthreads();
}

static __device__ __forceinline__ uint32_t late_area(const struct late *l, uint32_t n, const int D)
{
	return l->join + n % 2 * paged_join_bytes((uint32_t)D);
}

/* The whole warp has done what the barrier is about. */
static __device__ __forceinline__ void late_arrive(uint32_t barrier)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		phase_arrive(barrier);
}

/* Joins the results that wait. */
static __device__ __forceinline__ void late_join(const struct paged_attention_args *a, struct late *l, const int D)
{
	const uint32_t n = l->count - 1, barrier = l->barriers + 8 * (n % 2);

	if (!l->waits)
		return;
	phase_wait(barrier, n / 2 % 2);
	split_join(a, &l->unit, late_area(l, n, D), warps_of(l->unit.begin, l->unit.end), 0, true, true, D);
	late_arrive(barrier + 2 * 8);
	l->waits = false;
}

/* Puts the warp's results of a unit, then joins those of the unit before. */
static __device__ __forceinline__ void late_put(const struct paged_attention_args *a, struct late *l, const struct paged_unit *u,
						const struct columns *c, float (*o)[PAGED_COL_TILES][4], const int D, const bool E4M3)
{
	const uint32_t n = l->count, barrier = l->barriers + 8 * (n % 2);

	phase_wait(barrier + 2 * 8, n / 2 % 2 ^ 1); /* the area's last results are read; at first it does not wait */
	warp_put(late_area(l, n, D), c, o, 0, D, E4M3);
	late_arrive(barrier);
	late_join(a, l, D);
	l->count = n + 1;
	l->waits = true;
	l->unit = *u;
}

/* Processes a unit. `words` has its queries, and afterwards those of the next unit, if there is one. */
static __device__ __forceinline__ void unit_run_late(const struct paged_attention_args *a, struct ring *r, const struct paged_unit *u,
						     const struct paged_unit *next, bool is_last, uint32_t *words, struct late *l,
						     const int D, const bool E4M3)
{
	struct columns c;
	float o[PAGED_D / 16][PAGED_COL_TILES][4];
	uint32_t q[PAGED_D / 8];
	bool fetched = is_last;

	c.position = u->position + (int32_t)(u->col / a->group);
	c.first = u->col % a->group;
	queries_become(q, words, D, E4M3);
	columns_clear(&c, o, D, 1);
#pragma unroll 1
	for (int32_t key = u->begin + (int32_t)(threadIdx.x / 32) * PAGED_TILE; key < u->end; key += PAGED_WARPS * PAGED_TILE) {
		tile_take(a, r, &c, key, q, 0, o, D, E4M3, 1);
		if (!fetched)
			queries_fetch(a, next, words, D, E4M3);
		fetched = true;
	}
	if (!fetched)
		queries_fetch(a, next, words, D, E4M3);
	late_put(a, l, u, &c, o, D, E4M3);
}

static __device__ __forceinline__ void attend_late(const struct paged_attention_args *a, const int D, const bool E4M3)
{
	const uint32_t slot = paged_slot_bytes((uint32_t)D, E4M3 ? 1 : 2), join = PAGED_WARPS * a->depth * slot;
	struct paged_unit u = a->first[blockIdx.x], next = u;
	struct ring r = ring_of_block(a, slot);
	struct late l = {join, shared_address(join + 2 * paged_join_bytes((uint32_t)D)), 0, false, u};
	uint32_t words[PAGED_D / 8], unit = r.unit, filled;

	if (shared_address(0) % 256)
		__trap(); /* piece_at */
	grid_release();
	filled = ring_fill_older(a, &r, &u, D, E4M3);
	late_init(l.barriers);
	grid_wait();
	if (unit < r.units)
		queries_fetch(a, &u, words, D, E4M3);
	for (; filled < a->depth; filled++)
		ring_fill(a, &r, D, E4M3);
	for (; unit < r.units; unit++) {
		const bool is_last = unit + 1 == r.units;

		if (!is_last)
			next = a->unit[unit + 1];
		unit_run_late(a, &r, &u, &next, is_last, words, &l, D, E4M3);
		if (u.parts > 1) {
			late_join(a, &l, D);
			part_arrive(a, unit, u.place, u.parts, join, D);
		}
		u = next;
	}
	late_join(a, &l, D);
	copy_wait(0);
}
#endif
