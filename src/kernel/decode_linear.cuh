/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a token: rows of a matrix times a vector, read at the memory's rate. The rows are dealt to the grid's blocks in
 * equal runs; a block's run is a sequence of chunks (512 bytes of a row) and each warp takes an equal, contiguous part of it,
 * so that no warp is idle whatever the shape. Rows cut between warps are added up in shared memory, in their order. Two
 * batches of 16-byte loads are in flight a warp: 8 KiB, 128 KiB an SM.
 *
 * It is C but for what nvcc adds, so that tests/gpu/emulate.h runs it on a CPU.
 */
#ifndef KERNEL_DECODE_LINEAR_CUH
#define KERNEL_DECODE_LINEAR_CUH
#include <stddef.h>
#include "kernel/decode.h"

#ifndef EMULATED
#define ENTRY extern "C" __global__
#endif
#define DECODE_BATCH 8 /* loads of 16 bytes that a lane has in flight, twice */

struct room {
	float *notes;	/* DECODE_MISC words: 32 of sums of warps, 16 of rows' ends, 16 of their rows, 32 free */
	float *x;	/* the vector, its chunks permuted: see place_of */
	float *u, *sum; /* of the adapters; of each row */
};

/* A block's rows: `count` from `first`, then as many from `second` where rows are dealt in pairs. */
struct rows {
	const uint16_t *w;
	uint64_t ld;
	uint32_t in, chunks, first, second, count, all;
};

static __device__ float bf16_low(uint32_t pair)
{
	return __uint_as_float(pair << 16);
}

static __device__ float bf16_high(uint32_t pair)
{
	return __uint_as_float(pair & 0xffff0000u);
}

static __device__ float bf16_at(const uint16_t *p, uint64_t i)
{
	return __uint_as_float((uint32_t)p[i] << 16);
}

/* To nearest, ties to even. */
static __device__ uint16_t to_bf16(float f)
{
	uint32_t bits = __float_as_uint(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Weights are read once a token: past the L1. */
static __device__ uint4 load_weights(const uint16_t *p)
{
#ifndef EMULATED
	uint4 v;

	asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "l"(p));
	return v;
#else
	return *(const uint4 *)p;
#endif
}

static __device__ void prefetch_bytes(const uint16_t *p, uint32_t bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	if (threadIdx.x % 32 == 0)
		asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(p), "r"(bytes) : "memory");
#elif defined(__CUDA_ARCH__)
	for (uint32_t at = threadIdx.x % 32 * 128; at < bytes; at += 32 * 128)
		asm volatile("prefetch.global.L2 [%0];" : : "l"((const char *)p + at) : "memory");
#else
	(void)p, (void)bytes;
#endif
}

static __device__ float warp_sum(float v)
{
#pragma unroll
	for (int offset = 16; offset; offset /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, offset);
	return v;
}

/* Every thread gets the block's sum, added in one order. */
static __device__ float block_sum_all(const struct room *s, float v)
{
	float sum = 0;

	v = warp_sum(v);
	if (threadIdx.x % 32 == 0)
		s->notes[threadIdx.x / 32] = v;
	__syncthreads();
#pragma unroll
	for (int i = 0; i < DECODE_WARPS; i++)
		sum += s->notes[i];
	return sum;
}

static __device__ struct rows rows_of(const uint16_t *w, uint32_t out, uint32_t in, uint64_t ld, int pairs)
{
	uint32_t dealt = pairs ? out / 2 : out;
	uint32_t first = (uint32_t)((uint64_t)dealt * blockIdx.x / gridDim.x);
	uint32_t end = (uint32_t)((uint64_t)dealt * (blockIdx.x + 1) / gridDim.x);
	struct rows r = {w, ld, in, (in + DECODE_CHUNK - 1) / DECODE_CHUNK, first, dealt + first, end - first, 0};

	r.all = pairs ? 2 * r.count : r.count;
	return r;
}

static __device__ const uint16_t *row_at(const struct rows *r, uint32_t i)
{
	return r->w + (uint64_t)(i < r->count ? r->first + i : r->second + (i - r->count)) * r->ld;
}

static __device__ uint32_t part_begin(const struct rows *r, uint32_t warp)
{
	return (uint32_t)((uint64_t)r->all * r->chunks * warp / DECODE_WARPS);
}

/* The first `bytes` of what this warp will read. */
static __device__ void prefetch_rows(const struct rows *r, uint32_t bytes)
{
	const uint32_t warp = threadIdx.x / 32, end = part_begin(r, warp + 1);

	for (uint32_t at = part_begin(r, warp); at < end && bytes;) {
		const uint32_t chunk = at % r->chunks, left = r->chunks - chunk;
		const uint32_t n = left < end - at ? left : end - at;
		uint32_t elements = n * DECODE_CHUNK, rest = r->in - chunk * DECODE_CHUNK;

		elements = elements < rest ? elements : rest;
		elements = 2 * elements < bytes ? elements : bytes / 2;
		elements = (elements + 7) / 8 * 8;
		prefetch_bytes(row_at(r, at / r->chunks) + chunk * DECODE_CHUNK, 2 * elements);
		bytes -= 2 * elements < bytes ? 2 * elements : bytes;
		at += n;
	}
}

/* Where four neighbours of the vector stand: a lane's eight are in two halves of their chunk, so that a warp reads 16 bytes a
 * lane without conflicts. In vectors of four. */
static __device__ uint32_t place_of(uint32_t four)
{
	const uint32_t chunk = four / 64, lane = four % 64 / 2, half = four % 2;

	return chunk * 64 + half * 32 + lane;
}

/* x, F32 written by other blocks, or a row of BF16 (`row`, where x is NULL); normed where norm is there. */
static __device__ void stage(const struct room *s, const float *x, const uint16_t *row, const uint16_t *norm, uint32_t in,
			     float eps)
{
	float4 *to = (float4 *)s->x;
	float squares = 0;

	__syncthreads();
	for (uint32_t i = threadIdx.x; i < decode_padded(in) / 4; i += DECODE_THREADS) {
		float4 v = make_float4(0, 0, 0, 0);

		if (4 * i < in && x) {
			v = __ldcg((const float4 *)x + i);
		} else if (4 * i < in) {
			const uint2 pairs = ((const uint2 *)row)[i];

			v = make_float4(bf16_low(pairs.x), bf16_high(pairs.x), bf16_low(pairs.y), bf16_high(pairs.y));
		}
		to[place_of(i)] = v;
		squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
	}
	if (norm) {
		const float rstd = rsqrtf(block_sum_all(s, squares) / (float)in + eps);

		for (uint32_t i = threadIdx.x; 4 * i < in; i += DECODE_THREADS) {
			const uint2 w = ((const uint2 *)norm)[i];
			float4 v = to[place_of(i)];

			v.x *= rstd * bf16_low(w.x);
			v.y *= rstd * bf16_high(w.x);
			v.z *= rstd * bf16_low(w.y);
			v.w *= rstd * bf16_high(w.y);
			to[place_of(i)] = v;
		}
	}
	__syncthreads();
}

static __device__ void stage_u(const struct room *s, const float *u, uint32_t count)
{
	for (uint32_t i = threadIdx.x; i < count; i += DECODE_THREADS)
		s->u[i] = __ldcg(u + i);
	__syncthreads();
}

/* Where a warp is in its part. */
struct walk {
	const uint16_t *p; /* this lane's eight elements */
	uint32_t row, chunk, at;
};

static __device__ void walk_on(const struct rows *r, struct walk *w)
{
	w->p += DECODE_CHUNK;
	w->at++;
	if (++w->chunk == r->chunks) {
		w->chunk = 0;
		w->row++;
		w->p = row_at(r, w->row) + threadIdx.x % 32 * 8;
	}
}

static __device__ void load_batch(const struct rows *r, struct walk *w, uint32_t end, uint4 *batch)
{
#pragma unroll
	for (int j = 0; j < DECODE_BATCH; j++) {
		batch[j] = make_uint4(0, 0, 0, 0);
		if (w->at < end) {
			if (w->chunk * DECODE_CHUNK + threadIdx.x % 32 * 8 < r->in)
				batch[j] = load_weights(w->p);
			walk_on(r, w);
		}
	}
}

static __device__ float eight(uint4 w, float4 low, float4 high, float sum)
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

/* A row's end, or this warp's: the part goes where its row began, else to the warp's own place. */
static __device__ void put(const struct room *s, uint32_t row, int begun_before, float sum)
{
	sum = warp_sum(sum);
	if (threadIdx.x % 32)
		return;
	if (begun_before)
		s->notes[32 + threadIdx.x / 32] = sum;
	else
		s->sum[row] = sum;
}

static __device__ void add_batch(const struct rows *r, const struct room *s, struct walk *w, uint32_t end, uint32_t cut_row,
				 const uint4 *batch, float *sum)
{
	const float4 *x = (const float4 *)s->x + threadIdx.x % 32;

#pragma unroll
	for (int j = 0; j < DECODE_BATCH; j++) {
		if (w->at < end) {
			*sum = eight(batch[j], x[w->chunk * 64], x[w->chunk * 64 + 32], *sum);
			w->at++;
			if (++w->chunk == r->chunks) {
				put(s, w->row, w->row == cut_row, *sum);
				*sum = 0;
				w->chunk = 0;
				w->row++;
			}
		}
	}
}

/* All products of the block; s->sum and the warps' notes are complete behind the barrier at its end. */
static __device__ void dots(const struct rows *r, const struct room *s)
{
	const uint32_t warp = threadIdx.x / 32, begin = part_begin(r, warp), end = part_begin(r, warp + 1);
	struct walk load = {NULL, begin / r->chunks, begin % r->chunks, begin}, add = load;
	const int cut = begin < end && load.chunk;
	const uint32_t cut_row = cut ? load.row : 0xffffffffu;
	uint4 even[DECODE_BATCH], odd[DECODE_BATCH];
	float sum = 0;

	if (threadIdx.x % 32 == 0)
		((uint32_t *)s->notes)[48 + warp] = cut_row;
	load.p = row_at(r, load.row) + load.chunk * DECODE_CHUNK + threadIdx.x % 32 * 8;
	load_batch(r, &load, end, even);
	while (add.at < end) {
		load_batch(r, &load, end, odd);
		add_batch(r, s, &add, end, cut_row, even, &sum);
		load_batch(r, &load, end, even);
		add_batch(r, s, &add, end, cut_row, odd, &sum);
	}
	if (begin < end && add.chunk)
		put(s, add.row, add.row == cut_row, sum);
	__syncthreads();
}

/* Of local row i, with what other warps have of it. */
static __device__ float sum_of(const struct room *s, uint32_t i)
{
	float v = s->sum[i];

#pragma unroll
	for (int w = 1; w < DECODE_WARPS; w++)
		if (((const uint32_t *)s->notes)[48 + w] == i)
			v += s->notes[32 + w];
	return v;
}

static __device__ float adapters_of(const struct decode_map *m, const struct room *s, uint32_t row)
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

static __device__ float y_of(const struct decode_map *m, const struct rows *r, const struct room *s, uint32_t i)
{
	const uint32_t row = i < r->count ? r->first + i : r->second + (i - r->count);
	float y = sum_of(s, i) + (m->bias ? bf16_at(m->bias, row) : 0);

	return m->adapters ? y + adapters_of(m, s, row) : y;
}

/* The larger, the lower id of equals. id -1: none. */
static __device__ int is_better(float v, int32_t id, float than, int32_t than_id)
{
	return id >= 0 && (than_id < 0 || v > than || (v == than && id < than_id));
}

/* The best that the block's threads have, in thread 0; in the place of x. */
static __device__ void best_of_block(const struct room *s, float *value, int32_t *id)
{
	float *values = s->x;
	int32_t *ids = (int32_t *)s->x + DECODE_THREADS;

	__syncthreads();
	values[threadIdx.x] = *value;
	ids[threadIdx.x] = *id;
	for (uint32_t half = DECODE_THREADS / 2; half; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half && is_better(values[threadIdx.x + half], ids[threadIdx.x + half], values[threadIdx.x],
						    ids[threadIdx.x])) {
			values[threadIdx.x] = values[threadIdx.x + half];
			ids[threadIdx.x] = ids[threadIdx.x + half];
		}
	}
	__syncthreads();
	*value = values[0];
	*id = ids[0];
}

static __device__ void logits_out(const struct decode_linear_args *a, const struct rows *r, const struct room *s)
{
	uint32_t *infinite = (uint32_t *)s->notes + 64;
	float best = 0;
	int32_t id = -1;

	if (threadIdx.x == 0)
		*infinite = 0;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < r->all; i += DECODE_THREADS) {
		const float v = y_of(&a->map, r, s, i);
		const int32_t row = (int32_t)(r->first + i);

		a->out[row] = v;
		if (!(fabsf(v) <= 3.402823466e38f))
			*infinite = 1;
		if ((uint32_t)row < a->limit && is_better(v, row, best, id)) {
			best = v;
			id = row;
		}
	}
	best_of_block(s, &best, &id);
	if (threadIdx.x == 0) {
		const struct decode_best found = {best, id, *infinite, 0};

		a->best[blockIdx.x] = found;
	}
}

/* What a map's rows become; x is staged. */
static __device__ void linear_out(const struct decode_linear_args *a, const struct room *s)
{
	const struct decode_map *m = &a->map;
	const int down = a->kind == DECODE_DOWN;
	const struct rows r = down ? rows_of(m->a, m->adapters * m->rank, m->in, m->in, 0)
				   : rows_of(m->w, m->out, m->in, m->ld, a->kind == DECODE_SWIGLU);

	dots(&r, s);
	if (a->kind == DECODE_LOGITS) {
		logits_out(a, &r, s);
		return;
	}
	for (uint32_t i = threadIdx.x; i < r.count; i += DECODE_THREADS) {
		const uint32_t row = r.first + i;

		if (down) {
			a->u[row] = sum_of(s, i);
		} else if (a->kind == DECODE_SWIGLU) {
			const float gate = y_of(m, &r, s, i), up = y_of(m, &r, s, r.count + i);

			a->out[row] = gate / (1 + expf(-gate)) * up;
		} else {
			a->out[row] = y_of(m, &r, s, i) + (a->kind == DECODE_ADD ? __ldcg(a->residual + row) : 0);
		}
	}
}
#endif
