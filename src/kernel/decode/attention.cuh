/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a row to the pages of its sequence. A KV head's keys are split over blocks. The query heads that
 * share a KV head are processed together, so each key and value is read once. All threads load 8192 /
 * head_dim keys and values into shared memory, with the next ones already in flight, and the page numbers of
 * those after them. Each warp takes one query head and its part of the keys.
 * The block with the last key first computes the cache's new row. If there are several splits, the one that
 * ends last adds them up in order, so the bits do not depend on which one that is.
 */
#ifndef KERNEL_DECODE_ATTENTION_CUH
#define KERNEL_DECODE_ATTENTION_CUH
#include "kernel/decode/linear.cuh"

#define ATTEND_PAIRS 2 /* maximum number of pairs of neighbours that a lane sums */
#define ROTATE_PAIRS 2 /* maximum number of pairs per lane; heads have up to 128 elements */

struct split {
	uint32_t head, group; /* KV head; number of query heads that share it */
	uint32_t first, end;  /* range of keys */
	uint32_t index, count;
};

/* Shared memory of a block in attention. A tile holds keys or values in BF16. Its rows are 16 bytes longer
 * than a head, which avoids bank conflicts. */
struct attend_room {
	float *q;		 /* (group, head_dim): after RoPE, times scale * log2(e) */
	float *share;		 /* (warps, 32): exponentials of scores */
	uint16_t *keys, *values; /* each: (keys at once, head_dim + 8) */
	float *sums;		 /* (warps, head_dim) */
	float *most, *total;	 /* each: (warps) */
};

static __device__ __forceinline__ uint32_t attend_splits(uint32_t keys, uint32_t kv_heads, uint32_t *each)
{
	uint32_t most = gridDim.x / kv_heads;

	most = most < 1 ? 1 : most > DECODE_SPLITS ? DECODE_SPLITS : most;
	*each = (keys + most - 1) / most;
	*each = *each < DECODE_SPLIT_KEYS ? DECODE_SPLIT_KEYS : *each;
	return (keys + *each - 1) / *each;
}

static __device__ __forceinline__ void rotated_put(float *to, uint16_t *to_cache, uint32_t i, float v)
{
	if (to)
		to[i] = v;
	else
		to_cache[i] = to_bf16(v);
}

/* A warp processes one head of the row: head norm if w is not NULL, RoPE, and multiplication by `scale`. The
 * output goes to shared memory or, in BF16, to the cache. */
static __device__ __forceinline__ void rotate(const struct decode_attend_args *a, const float *from, const uint16_t *w, float scale, float *to,
			      uint16_t *to_cache)
{
	const uint32_t dim = a->heads.head_dim, half = dim / 2;
	const float *angle = a->cos_sin + (uint64_t)a->position * dim;
	float c[ROTATE_PAIRS], s[ROTATE_PAIRS], low[ROTATE_PAIRS], high[ROTATE_PAIRS], rstd = 1;

	if (w) {
		float squares = 0;

		for (uint32_t i = threadIdx.x % 32; i < dim; i += 32) {
			const float v = __ldcg(from + i);

			squares += v * v;
		}
		rstd = rsqrtf(warp_sum(squares) / (float)dim + a->heads.eps);
	}
#pragma unroll
	for (uint32_t j = 0; j < ROTATE_PAIRS; j++) {
		const uint32_t i = threadIdx.x % 32 + 32 * j;

		if (i < half) {
			c[j] = angle[i];
			s[j] = angle[half + i];
			low[j] = __ldcg(from + i);
			high[j] = __ldcg(from + half + i);
		}
	}
#pragma unroll
	for (uint32_t j = 0; j < ROTATE_PAIRS; j++) {
		const uint32_t i = threadIdx.x % 32 + 32 * j;

		if (i >= half)
			continue;
		low[j] *= w ? rstd * bf16_at(w, i) : 1;
		high[j] *= w ? rstd * bf16_at(w, half + i) : 1;
		rotated_put(to, to_cache, i, (low[j] * c[j] - high[j] * s[j]) * scale);
		rotated_put(to, to_cache, half + i, (high[j] * c[j] + low[j] * s[j]) * scale);
	}
}

/* The row of the cache that holds a position. */
static __device__ __forceinline__ uint32_t attend_row(const struct decode_attend_args *a, uint32_t position)
{
	const uint32_t page = (uint32_t)a->page[position >> a->page_bits];

	return (page << a->page_bits) + (position & ((1u << a->page_bits) - 1));
}

/* `new_row`: the cache's row of the position. */
static __device__ __forceinline__ void attend_stage(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s,
						    uint32_t new_row)
{
	const struct decode_heads *h = &a->heads;
	const uint32_t dim = h->head_dim, own = p->end == a->position + 1 ? p->group + 2 : p->group;
	const float *k = a->qkv + (uint64_t)(h->heads + p->head) * dim, *v = k + (uint64_t)h->kv_heads * dim;
	uint16_t *row = a->kv + (uint64_t)new_row * 2 * h->kv_heads * dim + p->head * dim;

	__syncthreads();
	for (uint32_t i = threadIdx.x / 32; i < own; i += DECODE_WARPS) {
		if (i < p->group)
			rotate(a, a->qkv + (uint64_t)(p->head * p->group + i) * dim, a->q_norm,
			       h->scale * 1.44269504f, s->q + i * dim, NULL);
		else if (i == p->group)
			rotate(a, k, a->k_norm, 1, NULL, row);
		else
			for (uint32_t j = threadIdx.x % 32; j < dim; j += 32)
				row[h->kv_heads * dim + j] = to_bf16(__ldcg(v + j));
	}
	__syncthreads();
}

/* Keys and values that a thread has in flight: eight elements of each. */
struct attend_flight {
	uint4 key[DECODE_KEYS], value[DECODE_KEYS];
	uint32_t row[DECODE_KEYS]; /* the cache's rows of the keys that are loaded next */
};

/* Looks up the rows of the tile that begins with key `first`. */
static __device__ __forceinline__ void attend_look_up(const struct decode_attend_args *a, uint32_t first, uint32_t end, struct attend_flight *f)
{
	const uint32_t lanes = a->heads.head_dim / 8, groups = DECODE_THREADS / lanes;

#pragma unroll
	for (uint32_t j = 0; j < DECODE_KEYS; j++) {
		const uint32_t at = first + threadIdx.x / lanes + j * groups;

		if (at < end)
			f->row[j] = attend_row(a, at);
	}
}

/* Loads keys from .. end, of those that belong to the same tile as key `first`. Their rows are looked up. */
static __device__ __forceinline__ void attend_load(const struct decode_attend_args *a, uint32_t head, uint32_t first, uint32_t from,
						   uint32_t end, struct attend_flight *f)
{
	const uint32_t dim = a->heads.head_dim, lanes = dim / 8, groups = DECODE_THREADS / lanes;
	const uint64_t ld = (uint64_t)2 * a->heads.kv_heads * dim;

#pragma unroll
	for (uint32_t j = 0; j < DECODE_KEYS; j++) {
		const uint32_t at = first + threadIdx.x / lanes + j * groups;
		const uint16_t *k = a->kv + f->row[j] * ld + head * dim + threadIdx.x % lanes * 8;

		if (at >= from && at < end) {
			f->key[j] = __ldcg((const uint4 *)k);
			f->value[j] = __ldcg((const uint4 *)(k + a->heads.kv_heads * dim));
		}
	}
}

/* Stores the loaded keys and values, from key `first` on, in the tiles. */
static __device__ __forceinline__ void attend_tile(const struct attend_room *s, uint32_t dim, uint32_t keys, const struct attend_flight *f)
{
	const uint32_t lanes = dim / 8, groups = DECODE_THREADS / lanes;

	__syncthreads();
#pragma unroll
	for (uint32_t j = 0; j < DECODE_KEYS; j++) {
		const uint32_t at = threadIdx.x / lanes + j * groups, to = at * (dim + 8) + threadIdx.x % lanes * 8;

		if (at < keys) {
			*(uint4 *)(s->keys + to) = f->key[j];
			*(uint4 *)(s->values + to) = f->value[j];
		}
	}
	__syncthreads();
}

/* A warp's partial result for one query head: the largest score, the sum of exponentials, and each lane's
 * elements of the weighted values. */
struct attend_sum {
	float most, total, value[ATTEND_PAIRS][2];
};

static __device__ __forceinline__ float attend_score(const struct attend_room *s, const float *q, uint32_t dim, uint32_t key)
{
	const uint4 *k = (const uint4 *)(s->keys + key * (dim + 8));
	const float4 *with = (const float4 *)q;
	float even = 0, odd = 0;

#pragma unroll 2
	for (uint32_t i = 0; i < dim / 8; i += 2) {
		even = eight(k[i], with[2 * i], with[2 * i + 1], even);
		odd = eight(k[i + 1], with[2 * i + 2], with[2 * i + 3], odd);
	}
	return even + odd;
}

/* Adds keys from .. end of the tiles to the sum. For scores a lane has one key; for values a lane has some
 * elements of each. */
static __device__ __forceinline__ void attend_keys(const struct attend_room *s, const float *q, uint32_t dim, uint32_t from, uint32_t end,
						   struct attend_sum *sum)
{
	const uint32_t lane = threadIdx.x % 32;
	float *share = s->share + threadIdx.x / 32 * 32;

	for (; from < end; from += 32) {
		const uint32_t keys = end - from < 32 ? end - from : 32;
		const float score = lane < keys ? attend_score(s, q, dim, from + lane) : -1e30f, before = sum->most;
		float most = fmaxf(before, score), power;

#pragma unroll
		for (int offset = 16; offset; offset /= 2)
			most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
		power = lane < keys ? exp2f(score - most) : 0;
		share[lane] = power;
		sum->total = sum->total * exp2f(before - most) + warp_sum(power);
		sum->most = most;
#pragma unroll
		for (uint32_t e = 0; e < ATTEND_PAIRS; e++) {
			sum->value[e][0] *= exp2f(before - most);
			sum->value[e][1] *= exp2f(before - most);
		}
		__syncwarp();
#pragma unroll 4
		for (uint32_t j = 0; j < keys; j++) {
			const uint32_t *v = (const uint32_t *)(s->values + (from + j) * (dim + 8)) + lane;

#pragma unroll
			for (uint32_t e = 0; e < ATTEND_PAIRS; e++)
				if (2 * lane + 64 * e < dim) {
					sum->value[e][0] += share[j] * bf16_low(v[32 * e]);
					sum->value[e][1] += share[j] * bf16_high(v[32 * e]);
				}
		}
		__syncwarp();
	}
}

/* Combines the warps' sums into o if the block has the whole cache, else into its split's part. Each head has
 * `parts` warps. */
static __device__ __forceinline__ void attend_put(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s,
						  uint32_t head0, uint32_t heads, uint32_t parts, const struct attend_sum *sum)
{
	const uint32_t dim = a->heads.head_dim, lane = threadIdx.x % 32, warp = threadIdx.x / 32;

#pragma unroll
	for (uint32_t e = 0; e < ATTEND_PAIRS; e++)
		if (2 * lane + 64 * e < dim) {
			s->sums[warp * dim + 2 * lane + 64 * e] = sum->value[e][0];
			s->sums[warp * dim + 2 * lane + 64 * e + 1] = sum->value[e][1];
		}
	if (lane == 0) {
		s->most[warp] = sum->most;
		s->total[warp] = sum->total;
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < heads * dim; i += DECODE_THREADS) {
		const uint32_t h = i / dim, d = i % dim, head = p->head * p->group + head0 + h;
		float *part = a->part + (uint64_t)(p->index * a->heads.heads + head) * (dim + 2);
		float most = -1e30f, total = 0, all = 0;

		for (uint32_t w = h; w < heads * parts; w += heads)
			most = fmaxf(most, s->most[w]);
		for (uint32_t w = h; w < heads * parts; w += heads) {
			const float factor = exp2f(s->most[w] - most);

			total += factor * s->total[w];
			all += factor * s->sums[w * dim + d];
		}
		if (p->count == 1) {
			a->o[head * dim + d] = all / total;
		} else {
			part[d] = all;
			if (d == 0) {
				part[dim] = most;
				part[dim + 1] = total;
			}
		}
	}
}

/* q must be staged, the first keys loaded, and the rows of those after them looked up. The block processes up to one query head per warp at a time.
 * If there are fewer heads, several warps share a head and take equal parts of the keys. */
static __device__ __forceinline__ void attend_split(const struct decode_attend_args *a, const struct split *p,
						    const struct attend_room *s, struct attend_flight *f)
{
	const uint32_t dim = a->heads.head_dim, stride = DECODE_KEYS * DECODE_THREADS * 8 / dim, warp = threadIdx.x / 32;

	for (uint32_t head0 = 0; head0 < p->group; head0 += DECODE_WARPS) {
		const uint32_t heads = p->group - head0 < DECODE_WARPS ? p->group - head0 : DECODE_WARPS;
		const uint32_t parts = DECODE_WARPS / heads;
		struct attend_sum sum = {-1e30f, 0, {{0, 0}, {0, 0}}}; /* not -inf: -inf - -inf is NaN */

		if (head0) {
			attend_look_up(a, p->first, p->end, f);
			attend_load(a, p->head, p->first, p->first, p->end, f);
			attend_look_up(a, p->first + stride, p->end, f);
		}
		for (uint32_t first = p->first; first < p->end; first += stride) {
			const uint32_t keys = p->end - first < stride ? p->end - first : stride;

			attend_tile(s, dim, keys, f);
			if (first + stride < p->end) {
				attend_load(a, p->head, first + stride, first + stride, p->end, f);
				attend_look_up(a, first + 2 * stride, p->end, f);
			}
			if (warp < heads * parts)
				attend_keys(s, s->q + (head0 + warp % heads) * dim, dim, keys * (warp / heads) / parts,
					    keys * (warp / heads + 1) / parts, &sum);
		}
		attend_put(a, p, s, head0, heads, parts, &sum);
		__syncthreads();
	}
}

/* Adds the splits of a KV head. All of them must have arrived. */
static __device__ __forceinline__ void attend_join(const struct decode_attend_args *a, const struct split *p)
{
	const uint32_t dim = a->heads.head_dim;

	for (uint32_t i = threadIdx.x; i < p->group * dim; i += DECODE_THREADS) {
		const uint32_t head = p->head * p->group + i / dim;
		const float *part = a->part + (uint64_t)head * (dim + 2);
		const uint64_t step = (uint64_t)a->heads.heads * (dim + 2);
		float most = -1e30f, total = 0, all = 0;

#pragma unroll 4
		for (uint32_t j = 0; j < p->count; j++) {
			const float score = __ldcg(part + j * step + dim), sum = __ldcg(part + j * step + dim + 1);
			const float value = __ldcg(part + j * step + i % dim), before = most;
			float old, now;

			most = fmaxf(most, score);
			old = exp2f(before - most);
			now = exp2f(score - most);
			total = old * total + now * sum;
			all = old * all + now * value;
		}
		a->o[head * dim + i % dim] = all / total;
	}
}

/* Returns true in the block that arrives last among the splits of its KV head. */
static __device__ __forceinline__ int attend_arrive(const struct decode_attend_args *a, const struct split *p, float *notes)
{
	uint32_t *last = (uint32_t *)notes + 64;

	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		*last = atomicAdd(a->arrived + p->head, 1u) == p->count - 1;
		if (*last)
			a->arrived[p->head] = 0;
		__threadfence();
	}
	__syncthreads();
	return *last != 0;
}

static __device__ __forceinline__ struct attend_room attend_room_of(const struct decode_heads *h, const struct room *s)
{
	const uint32_t group = h->heads / h->kv_heads, tile = decode_tile(h->head_dim);
	struct attend_room m = {s->x, s->x + group * h->head_dim, NULL, NULL, NULL, s->notes, s->notes + DECODE_WARPS};

	m.keys = (uint16_t *)(m.share + DECODE_THREADS);
	m.values = m.keys + 2 * tile;
	m.sums = m.share + DECODE_THREADS + 2 * tile;
	return m;
}

/* Computes the block's part of attention, in shared memory from s->x on. Returns false if it had none. */
static __device__ __forceinline__ int attend(const struct decode_attend_args *a, const struct room *s)
{
	const struct decode_heads *h = &a->heads;
	const uint32_t group = h->heads / h->kv_heads;
	const struct attend_room m = attend_room_of(h, s);
	const uint32_t stride = DECODE_KEYS * DECODE_THREADS * 8 / h->head_dim;
	uint32_t each, splits = attend_splits(a->position + 1, h->kv_heads, &each);

	for (uint32_t item = blockIdx.x; item < splits * h->kv_heads; item += gridDim.x) {
		struct split p = {item % h->kv_heads, group, item / h->kv_heads * each, 0, item / h->kv_heads, splits};
		const uint32_t new_row = attend_row(a, a->position);
		struct attend_flight f = {0};

		p.end = p.first + each < a->position + 1 ? p.first + each : a->position + 1;
		attend_look_up(a, p.first, p.end, &f);
		/* load cached keys without waiting for the new row */
		attend_load(a, p.head, p.first, p.first, p.end < a->position ? p.end : a->position, &f);
		attend_stage(a, &p, &m, new_row);
		attend_load(a, p.head, p.first, a->position, p.end, &f);
		attend_look_up(a, p.first + stride, p.end, &f);
		attend_split(a, &p, &m, &f);
		if (splits > 1 && attend_arrive(a, &p, s->notes))
			attend_join(a, &p);
	}
	return blockIdx.x < splits * h->kv_heads;
}
#endif
