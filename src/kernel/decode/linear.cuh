/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a token: a matrix-vector multiplication that reads the matrix at the memory's rate
 * (weight_ring.cuh). If a row is split between warps, its partial sums are added in shared memory in a fixed
 * order.
 *
 * The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_DECODE_LINEAR_CUH
#define KERNEL_DECODE_LINEAR_CUH
#include "kernel/decode/weight_ring.cuh"

#define STAGE_BATCH 5

struct room {
	float *notes;	/* 32 words for sums of warps, 32 free, 32 for attention; then the rows of each warp's ring */
	float *x;	/* the vector, with permuted chunks: see place_of */
	float *u; /* A x of the adapters */
};

/* Partial sums of each row in each unit. They follow the vector. */
static __device__ __forceinline__ float *sums_of(const struct room *s, const struct rows *r)
{
	return s->x + r->chunks * DECODE_CHUNK;
}

static __device__ __forceinline__ float bf16_low(uint32_t pair)
{
	return __uint_as_float(pair << 16);
}

static __device__ __forceinline__ float bf16_high(uint32_t pair)
{
	return __uint_as_float(pair & 0xffff0000u);
}

static __device__ __forceinline__ float bf16_at(const uint16_t *p, uint64_t i)
{
	return __uint_as_float((uint32_t)p[i] << 16);
}

/* Rounds to nearest, ties to even. */
static __device__ __forceinline__ uint16_t to_bf16(float f)
{
	uint32_t bits = __float_as_uint(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, offset);
	return v;
}

/* Position of four neighbours of the vector, in units of four. A lane's eight elements are split over two
 * halves of their chunk, so a warp reads 16 bytes per lane without bank conflicts. */
static __device__ __forceinline__ uint32_t place_of(uint32_t four)
{
	const uint32_t chunk = four / 64, lane = four % 64 / 2, half = four % 2;

	return chunk * 64 + half * 32 + lane;
}

/* Four elements of the vector: F32 written by other blocks or, if x is NULL, BF16 from `row`. Elements past
 * the end are zeros, and so are all if there is neither. */
static __device__ __forceinline__ float4 four_of(const float *x, const uint16_t *row, uint32_t in, uint32_t four)
{
	uint2 pairs;

	if (4 * four >= in || (!x && !row))
		return make_float4(0, 0, 0, 0);
	if (x)
		return __ldcg((const float4 *)x + four);
	pairs = ((const uint2 *)row)[four];
	return make_float4(bf16_low(pairs.x), bf16_high(pairs.x), bf16_low(pairs.y), bf16_high(pairs.y));
}

/* Stages the vector in shared memory, multiplied by norm if that is not NULL. The division by the root mean
 * square is applied to the results later: see rstd_of. Each thread has STAGE_BATCH loads in flight. */
static __device__ __forceinline__ void stage(const struct room *s, const float *x, const uint16_t *row, const uint16_t *norm, uint32_t in)
{
	float4 *to = (float4 *)s->x;
	float squares = 0;

	__syncthreads();
	for (uint32_t first = threadIdx.x; first < decode_padded(in) / 4; first += STAGE_BATCH * DECODE_THREADS) {
		float4 v[STAGE_BATCH];
		uint2 w[STAGE_BATCH];

#pragma unroll
		for (uint32_t j = 0; j < STAGE_BATCH; j++) {
			const uint32_t i = first + j * DECODE_THREADS;

			v[j] = four_of(x, row, in, i);
			if (norm && 4 * i < in)
				w[j] = ((const uint2 *)norm)[i];
			else
				w[j].x = w[j].y = 0x3f803f80u; /* ones */
		}
#pragma unroll
		for (uint32_t j = 0; j < STAGE_BATCH; j++) {
			const uint32_t i = first + j * DECODE_THREADS;

			squares += v[j].x * v[j].x + v[j].y * v[j].y + v[j].z * v[j].z + v[j].w * v[j].w;
			v[j].x *= bf16_low(w[j].x);
			v[j].y *= bf16_high(w[j].x);
			v[j].z *= bf16_low(w[j].y);
			v[j].w *= bf16_high(w[j].y);
			if (i < decode_padded(in) / 4)
				to[place_of(i)] = v[j];
		}
	}
	if (norm) {
		squares = warp_sum(squares);
		if (threadIdx.x % 32 == 0)
			s->notes[threadIdx.x / 32] = squares;
	}
	__syncthreads();
}

/* 1 / root mean square of the vector that was staged last, added in a fixed order. */
static __device__ __forceinline__ float rstd_of(const struct room *s, uint32_t in, float eps)
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < DECODE_WARPS; i++)
		sum += s->notes[i];
	return rsqrtf(sum / (float)in + eps);
}

static __device__ __forceinline__ void stage_u(const struct room *s, const float *u, uint32_t count)
{
	for (uint32_t i = threadIdx.x; i < count; i += DECODE_THREADS)
		s->u[i] = __ldcg(u + i);
	__syncthreads();
}

/* A linear layer and its fused operations. The struct is not in a thread's local memory, because shared
 * memory leaves almost no L1 for it. */
struct step {
	const struct decode_map *map;
	const float *x, *residual;
	const uint16_t *row, *norm; /* row: a row of the embedding, used if x is NULL */
	float *out, *u;
	float eps;
	uint32_t kind;
};

static __device__ __forceinline__ float eight(uint4 w, float4 low, float4 high, float sum)
{
	sum += bf16_low(w.x) * low.x;
	sum += bf16_high(w.x) * low.y;
	sum += bf16_low(w.y) * low.z;
	sum += bf16_high(w.y) * low.w;
	sum += bf16_low(w.z) * high.x;
	sum += bf16_high(w.z) * high.y;
	sum += bf16_low(w.w) * high.z;
	sum += bf16_high(w.w) * high.w;
	return sum;
}

/* Stores a unit's partial sum of a row. */
static __device__ __forceinline__ void put(float *sums, uint32_t unit, uint32_t row, float sum)
{
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		sums[unit + row] = sum;
}

/* Computes all dot products of the block. The sums are complete after the barrier at the end. The ring
 * delivers the parts of r. */
static __device__ __forceinline__ void dots(struct feed *f, const struct rows *r, const struct room *s)
{
	const uint32_t lane = threadIdx.x % 32;
	const float4 *x = (const float4 *)s->x + lane;
	float *sums = sums_of(s, r);
	struct part p;

	part_open(&p, r, threadIdx.x / 32);
	feed_fill(f); /* a warp without rows in earlier steps has requested nothing since this layer's table arrived */
	while (p.n) {
		const uint32_t slot = f->slots + f->got * DECODE_SLOT_BYTES + lane * 16;
		uint32_t row = p.at / r->chunks, chunk = p.at - row * r->chunks;
		float sum = 0;

		copy_wait(f->held - 1);
		if (p.n == DECODE_UNIT && p.limit == 0xffffffffu && chunk + DECODE_UNIT <= r->chunks) {
			uint4 w[DECODE_UNIT];
			float more = 0;

#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++)
				w[j] = load_shared(slot + j * 2 * DECODE_CHUNK);
#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++) {
				const uint32_t at = (chunk + j) * 64;

				if (j % 2)
					more = eight(w[j], x[at], x[at + 32], more);
				else
					sum = eight(w[j], x[at], x[at + 32], sum);
			}
			sum += more;
		} else {
#pragma unroll 1
			for (uint32_t j = 0; j < p.n; j++) {
				if (chunk == r->chunks) {
					put(sums, p.unit, row, sum);
					sum = 0;
					chunk = 0;
					row++;
				}
				if (chunk * DECODE_CHUNK + lane * 8 < r->in)
					sum = eight(load_shared(slot + j * 2 * DECODE_CHUNK), x[chunk * 64], x[chunk * 64 + 32], sum);
				chunk++;
			}
		}
		f->held--;
		f->got = f->got + 1 == f->depth ? 0 : f->got + 1;
		feed_fill(f);
		put(sums, p.unit, row, sum);
		part_on(&p);
	}
	__syncthreads();
}

/* The sum of local row i: adds the partial sums of all its units in order. */
static __device__ __forceinline__ float sum_of(const struct rows *r, const struct room *s, uint32_t i)
{
	uint32_t first, last;
	float v = 0;

	if (r->segment > r->chunks) {
		const uint32_t second = i >= r->count, row = second ? i - r->count : i;

		first = second * r->units + row * r->chunks / DECODE_UNIT;
		last = second * r->units + ((row + 1) * r->chunks - 1) / DECODE_UNIT;
	} else {
		first = i * r->units;
		last = first + r->units - 1;
	}
#pragma unroll 4
	for (; first <= last; first++)
		v += sums_of(s, r)[first + i];
	return v;
}

static __device__ __forceinline__ float adapters_of(const struct decode_map *m, const struct room *s, uint32_t row)
{
	float sum = 0;

	for (uint32_t i = 0; i < m->adapters; i++) {
		const float *u = s->u + i * m->rank;
		const uint16_t *b = m->b[i] + (uint64_t)(row - m->begin[i]) * m->rank;

		if (row < m->begin[i] || row >= m->end[i])
			continue;
		if (m->rank % 8) {
			for (uint32_t j = 0; j < m->rank; j++)
				sum += bf16_at(b, j) * u[j];
		} else {
			for (uint32_t j = 0; j < m->rank; j += 8)
				sum = eight(*(const uint4 *)(b + j), make_float4(u[j], u[j + 1], u[j + 2], u[j + 3]),
					    make_float4(u[j + 4], u[j + 5], u[j + 6], u[j + 7]), sum);
		}
	}
	return m->scale * sum;
}

static __device__ __forceinline__ float y_of(const struct decode_map *m, const struct rows *r, const struct room *s, uint32_t i, float rstd)
{
	const uint32_t row = i < r->count ? r->first + i : r->second + (i - r->count);
	const float y = rstd * sum_of(r, s, i);

	return m->adapters ? y + adapters_of(m, s, row) : y;
}

/* The value added to a row's dot product: bias or residual. */
static __device__ __forceinline__ float added_to(const struct step *a, uint32_t row)
{
	if (a->kind == DECODE_ADD)
		return __ldcg(a->residual + row);
	return a->map->bias ? bf16_at(a->map->bias, row) : 0;
}

/* Computes a linear layer and writes its output. x must be staged. Only PLAIN adds a bias, only ADD a
 * residual. */
static __device__ __forceinline__ void linear_out(struct feed *f, const struct step *a, int down, const struct room *s)
{
	const struct decode_map *m = a->map;
	const struct rows r = rows_of_map(m, down, a->kind == DECODE_SWIGLU);
	const float early = !down && threadIdx.x < r.count ? added_to(a, r.first + threadIdx.x) : 0;
	float rstd = 1;

	dots(f, &r, s);
	if (a->norm)
		rstd = rstd_of(s, m->in, a->eps);
	for (uint32_t i = threadIdx.x; i < r.count; i += DECODE_THREADS) {
		const uint32_t row = r.first + i;

		if (down) {
			a->u[row] = rstd * sum_of(&r, s, i);
		} else if (a->kind == DECODE_SWIGLU) {
			const float gate = y_of(m, &r, s, i, rstd), up = y_of(m, &r, s, r.count + i, rstd);

			a->out[row] = gate / (1 + expf(-gate)) * up;
		} else {
			a->out[row] = y_of(m, &r, s, i, rstd) + (i == threadIdx.x ? early : added_to(a, row));
		}
	}
}
#endif
