/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of rows to the cache, one at a time. A KV head's keys are split over blocks; the query heads that share it are taken together, so
 * that each key and value is read once. Within a block head_dim / 8 lanes have a key, DECODE_KEYS keys are in flight a
 * thread. The block with the last key makes the cache's new row first. Where there are several splits, the one that ends last
 * adds them up, in their order: the same bits whoever it is.
 */
#ifndef KERNEL_DECODE_ATTEND_CUH
#define KERNEL_DECODE_ATTEND_CUH
#include "kernel/decode_linear.cuh"

struct split {
	uint32_t head, group; /* KV head; query heads that share it */
	uint32_t first, end;  /* keys */
	uint32_t index, count;
	uint16_t *row; /* where the result goes in BF16; NULL: to o in F32, or in parts */
};

/* Shared memory of a block that attends. */
struct attend_room {
	float *q;			/* (group, head_dim): rotated, times scale * log2(e) */
	float *score;			/* (DECODE_GROUP, keys at once) */
	float *sums;			/* (warps, DECODE_GROUP or group, head_dim) */
	float *most, *total, *factor;	/* (DECODE_GROUP) each */
};

static __device__ uint32_t attend_splits(uint32_t keys, uint32_t kv_heads, uint32_t *each)
{
	uint32_t most = gridDim.x / kv_heads;

	most = most < 1 ? 1 : most > DECODE_SPLITS ? DECODE_SPLITS : most;
	*each = (keys + most - 1) / most;
	*each = *each < DECODE_SPLIT_KEYS ? DECODE_SPLIT_KEYS : *each;
	return (keys + *each - 1) / *each;
}

/* One head of the row, by a warp: normed where w is there, rotated, times `scale`; to shared memory or, in BF16, to the cache. */
static __device__ void rotate(const struct decode_attend_args *a, const float *from, const uint16_t *w, float scale, float *to,
			      uint16_t *to_cache)
{
	const uint32_t dim = a->heads.head_dim, half = dim / 2;
	const float *angle = a->cos_sin + (uint64_t)a->position * dim;
	float rstd = 1;

	if (w) {
		float squares = 0;

		for (uint32_t i = threadIdx.x % 32; i < dim; i += 32) {
			const float v = __ldcg(from + i);

			squares += v * v;
		}
		rstd = rsqrtf(warp_sum(squares) / (float)dim + a->heads.eps);
	}
	for (uint32_t i = threadIdx.x % 32; i < half; i += 32) {
		const float c = angle[i], s = angle[half + i];
		float low = __ldcg(from + i) * rstd, high = __ldcg(from + half + i) * rstd, left, right;

		if (w) {
			low *= bf16_at(w, i);
			high *= bf16_at(w, half + i);
		}
		left = low * c - high * s;
		right = high * c + low * s;
		if (to) {
			to[i] = left * scale;
			to[half + i] = right * scale;
		} else {
			to_cache[i] = to_bf16(left);
			to_cache[half + i] = to_bf16(right);
		}
	}
}

static __device__ void attend_stage(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s)
{
	const struct decode_heads *h = &a->heads;
	const uint32_t dim = h->head_dim, own = p->end == a->position + 1 ? p->group + 2 : p->group;
	const float *k = a->qkv + (uint64_t)(h->heads + p->head) * dim, *v = k + (uint64_t)h->kv_heads * dim;
	uint16_t *row = a->kv + (uint64_t)a->position * 2 * h->kv_heads * dim + p->head * dim;

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

/* The largest score, the sum of powers of 2 and what sums so far are worth: a warp a head. Scores become powers. */
static __device__ void attend_soft(const struct attend_room *s, uint32_t heads, uint32_t keys, uint32_t stride)
{
	for (uint32_t h = threadIdx.x / 32; h < heads; h += DECODE_WARPS) {
		float *score = s->score + h * stride, most = s->most[h], before = most, sum = 0;

		for (uint32_t j = threadIdx.x % 32; j < keys; j += 32)
			most = fmaxf(most, score[j]);
		for (int offset = 16; offset; offset /= 2)
			most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
		for (uint32_t j = threadIdx.x % 32; j < keys; j += 32) {
			score[j] = exp2f(score[j] - most);
			sum += score[j];
		}
		sum = warp_sum(sum);
		if (threadIdx.x % 32 == 0) {
			s->factor[h] = exp2f(before - most);
			s->total[h] = s->total[h] * s->factor[h] + sum;
			s->most[h] = most;
		}
	}
}

/* Up to DECODE_KEYS keys a thread group from `first`: scores, then weighted values onto sum. */
static __device__ void attend_keys(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s,
				   uint32_t head0, uint32_t heads, uint32_t first, float sum[DECODE_GROUP][8])
{
	const uint32_t dim = a->heads.head_dim, lanes = dim / 8, lane = threadIdx.x % lanes;
	const uint32_t groups = DECODE_THREADS / lanes, stride = DECODE_KEYS * groups;
	const uint32_t keys = p->end - first < stride ? p->end - first : stride;
	const uint64_t ld = (uint64_t)2 * a->heads.kv_heads * dim;
	const uint16_t *k = a->kv + (first + threadIdx.x / lanes) * ld + p->head * dim + lane * 8;
	const float4 *q = (const float4 *)(s->q + head0 * dim) + lane * 2;
	uint4 key[DECODE_KEYS], value[DECODE_KEYS];

#pragma unroll
	for (int j = 0; j < DECODE_KEYS; j++) {
		key[j] = value[j] = make_uint4(0, 0, 0, 0);
		if (threadIdx.x / lanes + j * groups < keys) {
			key[j] = __ldcg((const uint4 *)(k + j * groups * ld));
			value[j] = __ldcg((const uint4 *)(k + j * groups * ld + a->heads.kv_heads * dim));
		}
	}
#pragma unroll
	for (int j = 0; j < DECODE_KEYS; j++) {
		const uint32_t at = threadIdx.x / lanes + j * groups;

		if (j * groups < keys) {
			for (uint32_t h = 0; h < heads; h++) {
				float score = eight(key[j], q[h * dim / 4], q[h * dim / 4 + 1], 0);

				for (uint32_t offset = lanes / 2; offset; offset /= 2)
					score += __shfl_xor_sync(0xffffffffu, score, offset);
				if (lane == 0 && at < keys)
					s->score[h * stride + at] = score;
			}
		}
	}
	__syncthreads();
	attend_soft(s, heads, keys, stride);
	__syncthreads();
#pragma unroll
	for (uint32_t h = 0; h < DECODE_GROUP; h++) {
		if (h < heads) {
			const float factor = s->factor[h];

#pragma unroll
			for (int e = 0; e < 8; e++)
				sum[h][e] *= factor;
#pragma unroll
			for (int j = 0; j < DECODE_KEYS; j++) {
				const uint32_t at = threadIdx.x / lanes + j * groups;
				const float share = at < keys ? s->score[h * stride + at] : 0;

				sum[h][0] += share * bf16_low(value[j].x);
				sum[h][1] += share * bf16_high(value[j].x);
				sum[h][2] += share * bf16_low(value[j].y);
				sum[h][3] += share * bf16_high(value[j].y);
				sum[h][4] += share * bf16_low(value[j].z);
				sum[h][5] += share * bf16_high(value[j].z);
				sum[h][6] += share * bf16_low(value[j].w);
				sum[h][7] += share * bf16_high(value[j].w);
			}
		}
	}
	__syncthreads();
}

/* The block's sums to o, where it has the whole cache, or to its split's part. */
static __device__ void attend_put(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s,
				  uint32_t head0, uint32_t heads, float sum[DECODE_GROUP][8])
{
	const uint32_t dim = a->heads.head_dim, lanes = dim / 8, lane = threadIdx.x % 32;

#pragma unroll
	for (uint32_t h = 0; h < DECODE_GROUP; h++) {
		if (h < heads) {
			for (uint32_t offset = 16; offset >= lanes; offset /= 2)
#pragma unroll
				for (int e = 0; e < 8; e++)
					sum[h][e] += __shfl_xor_sync(0xffffffffu, sum[h][e], offset);
			if (lane < lanes)
#pragma unroll
				for (int e = 0; e < 8; e++)
					s->sums[(threadIdx.x / 32 * heads + h) * dim + lane * 8 + e] = sum[h][e];
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < heads * dim; i += DECODE_THREADS) {
		const uint32_t h = i / dim, head = p->head * p->group + head0 + h;
		float *part = a->part + (uint64_t)(p->index * a->heads.heads + head) * (dim + 2);
		float all = 0;

		for (int w = 0; w < DECODE_WARPS; w++)
			all += s->sums[w * heads * dim + i];
		if (p->row) {
			p->row[head * dim + i % dim] = to_bf16(all / s->total[h]);
			continue;
		}
		if (p->count == 1) {
			a->o[head * dim + i % dim] = all / s->total[h];
			continue;
		}
		part[i % dim] = all;
		if (i % dim == 0) {
			part[dim] = s->most[h];
			part[dim + 1] = s->total[h];
		}
	}
}

/* q is staged. */
static __device__ void attend_split(const struct decode_attend_args *a, const struct split *p, const struct attend_room *s)
{
	const uint32_t stride = DECODE_KEYS * DECODE_THREADS * 8 / a->heads.head_dim;

	for (uint32_t head0 = 0; head0 < p->group; head0 += DECODE_GROUP) {
		const uint32_t heads = p->group - head0 < DECODE_GROUP ? p->group - head0 : DECODE_GROUP;
		float sum[DECODE_GROUP][8];

#pragma unroll
		for (int h = 0; h < DECODE_GROUP; h++)
#pragma unroll
			for (int e = 0; e < 8; e++)
				sum[h][e] = 0;
		if (threadIdx.x < DECODE_GROUP) {
			s->most[threadIdx.x] = -1e30f; /* not -inf: its difference with itself is a NaN */
			s->total[threadIdx.x] = 0;
		}
		__syncthreads();
		for (uint32_t first = p->first; first < p->end; first += stride)
			attend_keys(a, p, s, head0, heads, first, sum);
		attend_put(a, p, s, head0, heads, sum);
		__syncthreads();
	}
}

/* All splits of a KV head are there. */
static __device__ void attend_join(const struct decode_attend_args *a, const struct split *p)
{
	const uint32_t dim = a->heads.head_dim;

	for (uint32_t i = threadIdx.x; i < p->group * dim; i += DECODE_THREADS) {
		const uint32_t head = p->head * p->group + i / dim;
		const float *part = a->part + (uint64_t)head * (dim + 2);
		const uint64_t step = (uint64_t)a->heads.heads * (dim + 2);
		float most = -1e30f, total = 0, all = 0;

#pragma unroll 8
		for (uint32_t j = 0; j < p->count; j++)
			most = fmaxf(most, __ldcg(part + j * step + dim));
#pragma unroll 8
		for (uint32_t j = 0; j < p->count; j++) {
			const float factor = exp2f(__ldcg(part + j * step + dim) - most);

			total += factor * __ldcg(part + j * step + dim + 1);
			all += factor * __ldcg(part + j * step + i % dim);
		}
		a->o[head * dim + i % dim] = all / total;
	}
}

/* True in the block that is the last of its KV head's splits. */
static __device__ int attend_arrive(const struct decode_attend_args *a, const struct split *p, float *notes)
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

static __device__ struct attend_room attend_room_of(const struct decode_heads *h, const struct room *s)
{
	const uint32_t group = h->heads / h->kv_heads;
	struct attend_room m = {s->x, s->x + group * h->head_dim, NULL, s->notes + 68, s->notes + 68 + DECODE_GROUP,
				s->notes + 68 + 2 * DECODE_GROUP};

	m.sums = m.score + DECODE_GROUP * DECODE_KEYS * DECODE_THREADS * 8 / h->head_dim;
	return m;
}

/* The block's share of attention; `memory` from s->x on. False: it had none. */
static __device__ int attend(const struct decode_attend_args *a, const struct room *s)
{
	const struct decode_heads *h = &a->heads;
	const uint32_t group = h->heads / h->kv_heads;
	const struct attend_room m = attend_room_of(h, s);
	uint32_t each, splits = attend_splits(a->position + 1, h->kv_heads, &each);

	for (uint32_t item = blockIdx.x; item < splits * h->kv_heads; item += gridDim.x) {
		struct split p = {item % h->kv_heads, group, item / h->kv_heads * each, 0, item / h->kv_heads, splits, NULL};

		p.end = p.first + each < a->position + 1 ? p.first + each : a->position + 1;
		attend_stage(a, &p, &m);
		attend_split(a, &p, &m);
		if (splits > 1 && attend_arrive(a, &p, s->notes))
			attend_join(a, &p);
	}
	return blockIdx.x < splits * h->kv_heads;
}

/* A prompt's rows, rotated and in the cache already: a block has a row and a KV head at a time, the longest first. */
static __device__ void attend_rows(const struct decode_rows_args *r, const struct room *s)
{
	const struct decode_heads *h = &r->heads;
	const uint32_t group = h->heads / h->kv_heads, dim = h->head_dim;
	const struct decode_attend_args a = {NULL, NULL, NULL, NULL, r->kv, NULL, NULL, NULL, *h, 0, 0};
	const struct attend_room m = attend_room_of(h, s);

	for (uint32_t item = blockIdx.x; item < r->rows * h->kv_heads; item += gridDim.x) {
		const uint32_t row = r->rows - 1 - item / h->kv_heads, head = item % h->kv_heads;
		const uint16_t *q = r->q + (uint64_t)row * r->ld_q + head * group * dim;
		const struct split p = {head, group, 0, r->begin + row + 1, 0, 1, r->o + (uint64_t)row * r->ld_o};

		__syncthreads();
		for (uint32_t i = threadIdx.x; i < group * dim; i += DECODE_THREADS)
			m.q[i] = bf16_at(q, i) * h->scale * 1.44269504f;
		__syncthreads();
		attend_split(&a, &p, &m);
	}
}
#endif
