/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all kernels of attention backward: the rows of a sequence, and which tiles see which. */
#ifndef KERNEL_ATTENTION_BACKWARD_PLACE_CUH
#define KERNEL_ATTENTION_BACKWARD_PLACE_CUH
#include "kernel/attention/backward/args.h"

/* A sequence, a head and their positions. */
struct backward_place {
	int sequence, head, kv_head;
	int q_row, kv_row; /* first row of the sequence in the tensors; 0 if each sequence is a batch element */
	int batch;	   /* batch coordinate; 0 if sequences are packed */
	int q_len, kv_len, shift;
	int64_t padded; /* first row of lse2, sums, sum_q of query head 0 */
};

static __device__ __forceinline__ backward_place backward_find(const attention_backward_args &a, int sequence)
{
	backward_place p = {sequence};

	if (a.q_starts) {
		p.q_row = (int)a.q_starts[sequence];
		p.kv_row = (int)a.kv_starts[sequence];
		p.q_len = (int)a.q_starts[sequence + 1] - p.q_row;
		p.kv_len = (int)a.kv_starts[sequence + 1] - p.kv_row;
		p.padded = (int64_t)ATTENTION_BACKWARD_ROW(sequence, (uint64_t)p.q_row);
	} else {
		p.batch = sequence;
		p.q_len = (int)a.q_len;
		p.kv_len = (int)a.kv_len;
		p.padded = (int64_t)sequence * (a.rows / a.batch);
	}
	p.shift = p.kv_len - p.q_len;
	return p;
}

/* First element of a head's rows. */
static __device__ __forceinline__ int64_t backward_at(const attention_steps &s, int batch, int head, int row)
{
	return batch * s.batch + head * s.head + row * s.row;
}

struct backward_range {
	int from, to;		   /* tiles that see anything; from == to if none */
	int whole_from, whole_to; /* those of them where every pair is kept */
};

/* Rounds towards minus infinity. */
static __device__ __forceinline__ int floor_div(int x, int y)
{
	return x >= 0 ? x / y : -((y - 1 - x) / y);
}

/* Tiles of queries that see keys first .. first + count - 1. */
static __device__ __forceinline__ backward_range queries_of(const attention_backward_args &a, const backward_place &p,
							     int first, int count, int tile)
{
	const int last = min(first + count, p.kv_len) - 1;
	const int low = max(first - p.shift - a.right, 0), high = min(last - p.shift + a.left, p.q_len - 1);
	backward_range r = {low / tile, high < low ? low / tile : high / tile + 1};

	/* Keys past the end are masked in every tile. Rows past the end need no mask, because their lse2 is
	 * +inf. */
	r.whole_from = max(floor_div(last - p.shift - a.right + tile - 1, tile), r.from);
	r.whole_to = first + count > p.kv_len ? r.from
					       : min(floor_div(first - p.shift + a.left + 1, tile), r.to);
	return r;
}

/* Tiles of keys that queries first .. first + count - 1 see. */
static __device__ __forceinline__ backward_range keys_of(const attention_backward_args &a, const backward_place &p,
							  int first, int count, int tile)
{
	const int last = min(first + count, p.q_len) - 1;
	const int low = max(first + p.shift - a.left, 0), high = min(last + p.shift + a.right, p.kv_len - 1);
	backward_range r = {low / tile, high < low ? low / tile : high / tile + 1};

	r.whole_from = max(floor_div(last + p.shift - a.left + tile - 1, tile), r.from);
	r.whole_to = min(floor_div(min(first + p.shift + a.right, p.kv_len - 1) + 1, tile), r.to);
	return r;
}

static __device__ __forceinline__ bool backward_whole(const backward_range &r, int tile)
{
	return tile >= r.whole_from && tile < r.whole_to;
}
#endif
